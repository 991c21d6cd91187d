"""When a member may campaign, and when it must stop leading.

The engine campaigns whenever its election timeout passes, and leads for as long as a
majority answers. This looks at both before each of its ticks.
"""

from typing import TYPE_CHECKING

from reachnode.peers.raft.ballot import Ballot
from reachnode.peers.raft.disk import Condition
from reachnode.peers.raft.messages import PollAnswer

if TYPE_CHECKING:
    from reachnode.peers.raft.core import Core, Running


class Campaign:
    """One core's rules about leading."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self.ballot = Ballot(voters_count=len(core.membership.members))
        self.rests_until = float("-inf")
        """Until when this node, though it leads, appends no changes."""

    def look(self, raft: "Running", now: float) -> None:
        """Stop leading, or put off a campaign, if it has to be."""
        if raft.engine.is_leader:
            self.give_up(raft, now)
        elif raft.engine.election_at < now:
            self._ask_first(raft, now)

    def give_up(self, raft: "Running", now: float) -> None:
        """Stop leading with a disk that is full, failed or stalled."""
        core = self._core
        stalled = core.disk.stalled_seconds(now) > core.settings.disk_stall_seconds
        if raft.engine.is_leader and (stalled or core.disk.condition is not Condition.OK):
            core.notice("gave up leadership", {"disk": core.disk.condition.value})
            raft.engine.step_down()
            raft.engine.election_at = now + core.settings.times.election_max * 2

    def hand_over(self, raft: "Running", now: float) -> None:
        """Ask the follower that has most to lead; it must have everything.

        While changes keep coming none ever has. So the log rests, to be asked for again; but
        for an election's time at most, and then not at once again: nobody may be there to lead.
        """
        core = self._core
        able = [peer for peer in core.membership.others if peer in core.standing.greets]
        able = [peer for peer in able if core.counts(peer)]
        rest_seconds = core.settings.times.election_min
        if able and now >= self.rests_until + rest_seconds:
            self.rests_until = now + rest_seconds
        for peer in sorted(able, key=raft.engine.match_index, reverse=True):
            if raft.engine.transfer(peer):
                return

    def _ask_first(self, raft: "Running", now: float) -> None:
        """Put off a campaign until a majority would vote for this node."""
        core, engine = self._core, raft.engine
        times = core.settings.times
        others = core.membership.others
        if not core.can_write or not core.counts(core.membership.me):
            engine.election_at = now + times.election_min
            return
        if others and not any(engine.is_connected(peer) for peer in others):
            engine.election_at = now + times.election_min
            return
        if not core.rules.pre_vote or not others or engine.is_transferring:
            return
        if self.ballot.is_cleared(engine.term):
            return
        pause = core.sources.draw.uniform(times.election_min / 3, times.election_max / 3)
        engine.election_at = now + pause
        poll = self.ballot.ask(
            me=core.membership.me,
            term=engine.term,
            last_index=raft.journal.end,
            last_term=raft.journal.end_term,
        )
        for peer in others:
            core.send(peer, poll)

    def count(self, peer: str, answer: PollAnswer) -> None:
        """Count an answer to this node's poll; with a majority, campaign."""
        raft = self._core.running
        assert raft is not None
        if raft.engine.is_leader or not self._core.counts(peer):
            return
        if self.ballot.count(peer, answer, term=raft.engine.term):
            raft.engine.election_at = 0.0
