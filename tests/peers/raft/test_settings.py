"""What is set about consensus."""

import pytest

from reachnode.peers.raft.opening import Times
from reachnode.peers.raft.safeguards import ALL_ON
from reachnode.peers.raft.settings import RaftSettings


def test_a_slow_machine_gets_more_time_for_what_others_wait_for() -> None:
    """Elections, contact and stalls scale together; counts of entries and bytes do not."""
    settings = RaftSettings().scaled(2)
    assert settings.times == Times().scaled(2)
    assert settings.disk_stall_seconds == pytest.approx(2.0)
    assert settings.leaderless_seconds == pytest.approx(3.0)
    assert settings.contact_seconds == pytest.approx(2.4)
    assert settings.snapshot_entries == RaftSettings().snapshot_entries


def test_a_snapshot_leaves_a_part_of_the_journal() -> None:
    """A follower a little behind is served from the journal, however often it is trimmed."""
    settings = RaftSettings().snapshot_every(100)
    assert (settings.snapshot_entries, settings.keep_entries) == (100, 20)
    assert RaftSettings().snapshot_every(5_000) == RaftSettings()


def test_a_change_outlasts_an_election() -> None:
    """It waits for a leader longer than a leader is believed to be there without a word."""
    settings = RaftSettings()
    assert settings.leaderless_seconds > settings.contact_seconds > settings.times.election_max


def test_every_safeguard_is_on() -> None:
    """Only the simulator turns one off."""
    assert RaftSettings().safeguards is ALL_ON
    assert all(getattr(ALL_ON, name) is True for name in type(ALL_ON).__slots__)
