"""Messages of one member, judged before the engine sees them and mended before they leave.

Each rule that can be switched off for the simulator is a field of `Safeguards`, where its
fault is named.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from reachnode.peers.raft.ballot import would_vote
from reachnode.peers.raft.guards import back_off, trim_overlap
from reachnode.peers.raft.held import HeldMessage
from reachnode.peers.raft.messages import (
    Ack,
    Append,
    BadMessage,
    Greet,
    Nack,
    Poll,
    PollAnswer,
    Propose,
    Proposed,
    RequestVote,
    SnapshotAck,
    SnapshotPiece,
    TakeOver,
    Vote,
    decode,
    from_engine,
    to_engine,
)

if TYPE_CHECKING:
    from reachnode.peers.raft.core import Core, Running


class Inbound:
    """The traffic of one core."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._rules = core.rules
        self.counters: dict[str, int] = {}
        self._handlers: dict[type, Callable[[str, Any], None]] = {
            Append: self._append,
            Ack: self._ack,
            Vote: self._vote,
            RequestVote: self._request_vote,
            Nack: self._nack,
            TakeOver: self._take_over,
            Poll: self._poll,
            PollAnswer: self._poll_answer,
            Propose: self._propose,
            Proposed: self._proposed,
            SnapshotPiece: core.transfers.take,
            SnapshotAck: core.transfers.hear,
        }
        self.leader_changes_count = 0
        self._leader: str | None = None
        self._leader_heard_at = float("-inf")
        self._votes: set[tuple[str, int]] = set()
        self._acked: dict[str, tuple[str, int]] = {}
        """The most that each peer's disk acknowledged to this node as leader."""

    # --- what the engine says

    def from_engine(self, peer: str, raw: dict[str, Any]) -> None:
        """Send, hold or mend what the engine wants to send."""
        core = self._core
        raft = self._raft()
        message = from_engine(raw, raft.engine.term)
        match message:
            case Append() if peer in core.transfers.sending:
                # Entries are of no use to a follower that is taking a snapshot.
                message = Append(
                    message.term,
                    message.commit_index,
                    message.previous_index,
                    message.previous_term,
                    [],
                )
                core.send(peer, message)
            case Ack(success=True):
                core.tell_of_cuts()  # Before there is something to say of what took their place.
                self.hold(peer, message, number=raft.journal.vote_number)
            case Ack():
                if self._rules.backoff_is_fast:
                    message = back_off(message, raft.journal, raft.engine.commit_index)
                core.send(peer, message)
            case RequestVote() | Vote():
                self.hold(peer, message, number=core.disk.newest)
            case _:
                core.send(peer, message)

    def hold(self, peer: str, message: RequestVote | Vote | Ack, *, number: int) -> None:
        """Send a message once, and as far as, it is durable."""
        core = self._core
        epoch = core.epoch(peer)
        if epoch is None:
            return
        raft = self._raft()
        held = HeldMessage(
            peer=peer, message=message, epoch=epoch, term=raft.engine.term, number=number
        )
        leaving = core.held.out(held, core.durable())
        if leaving is not None:
            core.send(peer, leaving)

    # --- what comes in

    def take(self, peer: str, data: bytes) -> bool:
        """Take one message of a connected peer; return whether there is something to do now.

        A heartbeat and its answer leave nothing to do until the clock says so.
        """
        core = self._core
        message = decode(data)
        core.heard_at[peer] = core.sources.now()
        if isinstance(message, Greet):
            core.standing.greeted(peer, message)
            return True
        if peer not in core.standing.greets and isinstance(message, SnapshotPiece | SnapshotAck):
            return False  # The data connection may be a little ahead of the greeting.
        if peer not in core.standing.greets:
            raise BadMessage("the first message was no greeting")
        raft = core.running
        if raft is None or not raft.engine.is_connected(peer):
            return False
        handler: Callable[[str, Any], None] = self._handlers[type(message)]
        handler(peer, message)
        if isinstance(message, Append):
            return bool(message.entries) or raft.engine.commit_index > raft.engine.applied_index
        if isinstance(message, Ack):
            return message.reset or raft.engine.match_index(peer) > raft.engine.commit_index
        return not isinstance(message, Poll)

    def _append(self, peer: str, message: Append) -> None:
        """Take a leader's entries or heartbeat."""
        core = self._core
        raft = self._raft()
        if message.term < raft.engine.term:
            if self._rules.stale_append_is_answered:
                core.send(peer, Nack(raft.engine.term))
            return
        self._leader_heard_at = core.sources.now()
        if self._leader != peer:
            self._leader = peer
            self.leader_changes_count += 1
        core.campaign.ballot.hear_leader()
        if core.disk.bytes_waiting > core.settings.unsynced_bytes_max:
            # The disk is behind: take the heartbeat, and the entries when they come again.
            self._count("entries_put_off")
            commit = min(message.commit_index, message.previous_index)
            message = Append(
                message.term, commit, message.previous_index, message.previous_term, []
            )
        if self._rules.overlap_is_trimmed:
            message, raft.journal.is_protected = trim_overlap(raft.journal, message)
        try:
            raft.engine.receive(peer, to_engine(message))
        finally:
            raft.journal.is_protected = False

    def _ack(self, peer: str, message: Ack) -> None:
        """Take a follower's answer, as leader."""
        core = self._core
        raft = self._raft()
        if self._rules.ack_is_stamped and message.term != raft.engine.term:
            return
        if not raft.engine.is_leader:
            return
        if message.reset and message.next_index > raft.journal.end + 1:
            # Its log is longer than the leader's, and trimmed further than the leader looked.
            message = msgspec.structs.replace(message, next_index=raft.journal.end + 1)
        if not core.counts(peer):
            self._uncounted_ack(peer, message)
        elif message.reset and (
            peer in core.transfers.sending or message.next_index <= raft.journal.base
        ):
            # It will get, or is getting, a snapshot; for the engine it only lives.
            core.transfers.want(peer)
            raft.engine.receive(
                peer, to_engine(Ack(message.term, message.next_index, False, False))
            )
        elif not message.success or self._says_nothing_new(peer, message):
            raft.engine.receive(peer, to_engine(message))
        else:
            held = HeldMessage(
                peer=peer,
                message=message,
                epoch=core.standing.epochs[peer],
                term=raft.engine.term,
                number=0,
            )
            countable = core.held.incoming(held, core.durable())
            if countable is not None:
                self.count(peer, countable)

    def _says_nothing_new(self, peer: str, ack: Ack) -> bool:
        """Return whether an acknowledgement, as that of a heartbeat, only shows that it lives."""
        counted = self._raft().engine.match_index(peer)
        return ack.next_index - 1 <= counted and peer not in self._core.transfers.sending

    def count(self, peer: str, ack: Ack) -> None:
        """Let the engine count an acknowledgement."""
        core = self._core
        raft = self._raft()
        greet = core.standing.greets.get(peer)
        if not raft.engine.is_leader or greet is None:
            return
        index = ack.next_index - 1
        incarnation, most = self._acked.get(peer, ("", 0))
        if incarnation != greet.incarnation:
            most = 0
        self._acked[peer] = (greet.incarnation, max(most, index))
        before = raft.engine.next_index(peer)
        raft.engine.receive(peer, to_engine(ack))
        if core.transfers.ended_by(peer, index):
            core.transfers.go_on_at(peer, ack.next_index)
        elif before is not None and self._rules.ack_never_rewinds:
            after = raft.engine.next_index(peer)
            if after is not None and after < before:
                core.transfers.go_on_at(peer, before)

    def _uncounted_ack(self, peer: str, message: Ack) -> None:
        """Serve a disk that doesn't count, without counting it: not even as alive."""
        self._count("learner_acks_dropped")
        transfers = self._core.transfers
        if message.success:
            if transfers.ended_by(peer, message.next_index - 1):
                transfers.go_on_at(peer, message.next_index)
        elif message.reset and peer not in transfers.sending:
            transfers.go_on_at(peer, message.next_index)

    def _vote(self, peer: str, message: Vote) -> None:
        """Take a vote, as candidate."""
        raft = self._raft()
        if not self._core.counts(peer):
            self._count("learner_votes_dropped")
            return
        if self._rules.vote_counts_once:
            if (peer, message.term) in self._votes:
                return
            self._votes = {vote for vote in self._votes if vote[1] >= raft.engine.term}
            self._votes.add((peer, message.term))
        raft.engine.receive(peer, to_engine(message))

    def _request_vote(self, peer: str, message: RequestVote) -> None:
        """Take a candidate's request."""
        raft = self._raft()
        if message.term < raft.engine.term:
            self._core.send(peer, Nack(raft.engine.term))
            return
        raft.engine.receive(peer, to_engine(message))

    def _nack(self, peer: str, message: Nack) -> None:
        """Learn of a higher term."""
        raft = self._raft()
        if message.term > raft.engine.term:
            self._count("terms_adopted")
            raft.engine.adopt_term(peer, message.term)

    def _take_over(self, peer: str, message: TakeOver) -> None:
        """Campaign now, if the leader asks."""
        raft = self._raft()
        if self._core.counts(self._core.membership.me):
            self._count("take_overs")
            raft.engine.receive(peer, to_engine(message))

    def _poll(self, peer: str, message: Poll) -> None:
        """Say whether this node would vote for the one that asks."""
        core = self._core
        raft = self._raft()
        granted = would_vote(
            message,
            is_leader=raft.engine.is_leader,
            quiet_seconds=self.quiet_seconds(),
            election_min_seconds=core.settings.times.election_min,
            term=raft.engine.term,
            last=(raft.journal.end_term, raft.journal.end),
        )
        core.send(peer, PollAnswer(raft.engine.term, message.round, granted))

    def _poll_answer(self, peer: str, message: PollAnswer) -> None:
        """Take an answer to this node's poll."""
        raft = self._raft()
        if message.term > raft.engine.term:
            self._nack(peer, Nack(message.term))
            return
        self._core.campaign.count(peer, message)

    def _propose(self, peer: str, message: Propose) -> None:
        """Take a change that is meant for the leader."""
        self._core.proposals.take(peer, self._core.standing.epochs[peer], message)

    def _proposed(self, _peer: str, message: Proposed) -> None:
        """Learn what became of a change sent to the leader."""
        applied_index = self._raft().machine.index
        try:
            self._core.proposals.hear(message, applied_index=applied_index)
        except ValueError as error:
            raise BadMessage(str(error)) from error

    # --- what others in this room ask

    def quiet_seconds(self) -> float:
        """Return for how long no leader has been heard."""
        return self._core.sources.now() - self._leader_heard_at

    def forget(self, peer: str) -> None:
        """Take the loss of a connection."""
        self._votes = {vote for vote in self._votes if vote[0] != peer}

    def cut(self, index: int) -> None:
        """Expect of nobody what was cut from this log: who acknowledged it may have cut it, too."""
        for peer, (incarnation, most) in self._acked.items():
            self._acked[peer] = (incarnation, min(most, index - 1))

    def judge_memory(self, peer: str, greet: Greet) -> None:
        """Stop counting a disk that lacks committed entries which it once acknowledged."""
        core, raft = self._core, self._core.running
        incarnation, most = self._acked.get(peer, ("", 0))
        if incarnation != greet.incarnation:
            core.standing.admissions.amnesiac.discard(peer)
            self._acked.pop(peer, None)
        elif raft is not None and greet.log_end < min(most, raft.engine.commit_index):
            core.standing.admissions.amnesiac.add(peer)
            lost = {"peer": peer, "acknowledged": most, "has": greet.log_end}
            core.notice("a disk that has forgotten", lost)

    def _raft(self) -> "Running":
        """Return the parts of a running core."""
        raft = self._core.running
        assert raft is not None
        return raft

    def _count(self, name: str) -> None:
        """Count an event."""
        self.counters[name] = self.counters.get(name, 0) + 1
