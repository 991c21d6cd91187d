"""What a majority must hold is looked up on the members themselves."""

from reachnode.peers.raft.safeguards import ALL_ON
from sim.majority import holders_of_entry, holders_of_vote
from sim.stage import Stage


def test_what_is_committed_is_held() -> None:
    """An entry that was applied is on every disk; one of another term is on none."""
    stage = Stage(1, ALL_ON)
    assert stage.change(stage.leader)
    stage.run(0.5)
    raft, members = stage.running(stage.leader), stage.world.members.values()
    index, term = raft.machine.index, raft.engine.term
    leader = stage.core(stage.leader)
    assert holders_of_entry(leader, members, index, term) == sorted(stage.world.members)
    assert holders_of_entry(leader, members, index, term + 1) == []
    assert holders_of_entry(leader, members, index + 1, term) == []


def test_what_is_not_synced_is_not_held() -> None:
    """A member whose disk stalls holds nothing new; a dead one gets the benefit of the doubt."""
    stage = Stage(1, ALL_ON)
    slow, dead = stage.others(stage.leader)
    stage.member(slow).stalled_until = stage.now + 5.0
    stage.member(dead).kill(power=True)
    stage.ask(stage.leader)
    stage.run(0.05)
    raft, members = stage.running(stage.leader), stage.world.members.values()
    leader = stage.core(stage.leader)
    held = holders_of_entry(leader, members, raft.journal.end, raft.engine.term)
    assert held == sorted([stage.leader, dead])


def test_a_wiped_disk_is_not_counted() -> None:
    """A disk that nobody admitted holds nothing that counts, whatever is on it."""
    stage = Stage(1, ALL_ON)
    wiped = stage.others(stage.leader)[0]
    stage.member(wiped).kill(power=False)
    stage.member(wiped).wipe()
    stage.member(wiped).start()
    assert stage.change(stage.leader)
    stage.run(1.0)
    raft, members = stage.running(stage.leader), stage.world.members.values()
    leader = stage.core(stage.leader)
    assert stage.running(wiped).machine.index == raft.machine.index
    held = holders_of_entry(leader, members, raft.machine.index, raft.engine.term)
    assert wiped not in held


def test_votes_are_looked_up() -> None:
    """A leader has the votes of a majority; nobody else has them in that term."""
    stage = Stage(1, ALL_ON)
    term = stage.running(stage.leader).engine.term
    members = stage.world.members.values()
    assert len(holders_of_vote(members, stage.leader, term)) >= 2
    assert len(holders_of_vote(members, stage.others(stage.leader)[0], term)) <= 1
    stage.world.members[stage.leader].kill(power=True)
    stage.wait_for_leader(besides=[stage.leader])
    assert len(holders_of_vote(members, stage.leader, term)) == 3, "later terms say nothing"
