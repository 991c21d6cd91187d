"""Messages of one member, judged and mended."""

import pytest

from reachnode.peers.raft.messages import (
    Ack,
    Append,
    BadMessage,
    Greet,
    Nack,
    Poll,
    PollAnswer,
    Proposed,
    RequestVote,
    SnapshotAck,
    SnapshotPiece,
    TakeOver,
    Vote,
    decode,
)
from reachnode.peers.raft.opening import REGULAR
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.peers.raft.settings import RaftSettings
from tests.peers.raft.cores import CoreNode, Cores, three

NOTHING = b"\x01"


def off(**rules: bool) -> RaftSettings:
    """Return settings with some safeguards off."""
    return RaftSettings(safeguards=Safeguards(**rules))


def term_of(node: CoreNode) -> int:
    """Return a member's term."""
    return node.raft.engine.term


def beat(node: CoreNode, term: int, *entries: bytes) -> Append:
    """Return what a leader of a term would send to a member next."""
    end, end_term = node.raft.journal.end, node.raft.journal.end_term
    made = [(command, end + 1 + at, term) for at, command in enumerate(entries)]
    return Append(term, node.raft.engine.commit_index, end, end_term, made)


# --- before anything else


def test_a_peer_greets_first() -> None:
    """Anything else breaks its connection, but for the data connection's part."""
    cores = three()
    cores.disconnect("n1", "n2")
    cores["n1"].core.connected("n2")
    node = cores["n1"]
    piece = SnapshotPiece(term=1, index=5, offset=0, data=b"x", is_last=False)
    node.hear("n2", piece, SnapshotAck(1, 5, 0))
    with pytest.raises(BadMessage, match="no greeting"):
        node.hear("n2", Vote(1))
    with pytest.raises(BadMessage):
        node.core.received("n2", b"noise")


def test_what_comes_before_a_core_runs_is_passed_by() -> None:
    """It can't be judged yet, and will come again."""
    cores = Cores()
    cores.start("n1")
    cores["n1"].core.connected("n2")
    greet = cores["n1"].core.standing.greeting()
    cores["n1"].hear("n2", greet, Vote(1))
    assert cores["n1"].core.running is None


# --- terms


@pytest.mark.parametrize("message", [RequestVote(1, 9, 1), Append(1, 1, 1, 0, [])])
def test_a_message_of_a_past_term_is_answered_with_this_one(
    message: RequestVote | Append,
) -> None:
    """The library would say nothing, and a deposed leader would never learn."""
    cores = three()
    cores.elect("n2")
    node = cores["n3"]
    before = len(node.said)
    node.hear("n1", message)
    assert node.said_since(before) == [Nack(term_of(node))]


def test_a_higher_term_in_a_nack_or_an_answer_is_adopted() -> None:
    """A leader steps down for it; a lower one changes nothing."""
    cores = three()
    node = cores["n1"]
    term = term_of(node)
    node.hear("n2", Nack(term))
    assert node.is_leader
    node.hear("n2", Nack(term + 3))
    assert (node.is_leader, term_of(node)) == (False, term + 3)
    node.hear("n2", PollAnswer(term + 5, 0, False))
    assert term_of(node) == term + 5
    assert node.core.inbound.counters["terms_adopted"] == 2


def test_an_acknowledgement_counts_in_its_own_term_only() -> None:
    """One of a former term may speak of entries that were replaced."""
    cores = three()
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    told = cores["n1"].propose()
    cores.settle()
    end = cores["n1"].raft.journal.end
    term = term_of(cores["n1"])
    cores["n1"].hear("n2", Ack(term - 1, end + 1, reset=False, success=True))
    assert told.fates == []
    cores["n1"].hear("n2", Ack(term, end + 1, reset=False, success=True))
    assert len(told.fates) == 1
    cores["n3"].hear("n1", Ack(term, end + 1, reset=False, success=True))
    assert not cores["n3"].is_leader


# --- votes


def candidate(cores: Cores) -> CoreNode:
    """Return n2 as a candidate whose messages don't arrive, in a cluster of five."""
    node = cores["n2"]
    cores.cut |= {("n2", other) for other in cores.nodes}
    node.core.campaign.ballot.cleared_term = term_of(node)
    node.raft.engine.election_at = 0.0
    node.core.tick()
    return node


def five(settings: RaftSettings | None = None) -> Cores:
    """Return five members with n1 leading."""
    members = [f"n{at}" for at in range(1, 6)]
    cores = Cores(members, settings=settings or RaftSettings())
    cores.start()
    cores.elect("n1")
    return cores


@pytest.mark.parametrize("once", [True, False])
def test_a_vote_counts_once(once: bool) -> None:
    """The library counts each; turned off, one peer elects a leader."""
    node = candidate(five(off(vote_counts_once=once)))
    term = term_of(node)
    node.hear("n3", Vote(term), Vote(term))
    assert node.is_leader == (not once)
    node.hear("n4", Vote(term))
    assert node.is_leader


