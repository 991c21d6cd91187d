"""One member's consensus, driven by hand."""

import errno
import random

import pytest

from reachnode.model.membership import Unknown
from reachnode.peers.raft.core import WAKE_SECONDS_MAX
from reachnode.peers.raft.disk import Note, Performed
from reachnode.peers.raft.messages import Ack, Append, Vote, encode
from reachnode.peers.raft.opening import NO_OP
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.settings import RaftSettings
from reachnode.registry.commands import Advance
from reachnode.registry.outcomes import Applied, Refused
from tests.peers.raft.cores import MEMBERS, Cores, three


def test_three_empty_disks_found_one_cluster_and_elect() -> None:
    """Each has the same id and founders; one leads, and all apply the same."""
    cores = Cores()
    cores.start()
    cores.run(2.0)
    identities = [cores[member].core.standing.identity for member in MEMBERS]
    assert len({identity.cluster_id for identity in identities}) == 1
    assert {tuple(identity.founders) for identity in identities} == {MEMBERS}
    told = cores.leader().propose()
    cores.settle()
    assert isinstance(told.fate, Applied)
    cores.run(0.2)
    assert cores.agree()
    assert cores["n1"].state.time_ms == 1


def test_two_of_three_found_nothing() -> None:
    """The third may have been a founder of a cluster already."""
    cores = Cores()
    cores.start("n1", "n2")
    cores.run(3.0)
    assert cores["n1"].core.running is None
    cores.start("n3")
    cores.run(1.0)
    assert cores["n1"].core.running is not None


def test_a_lone_voter_founds_leads_and_commits_in_the_call() -> None:
    """Nothing else has to happen before the change is durable and told."""
    cores = Cores(["n1"])
    cores.start()
    node = cores["n1"]
    cores.run(1.0)
    assert node.is_leader
    told = node.propose()
    assert isinstance(told.fate, Applied)
    read = node.fence()
    assert read.fate == Applied(told.fate.index + 1)
    node.files.power_loss(random.Random(1))
    cores.stop("n1")
    cores.start("n1")
    cores.run(1.0)
    assert node.state.time_ms == 1


@pytest.mark.parametrize("fault", ["full", "sync"])
def test_a_lone_voter_survives_a_bad_moment_of_its_disk(fault: str) -> None:
    """It stops leading, tries again, and leads once everything is durable.

    Whatever was told by then is there after a power loss.
    """
    cores = Cores(["n1"])
    cores.start()
    cores.run(1.0)
    node = cores["n1"]
    if fault == "full":
        node.files.full(0)
    else:
        node.files.sync_errors(1)
        node.is_stalled = True  # Or the worker would mend it at once.
    first = node.propose(seconds=20.0)
    assert first.fates == []
    assert not node.core.is_leader
    cores.run(1.0)
    refused = node.propose()
    assert isinstance(refused.fate, Refused)
    assert refused.fate.code == "disk_full"
    node.files.full(None)
    node.is_stalled = False
    cores.run(3.0)
    assert isinstance(first.fate, Applied)
    assert isinstance(node.propose().fate, Applied)
    node.files.power_loss(random.Random(4))
    cores.stop("n1")
    cores.start("n1")
    cores.run(1.0)
    assert node.state.time_ms == 2


def test_a_lone_voter_appends_nothing_while_the_worker_is_behind() -> None:
    """The engine would commit in the next tick what isn't durable yet."""
    cores = Cores(["n1"])
    cores.start()
    cores.run(1.0)
    node = cores["n1"]
    node.disk.settle(Performed(count=0, error=OSError(errno.ENOSPC, "full")))
    node.raft.journal.note("n1", Note(0, "any"))
    node.disk.settle(Performed(count=0))
    told = node.propose()
    assert told.fates == []
    assert not node.core.is_leader
    cores.settle()
    cores.run(0.1)
    assert isinstance(told.fate, Applied)


@pytest.mark.parametrize("at", MEMBERS)
def test_a_change_proposed_anywhere_is_applied_everywhere(at: str) -> None:
    """It is told once this node shows it; the others follow with the next heartbeat."""
    cores = three()
    told = cores[at].propose(Advance(by_ms=7))
    cores.run(0.2)
    assert isinstance(told.fate, Applied)
    assert told.fate.value == {"time_ms": 7}
    assert (told.fate.index, (told.fate,)) in cores[at].applied
    assert [cores[member].state.time_ms for member in MEMBERS] == [7, 7, 7]


