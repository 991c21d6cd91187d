"""Rare branches are known by one name each."""

from sim.rare import BRANCHES, OF_COUNTERS, at_zero, of_counters


def test_counters_have_the_names_of_branches() -> None:
    """A core's counters count under the branch's name; those of no branch are left out."""
    counters = {"held_acks": 3, "take_overs": 9, "terms_adopted": 2}
    assert of_counters(counters) == {"acks_held": 3, "terms_adopted": 2}
    assert set(OF_COUNTERS.values()) <= BRANCHES.keys()


def test_what_was_never_entered_is_named() -> None:
    """A branch that is missing or at zero is listed, a branch that was entered is not."""
    counts = dict.fromkeys(BRANCHES, 1) | {"votes_held": 0}
    del counts["fenced_reads"]
    assert at_zero(counts) == ["fenced_reads", "votes_held"]
