import json
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.linear import (
    Argument,
    Entry,
    Kind,
    Operation,
    Value,
    Verdict,
    search,
    step,
    to_porcupine_json,
    witness,
)


def op(
    kind: Kind,
    argument: Argument,
    result: Value,
    when: tuple[float, float | None],
    index: int | None = None,
) -> Operation:
    """Return an operation on one key by one client."""
    return Operation(
        client="c",
        kind=kind,
        key="k",
        argument=argument,
        result=result,
        invoked_at=when[0],
        returned_at=when[1],
        index=index,
    )


def write(value: Value, when: tuple[float, float | None], index: int | None = None) -> Operation:
    """Return a write."""
    return op("write", value, None, when, index)


def read(value: Value, when: tuple[float, float | None], index: int | None = None) -> Operation:
    """Return a read that was answered with `value`."""
    return op("read", None, value, when, index)


def cas(
    pair: tuple[Value, Value],
    result: Value,
    when: tuple[float, float | None],
    index: int | None = None,
) -> Operation:
    """Return a compare-and-set."""
    return op("cas", pair, result, when, index)


def put(index: int, value: Value) -> Entry:
    """Return a write as the log has it."""
    return Entry(index=index, kind="write", key="k", argument=value)


def swap(index: int, pair: tuple[Value, Value]) -> Entry:
    """Return a compare-and-set as the log has it."""
    return Entry(index=index, kind="cas", key="k", argument=pair)


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    """Draw an operation over few values and few moments, so that much is ambiguous."""
    values = st.sampled_from([None, 1, 2])
    invoked_at = draw(st.integers(0, 8))
    is_unknown = draw(st.integers(0, 3)) == 0
    when = (float(invoked_at), None if is_unknown else float(invoked_at + draw(st.integers(0, 4))))
    kind = draw(st.sampled_from(["write", "read", "cas"]))
    if kind == "write":
        return write(draw(values), when)
    if kind == "read":
        return read(None if is_unknown else draw(values), when)
    pair = (draw(values), draw(values))
    return cas(pair, None if is_unknown else draw(st.booleans()), when)


def explains(order: tuple[Operation, ...]) -> bool:
    """Return whether an order is one that could have been, with these answers."""
    value: Value = None
    for place, one in enumerate(order):
        for later in order[place + 1 :]:
            if later.returned_at is not None and later.returned_at < one.invoked_at:
                return False
        result, value = step(one.kind, one.argument, value)
        if one.returned_at is not None and one.kind != "write" and result != one.result:
            return False
    return True


def by_force(history: list[Operation]) -> Verdict:
    """Try every order of every choice of the unknown operations."""
    known = [one for one in history if one.returned_at is not None]
    unknown = [one for one in history if one.returned_at is None]
    for count in range(len(unknown) + 1):
        for chosen in combinations(unknown, count):
            if any(explains(order) for order in permutations([*known, *chosen])):
                return Verdict.LEGAL
    return Verdict.ILLEGAL


@settings(max_examples=500)
@given(st.lists(operations(), max_size=6))
def test_search_agrees_with_trying_every_order(history: list[Operation]) -> None:
    """The search is neither blind nor strict: it says what all permutations say."""
    assert search(history) is by_force(history)


def test_a_register_answers_as_a_register() -> None:
    """The model that all is measured by: write, read, and both outcomes of a cas."""
    assert step("write", 2, 1) == (None, 2)
    assert step("read", None, 1) == (1, 1)
    assert step("cas", (1, 2), 1) == (True, 2)
    assert step("cas", (1, 2), 3) == (False, 3)


def test_nothing_is_legal() -> None:
    """A run in which nobody asked contradicts nothing."""
    assert search([]) is Verdict.LEGAL
    assert witness([], []) == []


def test_a_stale_read_is_illegal() -> None:
    """An answer from before an acknowledged write is found."""
    history = [write(1, (0, 1)), write(2, (2, 3)), read(1, (4, 5))]
    assert search(history) is Verdict.ILLEGAL
    assert search([*history[:2], read(2, (4, 5))]) is Verdict.LEGAL


