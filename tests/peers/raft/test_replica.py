"""Members in trio: real disks, real links, a clock that jumps."""

import random
import shutil
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from reachnode.model.membership import Unknown
from reachnode.peers.frames import LinkBroken
from reachnode.peers.hello import Lane
from reachnode.peers.raft.failstop import FailStop
from reachnode.peers.raft.proposal import Fate
from reachnode.peers.raft.settings import RaftSettings
from reachnode.registry.commands import Advance
from reachnode.registry.outcomes import Applied, Refused
from reachnode.world.files import SystemFiles
from reachnode.world.sources import SystemSources
from sim.disk import FakeFiles
from tests.fakes import MemoryNetwork
from tests.peers.raft.replicas import (
    PATIENCE_SECONDS,
    PLACES,
    THREADS_SECONDS,
    LoopbackNetwork,
    Process,
    advanced,
    cluster,
    deadline,
    leader_of,
    settled,
)

ALONE = {"n1": PLACES["n1"]}


@pytest.fixture(name="jumps")
def jumps_fixture(autojump_clock: trio.testing.MockClock) -> None:
    """Let virtual time jump, but not while a thread does disk work."""
    autojump_clock.autojump_threshold = THREADS_SECONDS


# --- three of them


async def test_three_replicas_found_elect_and_agree(jumps: None, tmp_path: Path) -> None:
    """A change proposed at a follower is read at every node, behind its index or a fence."""
    async with cluster(MemoryNetwork(), tmp_path) as (processes, _):
        await settled(processes["n1"])
        leader = leader_of(processes)
        follower, other = (one for one in processes.values() if one is not leader)
        applied = await advanced(follower, 7)
        assert follower.replica.state.time_ms == 7
        assert await other.replica.wait_applied(applied.index, deadline=deadline())
        assert other.replica.state.time_ms == 7
        assert await settled(other) > applied.index
        status = other.replica.status()
        assert (status.phase, status.quorum, status.leader) == ("running", True, leader.me)
        assert other.replica.link_counters()["dialed"] >= 0


async def test_what_was_told_survives_a_restart_of_all(jumps: None, tmp_path: Path) -> None:
    """From the disks: the same cluster, the same state, and more of it."""
    network = MemoryNetwork()
    async with cluster(network, tmp_path) as (processes, nursery):
        for _ in range(3):
            await advanced(processes["n2"])
        cluster_id = processes["n1"].replica.status().cluster_id
        for process in processes.values():
            await process.stop()
        for process in processes.values():
            await nursery.start(process.run)
        await settled(processes["n3"])
        assert processes["n3"].replica.state.time_ms == 3
        assert processes["n3"].replica.status().cluster_id == cluster_id
        await advanced(processes["n1"])
        assert processes["n1"].replica.state.time_ms == 4


async def test_leadership_is_given_away_by_who_has_it(jumps: None, tmp_path: Path) -> None:
    """Another node leads at once; who doesn't lead says so."""
    async with cluster(MemoryNetwork(), tmp_path) as (processes, _):
        await settled(processes["n1"])
        leader = leader_of(processes)
        others = [one for one in processes.values() if one is not leader]
        assert not await others[0].replica.transfer_leadership()
        with trio.fail_after(10):
            assert await leader.replica.transfer_leadership()
        assert leader.replica.status().role == "follower"
        await settled(leader)
        assert leader_of(processes) in others


