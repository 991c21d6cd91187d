"""Instances that are to be looked at again."""

from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.backlog import Backlog

names = st.lists(st.sampled_from("abcdef"), max_size=12)


@given(names, names, st.integers(0, 4))
def test_each_is_looked_at_once_and_in_turn(first: list[str], then: list[str], most: int) -> None:
    """Names come out in the order in which they came in, each once, a bounded number at a time."""
    backlog = Backlog()
    backlog.add(first)
    taken = list(backlog.take(most))
    assert taken == list(dict.fromkeys(first))[:most]
    backlog.add(then)
    rest = list(dict.fromkeys([*list(dict.fromkeys(first))[most:], *then]))
    assert len(backlog) == len(rest)
    assert all((name in backlog) == (name in rest) for name in "abcdef")
    assert list(backlog.take(100)) == rest
    assert len(backlog) == 0


def test_what_is_added_meanwhile_waits() -> None:
    """Whoever puts back what it took doesn't go on for ever."""
    backlog = Backlog()
    backlog.add("ab")
    for name in backlog.take(10):
        backlog.add(name)
    assert len(backlog) == 2