@pytest.mark.parametrize("at", MEMBERS)
def test_a_fence_gives_an_index_that_this_node_has_reached(at: str) -> None:
    """Everything that was acknowledged before it, anywhere, is in the state there."""
    cores = three()
    cores["n2"].propose(Advance(by_ms=7))
    cores.settle()
    read = cores[at].fence()
    cores.run(0.3)
    assert isinstance(read.fate, Applied)
    assert read.fate.index <= cores[at].raft.machine.index
    assert cores[at].state.time_ms == 7


def test_nothing_is_told_before_a_majority_has_it_durably() -> None:
    """With the leader's disk, or both followers', standing still a change waits."""
    for stalled in (("n1",), ("n2", "n3")):
        cores = three()
        for member in stalled:
            cores[member].is_stalled = True
        told = cores["n1"].propose()
        cores.settle()
        assert told.fates == []
        for member in stalled:
            cores[member].is_stalled = False
        cores.settle()
        assert isinstance(told.fate, Applied)


def test_one_slow_disk_of_three_holds_nobody_up() -> None:
    """The other follower's acknowledgement is enough."""
    cores = three()
    cores["n3"].is_stalled = True
    told = cores["n1"].propose()
    cores.settle()
    assert isinstance(told.fate, Applied)


def test_what_was_told_survives_power_loss_everywhere() -> None:
    """All three at once, whatever was not synced."""
    cores = three()
    told = [cores[member].propose() for member in MEMBERS for _ in range(5)]
    cores.run(0.3)
    assert all(isinstance(one.fate, Applied) for one in told)
    for member in MEMBERS:
        cores[member].files.power_loss(random.Random(member))
        cores.stop(member)
    cores.start()
    cores.run(3.0)
    assert [cores[member].state.time_ms for member in MEMBERS] == [15, 15, 15]


def test_a_leader_that_is_cut_off_is_replaced() -> None:
    """What it could not commit is unknown; what the new leader commits it takes over."""
    cores = three()
    cores.isolate("n1")
    lost = cores["n1"].propose(Advance(by_ms=100), seconds=1.0)
    cores.run(2.0)
    assert isinstance(lost.fate, Unknown)
    assert not cores["n1"].is_leader
    assert cores.leader().me in ("n2", "n3")
    kept = cores.leader().propose(Advance(by_ms=5))
    cores.settle()
    assert isinstance(kept.fate, Applied)
    cores.rejoin("n1")
    cores.run(1.0)
    assert cores.agree()
    assert cores["n1"].state.time_ms == 5
    assert "log cut" in cores["n1"].events()


def test_a_change_outlives_its_leader() -> None:
    """Proposed at a follower, it is tried again with the next leader and applied once."""
    cores = three()
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    told = cores["n2"].propose(Advance(by_ms=5), seconds=10.0)
    cores.run(0.2)
    assert told.fates == []
    cores.stop("n1")
    cores.run(3.0)
    assert isinstance(told.fate, Applied)
    cores.cut.clear()
    cores.start("n1")
    cores.run(2.0)
    assert [cores[member].state.time_ms for member in MEMBERS] == [5, 5, 5]


def test_without_a_majority_changes_are_refused() -> None:
    """After a while, and reads as well; before founding, too."""
    cores = three()
    cores.stop("n2")
    cores.stop("n3")
    cores.run(2.0)
    told = cores["n1"].propose()
    read = cores["n1"].fence(1.0)
    cores.run(2.0)
    for one in (told, read):
        assert isinstance(one.fate, Refused)
        assert one.fate.code == "no_quorum"
    young = Cores()
    young.start("n1")
    early = young["n1"].propose()
    young.run(2.0)
    assert isinstance(early.fate, Refused)
    assert early.fate.code == "no_quorum"


def test_a_node_whose_disk_is_full_refuses_changes_and_goes_on_reading() -> None:
    """The word says so, and so does the system's reason; with room it takes them again."""
    cores = three()
    cores["n2"].files.full(0)
    cores["n1"].propose()
    cores.settle()
    told = cores["n2"].propose()
    assert isinstance(told.fate, Refused)
    assert told.fate.code == "disk_full"
    assert "No space left" in told.fate.why
    cores["n2"].files.full(None)
    cores.run(0.3)
    again = cores["n2"].propose()
    cores.run(0.3)
    assert isinstance(again.fate, Applied)


