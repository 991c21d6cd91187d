"""What a run with kills must have kept, judged from what its clients were told.

Every change of a run is a registration, and each one that is applied gets an incarnation,
counted from 1 without a gap. So the last incarnation is the number of applications, and
three faults show: a change that is not there, one that was applied twice, and an order that
another client saw differently.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.live.writers import Change, Confirmed, History


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong, a sentence each; nothing when all promises were kept."""

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    unequal: tuple[str, ...]
    disordered: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.lost or self.doubled or self.unequal or self.disordered)


def judge(history: History, tables: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """Return what is wrong.

    Args:
        history: What the clients were told. The change that was confirmed last, after all
            others had ended, tells how many were applied.
        tables: Every node's instances by id, read after that.
    """
    table = next(iter(tables.values()))
    return Verdict(
        lost=(*missing(history, table), *fewer_applied(history)),
        doubled=(*same_incarnation(history.confirmed), *more_applied(history)),
        unequal=unequal(tables),
        disordered=(*disordered(history.confirmed), *history.contradicted),
    )


def missing(history: History, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the confirmed changes that a table lacks: the last one of each agent."""
    last: dict[str, Confirmed] = {}
    for one in history.confirmed:
        newest = last.get(one.change.agent_id)
        if newest is None or one.incarnation > newest.incarnation:
            last[one.change.agent_id] = one
    found = []
    for agent_id, one in sorted(last.items()):
        record = table.get(agent_id)
        if record is None:
            found.append(f"{agent_id} is not there, but {one.change.key} was confirmed")
        elif not is_explained(record, one, history.open.values()):
            at = f"incarnation {record['incarnation']}, index {record['index']}"
            found.append(f"{agent_id} shows {value_of(record)} ({at}), not {one.change.key}")
    return tuple(found)


def is_explained(record: Mapping[str, Any], last: Confirmed, left: Sequence[Change] | Any) -> bool:
    """Return whether a record is the last confirmed change, or a later one left open."""
    if record["incarnation"] == last.incarnation:
        return bool(record["index"] == last.index and value_of(record) == last.change.value)
    return record["incarnation"] > last.incarnation and any(
        one.agent_id == last.change.agent_id and one.value == value_of(record) for one in left
    )


def value_of(record: Mapping[str, Any]) -> Any:
    """Return the value that a writer put into a record."""
    return record.get("metadata", {}).get("tags", {}).get("value")


def applied_count(history: History) -> int:
    """Return how many registrations were applied when the last one was confirmed."""
    return history.confirmed[-1].incarnation


def fewer_applied(history: History) -> tuple[str, ...]:
    """Return whether fewer were applied than confirmed."""
    applied, confirmed = applied_count(history), len(history.confirmed)
    return (f"{confirmed} confirmed, {applied} applied",) if applied < confirmed else ()


def more_applied(history: History) -> tuple[str, ...]:
    """Return how many applications no change accounts for, those left open included."""
    applied = applied_count(history)
    wanted = len(history.confirmed) + len(history.open)
    return tuple(
        f"application {number} of {applied}, but only {wanted} changes were asked for"
        for number in range(wanted + 1, applied + 1)
    )


def same_incarnation(confirmed: Sequence[Confirmed]) -> tuple[str, ...]:
    """Return pairs of changes that were told the same incarnation."""
    first: dict[int, Confirmed] = {}
    found = []
    for one in confirmed:
        other = first.setdefault(one.incarnation, one)
        if other is not one:
            keys = f"{other.change.key} and {one.change.key}"
            found.append(f"{keys} were both told incarnation {one.incarnation}")
    return tuple(found)


def disordered(confirmed: Sequence[Confirmed]) -> tuple[str, ...]:
    """Return where the order of the log isn't the order that clients saw.

    An index never falls as the incarnation rises; and a change that was asked for after
    another one was confirmed comes behind it.
    """
    found = []
    by_incarnation = sorted(confirmed, key=lambda one: one.incarnation)
    for before, after in itertools.pairwise(by_incarnation):
        if after.index < before.index:
            found.append(f"{after.change.key} has a lower index than {before.change.key}")
    by_confirmation = sorted(confirmed, key=lambda one: one.confirmed_at)
    highest, at = 0, 0
    for one in sorted(confirmed, key=lambda one: one.asked_at):
        while by_confirmation[at].confirmed_at < one.asked_at:
            highest = max(highest, by_confirmation[at].incarnation)
            at += 1
        if one.incarnation < highest:
            found.append(f"{one.change.key} was asked for after incarnation {highest} was told")
    return tuple(found)


def unequal(tables: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return where the nodes' tables differ from the first one's."""
    names = sorted(tables)
    first = tables[names[0]]
    return tuple(
        f"{name} and {names[0]} differ on {agent_id}"
        for name in names[1:]
        for agent_id in sorted(first.keys() | tables[name].keys())
        if first.get(agent_id) != tables[name].get(agent_id)
    )