def test_overlapping_operations_may_take_either_order() -> None:
    """While a write is in flight a read may see the old or the new value, but not go back."""
    first, second = write(1, (0, 1)), write(2, (2, 9))
    assert search([first, second, read(1, (3, 4)), read(2, (5, 6))]) is Verdict.LEGAL
    assert search([first, second, read(2, (3, 4)), read(1, (5, 6))]) is Verdict.ILLEGAL


def test_equal_times_overlap() -> None:
    """What returns at the moment another is invoked did not surely come before it."""
    assert search([write(1, (0, 1)), read(None, (1, 2))]) is Verdict.LEGAL


def test_an_unknown_write_may_happen_late_or_never() -> None:
    """A write without an answer explains a read long after it, and may be missing too."""
    lost = write(2, (0, None))
    assert search([write(1, (1, 2)), lost, read(1, (3, 4)), read(2, (9, 10))]) is Verdict.LEGAL
    assert search([write(1, (1, 2)), lost, read(1, (9, 10))]) is Verdict.LEGAL
    assert search([write(1, (1, 2)), lost, read(2, (3, 4)), read(1, (5, 6))]) is Verdict.ILLEGAL
    assert search([read(2, (0, 1)), write(2, (2, None))]) is Verdict.ILLEGAL


def test_an_unknown_write_can_explain_a_refused_cas() -> None:
    """A cas that was refused although its value stood needs somebody who changed it."""
    refused = cas((1, 5), False, (3, 4))
    assert search([write(1, (0, 1)), refused]) is Verdict.ILLEGAL
    assert search([write(1, (0, 1)), write(2, (2, None)), refused]) is Verdict.LEGAL


def test_unknown_operations_can_explain_one_another() -> None:
    """A value may come from an unknown cas that needed an unknown write before it."""
    both = [write(1, (0, None)), cas((1, 2), None, (0, None))]
    assert search([*both, read(2, (1, 2))]) is Verdict.LEGAL
    assert search([both[1], read(2, (1, 2))]) is Verdict.ILLEGAL


def test_keys_are_apart() -> None:
    """A fault on one key is found among others that are fine."""
    fine = Operation(client="c", kind="read", key="other", invoked_at=0, returned_at=1)
    assert search([fine]) is Verdict.LEGAL
    assert search([fine, read(1, (0, 1))]) is Verdict.ILLEGAL


def test_a_search_that_is_too_long_is_given_up() -> None:
    """A search ends by its limit and says so, unless another key is illegal."""
    history = [write(value, (0, 9)) for value in range(8)] + [read(99, (10, 11))]
    assert search(history, states_max=50) is Verdict.GIVEN_UP
    assert search(history) is Verdict.ILLEGAL
    other = Operation(client="c", kind="read", key="z", result=1, invoked_at=0, returned_at=1)
    assert search([*history, other], states_max=50) is Verdict.ILLEGAL


def test_too_many_operations_are_a_bug() -> None:
    """A history beyond the limit is refused, not searched for ever."""
    history = [write(1, (place, place)) for place in range(201)]
    assert search(history[:200]) is Verdict.LEGAL
    with pytest.raises(AssertionError):
        search(history)


@pytest.mark.parametrize(
    ("kind", "argument", "returned_at"),
    [("write", 1, -1.0), ("write", (1, 2), 1.0), ("cas", 1, 1.0), ("read", (1, 2), 1.0)],
)
def test_a_muddled_operation_is_a_bug(kind: Kind, argument: Argument, returned_at: float) -> None:
    """An answer before the question, or the wrong argument, is refused where it is made."""
    with pytest.raises(AssertionError):
        op(kind, argument, None, (0, returned_at))


GOOD = [
    write(1, (0, 1), 1),
    cas((1, 2), True, (2, 3), 3),
    cas((1, 9), False, (3, 5), 4),
    read(2, (6, 7), 4),
    read(None, (0, 1), 0),
    write(8, (6, None)),
    write(7, (6, None)),
    read(None, (6, None)),
    read(5, (6, 7)),
]
LOG = [put(1, 1), swap(3, (1, 2)), swap(4, (1, 9)), put(6, 7)]


def test_a_run_that_agrees_with_its_log_has_no_witness() -> None:
    """Acknowledged, refused, unknown-and-done, unknown-and-never: all are as the log says."""
    assert witness(GOOD, LOG) == []


