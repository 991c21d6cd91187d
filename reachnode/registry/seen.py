"""An instance as it is seen: what the log says of it, joined with what is known of its health."""

from collections.abc import Callable

from reachnode.model.discovery import Seen
from reachnode.model.liveness import Liveness
from reachnode.registry.state import Record

LivenessOf = Callable[[Record], Liveness]
"""Gives what this node makes of an instance now."""


def unseen(record: Record) -> Liveness:
    """Return what is known of an instance of which nothing was heard yet."""
    return Liveness(
        agent_id=record.instance.agent_id,
        incarnation=record.instance.incarnation,
        state="pending",
        why="nothing was heard of it yet",
        use="after_suspects",
        basis="none",
    )


def seen_as(record: Record, liveness_of: LivenessOf) -> Seen:
    """Return an instance as it is seen: what was announced overrules what was noticed."""
    liveness = liveness_of(record)
    return Seen(
        instance=record.instance,
        index=record.index,
        state=record.standing or liveness.state,
        liveness=liveness,
    )
