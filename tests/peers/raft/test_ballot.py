"""Pre-vote: who would vote for whom, and when a majority would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.ballot import Ballot, would_vote
from reachnode.peers.raft.messages import Poll, PollAnswer

VOTERS = ("n1", "n2", "n3", "n4", "n5")


def asked(ballot: Ballot, term: int = 3) -> Poll:
    """Begin a round of n1."""
    return ballot.ask(me="n1", term=term, last_index=9, last_term=2)


def would(poll: Poll, *, is_leader: bool = False, quiet_seconds: float = 1.0) -> bool:
    """Ask a follower in term 3 whose log ends at 9 of term 2."""
    return would_vote(
        poll,
        is_leader=is_leader,
        quiet_seconds=quiet_seconds,
        election_min_seconds=0.3,
        term=3,
        last=(2, 9),
    )


def test_the_question_names_the_term_after_this_one() -> None:
    """A poll asks about the next term and this log's end, and has a number of its own."""
    ballot = Ballot(voters_count=3)
    assert asked(ballot) == Poll(4, 9, 2, 1)
    assert asked(ballot) == Poll(4, 9, 2, 2)
    assert ballot.polls_count == 2


def test_a_majority_of_yes_clears_the_term_once() -> None:
    """With this node's own, two of three suffice, and only for the term that was asked."""
    ballot = Ballot(voters_count=3)
    asked(ballot)
    assert not ballot.is_cleared(3)
    assert ballot.count("n2", PollAnswer(3, 1, True), term=3)
    assert ballot.is_cleared(3)
    assert not ballot.is_cleared(4)
    assert not ballot.count("n3", PollAnswer(3, 1, True), term=3), "it is told once"


@given(
    voters_count=st.integers(2, 5),
    answers=st.lists(
        st.tuples(st.sampled_from(VOTERS[1:]), st.integers(0, 3), st.booleans(), st.integers(2, 4))
    ),
)
def test_only_a_majority_of_this_round_and_term_clears(
    voters_count: int, answers: list[tuple[str, int, bool, int]]
) -> None:
    """Whatever comes in: no answer of another round, no refusal and no second yes counts."""
    ballot = Ballot(voters_count=voters_count)
    asked(ballot)
    asked(ballot)
    granted = {"n1"}
    for peer, round_number, yes, term in answers:
        had = len(granted) * 2 > voters_count
        is_counted = yes and round_number == 2 and term == 3 and not had
        if is_counted:
            granted.add(peer)
        completes = is_counted and len(granted) * 2 > voters_count
        assert ballot.count(peer, PollAnswer(term, round_number, yes), term=term) == completes
        assert ballot.is_cleared(3) == (len(granted) * 2 > voters_count)


def test_half_is_no_majority() -> None:
    """Of four voters two are too few."""
    ballot = Ballot(voters_count=4)
    asked(ballot)
    assert not ballot.count("n2", PollAnswer(3, 1, True), term=3)
    assert ballot.count("n3", PollAnswer(3, 1, True), term=3)


def test_a_leader_ends_the_round() -> None:
    """Once a leader is heard, neither the answers under way nor the clearance count."""
    ballot = Ballot(voters_count=3)
    asked(ballot)
    ballot.hear_leader()
    assert not ballot.count("n2", PollAnswer(3, 1, True), term=3)
    asked(ballot)
    assert ballot.count("n2", PollAnswer(3, 2, True), term=3)
    ballot.hear_leader()
    assert not ballot.is_cleared(3)


@pytest.mark.parametrize(
    ("poll", "is_granted"),
    [
        (Poll(4, 9, 2, 1), True),
        (Poll(4, 10, 2, 1), True),
        (Poll(4, 1, 3, 1), True),
        (Poll(4, 8, 2, 1), False),
        (Poll(4, 99, 1, 1), False),
        (Poll(3, 9, 2, 1), False),
    ],
)
def test_a_yes_needs_a_log_and_a_term_that_are_not_behind(poll: Poll, is_granted: bool) -> None:
    """The same rule as for a vote: the last term, then the length; and a term above ours."""
    assert would(poll) == is_granted


def test_nobody_who_hears_a_leader_says_yes() -> None:
    """A leader, and a follower that heard one within the shortest timeout, refuse."""
    poll = Poll(4, 9, 2, 1)
    assert not would(poll, is_leader=True)
    assert not would(poll, quiet_seconds=0.29)
    assert would(poll, quiet_seconds=0.3)
