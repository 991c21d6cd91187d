"""What this node has said, in order."""

from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.sayings import Sayings

names = st.sampled_from("abcdef")


@given(st.lists(names, max_size=30), st.lists(names, max_size=10), st.integers(1, 4))
def test_a_peer_hears_each_change_once(first: list[str], then: list[str], most: int) -> None:
    """Whoever asks on from where it was told hears all that changed since, and nothing else."""
    sayings = Sayings()
    heard: list[str] = []
    upto = 0
    for changes in (first, then):
        for name in changes:
            sayings.say(name)
        round_heard: list[str] = []
        while upto < sayings.sequence:
            told, upto = sayings.since(upto, most=most)
            assert 1 <= len(told) <= most
            assert [sequence for _, sequence in told] == sorted({s for _, s in told})
            round_heard += [name for name, _ in told]
        assert sorted(round_heard) == sorted(set(changes))
        heard += round_heard
        assert sayings.since(upto) == ((), upto)
    assert set(heard) == set(first) | set(then)


def test_a_peer_newly_met_hears_everything() -> None:
    """From the beginning each instance comes once, at its last change."""
    sayings = Sayings()
    for name in ("a", "b", "a"):
        sayings.say(name)
    assert sayings.since(0) == ((("b", 2), ("a", 3)), 3)
    assert len(sayings) == 2


def test_a_sequence_of_another_life_hears_everything() -> None:
    """A peer that names a number this node never gave is told from the beginning."""
    sayings = Sayings()
    sayings.say("a")
    assert sayings.since(9) == ((("a", 1),), 1)


def test_what_is_forgotten_is_not_told() -> None:
    """An instance that was removed is no news any more, and its number isn't given again."""
    sayings = Sayings()
    sayings.say("a")
    sayings.say("b")
    sayings.forget("b")
    sayings.forget("c")
    assert sayings.since(0) == ((("a", 1),), 2)