async def asked(process: Process, member: str, kind: type[Applied | Refused]) -> Fate:
    """Ask for a member's disk to be admitted until that ends in one way, and return it."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            fate = await process.replica.replace_member(member, deadline())
            if isinstance(fate, kind):
                return fate
            await trio.sleep(0.1)


async def test_a_wiped_disk_learns_until_it_is_replaced(jumps: None, tmp_path: Path) -> None:
    """Then it is a member like any other; the answer has the index that admitted it."""
    async with cluster(MemoryNetwork(), tmp_path) as (processes, nursery):
        applied = await advanced(processes["n1"])
        await processes["n2"].stop()
        await asked(processes["n1"], "n2", Refused)  # Once it is noticed that nobody is there.
        shutil.rmtree(tmp_path / "n2")
        await nursery.start(processes["n2"].run)
        await processes["n2"].replica.wait_applied(applied.index, deadline=deadline())
        assert processes["n2"].replica.status().role == "learner"
        fate = await asked(processes["n1"], "n2", Applied)
        assert isinstance(fate, Applied)
        await processes["n2"].replica.wait_applied(fate.index, deadline=deadline())
        assert processes["n2"].replica.status().role in ("follower", "leader")


async def test_a_directory_of_another_cluster_stays_outside(jumps: None, tmp_path: Path) -> None:
    """Its node has no quorum, and the cluster goes on without it."""
    stranger = tmp_path / "stranger"
    async with cluster(MemoryNetwork(), stranger) as (processes, _):
        await settled(processes["n3"])
        strange_id = processes["n3"].replica.status().cluster_id
    shutil.move(stranger / "n3", tmp_path / "kept")
    network = MemoryNetwork()
    async with cluster(network, tmp_path / "good") as (processes, nursery):
        await settled(processes["n1"])
        await processes["n3"].stop()
        processes["n3"].directory = tmp_path / "kept"
        await nursery.start(processes["n3"].run)
        await advanced(processes["n1"])
        fate = await processes["n3"].replica.propose(Advance(by_ms=1), deadline=deadline(5))
        assert isinstance(fate, Refused)
        assert processes["n3"].replica.status().cluster_id == strange_id
        assert processes["n3"].replica.status().cluster_id != (
            processes["n1"].replica.status().cluster_id
        )
        assert processes["n1"].replica.link_counters()["dial_other_cluster"] > 0


async def test_three_replicas_agree_over_loopback(tmp_path: Path) -> None:
    """On the system's network, its clock and its disk."""
    async with cluster(LoopbackNetwork(), tmp_path, sources=SystemSources()) as (processes, _):
        applied = await advanced(processes["n2"], 5)
        assert await processes["n3"].replica.wait_applied(applied.index, deadline=deadline())
        assert processes["n3"].replica.state.time_ms == 5
        assert await settled(processes["n3"]) >= applied.index


# --- one alone


async def test_a_lone_voter_needs_nobody(jumps: None, tmp_path: Path) -> None:
    """It founds, changes and reads; after a restart everything is there."""
    process = Process("n1", MemoryNetwork(), tmp_path / "n1", places=ALONE)
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        applied = await advanced(process)
        assert await settled(process) > applied.index
        assert not await process.replica.wait_applied(10_000, deadline=deadline(1))
        await process.stop()
        await nursery.start(process.run)
        await settled(process)
        assert process.replica.state.time_ms == 1
        repeat = partial(process.replica.propose, Advance(by_ms=9), request_id="same")
        assert await repeat(deadline=deadline()) == await repeat(deadline=deadline())
        assert process.replica.state.time_ms == 10
        await process.stop()


async def test_a_lone_voter_mends_its_journal_after_a_failed_sync(jumps: None) -> None:
    """It is written anew from memory, before anything else is; what was told is in it."""
    files = FakeFiles()
    process = Process("n1", MemoryNetwork(), files, places=ALONE)
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        await advanced(process)
        files.sync_errors(1)
        await advanced(process)
        await process.stop()
        files.power_loss(random.Random(1))
        await nursery.start(process.run)
        await settled(process)
        assert process.replica.state.time_ms == 2
        await process.stop()


