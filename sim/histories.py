"""Made-up histories of which the truth is known, to check the checkers of `sim.linear`.

A legal history is played on real registers, each operation taking effect at one moment
between its invocation and its return. A planted one has a single fault that no order can
explain: values are written once only, so an answer older than a change that was
acknowledged before the question is a contradiction in itself.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sim.linear import Argument, Entry, Kind, Operation, Value, Verdict, search, step, witness

Fault = Literal["stale_read", "lost_write"]
FAULTS: tuple[Fault, ...] = ("stale_read", "lost_write")

TRIES_MAX = 1_000
"""Histories drawn before planting is given up: short ones may have no place for a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the clients saw, and what the log holds."""

    operations: tuple[Operation, ...]
    log: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a made-up history looks."""

    operations: int = 60
    clients: int = 5
    keys: int = 2
    unknown_share: float = 0.05
    """How often an outcome stays unknown; half of those take effect, some much later."""

    write_share: float = 0.3
    cas_share: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What the checkers said of one kind of history, in counts."""

    accepted: int = 0
    rejected: int = 0
    given_up: int = 0
    witnessed: int = 0
    """Histories that the witness found a fault in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One operation before it is played."""

    client: str
    kind: Kind
    key: str
    argument: Argument
    invoked_at: float
    effect_at: float | None
    """None: it never happens."""

    returned_at: float | None


SHAPE = Shape()


def legal(draw: random.Random, shape: Shape = SHAPE) -> History:
    """Return a history that is linearizable, with the log that shows it."""
    return _play(_plans(draw, shape))


def planted(draw: random.Random, fault: Fault, shape: Shape = SHAPE) -> History:
    """Return a history that is not linearizable, because of one fault.

    A stale read answers from before a change that had been acknowledged when it was asked. A
    lost write was acknowledged and is not in the log, and somebody noticed.

    Raises:
        ValueError: Histories of this shape have no place for the fault; ask for longer ones.
    """
    for _ in range(TRIES_MAX):
        plans = _plans(draw, shape)
        history = _stale(draw, plans) if fault == "stale_read" else _lost(draw, plans)
        if history is not None:
            return history
    raise ValueError(f"no place for a {fault} in histories of {shape.operations} operations")


def main_self_check(
    histories: int, draw: random.Random, shape: Shape = SHAPE, *, states_max: int = 100_000
) -> Mapping[str, Tally]:
    """Return what both checkers say of `histories` legal ones, and as many of each fault.

    All is well when the legal ones are accepted without a fault witnessed, and the others
    are rejected and witnessed; a given-up search decides nothing.

    Returns:
        The tallies of "legal" and of each name in `FAULTS`.
    """
    tallies = {"legal": [legal(draw, shape) for _ in range(histories)]}
    for fault in FAULTS:
        tallies[fault] = [planted(draw, fault, shape) for _ in range(histories)]
    return {name: _tally(made, states_max) for name, made in tallies.items()}


def _tally(histories: Sequence[History], states_max: int) -> Tally:
    """Count what the checkers say."""
    verdicts = [search(one.operations, states_max=states_max) for one in histories]
    return Tally(
        accepted=verdicts.count(Verdict.LEGAL),
        rejected=verdicts.count(Verdict.ILLEGAL),
        given_up=verdicts.count(Verdict.GIVEN_UP),
        witnessed=sum(bool(witness(one.operations, one.log)) for one in histories),
    )


def _plans(draw: random.Random, shape: Shape) -> list[_Plan]:
    """Return operations in the order of their effects, every written value a new one."""
    free_at = [draw.random() for _ in range(shape.clients)]
    plans = []
    for _ in range(shape.operations):
        client = draw.randrange(shape.clients)
        invoked_at = free_at[client] + draw.random()
        effect_at: float | None = invoked_at + 3 * draw.random()
        returned_at: float | None = (effect_at or 0.0) + 3 * draw.random()
        free_at[client] = returned_at or 0.0
        if draw.random() < shape.unknown_share:
            returned_at = None
            effect_at = draw.choice((None, effect_at, invoked_at + 30 * draw.random()))
        chance = draw.random()
        kind: Kind = "read"
        if chance < shape.write_share + shape.cas_share:
            kind = "write" if chance < shape.write_share else "cas"
        plans.append(
            _Plan(
                client=f"c{client}",
                kind=kind,
                key=f"k{draw.randrange(shape.keys)}",
                argument=None,
                invoked_at=invoked_at,
                effect_at=effect_at,
                returned_at=returned_at,
            )
        )
    plans.sort(key=lambda one: one.invoked_at if one.effect_at is None else one.effect_at)
    return _with_arguments(draw, plans)


def _with_arguments(draw: random.Random, plans: Sequence[_Plan]) -> list[_Plan]:
    """Give each plan its values; a cas expects what is there, or mostly something older."""
    held: dict[str, list[Value]] = {}
    done = []
    for number, plan in enumerate(plans, start=1):
        values = held.setdefault(plan.key, [None])
        argument: Argument = None
        if plan.kind == "write":
            argument = number
        elif plan.kind == "cas":
            argument = (draw.choice((values[-1], draw.choice(values))), number)
        if plan.effect_at is not None:
            values.append(step(plan.kind, argument, values[-1])[1])
        done.append(replace(plan, argument=argument))
    return done


def _play(plans: Sequence[_Plan], *, lost: _Plan | None = None) -> History:
    """Return what clients see when all but the lost one take effect; indexes start at 1."""
    held: dict[str, Value] = {}
    operations: list[Operation] = []
    log: list[Entry] = []
    index = 0
    for plan in plans:
        result: Value = None
        if plan.effect_at is not None:
            result, value = step(plan.kind, plan.argument, held.get(plan.key))
            if plan.kind != "read":
                index += 1
                if plan is not lost:
                    held[plan.key] = value
                    log.append(
                        Entry(index=index, kind=plan.kind, key=plan.key, argument=plan.argument)
                    )
        is_unknown = plan.returned_at is None
        operations.append(
            Operation(
                client=plan.client,
                kind=plan.kind,
                key=plan.key,
                argument=plan.argument,
                result=None if is_unknown else result,
                invoked_at=plan.invoked_at,
                returned_at=plan.returned_at,
                index=None if is_unknown else index,
            )
        )
    return History(operations=tuple(operations), log=tuple(log))


def _stale(draw: random.Random, plans: Sequence[_Plan]) -> History | None:
    """Return the history with one read answered from the past, if one can be."""
    history = _play(plans)
    choices = [
        (place, old)
        for place, read in enumerate(history.operations)
        if read.kind == "read" and read.returned_at is not None
        for old in _outdated(history.operations, read)
    ]
    if not choices:
        return None
    place, (value, index) = draw.choice(choices)
    operations = list(history.operations)
    operations[place] = replace(operations[place], result=value, index=index)
    return replace(history, operations=tuple(operations))


def _lost(draw: random.Random, plans: Sequence[_Plan]) -> History | None:
    """Return the history with one acknowledged write undone, if a read gives it away."""
    writes = [one for one in plans if one.kind == "write" and one.returned_at is not None]
    if not writes:
        return None
    history = _play(plans, lost=draw.choice(writes))
    for read in history.operations:
        if read.kind == "read" and read.returned_at is not None:
            values = [value for value, _ in _outdated(history.operations, read)]
            if read.result in values:
                return history
    return None


def _outdated(operations: Sequence[Operation], read: Operation) -> list[tuple[Value, int]]:
    """Return the values, with their indexes, that a read cannot have seen whatever the order.

    Those are the values replaced by a change that was invoked after the value was
    acknowledged, and itself acknowledged before the read was asked.
    """
    changes = [
        one
        for one in operations
        if one.key == read.key
        and (one.kind == "write" or (one.kind == "cas" and one.result is True))
        and one.returned_at is not None
        and one.returned_at < read.invoked_at
    ]
    if not changes:
        return []
    latest = max(one.invoked_at for one in changes)
    outdated: list[tuple[Value, int]] = [(None, 0)]
    for one in changes:
        assert one.returned_at is not None
        if one.returned_at < latest:
            value = one.argument[1] if isinstance(one.argument, tuple) else one.argument
            outdated.append((value, one.index or 0))
    return outdated