@pytest.mark.parametrize(
    ("operations", "log", "sentence"),
    [
        (GOOD, LOG[1:], "lost, it is not in the log at that index"),
        (GOOD, [*LOG, put(7, 7)], "log index 7: write k 7 was applied 1 times too often"),
        (GOOD, [*LOG, put(7, 3)], "log index 7: write k 3 was applied 1 times too often"),
        (GOOD, [put(2, 5), *LOG], "log index 1 follows 2"),
        ([*GOOD, read(1, (8, 9), 6)], LOG, "the log has 7 there"),
        ([*GOOD, read(1, (8, 9), 1)], LOG, "index 4 was told before it was asked"),
        ([*GOOD, write(1, (8, 9))], LOG, "acknowledged without an index"),
        ([write(1, (0, 1), 2)], [put(1, 1)], "lost, it is not in the log at that index"),
        ([cas((1, 2), True, (0, 1), 1)], [swap(1, (1, 2))], "the log says False"),
        ([cas((None, 2), False, (0, 1), 1)], [swap(1, (None, 2))], "the log says True"),
        (
            [write(1, (0, 1), 2), write(2, (2, 3), 1)],
            [put(1, 2), put(2, 1)],
            "index 2 was told before it was asked",
        ),
        (
            [read(1, (0, 1), 1), write(1, (2, 3), 1)],
            [put(1, 1)],
            "index 1 was told before it was asked",
        ),
        ([read(1, (0, 1), 1)], [], "the log has None there"),
    ],
)
def test_each_contradiction_is_told(
    operations: list[Operation], log: list[Entry], sentence: str
) -> None:
    """A lost, doubled, invented, reordered or wrongly answered change is named."""
    faults = witness(operations, log)
    assert any(sentence in fault for fault in faults), faults


def test_a_batch_shares_an_index() -> None:
    """Changes that were applied together are matched one by one, each with its own answer."""
    both = [
        cas((None, 1), True, (0, 5), 1),
        cas((None, 1), False, (0, 5), 1),
        write(3, (0, 5), 1),
        write(3, (0, 5), 1),
        read(3, (0, 5), 1),
    ]
    log = [swap(1, (None, 1)), swap(1, (None, 1)), put(1, 3), put(1, 3)]
    assert witness(both, log) == []
    assert len(witness(both, log[:-1])) == 1


def test_a_fault_names_the_operation() -> None:
    """Who, what, when and where are in the sentence."""
    assert witness([write(1, (0.5, 2), 4)], [])[0].startswith(
        "c write k 1 -> None [0.5..2] index 4: "
    )
    late = [write(1, (0, 1), 4), write(2, (2, None), 3)]
    assert "c write k 2 -> None [2..?] index 3: " in witness(late, [put(3, 2), put(4, 1)])[0]
    assert "c read k -> 1 [" in witness([read(1, (0, 1), 4)], [])[0]


def test_porcupine_reads_the_export() -> None:
    """The JSON has the fields of Porcupine's operation, whole times and all outcomes."""
    history = [
        Operation(client="b", kind="write", key="k", argument="x", invoked_at=0.5, returned_at=1.5),
        cas(("x", "y"), True, (2, 3)),
        cas(("x", "z"), None, (2.5, None)),
    ]
    assert json.loads(to_porcupine_json(history)) == [
        {
            "ClientId": 0,
            "Input": {"op": "write", "key": "k", "value": "x"},
            "Call": 500_000_000,
            "Output": {"value": None, "unknown": False},
            "Return": 1_500_000_000,
        },
        {
            "ClientId": 1,
            "Input": {"op": "cas", "key": "k", "expected": "x", "value": "y"},
            "Call": 2_000_000_000,
            "Output": {"value": True, "unknown": False},
            "Return": 3_000_000_000,
        },
        {
            "ClientId": 1,
            "Input": {"op": "cas", "key": "k", "expected": "x", "value": "z"},
            "Call": 2_500_000_000,
            "Output": {"value": None, "unknown": True},
            "Return": 3_000_000_001,
        },
    ]
    assert json.loads(to_porcupine_json([])) == []
