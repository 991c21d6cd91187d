"""Changes on their way into the log."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reachnode.model.membership import Unknown
from reachnode.peers.raft import proposals
from reachnode.peers.raft.messages import Propose, Proposed
from reachnode.peers.raft.proposal import Leader
from reachnode.peers.raft.proposals import BATCH_BYTES_MAX, BATCH_MAX, FOREIGN_MAX, OPEN_MAX
from reachnode.registry.codec import decode_envelope, encode_batch, encode_outcome
from reachnode.registry.outcomes import Applied, Outcome, Refused
from tests.peers.raft.desks import (
    DISK_FULL,
    EXPIRED,
    NO,
    Desk,
    envelope,
    following,
    leading,
    refused_code,
)
from tests.peers.raft.stories import STEPS, Story

# --- at the leader


@pytest.mark.parametrize("outcome", [Applied(2, {"time_ms": 1}), NO])
def test_a_leader_appends_and_tells_what_the_state_machine_said(outcome: Outcome) -> None:
    """Applied or refused, once its entry is applied."""
    desk = leading()
    desk.submit()
    desk.proposals.pump(0.0)
    assert desk.node.batches == [encode_batch([envelope("a")])]
    desk.proposals.applied(99, 1, (Applied(99),))
    assert desk.fates["a"] == [], "another entry says nothing of it"
    desk.apply(outcome)
    assert desk.fates["a"] == [outcome]
    desk.check_at_rest()


def test_one_batch_is_in_the_log_and_carries_what_queued_meanwhile() -> None:
    """Fences among it take a place in the order, and none in the bytes."""
    desk = leading()
    desk.submit("a")
    desk.proposals.pump(0.0)
    desk.submit("b")
    desk.submit("fence", fence=True)
    desk.submit("c")
    desk.proposals.pump(0.0)
    assert len(desk.node.batches) == 1
    desk.apply(Applied(2))
    desk.proposals.pump(0.0)
    assert desk.node.batches[1] == encode_batch([envelope("b"), envelope("c")])
    desk.apply(Applied(3), NO)
    assert [desk.fates[name] for name in ("b", "fence", "c")] == [[Applied(3)], [Applied(3)], [NO]]
    desk.check_at_rest()


def test_a_batch_is_bounded() -> None:
    """By its changes, and by their bytes; a single change of the greatest size fits."""
    desk = leading()
    for at in range(BATCH_MAX + 1):
        desk.submit(f"r{at}")
    desk.proposals.pump(0.0)
    assert len(desk.proposals.queue) == 1
    big = leading()
    for at in range(3):
        big.submit_bytes(bytes(BATCH_BYTES_MAX // 2 - 16 * at))
    big.proposals.pump(0.0)
    assert len(big.proposals.queue) == 2


def test_what_was_overwritten_in_the_log_is_tried_again() -> None:
    """Another term at its place proves that it never happened: it is no repeat."""
    desk = leading()
    proposal = desk.submit()
    desk.proposals.pump(0.0)
    desk.apply(term=2)
    assert not proposal.may_have_happened
    desk.proposals.pump(0.0)
    desk.apply(EXPIRED)
    assert desk.fates["a"] == [], "renewed, since there was no earlier attempt"
    desk.proposals.pump(0.0)
    assert decode_envelope(desk.proposals.in_log[4].items[0].envelope).since_index == 3
    desk.apply(Applied(4))
    assert desk.fates["a"] == [Applied(4)]
    assert desk.proposals.retried_count == 2
    desk.check_at_rest()


@pytest.mark.parametrize(("how", "beside", "there"), [("cut", 3, 2), ("skipped_to", 1, 2)])
def test_what_was_cut_or_skipped_may_have_happened(how: str, beside: int, there: int) -> None:
    """It is tried again under its id, and an expired id then means that nobody can tell."""
    desk = leading()
    proposal = desk.submit()
    desk.proposals.pump(0.0)
    seen = []
    for index in (beside, there):
        getattr(desk.proposals, how)(index)
        seen.append(proposal.may_have_happened)
    assert seen == [False, True]
    desk.proposals.pump(0.0)
    desk.apply(EXPIRED)
    assert isinstance(desk.fates["a"][0], Unknown)
    desk.check_at_rest()


def test_a_repeat_that_tells_the_outcome_is_counted() -> None:
    """The state machine remembers what became of the first attempt."""
    desk = leading()
    desk.submit()
    desk.proposals.pump(0.0)
    desk.proposals.cut(2)
    desk.proposals.pump(0.0)
    desk.apply(Applied(2))
    assert desk.fates["a"] == [Applied(2)]
    assert desk.proposals.rescued_count == 1


# --- at a follower


def test_a_follower_waits_until_it_has_applied_what_the_leader_has() -> None:
    """Whoever was told "applied" reads it at this very node; it is told once."""
    desk = following()
    desk.submit()
    desk.proposals.pump(0.0)
    assert desk.node.said == [("n2", Propose(desk.node.sent_number(), envelope("a")))]
    desk.hear("applied", Applied(7), applied_index=6)
    desk.proposals.reached(6)
    assert desk.fates["a"] == []
    desk.proposals.reached(7)
    assert desk.fates["a"] == [Applied(7)]
    desk.hear("applied", Applied(7), applied_index=7)
    desk.submit("b")
    desk.proposals.pump(0.0)
    desk.hear("applied", NO, applied_index=7)
    assert desk.fates["b"] == [NO]
    desk.check_at_rest()


@pytest.mark.parametrize("fate", ["discarded", "elsewhere", "lost"])
def test_what_the_leader_did_not_apply_is_sent_again(fate: str) -> None:
    """Only what was lost may have happened; who doesn't lead is left in peace for a moment."""
    desk = following()
    proposal = desk.submit()
    desk.proposals.pump(0.0)
    first = desk.node.sent_number()
    desk.hear(fate)
    desk.proposals.pump(0.1)
    assert len(desk.node.said) == (1 if fate == "elsewhere" else 2)
    desk.proposals.pump(0.3)
    assert len(desk.node.said) == 2
    assert desk.node.sent_number() > first
    assert proposal.may_have_happened == (fate == "lost")


