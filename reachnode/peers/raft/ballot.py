"""Pre-vote: asking whether one would be elected, before raising the term.

The engine raises its term as soon as its election timeout passes, and any higher term
deposes a healthy leader. So before that deadline the node asks the others. They say no
while they hear a leader; without a majority of yes the deadline moves on and the term
never grows.

    idle --deadline--> asking --majority--> cleared --tick--> (the engine campaigns)
      ^                  |  deadline passes: ask again, next round
      +---- a leader is heard, or the term changes ----+
"""

from dataclasses import dataclass, field

from reachnode.peers.raft.messages import Poll, PollAnswer


@dataclass(slots=True, kw_only=True)
class Ballot:
    """One node's poll. `voters_count` includes this node."""

    voters_count: int
    round: int = 0
    term: int = -1
    granted: set[str] = field(default_factory=set)
    cleared_term: int = -1
    polls_count: int = 0

    def ask(self, *, me: str, term: int, last_index: int, last_term: int) -> Poll:
        """Begin a new round and return the question to put to every peer."""
        self.round += 1
        self.polls_count += 1
        self.term = term
        self.granted = {me}
        return Poll(term + 1, last_index, last_term, self.round)

    def is_cleared(self, term: int) -> bool:
        """Return whether a majority would vote for this node in the term after `term`."""
        return self.cleared_term == term

    def hear_leader(self) -> None:
        """Forget the round: there is a leader."""
        self.term = -1
        self.cleared_term = -1
        self.granted = set()

    def count(self, peer: str, answer: PollAnswer, *, term: int) -> bool:
        """Take an answer; return whether it completes a majority."""
        if not answer.granted or answer.round != self.round or self.term != term:
            return False
        self.granted.add(peer)
        if len(self.granted) * 2 <= self.voters_count:
            return False
        self.cleared_term = term
        self.term = -1
        return True


def would_vote(
    poll: Poll,
    *,
    is_leader: bool,
    quiet_seconds: float,
    election_min_seconds: float,
    term: int,
    last: tuple[int, int],
) -> bool:
    """Return whether a node would vote for the one that asks.

    Args:
        poll: The question.
        is_leader: Whether the node asked leads.
        quiet_seconds: How long it has not heard from a leader.
        election_min_seconds: How long it must not have.
        term: Its current term.
        last: Term and index of its last entry.
    """
    return (
        not is_leader
        and quiet_seconds >= election_min_seconds
        and (poll.last_term, poll.last_index) >= last
        and poll.term > term
    )
