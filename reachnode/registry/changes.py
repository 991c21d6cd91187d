"""What changed since an index, at the cost of what changed.

Each node notes, for every entry it applies, which instances it touched and what they were
before. A watcher keeps nothing but the index it was told up to. What it is told next is the
difference between what an instance was then and what it is now, so a hundred changes of one
instance are one, a put and a delete after it are none, and a slow watcher costs no memory.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reachnode.errors import IndexExpired, TooStale
from reachnode.model.discovery import Change
from reachnode.model.liveness import InstanceState
from reachnode.registry.commands import (
    Command,
    Deregister,
    Forget,
    MarkDown,
    MarkUp,
    Register,
    SetAgentState,
)
from reachnode.registry.queries import capability_of
from reachnode.registry.seen import LivenessOf, seen_as
from reachnode.registry.state import Record, Standing, State
from reachnode.wire.changes import EventId

CHANGES_MAX = 4_096
"""How many changes a node remembers at least, once there were so many."""

T = TypeVar("T")


class ChangeLog(Generic[T]):
    """The last changes, each with its number and what was before it. Bounded.

    Args:
        floor: The number up to which nothing is remembered: that of the state begun with.
        changes_max: How many are remembered at least; at most twice as many are.
    """

    def __init__(self, floor: int, *, changes_max: int = CHANGES_MAX) -> None:
        assert changes_max >= 1
        self._changes_max = changes_max
        self._entries: list[tuple[int, str, T]] = []
        self.floor = floor
        """Changes after this number are all remembered."""

    def note(self, number: int, key: str, was: T) -> None:
        """Remember that something changed, and what it was before.

        Args:
            number: Above the floor, and no lower than the one noted before.
            key: What changed.
            was: What it was until then.
        """
        assert number > self.floor
        assert not self._entries or number >= self._entries[-1][0]
        self._entries.append((number, key, was))
        if len(self._entries) >= 2 * self._changes_max:
            self._forget()

    def since(self, number: int) -> dict[str, T] | None:
        """Return what changed after a number, with what it was at that number.

        Returns:
            By key, in the order of the first change; None if that isn't remembered.
        """
        if number < self.floor:
            return None
        found: dict[str, T] = {}
        for at in range(bisect_right(self._entries, number, key=_number), len(self._entries)):
            _, key, was = self._entries[at]
            found.setdefault(key, was)
        return found

    def restart(self, floor: int) -> None:
        """Forget everything: the state was swapped for one at another number."""
        self._entries.clear()
        self.floor = floor

    def _forget(self) -> None:
        """Drop the older half; all changes of one number go or stay together."""
        self.floor = self._entries[-self._changes_max - 1][0]
        del self._entries[: bisect_right(self._entries, self.floor, key=_number)]


def _number(entry: tuple[int, str, Any]) -> int:
    return entry[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Was:
    """What a registered instance was before a change, as far as watchers must know."""

    incarnation: int
    names: tuple[str, ...]
    """The capabilities it offered."""
    standing: Standing


def was_of(record: Record | None) -> Was | None:
    """Return what to remember of an instance, None if it wasn't there."""
    if record is None:
        return None
    names = tuple(one.name for one in record.instance.capabilities)
    return Was(incarnation=record.instance.incarnation, names=names, standing=record.standing)


def agents_of(command: Command) -> tuple[str, ...]:
    """Return the instances that a command may change."""
    match command:
        case Register():
            return (command.instance.agent_id,)
        case Deregister() | SetAgentState():
            return (command.agent_id,)
        case MarkDown() | MarkUp() | Forget():
            return tuple(mark.agent_id for mark in command.marks)
        case _:
            return ()


def note_changes(
    log: ChangeLog[Was | None],
    index: int,
    *,
    before: State,
    after: State,
    commands: Iterable[Command],
) -> tuple[str, ...]:
    """Remember what the entry at an index did to instances; return which ones it changed.

    Args:
        log: Where to.
        index: The entry's log index.
        before: The state before it.
        after: The state after it.
        commands: What stood in it, applied and refused alike.
    """
    named = dict.fromkeys(agent_id for one in commands for agent_id in agents_of(one))
    changed = []
    for agent_id in named:
        was = before.agents.get(agent_id)
        if was is not after.agents.get(agent_id):
            log.note(index, agent_id, was_of(was))
            changed.append(agent_id)
    return tuple(changed)


def names_changed(
    before: State, after: State, agent_ids: Iterable[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the capabilities that somebody offers now and nobody did, and the other way round.

    Args:
        before: A state.
        after: A later one.
        agent_ids: The instances that changed in between.
    """
    names = {
        capability.name
        for agent_id in agent_ids
        for record in (before.agents.get(agent_id), after.agents.get(agent_id))
        if record is not None
        for capability in record.instance.capabilities
    }
    begun = {name for name in names if name in after.capabilities}
    ended = {name for name in names if name in before.capabilities}
    return frozenset(begun - ended), frozenset(ended - begun)


def resumed_at(start: EventId, log: ChangeLog[Any], *, epoch: int, applied_index: int) -> int:
    """Return the index from which a watch goes on that was told up to `start`.

    Raises:
        IndexExpired: It is of another life of the cluster, or its changes are forgotten.
        TooStale: This node isn't there yet; ask again after having waited for the index.
    """
    if start.epoch != epoch:
        raise IndexExpired(f"{start} is of another epoch than {epoch}: start over")
    if start.index > applied_index:
        raise TooStale(
            f"this node is at index {applied_index}, not at {start.index}",
            details={"index": applied_index},
        )
    if start.index < log.floor:
        raise IndexExpired(
            f"changes up to index {log.floor} are no longer remembered here: start over",
            details={"floor": log.floor, "index": applied_index},
        )
    return start.index


def changes_between(
    changed: Mapping[str, Was | None],
    stirred: Mapping[str, InstanceState],
    *,
    state: State,
    liveness_of: LivenessOf,
    capability: str | None = None,
) -> tuple[Change, ...]:
    """Return what a watcher is told, at most one change per instance, sorted by `agent_id`.

    Args:
        changed: What the log changed since it was told last, from `ChangeLog.since`.
        stirred: Whose state was seen to change since, with the state that was seen before.
        state: What is registered now.
        liveness_of: Tells how each instance is now.
        capability: Only instances that offer it, or did; None for all.
    """
    found = []
    for agent_id in sorted({*changed, *stirred}):
        record = state.agents.get(agent_id)
        was = changed[agent_id] if agent_id in changed else was_of(record)
        was_there = was is not None and (capability is None or capability in was.names)
        if record is None or not (capability is None or capability_of(record.instance, capability)):
            if was_there:
                found.append(Change(kind="delete", agent_id=agent_id, seen=None))
            continue
        seen = seen_as(record, liveness_of)
        if was is None or not was_there or was.incarnation != record.instance.incarnation:
            found.append(Change(kind="put", agent_id=agent_id, seen=seen))
        elif was.standing != record.standing or (
            not record.standing and stirred.get(agent_id, seen.state) != seen.state
        ):
            found.append(Change(kind="state", agent_id=agent_id, seen=seen))
    return tuple(found)
