"""Snapshots between one core and its peers: whom one is sent to, and what one does here.

`transfer.py` has the single transfer; here is when one begins, ends and takes effect.
"""

from typing import TYPE_CHECKING

from reachnode.peers.raft.messages import Ack, SnapshotAck, SnapshotPiece, encode
from reachnode.peers.raft.transfer import (
    START_OVER,
    Received,
    SnapshotSending,
    SnapshotTaking,
)

if TYPE_CHECKING:
    from reachnode.peers.raft.core import Core, Running

AGAIN_SECONDS = 0.1
"""How long after a transfer that came to nothing the next one begins: a follower that refuses
it, or has no data connection, would otherwise be sent it as fast as the disk can read."""


class Transfers:
    """The snapshots on their way from and to one core."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self.sending: dict[str, SnapshotSending] = {}
        self.counters = {
            "snapshots_sent": 0,
            "snapshots_installed": 0,
            "snapshots_onto_divergent_tail": 0,
            "snapshots_refused": 0,
        }
        self._taking = SnapshotTaking(core.disk)

    # --- as leader

    def tend(self, now: float) -> None:
        """Keep the engine from wanting to send what only a snapshot has, and send that."""
        core, raft = self._core, self._core.running
        if raft is None:
            return
        if not raft.engine.is_leader:
            self.sending.clear()
            return
        for peer in core.membership.others:
            following = raft.engine.next_index(peer)
            if following is not None and following <= raft.journal.base:
                self.want(peer)
        for peer, sending in list(self.sending.items()):
            quiet_seconds = now - sending.progress_at
            is_over = sending.is_gone and quiet_seconds > AGAIN_SECONDS
            if is_over or quiet_seconds > core.settings.transfer_stall_seconds:
                del self.sending[peer]
                self.want(peer)

    def want(self, peer: str) -> None:
        """Begin to send a snapshot to a follower, unless one is on its way."""
        core, raft = self._core, self._raft()
        end = raft.journal.end
        if raft.engine.next_index(peer) != end + 1:
            raft.engine.set_next_index(peer, end + 1)
        if peer in self.sending or core.upkeep.snapshot is None or core.epoch(peer) is None:
            return
        self.counters["snapshots_sent"] += 1
        self.sending[peer] = sending = SnapshotSending(
            term=raft.engine.term,
            index=core.upkeep.snapshot[0],
            disk=core.disk,
            send=lambda piece: core.wire.bulk(peer, encode(piece)),
            progress_at=core.sources.now(),
        )
        sending.go_on()

    def hear(self, peer: str, message: SnapshotAck) -> None:
        """Learn how far a follower is with a snapshot."""
        sending = self.sending.get(peer)
        if sending is not None:
            sending.hear(message, self._core.sources.now())

    def ended_by(self, peer: str, index: int) -> bool:
        """Return whether an acknowledgement ends a transfer to its sender; forget it then."""
        sending = self.sending.get(peer)
        if sending is None or index < sending.index:
            return False
        del self.sending[peer]
        return True

    def go_on_at(self, peer: str, index: int) -> None:
        """Let the leader send a follower the entry at `index` next, if the log still has it."""
        raft = self._raft()
        if index > raft.journal.base:
            raft.engine.set_next_index(peer, index)
        else:
            self.want(peer)

    def forget(self, peer: str) -> None:
        """Take the loss of a connection."""
        self.sending.pop(peer, None)

    # --- as follower

    def take(self, peer: str, message: SnapshotPiece) -> None:
        """Take a piece of the leader's snapshot."""
        core, raft = self._core, self._raft()
        engine = raft.engine
        if message.term != engine.term or engine.leader != peer or engine.is_leader:
            self._answer(peer, message, START_OVER)
            return
        if message.index <= raft.machine.index and core.rules.old_snapshot_is_refused:
            # What is applied here is committed, and so in the leader's log (B20).
            self.counters["snapshots_refused"] += 1
            self._taking.forget()
            self._acknowledge(peer, raft.machine.index)
            return
        is_late = core.disk.bytes_waiting > core.settings.unsynced_bytes_max
        if is_late and (message.offset == 0 or not self._taking.is_under_way):
            return  # The disk is behind: a whole snapshot more would wait for it, again and again.
        offset, received = self._taking.take(peer, message)
        self._answer(peer, message, offset)
        if received is not None:
            self._install(peer, received)

    def _answer(self, peer: str, piece: SnapshotPiece, offset: int) -> None:
        """Tell the leader how far its snapshot has come."""
        self._core.wire.bulk(peer, encode(SnapshotAck(piece.term, piece.index, offset)))

    def _acknowledge(self, peer: str, index: int) -> None:
        """Acknowledge everything up to an index, once it is durable."""
        raft = self._raft()
        ack = Ack(raft.engine.term, index + 1, reset=False, success=True)
        self._core.inbound.hold(peer, ack, number=raft.journal.vote_number)

    def _install(self, peer: str, received: Received) -> None:
        """Swap the state for the leader's, at once."""
        core, raft = self._core, self._raft()
        journal = raft.journal
        diverged = journal.term_at(received.index) not in (None, received.term)
        self.counters["snapshots_onto_divergent_tail"] += diverged
        if journal.term_at(received.index) != received.term:
            core.inbound.cut(raft.engine.commit_index + 1)
        self.counters["snapshots_installed"] += 1
        journal.install(index=received.index, term=received.term)
        raft.machine.install(received.state, received.index)
        raft.engine.installed(received.index)
        core.upkeep.installed(received.index, received.term)
        core.proposals.skipped_to(received.index)
        core.on_applied(received.index, ())
        claimed = received.index if core.rules.snapshot_claims_itself else journal.end
        self._acknowledge(peer, claimed)

    def _raft(self) -> "Running":
        """Return the parts of a running core."""
        raft = self._core.running
        assert raft is not None
        return raft
