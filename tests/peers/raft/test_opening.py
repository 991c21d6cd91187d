"""Where an engine begins."""

import pytest

from reachnode.peers.raft.opening import Times


def test_slower_times_keep_their_proportions() -> None:
    """Every time grows by the same factor; none is forgotten."""
    times = Times().scaled(3)
    slower = Times(election_min=0.9, election_max=1.8, heartbeat=0.24, fallback=1.8)
    for name in Times.__slots__:
        assert getattr(times, name) == pytest.approx(getattr(slower, name))


def test_times_never_shrink_to_nothing() -> None:
    """A factor that isn't above zero is a mistake of ours."""
    with pytest.raises(AssertionError):
        Times().scaled(0)


def test_a_heartbeat_fits_thrice_into_the_shortest_timeout() -> None:
    """Two heartbeats may be lost before anybody becomes restless."""
    assert Times().heartbeat * 3 < Times().election_min
