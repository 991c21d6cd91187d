"""A simulated member dies at any moment, and comes back with what its disk kept."""

from reachnode.peers.raft.safeguards import ALL_ON
from sim.stage import Stage


def test_what_was_acknowledged_outlives_power_loss_of_all() -> None:
    """Everybody loses power at once, and the change is there afterwards."""
    stage = Stage(3, ALL_ON)
    assert stage.change(stage.leader, 3)
    for member in stage.world.members.values():
        member.kill(power=True)
    for member in stage.world.members.values():
        member.start()
    leader = stage.wait_for_leader()
    assert stage.change(leader)
    stage.run(1.0)
    assert "a1" in stage.running(leader).machine.state.agents
    assert stage.verdict() == []


def test_a_paused_process_hears_later() -> None:
    """What arrives during a pause waits, and is read in order behind it."""
    stage = Stage(3, ALL_ON)
    follower = stage.others(stage.leader)[0]
    stage.member(follower).paused_until = stage.now + 0.25
    assert stage.change(stage.leader, 2)
    assert stage.running(follower).machine.index < stage.running(stage.leader).machine.index
    stage.run(1.0)
    assert stage.running(follower).machine.index == stage.running(stage.leader).machine.index


def test_a_stalled_disk_holds_its_owner_back() -> None:
    """Nothing new is durable while a disk stalls; a leader gives up in time."""
    stage = Stage(3, ALL_ON)
    stage.member(stage.leader).stalled_until = stage.now + 3.0
    stage.ask(stage.leader)
    stage.run(0.1)
    journal = stage.running(stage.leader).journal
    assert journal.synced_index() < journal.end
    stage.run(2.0)
    assert stage.world.rare["gave_up_for_stalled_disk"] == 1
    assert not stage.running(stage.leader).engine.is_leader


def test_a_member_dies_between_two_messages() -> None:
    """With its last message said, a process does nothing more; it is dead after that step."""
    stage = Stage(3, ALL_ON)
    stage.member(stage.leader).sends_left = 1
    stage.ask(stage.leader)
    stage.run(0.2)
    assert not stage.member(stage.leader).is_alive


def test_disks_that_fail_are_counted() -> None:
    """A full disk is entered and left; a failed sync is followed by a journal written anew."""
    stage = Stage(3, ALL_ON)
    full, failing = stage.others(stage.leader)
    stage.member(full).files.full(10)
    stage.member(failing).files.sync_errors(1)
    stage.ask(stage.leader)
    stage.run(1.5)
    stage.member(full).files.full(None)
    stage.run(3.0)
    for branch in ("disk_full_entered", "disk_full_left", "sync_failed_and_rewritten"):
        assert stage.world.rare[branch] == 1, branch
    assert stage.change(stage.wait_for_leader())


def test_a_damaged_disk_stops_its_owner() -> None:
    """A flipped bit in the vote is refused at start, and the run is told so."""
    stage = Stage(3, ALL_ON)
    follower = stage.others(stage.leader)[0]
    stage.member(follower).kill(power=False)
    stage.member(follower).files.flip("vote", 6)
    stage.member(follower).start()
    assert not stage.member(follower).is_alive
    assert stage.verdict() == [f"stopped: {follower}: vote is damaged at byte 0: " + WHY]


WHY = "it does not match its checksum"
