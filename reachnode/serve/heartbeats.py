"""Signs of life. They are taken by whichever node hears them, and never logged.

Only an announced state is, and only when it is news.
"""

from reachnode.errors import ReachError, Superseded, TooStale, UnknownAgent
from reachnode.model.liveness import AnnouncedState, Heard
from reachnode.registry.commands import SetAgentState
from reachnode.registry.queries import record_of
from reachnode.registry.seen import seen_as
from reachnode.registry.state import Record
from reachnode.serve.answers import Answer, document
from reachnode.serve.changes import settled
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import BODIES, operation
from reachnode.serve.reads import fence, refuse_unloaded
from reachnode.serve.shapes import Beaten, HeartbeatShown
from reachnode.wire.heartbeats import Beat, read_heartbeat

LOOK_SECONDS = 1.0
"""How long to look elsewhere for an instance that isn't known here."""
ANNOUNCE_SECONDS = 1.0
"""How long a heartbeat waits for a state it announces; the next one says it again."""


@operation(
    takes=HeartbeatShown,
    gives={200: Beaten},
    refuses=(*BODIES, UnknownAgent, Superseded, TooStale),
)
async def beat(front: Front, inquiry: Inquiry) -> Answer:
    """Take a heartbeat, and answer when the next one is due."""
    refuse_unloaded(front)
    body = inquiry.document() if inquiry.request.body else {}
    said = read_heartbeat(body, agent_id=inquiry.parts.get("agent_id", ""))
    heard = await taken(front, said)
    warnings = [*said.warnings, *await announced(front, said)]
    record = record_of(front.replica.state, said.agent_id)
    if record is None:
        raise UnknownAgent(f"{said.agent_id} has just been removed: register again")
    answer = Beaten(
        agent_id=said.agent_id,
        state=seen_as(record, front.sights.of).state,
        incarnation=record.instance.incarnation,
        heartbeat_interval_ms=heard.interval_ms,
        lease_ms=heard.lease_ms,
        nodes=front.nodes(),
        warnings=warnings,
    )
    return document(answer)


async def taken(front: Front, said: Beat) -> Heard:
    """Return what becomes of a heartbeat.

    Before an instance is told to register again, this node makes sure that it isn't the one
    that lacks something.

    Raises:
        UnknownAgent: It isn't registered, and should register again.
        Superseded: Its id was taken over by a later registration.
        TooStale: It isn't known here, and nobody else could be asked.
    """
    try:
        return front.sights.heartbeat(said.agent_id, said.heartbeat)
    except UnknownAgent as error:
        deadline = front.sources.now() + LOOK_SECONDS
        try:
            index = await fence(front, deadline)
        except ReachError:
            raise TooStale(
                f"{said.agent_id} isn't known here and this node is cut off; beat at another"
            ) from error
        if not await front.replica.wait_applied(index, deadline=deadline):
            raise TooStale(
                f"{said.agent_id} isn't known here yet; beat again, or at another node"
            ) from error
    return front.sights.heartbeat(said.agent_id, said.heartbeat)


async def announced(front: Front, said: Beat) -> list[str]:
    """Propose the state that a heartbeat announces, if it is news; return what went wrong."""
    state = said.heartbeat.state
    record = record_of(front.replica.state, said.agent_id)
    if state is None or record is None or not is_news(state, record):
        return []
    command = SetAgentState(
        agent_id=said.agent_id, state=state, incarnation=record.instance.incarnation
    )
    deadline = front.sources.now() + ANNOUNCE_SECONDS
    try:
        settled(await front.replica.propose(command, deadline=deadline))
    except ReachError as error:
        return [f"state {state} isn't announced yet: {error.why}"]
    return []


def is_news(state: AnnouncedState, record: Record) -> bool:
    """Return whether an announced state changes what the log says.

    A healthy instance is back from an update. What an operator disabled stays so, and whether
    one that is down is up again is for those to say who found it down.
    """
    if state == "healthy":
        return record.standing == "updating"
    return record.standing != state
