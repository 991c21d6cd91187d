"""Sending a snapshot to a follower that is too far behind, and taking one.

The engine knows nothing of it. It would send its snapshot in one go, flood a follower
while one is being written (B17, B23), believe a commit index that came with it (B1),
swallow a failed load (B11) and step back to an older one (B20). Instead the leader tells
the engine that the follower is up to date, sends it the newest snapshot's file in pieces
over the data connection, a few at a time, and lets the engine go on behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from reachnode.peers.raft.disk import Disk, ReadSnapshot, SealSnapshot, WriteSnapshot
from reachnode.peers.raft.messages import SnapshotAck, SnapshotPiece
from reachnode.peers.raft.records import Damaged
from reachnode.peers.raft.snapshot import SnapshotReader
from reachnode.registry.state import State

PIECE_BYTES = 32 * 1024
WINDOW_BYTES = 4 * PIECE_BYTES
"""Bytes under way to one follower; more would only wait in front of something else."""
SNAPSHOT_BYTES_MAX = 1 << 30
INCOMING_SNAPSHOT = "snapshot.in"
START_OVER = -1


@dataclass(slots=True, kw_only=True)
class SnapshotSending:
    """One snapshot on its way to one follower."""

    term: int
    index: int
    disk: Disk
    send: Callable[[SnapshotPiece], bool]
    read_offset: int = 0
    acked_offset: int = 0
    is_reading: bool = False
    is_ended: bool = False
    is_gone: bool = False
    """The file was replaced by a newer one, or a piece couldn't be sent: begin again."""
    progress_at: float = 0.0

    def go_on(self) -> None:
        """Ask the disk for the next piece, if it may be sent."""
        under_way = self.read_offset - self.acked_offset
        if self.is_reading or self.is_ended or self.is_gone or under_way >= WINDOW_BYTES:
            return
        self.is_reading = True
        self.disk.submit(
            ReadSnapshot(
                index=self.index,
                offset=self.read_offset,
                count=PIECE_BYTES,
                deliver=self._deliver,
            )
        )

    def hear(self, ack: SnapshotAck, now: float) -> None:
        """Take a follower's word on how far it is."""
        if ack.index != self.index or ack.term != self.term:
            return
        self.progress_at = now
        if ack.offset == START_OVER:
            self.is_gone = True
            return
        self.acked_offset = max(self.acked_offset, min(ack.offset, self.read_offset))
        self.go_on()

    def _deliver(self, data: bytes | None) -> None:
        """Send what was read."""
        self.is_reading = False
        if data is None:
            self.is_gone = True
            return
        piece = SnapshotPiece(
            term=self.term,
            index=self.index,
            offset=self.read_offset,
            data=data,
            is_last=len(data) < PIECE_BYTES,
        )
        self.read_offset += len(data)
        self.is_ended = piece.is_last
        self.is_gone = not self.send(piece)
        self.go_on()


@dataclass(frozen=True, slots=True)
class Received:
    """A whole snapshot, verified, its file sealed by a queued write."""

    index: int
    term: int
    state: State


class SnapshotTaking:
    """The snapshot that a follower is taking from its leader, one at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._source: tuple[str, int, int] | None = None
        self._reader: SnapshotReader | None = None
        self._offset = 0
        self.refused_count = 0

    @property
    def is_under_way(self) -> bool:
        """Whether there are pieces of one already."""
        return self._source is not None

    def take(self, peer: str, piece: SnapshotPiece) -> tuple[int, Received | None]:
        """Take a piece; return the offset to acknowledge, and the state with the last one."""
        source = (peer, piece.term, piece.index)
        if piece.offset == 0:
            self._source, self._offset = source, 0
            self._reader = SnapshotReader(f"snapshot {piece.index} from {peer}")
        if source != self._source or piece.offset != self._offset or self._reader is None:
            return START_OVER, None
        if piece.offset + len(piece.data) > SNAPSHOT_BYTES_MAX:
            self.refused_count += 1
            self.forget()
            return START_OVER, None
        try:
            self._reader.feed(piece.data)
            self._offset += len(piece.data)
            done = self._finish(self._reader, piece) if piece.is_last else None
        except Damaged:
            # The leader's file or the way here is bad; what we hold stays as it is.
            self.refused_count += 1
            self.forget()
            return START_OVER, None
        write = WriteSnapshot(name=INCOMING_SNAPSHOT, offset=piece.offset, data=piece.data)
        self._disk.submit(write)
        if done is not None:
            self._disk.submit(SealSnapshot(name=INCOMING_SNAPSHOT, index=piece.index))
            self.forget()
        return piece.offset + len(piece.data), done

    def forget(self) -> None:
        """Drop what was taken so far."""
        self._source = self._reader = None

    def _finish(self, reader: SnapshotReader, piece: SnapshotPiece) -> Received:
        """Return the state of a snapshot whose bytes are complete."""
        header, state, _ = reader.finish()
        if header.index != piece.index or header.cluster_id != state.cluster_id:
            raise Damaged(INCOMING_SNAPSHOT, 8, "it is not the one that was announced")
        return Received(header.index, header.term, state)
