"""Instances: register, show, list, announce a state, take leave."""

from typing import Any

from reachnode.errors import (
    AgentIdInUse,
    CapabilityTaken,
    DuplicateCapability,
    InvalidRequest,
    Superseded,
    TooStale,
    UnknownAgent,
    WouldUncover,
)
from reachnode.liveness.leases import granted_ms, lease_ms
from reachnode.model.agents import NUMBER_MAX, Instance
from reachnode.registry.commands import Deregister, Register, SetAgentState
from reachnode.registry.coverage import uncovered
from reachnode.registry.queries import record_of, records
from reachnode.registry.state import Record, Standing, State
from reachnode.serve.answers import Answer, document
from reachnode.serve.changes import change
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import BODIES, CHANGES, IDEMPOTENCY_KEY, READS, Asked, operation
from reachnode.serve.reads import READ_QUERY, fresh_state, refuse_unloaded
from reachnode.serve.shapes import (
    Announced,
    Deregistered,
    InstancePage,
    InstanceShown,
    Registered,
    RegistrationShown,
    StateWish,
)
from reachnode.wire.documents import refuse_strays, to_noun
from reachnode.wire.registrations import Registration, read_registration, write_instance

ITEMS_MAX = 1000
LIST_QUERY = {
    "capability": Asked(str, "Only those that offer it."),
    "agent": Asked(str, "Only those of this agent."),
    "zone": Asked(str, "Only those of this zone."),
    "state": Asked(str, "Only those in this state."),
    "limit": Asked(int, f"At most so many, up to {ITEMS_MAX}."),
    "cursor": Asked(str, "Where the page begins: `next` of the one before."),
}


@operation(
    takes=RegistrationShown,
    gives={201: Registered, 200: Registered},
    refuses=(*BODIES, *CHANGES, TooStale, AgentIdInUse, CapabilityTaken, DuplicateCapability),
    headers=IDEMPOTENCY_KEY,
)
async def register(front: Front, inquiry: Inquiry) -> Answer:
    """Register an instance, or replace what it said before."""
    refuse_unloaded(front)
    registration = read_registration(inquiry.document())
    instance = registration.instance
    state = front.replica.state
    # A repeat of what was decided gets that answer, whoever holds the id by now.
    is_repeat = (inquiry.idempotency_key() or "") in state.requests
    replaces = None if is_repeat else seen_incarnation(state, registration)
    command = Register(instance=instance, replaces=replaces)
    applied = await change(front, inquiry, command)
    value = applied.value or {}
    registered = Registered(
        agent_id=instance.agent_id,
        state="pending",
        index=applied.index,
        incarnation=value["incarnation"],
        heartbeat_interval_ms=granted_ms(front.replica.state, instance.heartbeat),
        lease_ms=lease_ms(front.replica.state, instance.heartbeat),
        nodes=front.nodes(),
        warnings=list(registration.warnings),
    )
    return document(registered, status=200 if value["replaced"] else 201)


def seen_incarnation(state: State, registration: Registration) -> int | None:
    """Return the incarnation that a registration may replace; None for any, 0 for none.

    An instance comes back when it offers the same endpoints, or knows its incarnation.

    Raises:
        AgentIdInUse: Another holds the id.
        InvalidRequest: No incarnation can be what it says.
    """
    said = registration.incarnation
    if said is not None and not 0 <= said <= NUMBER_MAX:
        raise InvalidRequest(f"incarnation must be a whole number from 0 to {NUMBER_MAX}")
    if registration.replaces_any:
        return None
    instance = registration.instance
    record = record_of(state, instance.agent_id)
    if record is None:
        return said or 0
    old = record.instance
    if said is not None:
        return said
    if endpoints(old) == endpoints(instance):
        return old.incarnation
    raise AgentIdInUse(
        f"{instance.agent_id} is registered with other endpoints; "
        "send its incarnation, or replace: true",
        details={"incarnation": old.incarnation},
    )


def endpoints(instance: Instance) -> frozenset[str]:
    """Return where an instance is reached."""
    return frozenset(one.endpoint for one in instance.capabilities) | {instance.base_url}