def test_a_failed_sync_is_mended_by_writing_the_journal_anew() -> None:
    """From memory: after a power loss everything is there."""
    cores = three()
    cores["n2"].files.sync_errors(1)
    generation = cores["n2"].storage.generation
    told = cores["n1"].propose()
    cores.run(0.3)
    assert isinstance(told.fate, Applied)
    assert cores["n2"].storage.generation == generation + 1
    assert cores["n2"].disk.error is None
    cores["n2"].files.power_loss(random.Random(2))
    cores.stop("n2")
    cores["n2"].start()
    assert cores["n2"].raft.journal.end == cores["n1"].raft.journal.end


def test_leadership_is_handed_over() -> None:
    """To the follower that has most; only a leader can, and only to a counted peer."""
    cores = three()
    cores["n2"].core.hand_over()
    cores.settle()
    assert cores.leader().me == "n1"
    cores["n1"].core.hand_over()
    cores.settle()
    assert cores.leader().me in ("n2", "n3")
    alone = three()
    alone.isolate("n1")
    alone["n1"].core.hand_over()
    assert alone["n1"].is_leader
    young = Cores()
    young.start("n1")
    young["n1"].core.hand_over()


def test_leadership_is_not_handed_to_who_lacks_entries() -> None:
    """Nobody takes over while both followers are behind."""
    cores = three()
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    cores["n1"].propose()
    cores["n1"].core.hand_over()
    cores.cut.clear()
    cores.settle()
    assert cores["n1"].is_leader


@pytest.mark.parametrize("remembered", [True, False])
def test_a_repeat_is_applied_once(remembered: bool) -> None:
    """Turned off, it is applied again, which the simulator must notice."""
    settings = RaftSettings(safeguards=Safeguards(requests_are_remembered=remembered))
    cores = three(settings)
    for _ in range(2):
        told = cores["n2"].propose(Advance(by_ms=1), name="same")
        cores.run(0.2)
        assert isinstance(told.fate, Applied)
    assert cores["n1"].state.time_ms == (1 if remembered else 2)


def test_messages_of_a_connection_that_is_gone_mean_nothing() -> None:
    """Whatever they are."""
    cores = three()
    cores.disconnect("n1", "n2")
    before = len(cores["n1"].said)
    cores["n1"].core.received("n2", encode(Vote(99)))
    cores["n1"].core.received("n2", b"noise")
    assert not cores["n1"].core.send("n2", Vote(1))
    assert cores["n1"].said_since(before) == []


def test_a_core_says_when_it_wants_to_be_woken() -> None:
    """A leader for its heartbeat, a follower for its deadline, everybody for its changes."""
    cores = three()
    leader, follower = cores["n1"], cores["n2"]
    now = cores.clock.at
    assert now <= leader.core.wake_at() <= now + cores.settings.times.heartbeat + 0.001
    election_at = follower.raft.engine.election_at
    assert follower.core.wake_at() == pytest.approx(election_at, abs=0.001)
    cores.isolate("n2")
    cores.run(2.0)
    follower.propose(seconds=0.05)
    assert follower.core.wake_at() <= cores.clock.at + 0.05
    young = Cores()
    young.start("n1")
    wake_at = young["n1"].core.wake_at()
    assert wake_at == pytest.approx(young.clock.at + WAKE_SECONDS_MAX, abs=0.001)


def test_roles_are_told_and_counted() -> None:
    """With the term they are of."""
    cores = three()
    roles = [facts for event, facts in cores["n1"].notices if event == "role"]
    assert roles[-1]["role"] == "leader"
    assert roles[-1]["term"] == cores["n1"].raft.engine.term
    assert cores["n1"].core.role_changes["leader"] >= 1


def test_a_heartbeat_leaves_nothing_to_do() -> None:
    """No turn is spent on it; entries and their answers are acted on at once."""
    cores = three()
    follower = cores["n2"]
    raft = follower.raft
    beat = Append(
        raft.engine.term, raft.engine.commit_index, raft.journal.end, raft.journal.end_term, []
    )
    assert follower.core.inbound.take("n1", encode(beat)) is False


def test_what_took_the_place_of_a_tail_is_acknowledged_at_once() -> None:
    """Only what was to be said of the former entries is dropped, not what is said of these."""
    cores = three()
    node = cores["n2"]
    term = node.raft.engine.term
    cores.isolate("n3")
    cores.cut.add(("n1", "n2"))
    end, end_term = node.raft.journal.end, node.raft.journal.end_term
    node.hear("n1", Append(term, 1, end, end_term, [(NO_OP, end + 1, term)]))
    cores.settle()
    count = len(node.said)
    node.hear("n1", Append(term + 1, 1, end, end_term, [(NO_OP, end + 1, term + 1)]))
    node.work_disk()
    assert Ack(term + 1, end + 2, reset=False, success=True) in node.said_since(count)
