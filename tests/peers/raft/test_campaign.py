"""When a member may campaign, and when it must stop leading."""

import pytest

from reachnode.peers.raft.messages import Poll, PollAnswer, RequestVote
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.settings import RaftSettings
from reachnode.registry.outcomes import Applied
from tests.peers.raft.cores import Cores, Told, three


def test_nobody_campaigns_before_a_majority_would_vote_for_it() -> None:
    """A member that hears no answers asks again and again, and its term never grows."""
    cores = three()
    term = cores["n1"].raft.engine.term
    cores.cut |= {("n1", "n2"), ("n3", "n2")}
    before = len(cores["n2"].said)
    cores.run(5.0)
    said = cores["n2"].said_since(before)
    polls = [message for message in said if isinstance(message, Poll)]
    assert len(polls) >= 10
    assert {poll.term for poll in polls} == {term + 1}
    assert not any(isinstance(message, RequestVote) for message in said)
    assert cores["n2"].raft.engine.term == term
    assert cores["n1"].is_leader


def test_a_follower_that_comes_back_deposes_nobody() -> None:
    """While the others hear their leader they refuse, and it hears the leader again itself."""
    cores = three()
    term = cores["n1"].raft.engine.term
    for _ in range(3):
        cores.cut |= {("n1", "n2")}
        cores.run(1.5)
        cores.cut.clear()
        cores.run(0.5)
    assert cores["n1"].is_leader
    assert cores["n1"].raft.engine.term == term


def test_when_a_leader_is_gone_one_round_of_asking_suffices() -> None:
    """Soon there is another leader, in the next term."""
    cores = three()
    term = cores["n1"].raft.engine.term
    cores.stop("n1")
    cores.run(1.5)
    assert cores.leader().raft.engine.term == term + 1
    assert cores.leader().core.campaign.ballot.polls_count >= 1


def test_without_anybody_to_ask_nobody_campaigns() -> None:
    """No peer, no poll: the deadline moves on."""
    cores = three()
    cores.isolate("n2")
    polls = cores["n2"].core.campaign.ballot.polls_count
    before = cores["n2"].raft.engine.term
    cores.run(3.0)
    assert cores["n2"].raft.engine.term == before
    assert cores["n2"].core.campaign.ballot.polls_count == polls


def test_a_member_whose_disk_takes_no_writes_does_not_campaign() -> None:
    """It could not keep its vote; with room it may."""
    cores = three()
    for member in ("n2", "n3"):
        cores[member].files.full(0)
    cores["n1"].propose()
    cores.settle()
    cores.stop("n1")
    cores.run(3.0)
    assert not cores["n2"].is_leader
    assert not cores["n3"].is_leader
    for member in ("n2", "n3"):
        cores[member].files.full(None)
    cores.run(2.0)
    assert cores.leader().me in ("n2", "n3")


def test_a_member_that_does_not_count_does_not_campaign() -> None:
    """A wiped disk waits to be admitted, however long there is no leader."""
    cores = three()
    cores.stop("n2")
    cores["n2"].files.wipe()
    cores.start("n2")
    cores.run(0.5)
    cores.stop("n1")
    term = cores["n2"].raft.engine.term
    cores.run(3.0)
    assert cores["n2"].raft.engine.term == term
    assert not cores["n2"].is_leader
    assert not cores["n3"].is_leader, "and its yes is none"


def test_a_leader_whose_disk_is_full_gives_up() -> None:
    """Another one leads, and stays while the disk is full."""
    cores = three()
    cores["n1"].files.full(0)
    told = cores["n1"].propose()
    cores.run(2.0)
    assert cores.leader().me in ("n2", "n3")
    assert ("gave up leadership", {"disk": "full"}) in cores["n1"].notices
    assert isinstance(told.fate, Applied), "the others had it"


def test_a_leader_whose_disk_stalls_gives_up() -> None:
    """After a second, though followers still acknowledge."""
    cores = three()
    cores["n1"].is_stalled = True
    cores["n1"].propose()
    cores["n1"].disk.take(cores["n1"].sources.now())  # The worker has begun, and hangs.
    cores.run(0.9)
    assert cores["n1"].is_leader
    cores.run(1.5)
    assert cores.leader().me in ("n2", "n3")
    assert ("gave up leadership", {"disk": "ok"}) in cores["n1"].notices


def test_answers_that_do_not_count_clear_nothing() -> None:
    """Those of a wiped disk, and any that reach a leader."""
    cores = three()
    follower, leader = cores["n2"], cores["n1"]
    follower.core.standing.admissions.present["n3"] = "another disk"
    follower.core.campaign.ballot.ask(me="n2", term=1, last_index=9, last_term=1)
    follower.raft.engine.election_at = at = follower.sources.now() + 9
    follower.hear("n3", PollAnswer(1, follower.core.campaign.ballot.round, True))
    assert follower.raft.engine.election_at == at
    leader.hear("n2", PollAnswer(1, leader.core.campaign.ballot.round, True))
    assert leader.is_leader


@pytest.mark.parametrize("pre_vote", [True, False])
def test_pre_vote_can_be_turned_off(pre_vote: bool) -> None:
    """Then a deaf follower raises its term, which the simulator must notice."""
    settings = RaftSettings(safeguards=Safeguards(pre_vote=pre_vote))
    cores = Cores(settings=settings)
    cores.start()
    cores.elect("n1")
    term = cores["n2"].raft.engine.term
    cores.cut |= {("n1", "n2"), ("n3", "n2")}
    cores.run(2.0)
    assert (cores["n2"].raft.engine.term == term) == pre_vote


def test_leadership_is_handed_over_while_changes_keep_coming() -> None:
    """The log rests for a moment, so that somebody has all of it; nothing is refused for that."""
    cores = three()
    node = cores["n1"]
    told: list[Told] = []
    for _ in range(300):
        while len(node.core.proposals.queue) < 3:
            told.append(node.propose())
        cores._deliver()
        cores._work()
        cores.clock.at += 0.001
        node.core.hand_over()
        if not node.is_leader:
            break
    assert not node.is_leader
    cores.run(1.0)
    assert all(isinstance(one.fate, Applied) for one in told)


def test_a_leader_whom_nobody_relieves_goes_on() -> None:
    """It rests for a part of the time only, however often it is asked."""
    cores = three()
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    told = cores["n1"].propose()
    cores["n1"].core.hand_over()
    cores.cut.clear()
    assert cores["n1"].core.takes_entries is False
    began_at = cores["n1"].core.campaign.rests_until
    later = cores["n1"].propose()
    cores.run(0.1)
    assert isinstance(told.fate, Applied)
    assert later.fates == []
    cores.run(0.25)
    assert isinstance(later.fate, Applied)
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    cores["n1"].propose()
    cores["n1"].core.hand_over()
    assert cores["n1"].core.campaign.rests_until == began_at
