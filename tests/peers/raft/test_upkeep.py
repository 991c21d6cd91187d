"""Slow work in slices: snapshots, trimming, digests."""

import pytest

from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.loading import load
from reachnode.peers.raft.machine import pack_digest
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.storage import snapshot_indexes
from reachnode.registry.commands import Advance
from tests.peers.raft.cores import SETTINGS, Cores, three


def alone(settings: RaftSettings = SETTINGS) -> Cores:
    """Return a cluster of one that leads."""
    cores = Cores(["n1"], settings=settings)
    cores.start()
    cores.run(1.0)
    return cores


def grow(cores: Cores, count: int) -> None:
    """Let n1 apply so many changes."""
    for _ in range(count):
        cores["n1"].propose(Advance(by_ms=1))
        cores.settle()
    cores.run(0.1)


def test_a_grown_journal_calls_for_a_snapshot_and_is_trimmed() -> None:
    """Some entries are kept for followers that are a little behind."""
    cores = alone()
    grow(cores, 10)
    assert cores["n1"].core.upkeep.snapshots_count == 0
    grow(cores, 40)
    upkeep = cores["n1"].core.upkeep
    assert upkeep.snapshots_count == 2
    assert upkeep.snapshot is not None
    assert cores["n1"].raft.journal.base == upkeep.snapshot[0] - SETTINGS.keep_entries
    assert snapshot_indexes(cores["n1"].files.names()) == [upkeep.snapshot[0]]
    loaded = load(cores["n1"].files)
    assert loaded.snapshot is not None
    assert loaded.snapshot[0] == upkeep.snapshot[0]
    cores.stop("n1")
    cores.start("n1")
    assert cores["n1"].core.upkeep.snapshot == upkeep.snapshot
    cores.run(1.0)
    assert cores["n1"].state.time_ms == 50


def test_a_heavy_journal_is_trimmed_without_a_rest() -> None:
    """By its bytes, long before it has many entries."""
    cores = alone(RaftSettings(snapshot_entries=1000, keep_entries=5, snapshot_bytes=400))
    grow(cores, 30)
    upkeep = cores["n1"].core.upkeep
    assert upkeep.snapshots_count >= 2
    assert upkeep.snapshot is not None
    assert cores["n1"].raft.journal.base == upkeep.snapshot[0]
    assert cores["n1"].raft.journal.bytes_count < 500


def test_a_journal_that_is_heavy_behind_its_snapshot_waits_for_entries() -> None:
    """There is nothing that a snapshot of the same index would gain."""
    cores = three(RaftSettings(snapshot_bytes=1, snapshot_entries=1000))
    upkeep = cores["n1"].core.upkeep
    cores.run(1.0)
    count = upkeep.snapshots_count
    cores.run(1.0)
    assert upkeep.snapshots_count == count


def test_nothing_is_trimmed_before_the_snapshot_is_durable() -> None:
    """While the disk stands still the journal keeps everything; turned off, it doesn't."""
    for is_safe in (True, False):
        settings = RaftSettings(
            snapshot_entries=20,
            keep_entries=0,
            safeguards=Safeguards(snapshot_before_trim=is_safe),
        )
        cores = three(settings)
        follower = cores["n2"]
        grow(cores, 15)
        follower.is_stalled = True
        grow(cores, 10)
        assert (follower.raft.journal.base == 1) == is_safe
        follower.is_stalled = False
        cores.settle()
        assert follower.raft.journal.base > 1


def test_one_snapshot_is_made_at_a_time() -> None:
    """The next one begins when it is finished."""
    cores = three()
    node = cores["n1"]
    grow(cores, 5)
    node.core.upkeep.maker.begin(node.state, index=node.raft.machine.index, term=1)
    node.core.upkeep.begin_snapshot()
    cores.settle()
    assert node.core.upkeep.snapshots_count == 1


def test_a_snapshot_that_is_received_ends_the_one_in_progress() -> None:
    """Which is older, and would claim to cover less."""
    cores = three()
    node = cores["n2"]
    node.core.upkeep.maker.begin(node.state, index=node.raft.machine.index, term=1)
    node.core.upkeep.installed(50, 2)
    assert node.core.upkeep.maker.is_idle
    assert node.core.upkeep.snapshot == (50, 2)


def test_a_leader_logs_its_digest_and_everybody_compares() -> None:
    """As long as the states are the same nobody notices."""
    cores = three()
    before = cores["n2"].raft.machine.index
    grow(cores, 12)
    for member in ("n1", "n2", "n3"):
        digests = cores[member].raft.machine.digests
        assert digests._known.items() >= digests._claims.items() != {}
    assert cores["n2"].raft.machine.index > before + 12


def test_a_node_whose_state_differs_stops() -> None:
    """With both digests and the index; nothing it holds may be served."""
    cores = alone()
    node = cores["n1"]
    grow(cores, 12)
    index = max(node.raft.machine.digests._known)
    node.core.append_command(pack_digest(index, "0" * 32))
    with pytest.raises(FailStop, match=f"at index {index}"):
        node.core.tick()


def test_a_core_that_does_not_run_has_no_slow_work() -> None:
    """Before it is founded."""
    cores = Cores()
    cores.start("n1")
    core = cores["n1"].core
    assert not core.work()
    assert not core.upkeep.is_busy
    core.upkeep.begin_snapshot()
    core.upkeep.finish_snapshot()
    assert core.upkeep.maker.is_idle
