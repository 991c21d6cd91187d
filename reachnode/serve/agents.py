"""Instances: register, show, list, announce a state, take leave."""

from typing import Any, get_args

import trio

from reachnode.errors import (
    AgentIdInUse,
    CapabilityTaken,
    DuplicateCapability,
    EndpointRefused,
    InvalidRequest,
    Superseded,
    TooStale,
    UnknownAgent,
    WouldUncover,
)
from reachnode.guard.egress import allows_local, refuse_endpoints
from reachnode.liveness.leases import granted_ms, lease_ms
from reachnode.model.agents import NUMBER_MAX, Instance
from reachnode.model.liveness import InstanceState
from reachnode.registry.commands import Deregister, Register, SetAgentState
from reachnode.registry.coverage import uncovered
from reachnode.registry.queries import record_of, records
from reachnode.registry.seen import seen_as
from reachnode.registry.state import State
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
from reachnode.wire.discovery import write_seen
from reachnode.wire.documents import refuse_strays, to_noun
from reachnode.wire.registrations import Registration, read_registration

ITEMS_MAX = 1000
SLICE = 50
"""Instances shown in one turn."""
STATES: tuple[InstanceState, ...] = get_args(InstanceState)
LIST_QUERY = {
    "capability": Asked(str, "Only those that offer it."),
    "agent": Asked(str, "Only those of this agent."),
    "zone": Asked(str, "Only those of this zone."),
    "state": Asked(InstanceState, "Only those in this state."),
    "limit": Asked(int, f"At most so many, up to {ITEMS_MAX}."),
    "cursor": Asked(str, "Where the page begins: `next` of the one before."),
}


@operation(
    takes=RegistrationShown,
    gives={201: Registered, 200: Registered},
    refuses=(
        *BODIES,
        *CHANGES,
        TooStale,
        AgentIdInUse,
        CapabilityTaken,
        DuplicateCapability,
        EndpointRefused,
    ),
    headers=IDEMPOTENCY_KEY,
)
async def register(front: Front, inquiry: Inquiry) -> Answer:
    """Register an instance, or replace what it said before."""
    refuse_unloaded(front)
    registration = read_registration(inquiry.document())
    instance = registration.instance
    state = front.replica.state
    refuse_endpoints(
        instance,
        allow_local=allows_local(
            rule=state.settings.registry.allow_local_endpoints,
            listens_on_loopback_only=front.about.listens_on_loopback,
        ),
    )
    # A repeat of what was decided gets that answer, whoever holds the id by now.
    is_repeat = (inquiry.idempotency_key() or "") in state.requests
    replaces = None if is_repeat else await seen_incarnation(front, registration)
    command = Register(instance=instance, replaces=replaces)
    applied = await change(front, inquiry, command)
    value = applied.value or {}
    state = front.replica.state
    registered = Registered(
        agent_id=instance.agent_id,
        state=state_of(front, instance.agent_id, value["incarnation"]),
        index=applied.index,
        incarnation=value["incarnation"],
        heartbeat_interval_ms=granted_ms(state, instance.heartbeat),
        lease_ms=lease_ms(state, instance.heartbeat),
        nodes=front.nodes(),
        warnings=list(registration.warnings),
    )
    return document(registered, status=200 if value["replaced"] else 201)


def state_of(front: Front, agent_id: str, incarnation: int) -> InstanceState:
    """Return the state of what was just registered, though another may stand there by now."""
    record = record_of(front.replica.state, agent_id)
    if record is None or record.instance.incarnation != incarnation:
        return "pending"
    return seen_as(record, front.sights.of).state


async def seen_incarnation(front: Front, registration: Registration) -> int | None:
    """Return the incarnation that a registration may replace; None for any, 0 for none.

    An instance comes back when it offers the same endpoints, or knows its incarnation. Where
    another holds the id, it is looked whether that one is still there.

    Raises:
        AgentIdInUse: It is.
        InvalidRequest: No incarnation can be what it says.
    """
    said = registration.incarnation
    if said is not None and not 0 <= said <= NUMBER_MAX:
        raise InvalidRequest(f"incarnation must be a whole number from 0 to {NUMBER_MAX}")
    if registration.replaces_any:
        return None
    instance = registration.instance
    record = record_of(front.replica.state, instance.agent_id)
    if record is None:
        return said or 0
    old = record.instance
    if said is not None:
        return said
    if endpoints(old) == endpoints(instance) or not await front.sights.is_there(record):
        return old.incarnation
    at = old.base_url or next((one.endpoint for one in old.capabilities if one.endpoint), "")
    raise AgentIdInUse(
        f"{instance.agent_id} is registered {f'at {at}' if at else 'without an endpoint'}, "
        "and that one answers; send its incarnation, or replace: true",
        details={"incarnation": old.incarnation, "endpoint": at},
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
    seen = seen_as(record, front.sights.of)
    return document(write_seen(seen, now=front.sources.now()))


@operation(gives={200: InstancePage}, refuses=READS, query={**LIST_QUERY, **READ_QUERY})
async def list_all(front: Front, inquiry: Inquiry) -> Answer:
    """Answer the instances that fit every filter, in the order of their ids."""
    state = await fresh_state(front, inquiry)
    limit = inquiry.whole_number("limit")
    most = min(max(limit, 1), ITEMS_MAX) if limit is not None else ITEMS_MAX
    query = inquiry.query
    wanted = read_state(query.get("state"))
    index, now = front.replica.applied_index, front.sources.now()
    found = records(
        state,
        capability=query.get("capability"),
        agent=query.get("agent"),
        zone=query.get("zone"),
    )
    items: list[dict[str, Any]] = []
    has_more = False
    for number, record in enumerate(found, start=1):
        if number % SLICE == 0:
            await trio.lowlevel.checkpoint()
        seen = seen_as(record, front.sights.of)
        if record.instance.agent_id <= query.get("cursor", "") or wanted not in {None, seen.state}:
            continue
        if has_more := len(items) == most:
            break
        items.append(write_seen(seen, now=now))
    page = {"items": items, "next": items[-1]["agent_id"] if has_more else None}
    return document(page, headers={"X-Reach-Index": str(index)})


def read_state(said: str | None) -> str | None:
    """Return the state that a query asks for, None for any.

    Raises:
        InvalidRequest: There is no such state.
    """
    if said not in {None, *STATES}:
        raise InvalidRequest(f"state must be {', '.join(STATES)}")
    return said
