"""What a node says of its place in the cluster."""

from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.membership import SYNC_BOUNDS_SECONDS, Syncs


def test_a_sync_is_counted_under_the_first_bound_it_keeps() -> None:
    """A sync of exactly a bound belongs to it; a longer one than all belongs to the last."""
    exact = Syncs().with_one(SYNC_BOUNDS_SECONDS[2])
    assert exact.counts[2] == 1
    beyond = Syncs().with_one(SYNC_BOUNDS_SECONDS[-1] + 1)
    assert beyond.counts[-1] == 1


@given(st.lists(st.floats(0, 10)))
def test_no_sync_is_lost(seconds: list[float]) -> None:
    """However long they took, every sync is counted once, and their time is added up."""
    syncs = Syncs()
    for one in seconds:
        syncs = syncs.with_one(one)
    assert sum(syncs.counts) == len(seconds)
    assert abs(syncs.total_seconds - sum(seconds)) < 1e-6
