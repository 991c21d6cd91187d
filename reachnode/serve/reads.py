"""How fresh a read must be: `consistency`, `min_index` and `max_stale_ms` of its query."""

from typing import Literal

from reachnode.errors import InvalidRequest, TooStale, error_of
from reachnode.registry.outcomes import Refused
from reachnode.registry.state import State
from reachnode.serve.front import READ_SECONDS, Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import Asked

CONSISTENCIES = ("default", "stale", "consistent")
READ_QUERY = {
    "consistency": Asked(
        Literal["default", "stale", "consistent"],
        "Local; local at any age; or linearizable.",
    ),
    "min_index": Asked(int, "Wait until this node has applied so much."),
    "max_stale_ms": Asked(int, "Refuse when the last contact with a leader is older."),
}


async def fresh_state(front: Front, inquiry: Inquiry) -> State:
    """Return a state as fresh as the query asks for.

    It is the one at `replica.applied_index` until the caller next awaits.

    Raises:
        InvalidRequest: The query asks for something else.
        TooStale: This node's table isn't loaded, too old, or didn't get there in time.
        NoQuorum: A `consistent` read found no majority.
    """
    consistency = inquiry.query.get("consistency", "default")
    if consistency not in CONSISTENCIES:
        raise InvalidRequest(f"consistency must be {', '.join(CONSISTENCIES)}")
    min_index = inquiry.whole_number("min_index") or 0
    max_stale_ms = inquiry.whole_number("max_stale_ms")
    replica = front.replica
    deadline = front.sources.now() + READ_SECONDS
    if consistency == "consistent":
        min_index = max(min_index, await fence(front, deadline))
    if min_index > replica.applied_index and not await replica.wait_applied(
        min_index, deadline=deadline
    ):
        raise TooStale(
            f"this node is at index {replica.applied_index}, not at {min_index}",
            details={"index": replica.applied_index},
        )
    refuse_unloaded(front)
    if consistency == "default" and not min_index and front.is_catching_up():
        raise TooStale("this node has just started and is still catching up")
    if max_stale_ms is not None and front.stale_ms() > max_stale_ms:
        raise TooStale(f"the last contact with a leader was {front.stale_ms()} ms ago")
    front.stale_answers_count += not replica.status().quorum
    return replica.state


def refuse_unloaded(front: Front) -> None:
    """Raise while this node has no whole table: an empty one must not look like an answer.

    Raises:
        TooStale: It has none.
    """
    phase = front.replica.status().phase
    if phase != "running":
        raise TooStale(f"this node is {phase}: its table isn't there yet")


async def fence(front: Front, deadline: float) -> int:
    """Return the index from which a local read is linearizable.

    Raises:
        NoQuorum: No majority confirmed one in time.
    """
    found = await front.replica.read_fence(deadline=deadline)
    if isinstance(found, int):
        return found
    if isinstance(found, Refused):
        raise error_of(found.code, found.why, details=found.details)
    raise error_of("no_quorum", f"no majority confirmed the read in time: {found.why}")