def test_a_refusal_by_the_leader_is_final_unless_an_attempt_was_lost() -> None:
    """Then the earlier attempt may still be applied."""
    desk = following()
    desk.submit("a")
    desk.proposals.pump(0.0)
    desk.hear("refused", DISK_FULL)
    assert desk.fates["a"] == [DISK_FULL]
    desk.submit("b")
    desk.proposals.pump(0.0)
    desk.hear("lost")
    desk.proposals.pump(0.0)
    desk.hear("refused", DISK_FULL)
    assert isinstance(desk.fates["b"][0], Unknown)
    desk.check_at_rest()


@pytest.mark.parametrize("leader", [None, Leader("n3", 1), Leader("n2", 2)])
def test_what_was_sent_to_somebody_who_no_longer_leads_is_taken_back(
    leader: Leader | None,
) -> None:
    """Another leader, another connection or none: it may have happened, and is tried again."""
    desk = following()
    proposal = desk.submit()
    desk.proposals.pump(0.0)
    desk.node.leader = leader
    desk.proposals.pump(0.1)
    assert proposal.may_have_happened
    assert proposal.place == ("queue" if leader is None else "sent")
    assert len(desk.node.said) == (1 if leader is None else 2)


def test_a_change_that_could_not_be_sent_waits() -> None:
    """Nothing left this node, so nothing may have happened."""
    desk = following()
    desk.node.unreachable.add("n2")
    proposal = desk.submit()
    desk.proposals.pump(0.0)
    assert (proposal.place, proposal.may_have_happened) == ("queue", False)


def test_without_a_leader_a_change_is_refused_after_a_while() -> None:
    """Certainly not done; what may have happened waits for its deadline instead."""
    desk = Desk()
    desk.submit("a")
    lost = desk.submit("b")
    lost.may_have_happened = True
    desk.proposals.pump(1.4)
    assert desk.fates == {"a": [], "b": []}
    desk.proposals.pump(1.5)
    assert [refused_code(fate) for fate in desk.fates["a"]] == ["no_quorum"]
    desk.proposals.pump(9.9)
    assert desk.fates["b"] == []
    desk.proposals.pump(10.0)
    assert isinstance(desk.fates["b"][0], Unknown)
    desk.check_at_rest()


# --- deadlines


@pytest.mark.parametrize(
    ("desk", "pumps", "code"),
    [
        (leading(), False, "deadline_exceeded"),
        (leading(), True, None),
        (following(), False, "no_quorum"),
        (following(), True, None),
    ],
)
def test_at_its_deadline_a_change_is_refused_or_unknown(
    desk: Desk, pumps: bool, code: str | None
) -> None:
    """Refused if it never left the queue, unknown if somebody has it."""
    desk.submit(deadline=1.0)
    if pumps:
        desk.proposals.pump(0.5)
    assert desk.proposals.next_at() == 1.0
    desk.proposals.pump(1.0)
    (fate,) = desk.fates["a"]
    assert isinstance(fate, Unknown) if code is None else refused_code(fate) == code
    assert desk.proposals.next_at() is None
    assert desk.proposals.open_count == 0


@pytest.mark.parametrize("is_repeat", [False, True])
def test_an_expired_request_id_is_never_told_as_such(is_repeat: bool) -> None:
    """At the deadline a first attempt has changed nothing; a repeat may have, before."""
    desk = following()
    proposal = desk.submit(deadline=1.0)
    proposal.may_have_happened = is_repeat
    desk.proposals.pump(0.5)
    desk.hear("applied", EXPIRED, applied_index=3)
    desk.proposals.pump(1.0)
    (fate,) = desk.fates["a"]
    assert isinstance(fate, Unknown) if is_repeat else refused_code(fate) == "deadline_exceeded"


def test_a_change_that_the_leader_applied_is_applied_at_its_deadline() -> None:
    """Though this node doesn't show it yet."""
    desk = following()
    desk.submit()
    desk.proposals.pump(0.0)
    desk.hear("applied", Applied(7), applied_index=2)
    desk.proposals.pump(10.0)
    assert desk.fates["a"] == [Applied(7)]
    desk.proposals.reached(7)
    assert desk.fates["a"] == [Applied(7)]