def test_a_vote_over_a_new_connection_is_a_new_one() -> None:
    """What was remembered of the former connection went with it."""
    cores = five()
    node = candidate(cores)
    node.hear("n3", Vote(term_of(node)))
    cores.disconnect("n2", "n3")
    assert node.core.inbound._votes == set()


def test_the_vote_of_a_wiped_disk_does_not_count() -> None:
    """It may have promised another one its vote, and forgotten."""
    node = candidate(five())
    for peer in ("n3", "n4"):
        node.core.standing.admissions.present[peer] = "another disk"
    node.hear("n3", Vote(term_of(node)))
    node.hear("n4", Vote(term_of(node)))
    assert not node.is_leader
    assert node.core.inbound.counters["learner_votes_dropped"] == 2


def test_a_poll_is_answered_by_the_rules_of_the_ballot() -> None:
    """A follower that hears its leader says no, with its term and the round."""
    cores = three()
    node = cores["n2"]
    before = len(node.said)
    node.hear("n3", Poll(term_of(node) + 1, 99, 99, 7))
    assert node.said_since(before) == [PollAnswer(term_of(node), 7, False)]
    cores.stop("n1")
    cores.cut |= {("n2", "n3"), ("n3", "n2")}
    cores.run(0.5)
    before = len(node.said)
    node.hear("n3", Poll(term_of(node) + 1, 99, 99, 8))
    assert PollAnswer(term_of(node), 8, True) in node.said_since(before)


def test_a_leader_may_ask_a_counted_follower_alone_to_take_over() -> None:
    """An unadmitted disk must not campaign, whoever asks."""
    cores = three()
    node = cores["n2"]
    term = term_of(node)
    node.core.standing.admissions.incarnation = "unadmitted"
    node.hear("n1", TakeOver(term))
    assert term_of(node) == term
    node.core.standing.admissions.incarnation = node.core.standing.identity.incarnation
    node.hear("n1", TakeOver(term))
    assert term_of(node) == term + 1
    assert node.core.inbound.counters["take_overs"] == 1


# --- entries


def test_entries_that_are_held_already_are_not_cut() -> None:
    """A late copy of an earlier message changes nothing in the log, nor on disk."""
    cores = three()
    node = cores["n2"]
    log = node.raft.journal[:]
    end = node.raft.journal.end
    node.hear("n1", Append(term_of(node), 1, 1, 0, log[1:2]))
    assert node.raft.journal[:] == log
    assert node.disk.is_idle
    assert node.raft.journal.end == end


def test_a_disk_that_is_behind_takes_heartbeats_only() -> None:
    """The entries come again once it has caught up; nothing more piles up in memory."""
    cores = Cores(settings=RaftSettings(unsynced_bytes_max=0))
    cores.start()
    cores.elect("n1")
    node = cores["n2"]
    node.is_stalled = True
    node.hear("n1", beat(node, term_of(node), REGULAR + b"\x01\x90"))
    end = node.raft.journal.end
    node.hear("n1", beat(node, term_of(node), REGULAR + b"\x01\x90"))
    assert node.raft.journal.end == end
    assert node.core.inbound.counters["entries_put_off"] == 1


@pytest.mark.parametrize("fast", [True, False])
def test_a_refusal_names_where_to_go_on(fast: bool) -> None:
    """Behind what is committed; turned off, the library's one entry earlier."""
    cores = three(off(backoff_is_fast=fast))
    node = cores["n2"]
    end, term = node.raft.journal.end, term_of(node)
    node.hear("n1", beat(node, term, *[REGULAR + b"\x01\x90"] * 5))
    before = len(node.said)
    node.hear("n1", Append(term + 1, 1, end + 5, term + 1, []))
    (ack,) = [message for message in node.said_since(before) if isinstance(message, Ack)]
    assert (ack.reset, ack.success) == (True, False)
    assert ack.next_index == (node.raft.engine.commit_index + 1 if fast else end + 5)


@pytest.mark.parametrize("never", [True, False])
def test_a_clamped_acknowledgement_does_not_rewind_the_leader(never: bool) -> None:
    """What is on its way isn't sent again."""
    cores = three(off(ack_never_rewinds=never))
    node = cores["n1"]
    cores.cut |= {("n1", "n2")}
    for _ in range(3):
        node.propose()
        cores.settle()
    following = node.raft.engine.next_index("n2")
    assert following == node.raft.journal.end + 1
    match = node.raft.engine.match_index("n2")
    node.hear("n2", Ack(term_of(node), match + 2, reset=False, success=True))
    after = node.raft.engine.next_index("n2")
    assert after == (following if never else match + 2)


