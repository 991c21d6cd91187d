import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.histories import FAULTS, Fault, Shape, legal, main_self_check, planted
from sim.linear import Verdict, search, witness

SHORT = Shape(operations=25, clients=4, keys=1)
seeds = st.integers(0, 1 << 30)


@given(seeds)
def test_a_legal_history_is_accepted_by_both(seed: int) -> None:
    """Neither check cries wolf."""
    history = legal(random.Random(seed), SHORT)
    assert len(history.operations) == SHORT.operations
    assert search(history.operations) is Verdict.LEGAL
    assert witness(history.operations, history.log) == []


@settings(max_examples=60)
@given(seeds, st.sampled_from(FAULTS))
def test_every_planted_fault_is_found_by_both(seed: int, fault: Fault) -> None:
    """Neither check is asleep: one stale read or one lost write is enough."""
    history = planted(random.Random(seed), fault, SHORT)
    assert search(history.operations) is Verdict.ILLEGAL
    assert witness(history.operations, history.log)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_stale_read_is_one_changed_answer_and_a_lost_write_one_missing_entry(
    fault: Fault,
) -> None:
    """The fault is what its name says: the witness finds it where it was planted."""
    for seed in range(30):
        history = planted(random.Random(seed), fault, SHORT)
        indexes = [entry.index for entry in history.log]
        missing = set(range(1, max(indexes) + 1)) - set(indexes)
        faults = witness(history.operations, history.log)
        if fault == "stale_read":
            assert not missing
            assert len(faults) == 1
            assert " read " in faults[0]
            assert "was told before it was asked" in faults[0]
        else:
            assert len(missing) <= 1
            assert sum("lost, it is not in the log" in one for one in faults) == 1


def test_one_seed_makes_one_history() -> None:
    """A history can be had again by its seed."""
    assert legal(random.Random(7)) == legal(random.Random(7))
    for fault in FAULTS:
        assert planted(random.Random(7), fault) == planted(random.Random(7), fault)


def test_made_up_histories_have_everything() -> None:
    """All kinds, both outcomes of a cas, overlaps, and unknown outcomes of either fate occur."""
    history = legal(random.Random(1), Shape(operations=400, unknown_share=0.2))
    answered = [one for one in history.operations if one.returned_at is not None]
    assert {one.kind for one in answered} == {"write", "read", "cas"}
    assert {one.result for one in answered if one.kind == "cas"} == {True, False}
    unknown = [one for one in history.operations if one.returned_at is None]
    logged = {entry.argument for entry in history.log}
    assert {one.argument in logged for one in unknown if one.kind != "read"} == {True, False}
    assert all(one.index is None for one in unknown)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("write_share", [0.0, 1.0])
def test_a_shape_without_room_for_a_fault_is_an_error(fault: Fault, write_share: float) -> None:
    """Asking for a fault that cannot be planted ends with a sentence, not in a loop."""
    shape = Shape(operations=5, write_share=write_share, cas_share=0.0)
    with pytest.raises(ValueError, match="no place for a"):
        planted(random.Random(1), fault, shape)


def test_the_self_check_counts_what_the_checkers_say() -> None:
    """All legal ones accepted, all planted ones rejected and witnessed, none given up."""
    tallies = main_self_check(20, random.Random(1), SHORT)
    assert set(tallies) == {"legal", *FAULTS}
    good = tallies["legal"]
    assert (good.accepted, good.rejected, good.given_up, good.witnessed) == (20, 0, 0, 0)
    for fault in FAULTS:
        bad = tallies[fault]
        assert (bad.accepted, bad.rejected, bad.given_up, bad.witnessed) == (0, 20, 0, 20)


def test_the_self_check_counts_what_is_given_up() -> None:
    """A limit that is too low shows as given up, never as a verdict."""
    tallies = main_self_check(5, random.Random(1), SHORT, states_max=2)
    assert tallies["legal"].given_up == 5
    for fault in FAULTS:
        assert tallies[fault].accepted == 0
        assert tallies[fault].rejected + tallies[fault].given_up == 5
