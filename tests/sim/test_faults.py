"""Chaos does what the circumstances allow, and heals everything when it ends."""

from dataclasses import replace

import pytest

from reachnode.peers.raft.inbound import Inbound
from reachnode.peers.raft.safeguards import ALL_ON
from sim.circumstances import Circumstances
from sim.faults import kinds_of
from sim.stage import Stage
from sim.world import World

ALL_FAULTS = Circumstances(
    wipes=True, full_disks=True, sync_errors=True, forgetting=True, early_crashes=True
)


def test_kinds_follow_the_circumstances() -> None:
    """What is switched off never happens; a lone member has no connections to break."""
    assert {"wipe", "full_disk", "sync_error", "forget", "strand", "hand_over"} <= set(
        kinds_of(ALL_FAULTS)
    )
    quiet = Circumstances(disk_stalls=False, pauses=False, cuts=False, transfers=False)
    assert set(kinds_of(quiet)) == {"crash", "crash_inside", "blackout", "reset"}
    assert set(kinds_of(replace(quiet, voters=1))) == {"crash", "crash_inside", "blackout"}


@pytest.mark.parametrize("kind", sorted(set(kinds_of(ALL_FAULTS))))
def test_every_kind_of_fault_is_survived(kind: str) -> None:
    """Each fault, again and again to everybody in turn, leaves a cluster that works."""
    stage = Stage(2, ALL_ON, wipes=True)
    chaos, world = stage.world.chaos, stage.world
    chaos._is_on = True
    done = 0
    for number in range(12):
        member = sorted(world.members)[number % 3]
        done += bool(getattr(chaos, f"_{kind}")(member))
        stage.ask(stage.wait_for_leader())
        stage.run(1.0)
    assert done or kind == "forget"
    chaos.end()
    world._converge()
    assert stage.verdict() == []


def test_everything_is_healed_at_the_end() -> None:
    """Nobody stays dead, paused, stalled, full or cut off."""
    stage = Stage(2, ALL_ON)
    one, two, three = sorted(stage.world.members)
    stage.member(one).kill(power=True)
    stage.isolate(two)
    stage.member(three).stalled_until = stage.member(three).paused_until = stage.now + 1e6
    stage.member(three).files.full(0)
    stage.world.chaos.end()
    stage.run(3.0)
    assert stage.change(stage.wait_for_leader())
    assert all(member.is_alive for member in stage.world.members.values())


def test_an_older_disk_is_noticed_and_replaced() -> None:
    """A copy that has forgotten acknowledged entries is not believed by the leader."""
    stage = Stage(2, ALL_ON)
    chaos = stage.world.chaos
    chaos._is_on = True
    follower = stage.others(stage.leader)[0]
    chaos._forget(follower)
    assert stage.change(stage.leader, 5)
    stage.run(0.5)
    chaos._forget(follower)
    stage.run(6.0)
    assert chaos.faults["older_disk"] == 1
    assert stage.world.rare["disk_forgot_and_was_noticed"] == 1
    chaos.end()
    stage.world._converge()
    assert stage.verdict() == []


def test_an_older_disk_that_is_believed_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator sees it when the leader goes on counting such a disk."""
    stage = Stage(2, ALL_ON)
    chaos = stage.world.chaos
    chaos._is_on = True
    follower = stage.others(stage.leader)[0]
    chaos._forget(follower)
    assert stage.change(stage.leader, 5)
    stage.run(0.5)
    monkeypatch.setattr(Inbound, "judge_memory", lambda *_: None)
    chaos._forget(follower)
    stage.run(6.0)
    assert [one.partition(":")[0] for one in stage.verdict()][:1] == ["not noticed"]


def test_a_stranded_leader_comes_back_to_a_snapshot() -> None:
    """With snapshots at every entry, its doomed entry is replaced by one that ends right there."""
    met = 0
    for seed in range(6):
        stage = Stage(seed, ALL_ON, snapshot_entries=1)
        stage.world.chaos._is_on = True
        stage.world.chaos.aim.strand()
        stage.run(8.0)
        stage.world.chaos.end()
        stage.world._converge()
        assert stage.verdict() == []
        met += stage.world.rare["snapshot_onto_divergent_tail"]
        met += sum(
            member.core.transfers.counters["snapshots_onto_divergent_tail"]
            for member in stage.world.members.values()
            if member.core is not None
        )
    assert met


def test_handing_over_is_counted_when_it_works() -> None:
    """A leader that is asked to hand over does, and that is seen."""
    stage = Stage(2, ALL_ON)
    stage.world.chaos._is_on = True
    stage.world.chaos.aim.hand_over()
    stage.run(1.0)
    assert stage.wait_for_leader() != stage.leader
    assert stage.world.rare["leadership_transferred"] == 1


def test_elections_and_cut_tails_are_struck() -> None:
    """Aimed faults happen: to voters, candidates, winners and whoever replaced its tail."""
    faults = World(9, Circumstances(chaos_seconds=60.0, fault_every_seconds=0.7)).run().faults
    assert {"aimed_voter", "aimed_candidate", "aimed_winner", "aimed_cut"} <= faults.keys()