async def test_slow_work_is_done_beside_everything_else(jumps: None, tmp_path: Path) -> None:
    """Snapshots are made and the journal is trimmed, alone and among others."""
    raft = RaftSettings(snapshot_entries=10, keep_entries=2, digest_every=5)
    for places in (ALONE, {me: PLACES[me] for me in ("n1", "n2")}):
        network = MemoryNetwork()
        root = tmp_path / str(len(places))
        async with trio.open_nursery() as nursery:
            for me in places:
                process = Process(me, network, root / me, places=places, raft=raft)
                await nursery.start(process.run)
            for _ in range(25):
                await advanced(process)
            with trio.fail_after(30):
                while process.replica.status().counters["snapshots_made"] == 0:
                    await advanced(process)
            assert process.replica.status().log_first > 1
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("places", [ALONE, PLACES])
async def test_a_disk_that_is_full_is_tried_again(
    jumps: None,
    places: dict[str, object],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The status says so, changes are refused, and with room it goes on by itself."""
    network, files = MemoryNetwork(), FakeFiles()
    known = {member: PLACES[member] for member in places}
    processes = [Process("n1", network, files, places=known)]
    processes += [
        Process(me, network, tmp_path / me, places=known) for me in sorted(known) if me != "n1"
    ]
    async with trio.open_nursery() as nursery:
        for process in processes:
            await nursery.start(process.run)
        await advanced(processes[0])
        files.full(0)
        with trio.fail_after(30):
            while processes[0].replica.status().disk == "ok":
                fate = await processes[-1].replica.propose(Advance(by_ms=1), deadline=deadline(1))
                await processes[0].replica.wait_applied(
                    fate.index if isinstance(fate, Applied) else 0, deadline=deadline(1)
                )
        refused = await processes[0].replica.propose(Advance(by_ms=1), deadline=deadline())
        assert isinstance(refused, Refused)
        assert refused.code == "disk_full"
        files.full(None)
        with trio.fail_after(30):
            await advanced(processes[0])
        assert processes[0].replica.status().disk == "ok"
        nursery.cancel_scope.cancel()
    said = [record.message for record in caplog.records if "disk" in record.message]
    assert any("the disk takes no writes" in one for one in said)
    assert said[-1] == "the disk takes writes again"


# --- damage


async def directory_of_one(tmp_path: Path) -> Path:
    """Return the directory of a lone voter that has changed something."""
    process = Process("n1", MemoryNetwork(), tmp_path / "n1", places=ALONE)
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        for _ in range(3):
            await advanced(process)
        await process.stop()
    return tmp_path / "n1"


@pytest.mark.parametrize(
    ("name", "offset", "status"), [("journal", 60, 70), ("vote", 5, 72), ("identity", 9, 72)]
)
async def test_damage_stops_the_node_with_its_place(
    jumps: None, tmp_path: Path, name: str, offset: int, status: int
) -> None:
    """Never an empty or half table: the exit status names the file, the text the offset."""
    directory = await directory_of_one(tmp_path)
    data = bytearray((directory / name).read_bytes())
    data[offset] ^= 16
    (directory / name).write_bytes(data)
    process = Process("n1", MemoryNetwork(), directory, places=ALONE)
    with pytest.raises(FailStop) as caught:
        await process.run()
    assert caught.value.status == status
    assert f"{name} is damaged at byte " in caught.value.message
    place = int(caught.value.message.partition("at byte ")[2].partition(":")[0])
    assert place <= offset


async def test_a_directory_of_another_member_is_refused(jumps: None, tmp_path: Path) -> None:
    """Renaming a node is not replacing it."""
    directory = await directory_of_one(tmp_path)
    process = Process("n2", MemoryNetwork(), directory, places={"n2": PLACES["n2"]})
    with pytest.raises(FailStop, match="belongs to n1") as caught:
        await process.run()
    assert caught.value.status == 77


async def test_a_torn_tail_is_told_and_no_damage(
    jumps: None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It never was durable; what was is there."""
    directory = await directory_of_one(tmp_path)
    with (directory / "journal").open("ab") as journal:
        journal.write(b"half a record")
    process = Process("n1", MemoryNetwork(), directory, places=ALONE)
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        await settled(process)
        assert process.replica.state.time_ms == 3
        await process.stop()
    assert "13 bytes at the end of the journal were torn off" in caplog.text


async def test_a_snapshot_that_is_damaged_has_a_status_of_its_own(
    jumps: None, tmp_path: Path
) -> None:
    """So that the operator knows what to look for."""
    directory = await directory_of_one(tmp_path)
    (directory / "snapshot-00000000000000000003").write_bytes(b"not a snapshot")
    with pytest.raises(FailStop) as caught:
        await Process("n1", MemoryNetwork(), directory, places=ALONE).run()
    assert (caught.value.status, caught.value.word) == (71, "snapshot_damaged")


# --- before and after


async def test_before_it_runs_a_replica_says_no(jumps: None, tmp_path: Path) -> None:
    """Changes, reads and replacements are refused, and the status says why."""
    process = Process("n1", MemoryNetwork(), tmp_path / "n1")
    process._begin().close()
    replica = process.replica
    for fate in (
        await replica.propose(Advance(by_ms=1), deadline=deadline()),
        await replica.read_fence(deadline=deadline()),
        await replica.replace_member("n2", deadline()),
    ):
        assert isinstance(fate, Refused)
        assert fate.code == "no_quorum"
        assert "reading its disk" in fate.why
    assert (replica.status().phase, replica.applied_index) == ("loading", 0)
    assert not replica.state.members
    assert replica.link_counters() == {}
    assert not await replica.transfer_leadership()
    assert not replica.consensus("n2", b"x")
    assert not replica.bulk("n2", b"x")
    replica.drop("n2")
    replica.up("n2", Lane.CONSENSUS)
    replica.down("n2", Lane.CONSENSUS)


async def test_a_founding_node_has_an_empty_state(jumps: None, tmp_path: Path) -> None:
    """Without the others nothing can be founded; changes are refused in a while."""
    process = Process("n1", MemoryNetwork(), tmp_path / "n1")
    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        assert process.replica.applied_index == 0
        assert not process.replica.state.members
        assert process.replica.status().phase == "founding"
        fate = await process.replica.propose(Advance(by_ms=1), deadline=deadline())
        assert isinstance(fate, Refused)
        await process.stop()


async def test_a_change_under_way_when_the_node_ends_is_unknown(
    jumps: None, tmp_path: Path
) -> None:
    """Whoever waits for it is told, a little after its deadline."""
    process = Process("n1", MemoryNetwork(), tmp_path / "n1")
    fates: list[object] = []

    async def propose() -> None:
        fates.append(await process.replica.propose(Advance(by_ms=1), deadline=deadline(1)))

    async with trio.open_nursery() as nursery:
        await nursery.start(process.run)
        nursery.start_soon(propose)
        await trio.testing.wait_all_tasks_blocked()
        await process.stop()
    (fate,) = fates
    assert isinstance(fate, Unknown)
    assert "stopped" in fate.why


async def test_a_message_that_makes_no_sense_breaks_its_link(jumps: None, tmp_path: Path) -> None:
    """It is named with its sender and lane; nothing else comes of it."""
    async with cluster(MemoryNetwork(), tmp_path) as (processes, _):
        await settled(processes["n1"])
        with pytest.raises(LinkBroken, match="n2 on consensus: "):
            processes["n1"].replica.message("n2", Lane.CONSENSUS, b"noise")
        await settled(processes["n1"])
        processes["n1"].replica.drop("n2")
        await settled(processes["n2"])


async def test_two_processes_never_share_a_directory(tmp_path: Path) -> None:
    """The second one can't take the lock."""
    files = SystemFiles(tmp_path / "n1")
    files.lock()
    with pytest.raises(OSError, match="in use"):
        await Process("n1", MemoryNetwork(), tmp_path / "n1", places=ALONE).run()
    files.close()
