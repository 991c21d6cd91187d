"""Messages of one member: what comes in is judged before the engine sees it, what the
engine says is put right before it leaves.

Each rule that can be switched off for the simulator is a field of `Safeguards`, where its
fault is named.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reachnode.peers.raft.ballot import Ballot, would_vote
from reachnode.peers.raft.engine import Engine
from reachnode.peers.raft.guards import back_off, trim_overlap
from reachnode.peers.raft.held import HeldMessage
from reachnode.peers.raft.journal import Journal
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
    encode,
    from_engine,
    to_engine,
)
from reachnode.peers.raft.transfer import (
    START_OVER,
    Received,
    SnapshotSending,
    SnapshotTaking,
)

if TYPE_CHECKING:
    from reachnode.peers.raft.core import Core


class Inbound:
    """The traffic of one core."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._rules = core.rules
        self.ballot = Ballot(voters_count=len(core.membership.members))
        self.taking = SnapshotTaking(core.disk)
        self.sending: dict[str, SnapshotSending] = {}
        self.counters: dict[str, int] = {}
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
        engine, journal = self._running()
        message = from_engine(raw, engine.term)
        match message:
            case Append() if peer in self.sending:
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
                self.hold(peer, message, number=journal.vote_number)
            case Ack():
                if self._rules.backoff_is_fast:
                    message = back_off(message, journal, engine.commit_index)
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
        engine, _ = self._running()
        held = HeldMessage(peer=peer, message=message, epoch=epoch, term=engine.term, number=number)
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
            core.greeted(peer, message)
            return True
        if peer not in core.greets and isinstance(message, SnapshotPiece | SnapshotAck):
            return False  # The data connection may be a little ahead of the greeting.
        if peer not in core.greets:
            raise BadMessage("the first message was no greeting")
        engine = core.engine
        if engine is None or not engine.is_connected(peer):
            return False
        kind = type(message)
        _HANDLERS[kind](self, peer, message)
        if kind is Append:
            return bool(message.entries) or engine.commit_index > engine.applied_index
        if kind is Ack:
            return message.reset or engine.match_index(peer) > engine.commit_index
        return True

    def _append(self, peer: str, message: Append) -> None:
        """Take a leader's entries or heartbeat."""
        core = self._core
        engine, journal = self._running()
        if message.term < engine.term:
            if self._rules.stale_append_is_answered:
                core.send(peer, Nack(engine.term))
            return
        self._leader_heard_at = core.sources.now()
        if self._leader != peer:
            self._leader = peer
            self.leader_changes_count += 1
        self.ballot.hear_leader()
        if core.disk.bytes_waiting > core.settings.unsynced_bytes_max:
            # The disk is behind: take the heartbeat, and the entries when they come again.
            self._count("entries_put_off")
            commit = min(message.commit_index, message.previous_index)
            message = Append(
                message.term, commit, message.previous_index, message.previous_term, []
            )
        if self._rules.overlap_is_trimmed:
            message, journal.is_protected = trim_overlap(journal, message)
        try:
            engine.receive(peer, to_engine(message))
        finally:
            journal.is_protected = False

    def _ack(self, peer: str, message: Ack) -> None:
        """Take a follower's answer, as leader."""
        core = self._core
        engine, journal = self._running()
        if self._rules.ack_is_stamped and message.term != engine.term:
            return
        if not engine.is_leader:
            return
        if not core.counts(peer):
            self._uncounted_ack(peer, message)
        elif message.reset and (peer in self.sending or message.next_index <= journal.base):
            # It will get, or is getting, a snapshot; for the engine it only lives.
            self._want_snapshot(peer)
            engine.receive(peer, to_engine(Ack(message.term, message.next_index, False, False)))
        elif not message.success:
            engine.receive(peer, to_engine(message))
        else:
            held = HeldMessage(
                peer=peer,
                message=message,
                epoch=core.epochs[peer],
                term=engine.term,
                number=0,
            )
            countable = core.held.incoming(held, core.durable())
            if countable is not None:
                self.count(peer, countable)

    def count(self, peer: str, ack: Ack) -> None:
        """Let the engine count an acknowledgement."""
        core = self._core
        engine, _ = self._running()
        greet = core.greets.get(peer)
        if not engine.is_leader or greet is None:
            return
        index = ack.next_index - 1
        incarnation, most = self._acked.get(peer, ("", 0))
        if incarnation != greet.incarnation:
            most = 0
        self._acked[peer] = (greet.incarnation, max(most, index))
        before = engine.next_index(peer)
        sending = self.sending.get(peer)
        engine.receive(peer, to_engine(ack))
        if sending is not None and index >= sending.index:
            del self.sending[peer]
            self._go_on_at(peer, ack.next_index)
        elif before is not None and self._rules.ack_never_rewinds:
            after = engine.next_index(peer)
            if after is not None and after < before:
                self._go_on_at(peer, before)

    def _go_on_at(self, peer: str, index: int) -> None:
        """Let the leader send a follower the entry at `index` next, if the log still has it."""
        engine, journal = self._running()
        if index > journal.base:
            engine.set_next_index(peer, index)
        else:
            self._want_snapshot(peer)

    def _uncounted_ack(self, peer: str, message: Ack) -> None:
        """Serve a disk that doesn't count, without counting it: not even as alive."""
        self._count("learner_acks_dropped")
        sending = self.sending.get(peer)
        if message.success:
            if sending is not None and message.next_index > sending.index:
                del self.sending[peer]
                self._go_on_at(peer, message.next_index)
        elif message.reset and sending is None:
            self._go_on_at(peer, message.next_index)

    def _vote(self, peer: str, message: Vote) -> None:
        """Take a vote, as candidate."""
        engine, _ = self._running()
        if not self._core.counts(peer):
            self._count("learner_votes_dropped")
            return
        if self._rules.vote_counts_once:
            if (peer, message.term) in self._votes:
                return
            self._votes = {vote for vote in self._votes if vote[1] >= engine.term}
            self._votes.add((peer, message.term))
        engine.receive(peer, to_engine(message))

    def _request_vote(self, peer: str, message: RequestVote) -> None:
        """Take a candidate's request."""
        engine, _ = self._running()
        if message.term < engine.term:
            self._core.send(peer, Nack(engine.term))
            return
        engine.receive(peer, to_engine(message))

    def _nack(self, peer: str, message: Nack) -> None:
        """Learn of a higher term."""
        engine, _ = self._running()
        if message.term > engine.term:
            self._count("terms_adopted")
            engine.adopt_term(peer, message.term)

    def _take_over(self, peer: str, message: TakeOver) -> None:
        """Campaign now, if the leader asks."""
        engine, _ = self._running()
        if self._core.counts(self._core.membership.me):
            engine.receive(peer, to_engine(message))

    def _poll(self, peer: str, message: Poll) -> None:
        """Say whether this node would vote for the one that asks."""
        core = self._core
        engine, journal = self._running()
        granted = would_vote(
            message,
            is_leader=engine.is_leader,
            quiet_seconds=self.quiet_seconds(),
            election_min_seconds=core.settings.times.election_min,
            term=engine.term,
            last=(journal.end_term, journal.end),
        )
        core.send(peer, PollAnswer(engine.term, message.round, granted))

    def _poll_answer(self, peer: str, message: PollAnswer) -> None:
        """Count an answer to this node's poll; with a majority, campaign."""
        engine, _ = self._running()
        if message.term > engine.term:
            self._nack(peer, Nack(message.term))
            return
        if engine.is_leader or not self._core.counts(peer):
            return
        if self.ballot.count(peer, message, term=engine.term):
            engine.election_at = 0.0

    def _propose(self, peer: str, message: Propose) -> None:
        """Take a change that is meant for the leader."""
        self._core.proposals.take(peer, self._core.epochs[peer], message)

    def _proposed(self, _peer: str, message: Proposed) -> None:
        """Learn what became of a change sent to the leader."""
        machine = self._core.machine
        assert machine is not None
        self._core.proposals.hear(message, applied_index=machine.index)

    # --- snapshots

    def tend_transfers(self, now: float) -> None:
        """Keep the engine from wanting to send what only a snapshot has, and send that."""
        core = self._core
        if core.engine is None or core.journal is None:
            return
        engine, journal = core.engine, core.journal
        if not engine.is_leader:
            self.sending.clear()
            return
        for peer in core.membership.others:
            following = engine.next_index(peer)
            if following is not None and following <= journal.base:
                self._want_snapshot(peer)
        for peer, sending in list(self.sending.items()):
            stalled = now - sending.progress_at > core.settings.transfer_stall_seconds
            newest = core.snapshot is not None and core.snapshot[0] > sending.index
            if sending.is_gone or stalled or (newest and sending.read_offset == 0):
                del self.sending[peer]
                self._want_snapshot(peer)

    def _want_snapshot(self, peer: str) -> None:
        """Begin to send a snapshot to a follower, unless one is on its way."""
        core = self._core
        engine, journal = self._running()
        if engine.next_index(peer) != journal.end + 1:
            engine.set_next_index(peer, journal.end + 1)
        if peer in self.sending or core.snapshot is None or peer not in core.epochs:
            return
        self._count("snapshots_sent")
        sending = SnapshotSending(
            peer,
            engine.term,
            core.snapshot[0],
            core.disk,
            lambda piece: core.wire.bulk(peer, encode(piece)),
            progress_at=core.sources.now(),
        )
        self.sending[peer] = sending
        sending.go_on()

    def _snapshot_piece(self, peer: str, message: SnapshotPiece) -> None:
        """Take a piece of the leader's snapshot."""
        core = self._core
        engine, journal = self._running()
        machine = core.machine
        assert machine is not None
        if message.term != engine.term or engine.leader != peer or engine.is_leader:
            self._answer_piece(peer, message, START_OVER)
            return
        if message.index <= machine.index and self._rules.old_snapshot_is_refused:
            # What is applied here is committed, and so in the leader's log.
            self._count("snapshots_refused")
            self.taking.forget()
            ack = Ack(engine.term, machine.index + 1, reset=False, success=True)
            self.hold(peer, ack, number=journal.vote_number)
            return
        offset, received = self.taking.take(peer, message)
        self._answer_piece(peer, message, offset)
        if received is not None:
            self._install(peer, received)

    def _answer_piece(self, peer: str, piece: SnapshotPiece, offset: int) -> None:
        """Tell the leader how far its snapshot has come."""
        self._core.wire.bulk(peer, encode(SnapshotAck(piece.term, piece.index, offset)))

    def _install(self, peer: str, received: Received) -> None:
        """Swap the state for the leader's, at once."""
        core = self._core
        engine, journal = self._running()
        machine = core.machine
        assert machine is not None
        if received.index <= machine.index and self._rules.old_snapshot_is_refused:
            return
        divergent = journal.end >= received.index
        divergent = divergent and journal.term_at(received.index) != received.term
        self._count("snapshots_onto_divergent_tail" if divergent else "snapshots_installed")
        core.maker.abandon()
        journal.install(index=received.index, term=received.term)
        machine.install(received.state, received.index)
        engine.installed(received.index)
        core.snapshot = (received.index, received.term)
        core.proposals.skipped_to(received.index)
        core.on_applied(received.index, ())
        claimed = received.index if self._rules.snapshot_claims_itself else journal.end
        ack = Ack(engine.term, claimed + 1, reset=False, success=True)
        self.hold(peer, ack, number=journal.vote_number)

    def _snapshot_ack(self, peer: str, message: SnapshotAck) -> None:
        """Learn how far a follower is with a snapshot."""
        sending = self.sending.get(peer)
        if sending is not None:
            sending.hear(message, self._core.sources.now())

    # --- what others in this room ask

    def quiet_seconds(self) -> float:
        """Return for how long no leader has been heard."""
        return self._core.sources.now() - self._leader_heard_at

    def forget(self, peer: str) -> None:
        """Take the loss of a connection."""
        self.sending.pop(peer, None)
        self._votes = {vote for vote in self._votes if vote[0] != peer}

    def judge_memory(self, peer: str, greet: Greet) -> None:
        """Stop counting a disk that lacks committed entries which it once acknowledged."""
        core = self._core
        incarnation, most = self._acked.get(peer, ("", 0))
        if incarnation != greet.incarnation:
            core.admissions.amnesiac.discard(peer)
            self._acked.pop(peer, None)
        elif core.engine is not None and greet.log_end < min(most, core.engine.commit_index):
            core.admissions.amnesiac.add(peer)
            lost = {"peer": peer, "acknowledged": most, "has": greet.log_end}
            core.notice("a disk that has forgotten", lost)

    def _running(self) -> tuple[Engine, Journal]:
        """Return engine and journal of a running core."""
        core = self._core
        assert core.engine is not None
        assert core.journal is not None
        return core.engine, core.journal

    def _count(self, name: str) -> None:
        """Count an event."""
        self.counters[name] = self.counters.get(name, 0) + 1


_HANDLERS: Mapping[type, Callable[[Inbound, str, Any], None]] = {
    Append: Inbound._append,
    Ack: Inbound._ack,
    Vote: Inbound._vote,
    RequestVote: Inbound._request_vote,
    Nack: Inbound._nack,
    TakeOver: Inbound._take_over,
    Poll: Inbound._poll,
    PollAnswer: Inbound._poll_answer,
    Propose: Inbound._propose,
    Proposed: Inbound._proposed,
    SnapshotPiece: Inbound._snapshot_piece,
    SnapshotAck: Inbound._snapshot_ack,
}