def test_a_read_that_was_not_confirmed_in_time_is_refused() -> None:
    """It changed nothing, wherever it was."""
    for desk in (leading(), following()):
        desk.submit("a", fence=True)
        desk.proposals.pump(0.0)
        desk.proposals.pump(10.0)
        assert [refused_code(fate) for fate in desk.fates["a"]] == ["no_quorum"]


# --- what is refused at the door


def test_a_node_whose_disk_refuses_takes_nothing() -> None:
    """The reason is told at once."""
    desk = Desk()
    desk.node.refuses = DISK_FULL
    desk.submit()
    assert desk.fates["a"] == [DISK_FULL]
    desk.check_at_rest()


def test_a_change_that_fits_no_batch_is_refused() -> None:
    """With its size and the limit."""
    desk = Desk()
    fates = desk.submit_bytes(bytes(BATCH_BYTES_MAX - 15))
    assert [refused_code(fate) for fate in fates] == ["payload_too_large"]
    desk.check_at_rest()


def test_changes_that_were_told_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far in the future their deadlines are, and whatever the leader said of them."""
    monkeypatch.setattr(proposals, "OPEN_MAX", 5)
    desk = following()
    for at in range(40):
        desk.submit(f"r{at}", deadline=1.0 if at % 2 else 1e9)
        desk.proposals.pump(0.0)
        desk.hear("applied", Applied(99) if at % 2 else NO, applied_index=9)
        desk.proposals.pump(1.0)
    assert len(desk.proposals._deadlines) <= 11
    assert len(desk.proposals._waiting) <= 11
    assert all(len(fates) == 1 for fates in desk.fates.values())


def test_too_many_changes_are_refused() -> None:
    """At the node they come to, and at the leader they are sent to."""
    desk = leading()
    desk.proposals.open_count = OPEN_MAX
    desk.submit()
    assert refused_code(desk.fates["a"][0]) == "busy"
    desk.proposals.foreign_count = FOREIGN_MAX
    desk.proposals.take("n2", 1, Propose(4, envelope("b")))
    ((_, answer),) = desk.node.answers()
    assert answer.fate == "refused"
    assert b"busy" in answer.outcome


# --- changes of other nodes


def test_a_leader_takes_the_changes_of_others_and_answers() -> None:
    """With what the state machine said, a fence with the index; over the same connection."""
    desk = leading()
    desk.proposals.take("n2", 1, Propose(4, envelope("b")))
    for propose in (Propose(9, b""), Propose(10, envelope("c"))):
        desk.proposals.take("n3", 1, propose)
    desk.node.epochs["n2"] = 2
    desk.proposals.pump(0.0)
    desk.apply(Applied(2), NO)
    assert desk.node.answers() == [
        ("n3", Proposed(9, "applied", 2, encode_outcome(Applied(2)))),
        ("n3", Proposed(10, "applied", 2, encode_outcome(NO))),
    ]
    desk.check_at_rest()


@pytest.mark.parametrize(
    ("how", "fate"), [("cut", "lost"), ("overwritten", "discarded"), ("deposed", "elsewhere")]
)
def test_others_are_told_what_became_of_their_changes(how: str, fate: str) -> None:
    """Lost may have happened, the other two certainly not."""
    desk = leading()
    desk.proposals.take("n2", 1, Propose(4, envelope("b")))
    if how == "deposed":
        desk.node.is_leader = False
    desk.proposals.pump(0.0)
    if how == "cut":
        desk.proposals.cut(2)
    elif how == "overwritten":
        desk.apply(term=2)
    ((to, answer),) = desk.node.answers()
    assert (to, answer.number, answer.fate) == ("n2", 4, fate)
    desk.check_at_rest()


@pytest.mark.parametrize(
    ("data", "refuses", "code"),
    [
        (b"\xc1", None, "invalid_request"),
        (bytes(BATCH_BYTES_MAX + 1), None, "payload_too_large"),
        (b"", DISK_FULL, "disk_full"),
    ],
)
def test_a_leader_refuses_what_it_cannot_take(
    data: bytes, refuses: Refused | None, code: str
) -> None:
    """A command it doesn't know must not enter its log."""
    desk = leading()
    desk.node.refuses = refuses
    desk.proposals.take("n2", 1, Propose(4, data))
    ((_, answer),) = desk.node.answers()
    assert answer.fate == "refused"
    assert code.encode() in answer.outcome
    desk.node.is_leader = False
    desk.proposals.take("n2", 1, Propose(5, data))
    assert desk.node.answers()[-1][1].fate == "elsewhere", "the leader may know better"
    desk.check_at_rest()


# --- in any order


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 7)), max_size=60))
@settings(max_examples=500)
def test_each_change_is_resolved_once(steps: list[tuple[str, int]]) -> None:
    """By its deadline, whatever leaders, logs, connections and clocks do.

    A refusal is told only of what certainly never happened; all counters return to zero.
    """
    story = Story()
    for step in steps:
        story.play(*step)
    story.end()
