"""Whether what clients saw could have come from one register per key, one call at a time.

Two checks that do not trust each other:

    witness   believes the log: each answer must follow from a replay of it, and the order
              of the log must respect real time. Cheap, for every run.
    search    believes nobody: looks for any order that explains the answers. Dear, for
              short histories.

Times only order events: `a` came before `b` when `a.returned_at < b.invoked_at`. Equal times
count as overlap, so a recorder should not give two events one time. An operation whose
outcome is unknown may have happened at any time since its invocation, or never; one that is
known not to have happened is left out, and then its traces are faults.
"""

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import inf
from typing import Literal

OPERATIONS_MAX = 200
"""Operations on one key that a search takes."""

Kind = Literal["write", "read", "cas"]
Value = str | int | None
Argument = Value | tuple[Value, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What one client asked, and what it was told."""

    client: str
    kind: Kind
    key: str
    argument: Argument = None
    """The value to write, or for a cas the pair (expected, new)."""

    result: Value = None
    """What was read, or for a cas whether it took effect."""

    invoked_at: float
    returned_at: float | None
    """None: the outcome is unknown."""

    index: int | None = None
    """Place in the log that the answer named: of the change, or up to which was read."""

    def __post_init__(self) -> None:
        assert self.returned_at is None or self.invoked_at <= self.returned_at
        assert isinstance(self.argument, tuple) == (self.kind == "cas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One change as the log has it. Changes of one batch share an index."""

    index: int
    kind: Literal["write", "cas"]
    key: str
    argument: Argument


class Verdict(StrEnum):
    """What a search found."""

    LEGAL = "legal"
    ILLEGAL = "illegal"
    GIVEN_UP = "given_up"


def step(kind: Kind, argument: Argument, value: Value) -> tuple[Value, Value]:
    """Return the answer of a register that holds `value`, and what it holds afterwards."""
    if kind == "read":
        return value, value
    if kind == "cas":
        assert isinstance(argument, tuple)
        expected, new = argument
        return (True, new) if value == expected else (False, value)
    assert not isinstance(argument, tuple)
    return None, argument


def by_key(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """Return the operations of each key, in the order given."""
    groups: dict[str, list[Operation]] = {}
    for one in operations:
        groups.setdefault(one.key, []).append(one)
    return groups


# The witness.


def witness(operations: Sequence[Operation], log: Sequence[Entry]) -> list[str]:
    """Return what contradicts the log, one sentence each; empty when nothing does.

    Args:
        operations: All that was asked, reads without an index (not fenced) left unchecked.
        log: All that was applied since the registers were empty, in order.
    """
    faults = _order_faults(operations, log)
    replay = _Replay(log)
    answered = [one for one in operations if one.returned_at is not None]
    for one in answered:
        fault = replay.read_fault(one) if one.kind == "read" else replay.take_fault(one)
        if fault:
            faults.append(f"{_describe(one)}: {fault}")
    for one in operations:
        if one.returned_at is None and one.kind != "read":
            replay.take_unknown(one)
    return faults + replay.left_over()


class _Replay:
    """The log played once: each answer it gives, and the values of each key over time."""

    def __init__(self, log: Sequence[Entry]) -> None:
        self.indexes: dict[str, list[int]] = {}
        self.values: dict[str, list[Value]] = {}
        # Entries that no operation has claimed yet, by their answer.
        self.free: dict[tuple[str, str, Argument], Counter[tuple[int, Value]]] = {}
        for entry in log:
            values = self.values.setdefault(entry.key, [None])
            result, value = step(entry.kind, entry.argument, values[-1])
            values.append(value)
            self.indexes.setdefault(entry.key, []).append(entry.index)
            wish = (entry.kind, entry.key, entry.argument)
            self.free.setdefault(wish, Counter())[entry.index, result] += 1

    def read_fault(self, one: Operation) -> str | None:
        """Return what is wrong with a read, if its index says anything about it."""
        if one.index is None:
            return None
        place = bisect_right(self.indexes.get(one.key, []), one.index)
        value = self.values.get(one.key, [None])[place]
        return None if value == one.result else f"the log has {value!r} there"

    def take_fault(self, one: Operation) -> str | None:
        """Claim the entry of an acknowledged change; return what is wrong with it."""
        if one.index is None:
            return "acknowledged without an index"
        free = self.free.get((one.kind, one.key, one.argument), Counter())
        result = bool(one.result) if one.kind == "cas" else None
        for claim in ((one.index, result), (one.index, not result)):
            if free[claim] > 0:
                free[claim] -= 1
                return None if claim[1] == result else f"the log says {claim[1]}"
        return "lost, it is not in the log at that index"

    def take_unknown(self, one: Operation) -> None:
        """Claim an entry for a change that may have happened, if one is left."""
        free = self.free.get((one.kind, one.key, one.argument), Counter())
        claim = next((claim for claim, count in free.items() if count > 0), None)
        if claim is not None:
            free[claim] -= 1

    def left_over(self) -> list[str]:
        """Return a fault for each entry that nobody asked for, or not so often."""
        return [
            f"log index {index}: {kind} {key} {argument!r} was applied {count} times too often"
            for (kind, key, argument), free in self.free.items()
            for (index, _), count in sorted(free.items(), key=lambda item: item[0][0])
            if count > 0
        ]


def _order_faults(operations: Sequence[Operation], log: Sequence[Entry]) -> list[str]:
    """Return where the order of the log contradicts real time, or itself."""
    faults = [
        f"log index {after.index} follows {before.index}"
        for before, after in pairwise(log)
        if after.index < before.index
    ]
    known = [one for one in operations if one.index is not None]
    returns = sorted(
        (one.returned_at, one.index or 0) for one in known if one.returned_at is not None
    )
    floor, place = -1, 0
    for one in sorted(known, key=lambda one: one.invoked_at):
        while place < len(returns) and returns[place][0] < one.invoked_at:
            floor = max(floor, returns[place][1])
            place += 1
        index = one.index or 0
        if index < floor or (index == floor and one.kind != "read"):
            faults.append(f"{_describe(one)}: index {floor} was told before it was asked")
    return faults


def _describe(one: Operation) -> str:
    """Return an operation as a person would write it down."""
    asked = "" if one.kind == "read" else f" {one.argument!r}"
    return (
        f"{one.client} {one.kind} {one.key}{asked} -> {one.result!r}"
        f" [{one.invoked_at:g}..{'?' if one.returned_at is None else f'{one.returned_at:g}'}]"
        f" index {one.index}"
    )


# The search.


def search(history: Sequence[Operation], *, states_max: int = 100_000) -> Verdict:
    """Return whether some order of the operations explains every answer.

    Keys are searched apart, which is allowed because linearizability is local. Indexes are
    not looked at. All registers start with None.

    Args:
        history: At most `OPERATIONS_MAX` operations on each key.
        states_max: Pairs of (operations done, value) to visit per key before giving up.

    Source:
        J. Wing and C. Gong, "Testing and verifying concurrent objects", JPDC 17 (1993);
        G. Lowe, "Testing for linearizability", CCPE 29(4), 2017, for the memory of states.
    """
    verdict = Verdict.LEGAL
    for operations in by_key(history).values():
        assert len(operations) <= OPERATIONS_MAX
        found = _Search(operations).run(states_max)
        if found is Verdict.ILLEGAL:
            return found
        if found is Verdict.GIVEN_UP:
            verdict = found
    return verdict


class _Search:
    """The history of one key. Sets of operations are the bits of an integer."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        ordered = sorted(operations, key=lambda one: one.invoked_at)
        self.known = [one for one in ordered if one.returned_at is not None]
        # A read nobody saw the answer of constrains nothing.
        self.unknown = [one for one in ordered if one.returned_at is None and one.kind != "read"]
        self.needed = (1 << len(self.known)) - 1
        # Who needs the register to hold a value, and who needs it not to.
        self.wanted: dict[Value, int] = {}
        self.shunned: dict[Value, int] = {}
        for place, one in enumerate(self.known + self.unknown):
            bit, group, value = 1 << place, self.wanted, one.result
            if isinstance(one.argument, tuple):
                value = one.argument[0]
                if one.returned_at is not None and not one.result:
                    group = self.shunned
            if one.kind != "write":
                group[value] = group.get(value, 0) | bit

    def run(self, states_max: int) -> Verdict:
        """Try orders depth first, never the same (done, value) twice."""
        seen: set[tuple[int, Value]] = set()
        stack: list[tuple[int, Value]] = [(0, None)]
        while stack:
            done, value = stack.pop()
            done, minimal, returned_at = self._absorb(done, value)
            if done & self.needed == self.needed:
                return Verdict.LEGAL
            if (done, value) in seen:
                continue
            if len(seen) >= states_max:
                return Verdict.GIVEN_UP
            seen.add((done, value))
            stack += self._guesses(done, value, returned_at)
            for place in reversed(minimal):
                one = self.known[place]
                result, after = step(one.kind, one.argument, value)
                if one.kind == "write" or result == one.result:
                    stack.append((done | 1 << place, after))
        return Verdict.ILLEGAL

    def _absorb(self, done: int, value: Value) -> tuple[int, list[int], float]:
        """Do what can be done now and changes nothing.

        Moving a true answer without an effect forward never spoils an order that works.

        Returns:
            The operations done, those that may come next, and when the first of them returned.
        """
        while True:
            minimal, returned_at = self._minimal(done)
            before = done
            for place in minimal:
                one = self.known[place]
                if one.kind == "write" or (one.kind == "cas" and one.result):
                    continue
                if step(one.kind, one.argument, value)[0] == one.result:
                    done |= 1 << place
            if done == before:
                return done, minimal, returned_at

    def _minimal(self, done: int) -> tuple[list[int], float]:
        """Return the answered operations that no other one must precede."""
        rest = self.needed & ~done
        places: list[int] = []
        first = inf
        while rest:
            low = rest & -rest
            place = low.bit_length() - 1
            one = self.known[place]
            if one.invoked_at > first:
                break
            assert one.returned_at is not None
            first = min(first, one.returned_at)
            places.append(place)
            rest ^= low
        return places, first

    def _guesses(self, done: int, value: Value, returned_at: float) -> list[tuple[int, Value]]:
        """Return what follows if one of the unknown operations happened now.

        One that nobody left needs is left out: an order with it works without it as well.
        """
        guesses = []
        is_shunned = bool(self.shunned.get(value, 0) & ~done)
        for place, one in enumerate(self.unknown, start=len(self.known)):
            if one.invoked_at > returned_at:
                break
            if done >> place & 1:
                continue
            _, after = step(one.kind, one.argument, value)
            if after != value and (is_shunned or self.wanted.get(after, 0) & ~done):
                guesses.append((done | 1 << place, after))
        return guesses


# Export.


def to_porcupine_json(operations: Sequence[Operation]) -> str:
    """Return the history as JSON that decodes into a slice of Porcupine's `Operation`.

    Times are nanoseconds. `Input` has `op`, `key` and `value` (a cas has `expected` too),
    `Output` has `value` and `unknown`; an unknown outcome returns after everything else.
    """
    clients = {name: place for place, name in enumerate(sorted({one.client for one in operations}))}
    times = [one.invoked_at for one in operations]
    times += [one.returned_at for one in operations if one.returned_at is not None]
    end = _nanoseconds(max(times, default=0.0)) + 1
    rows = []
    for one in operations:
        is_unknown = one.returned_at is None
        rows.append(
            {
                "ClientId": clients[one.client],
                "Input": _porcupine_input(one),
                "Call": _nanoseconds(one.invoked_at),
                "Output": {"value": None if is_unknown else one.result, "unknown": is_unknown},
                "Return": end if one.returned_at is None else _nanoseconds(one.returned_at),
            }
        )
    return json.dumps(rows, indent=1)


def _porcupine_input(one: Operation) -> Mapping[str, Value]:
    """Return what was asked, flat."""
    asked: dict[str, Value] = {"op": one.kind, "key": one.key}
    if isinstance(one.argument, tuple):
        asked["expected"], asked["value"] = one.argument
    else:
        asked["value"] = one.argument
    return asked


def _nanoseconds(seconds: float) -> int:
    """Return whole nanoseconds; rounding may merge times, which only adds overlap."""
    return round(seconds * 1e9)