@operation(
    gives={200: Deregistered},
    refuses=(*CHANGES, UnknownAgent, Superseded),
    query={"incarnation": Asked(int, "Only this one, so that a late farewell harms nobody.")},
    headers=IDEMPOTENCY_KEY,
)
async def deregister(front: Front, inquiry: Inquiry) -> Answer:
    """Remove an instance."""
    agent_id = inquiry.parts["agent_id"]
    command = Deregister(agent_id=agent_id, incarnation=inquiry.whole_number("incarnation"))
    applied = await change(front, inquiry, command)
    return document(Deregistered(agent_id=agent_id, index=applied.index))


@operation(
    takes=StateWish,
    gives={200: Announced},
    refuses=(*BODIES, *CHANGES, UnknownAgent, Superseded, WouldUncover),
    headers=IDEMPOTENCY_KEY,
)
async def announce(front: Front, inquiry: Inquiry) -> Answer:
    """Announce that an instance is updating, disabled, or back."""
    body = inquiry.document()
    refuse_strays(body, StateWish)
    wish = to_noun(body, StateWish)
    agent_id = inquiry.parts["agent_id"]
    if wish.state != "healthy" and not wish.force:
        refuse_uncovering(front.replica.state, agent_id, incarnation=wish.incarnation)
    command = SetAgentState(agent_id=agent_id, state=wish.state, incarnation=wish.incarnation)
    applied = await change(front, inquiry, command)
    return document(Announced(agent_id=agent_id, state=wish.state, index=applied.index))


def refuse_uncovering(state: State, agent_id: str, *, incarnation: int | None) -> None:
    """Raise where an instance is the last that serves one of its capabilities.

    An incarnation that stands no longer leaves nothing uncovered: the change is refused for
    another reason.

    Raises:
        WouldUncover: It is; the capabilities are named.
    """
    record = record_of(state, agent_id)
    if record is None or incarnation not in (None, record.instance.incarnation):
        return
    names = uncovered(state, record)
    if names:
        raise WouldUncover(
            f"{', '.join(names)} would be left without an instance; force does it all the same",
            details={"capabilities": list(names)},
        )


@operation(gives={200: InstanceShown}, refuses=(*READS, UnknownAgent), query=READ_QUERY)
async def show(front: Front, inquiry: Inquiry) -> Answer:
    """Answer one instance."""
    state = await fresh_state(front, inquiry)
    agent_id = inquiry.parts["agent_id"]
    record = record_of(state, agent_id)
    if record is None:
        raise UnknownAgent(f"{agent_id} isn't registered")
    return document(shown(record))


@operation(gives={200: InstancePage}, refuses=READS, query={**LIST_QUERY, **READ_QUERY})
async def list_all(front: Front, inquiry: Inquiry) -> Answer:
    """Answer the instances that fit every filter, in the order of their ids."""
    state = await fresh_state(front, inquiry)
    limit = inquiry.whole_number("limit")
    most = min(max(limit, 1), ITEMS_MAX) if limit is not None else ITEMS_MAX
    query = inquiry.query
    found = records(
        state,
        capability=query.get("capability"),
        standing=standing_of(query.get("state")),
        agent=query.get("agent"),
        zone=query.get("zone"),
    )
    rest = [one for one in found if one.instance.agent_id > query.get("cursor", "")]
    items = [shown(record) for record in rest[:most]]
    return document({"items": items, "next": items[-1]["agent_id"] if len(rest) > most else None})


def standing_of(state: str | None) -> Standing | None:
    """Return what the log says of instances in a state; None for any.

    Raises:
        InvalidRequest: There is no such state.
    """
    if state is None:
        return None
    known: dict[str, Standing] = {
        "pending": "",
        "updating": "updating",
        "disabled": "disabled",
    }
    if state not in known:
        raise InvalidRequest(f"state must be {', '.join(known)}")
    return known[state]


def state_of(record: Record) -> str:
    """Return an instance's state as far as the log knows it."""
    return record.standing or "pending"


def shown(record: Record) -> dict[str, Any]:
    """Return an instance as clients see it."""
    return {
        **write_instance(record.instance),
        "state": state_of(record),
        "incarnation": record.instance.incarnation,
        "index": record.index,
    }