def test_an_acknowledgement_of_a_wiped_disk_is_served_and_not_counted() -> None:
    """It gets what it needs to catch up; the leader counts it for nothing."""
    cores = three()
    node = cores["n1"]
    node.core.standing.admissions.present["n2"] = "another disk"
    match = node.raft.engine.match_index("n2")
    cores.cut |= {("n1", "n2"), ("n1", "n3")}
    told = node.propose()
    end = node.raft.journal.end
    cores.settle()
    node.hear("n2", Ack(term_of(node), end + 1, reset=False, success=True))
    assert told.fates == []
    assert node.raft.engine.match_index("n2") == match
    node.hear("n2", Ack(term_of(node), 3, reset=True, success=False))
    assert node.raft.engine.next_index("n2") == 3
    node.hear("n2", Ack(term_of(node), 1, reset=False, success=False))
    assert node.core.inbound.counters["learner_acks_dropped"] == 3


@pytest.mark.parametrize("trims", [True, False])
def test_without_trimming_a_late_copy_cuts_the_log(trims: bool) -> None:
    """The library cuts and adds again, which the simulator must notice."""
    cores = three(off(overlap_is_trimmed=trims))
    node = cores["n2"]
    node.hear("n1", beat(node, term_of(node), *[REGULAR + b"\x01\x90"] * 3))
    log = node.raft.journal[:]
    node.hear("n1", Append(term_of(node), 1, log[2][1], log[2][2], log[3:4]))
    assert node.raft.journal.end == (log[-1][1] if trims else log[3][1])


def test_a_stale_leader_can_be_left_unanswered() -> None:
    """As the library does, which the simulator must notice."""
    cores = three(off(stale_append_is_answered=False))
    cores.elect("n2")
    before = len(cores["n3"].said)
    cores["n3"].hear("n1", Append(1, 1, 1, 0, []))
    assert cores["n3"].said_since(before) == []


def test_a_follower_whose_log_is_longer_is_sent_what_follows_the_leaders() -> None:
    """The leader never looks beyond its own end."""
    cores = three()
    node = cores["n1"]
    cores.cut |= {("n1", "n2")}
    node.hear("n2", Ack(term_of(node), 99, reset=True, success=False))
    assert node.raft.engine.next_index("n2") == node.raft.journal.end + 1


def test_an_acknowledgement_beyond_the_leaders_disk_waits_for_it() -> None:
    """Without the clamp nothing of it is counted meanwhile; a follower counts none."""
    cores = three(off(ack_is_clamped=False))
    node = cores["n1"]
    node.is_stalled = True
    told = node.propose()
    cores.settle()
    assert told.fates == []
    node.is_stalled = False
    cores.settle()
    assert len(told.fates) == 1
    match = node.raft.engine.match_index("n2")
    cores["n2"].core.inbound.count("n3", Ack(term_of(node), 99, reset=False, success=True))
    assert cores["n2"].raft.engine.match_index("n3") == 0
    cores.disconnect("n1", "n2")
    node.core.inbound.count("n2", Ack(term_of(node), 99, reset=False, success=True))
    assert node.raft.engine.match_index("n2") == match


# --- disks that have forgotten


def test_a_disk_that_lost_what_it_acknowledged_is_not_counted() -> None:
    """The same incarnation with a shorter log: yesterday's copy was put back."""
    cores = three()
    copy = cores["n2"].files.copy()
    for _ in range(3):
        cores["n1"].propose()
        cores.settle()
    cores.stop("n2")
    cores["n2"].files.restore(copy)
    cores.cut |= {("n1", "n2")}
    cores.start("n2")
    assert not cores["n1"].core.counts("n2")
    (facts,) = [facts for event, facts in cores["n1"].notices if "forgotten" in event]
    assert facts["peer"] == "n2"
    cores.cut.clear()
    cores.stop("n2")
    cores["n2"].files.wipe()
    cores.start("n2")
    assert cores["n1"].core.standing.admissions.amnesiac == set(), "a new disk is judged anew"


# --- what breaks a connection


def test_an_outcome_that_cannot_be_read_breaks_the_connection() -> None:
    """It doesn't end the node; the change is tried over the next connection."""
    cores = three()
    cores.cut |= {("n2", "n1")}
    told = cores["n2"].propose()
    (number,) = cores["n2"].core.proposals.sent
    with pytest.raises(BadMessage, match="outcome"):
        cores["n2"].hear("n1", Proposed(number, "applied", 9, b"\xc1"))
    cores.disconnect("n1", "n2")
    cores.cut.clear()
    cores.connect("n1", "n2")
    cores.run(0.5)
    assert len(told.fates) == 1


def test_every_message_has_a_handler() -> None:
    """Whatever can be decoded is taken without an error of ours."""
    cores = three()
    handled = set(cores["n1"].core.inbound._handlers)
    greet = cores["n1"].core.standing.greeting()
    assert type(decode(b"\x92\xa2vo\x01")) in handled
    assert len(handled | {type(greet)}) == 13
    assert isinstance(greet, Greet)
