"""The whole state as a file, written and read in slices.

    magic 8 | frame (header) | frame (piece) ... | frame (footer)
    frame    crc u32 | length u32 | kind u8 | data

The header says which index the state belongs to; the footer carries the number of pieces
and the state's digest, so that a snapshot is either whole or refused. Pieces are the
registry's own (`registry.codec.dump`), each small enough to be made between two turns of
the loop. States are immutable: the one written is pinned, and nobody waits for it.
"""

import struct
from collections.abc import Iterator
from zlib import crc32

import msgspec

from reachnode.peers.raft.records import Damaged
from reachnode.registry.snapshot import BadSnapshot, Digester, Loader, dump
from reachnode.registry.state import State

MAGIC = b"RNSNAP\x00\x01"
FRAME = struct.Struct("<IIB")
HEADER_KIND, PIECE_KIND, FOOTER_KIND = 1, 2, 3
FRAME_BYTES_MAX = 1 << 26


class SnapshotHeader(msgspec.Struct, frozen=True, array_like=True):
    """What a snapshot is of: the state after the entry at `index` of `term`."""

    cluster_id: str
    index: int
    term: int


class SnapshotFooter(msgspec.Struct, frozen=True, array_like=True):
    """What a snapshot must have turned out to be."""

    pieces_count: int
    digest: str


def frame(kind: int, data: bytes) -> bytes:
    """Return the bytes of one frame."""
    assert len(data) <= FRAME_BYTES_MAX
    body = struct.pack("<IB", len(data), kind) + data
    return crc32(body).to_bytes(4, "little") + body


def write_snapshot(state: State, header: SnapshotHeader) -> Iterator[bytes]:
    """Yield the bytes of a snapshot, one slice at a time."""
    yield MAGIC + frame(HEADER_KIND, msgspec.msgpack.encode(header))
    digester = Digester()
    count = 0
    for piece in dump(state):
        digester.feed(piece)
        count += 1
        yield frame(PIECE_KIND, piece)
    footer = SnapshotFooter(count, digester.hex())
    yield frame(FOOTER_KIND, msgspec.msgpack.encode(footer))


class SnapshotReader:
    """Takes a snapshot's bytes in any portions, and gives the state at the end.

    Args:
        name: What errors call it.
    """

    def __init__(self, name: str) -> None:
        self.header: SnapshotHeader | None = None
        self._name = name
        self._buffer = bytearray()
        self._offset = 0
        self._loader = Loader()
        self._digester = Digester()
        self._pieces_count = 0
        self._footer: SnapshotFooter | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            Damaged: They are not what was written; the offset says where.
        """
        self._buffer += data
        if self._offset == 0:
            if len(self._buffer) < len(MAGIC):
                return
            if not self._buffer.startswith(MAGIC):
                raise self._damaged("it does not begin like a snapshot")
            self._consume(len(MAGIC))
        while self._take_frame():
            continue

    def finish(self) -> tuple[SnapshotHeader, State, str]:
        """Return header, state and digest once every byte was fed.

        Raises:
            Damaged: It ends early, or the digest differs.
        """
        if self._footer is None or self.header is None or self._buffer:
            raise self._damaged("it ends early")
        if self._footer.pieces_count != self._pieces_count:
            raise self._damaged(f"{self._footer.pieces_count} pieces were written")
        digest = self._digester.hex()
        if digest != self._footer.digest:
            raise self._damaged("the state's digest differs")
        try:
            return self.header, self._loader.finish(), digest
        except BadSnapshot as error:
            raise self._damaged(str(error)) from error

    def _take_frame(self) -> bool:
        """Take one frame if it is complete; return whether it was."""
        if len(self._buffer) < FRAME.size:
            return False
        crc, length, kind = FRAME.unpack_from(self._buffer)
        if length > FRAME_BYTES_MAX or self._footer is not None:
            raise self._damaged("a frame is too long" if self._footer is None else "it goes on")
        end = FRAME.size + length
        if len(self._buffer) < end:
            return False
        with memoryview(self._buffer) as view:
            if crc32(view[4:end]) != crc:
                raise self._damaged("a frame does not match its checksum")
            data = bytes(view[FRAME.size : end])
        try:
            self._play(kind, data)
        except (msgspec.MsgspecError, BadSnapshot) as error:
            raise self._damaged(str(error)) from error
        self._consume(end)
        return True

    def _play(self, kind: int, data: bytes) -> None:
        """Take what a frame carries."""
        if (kind == HEADER_KIND) != (self.header is None):
            raise self._damaged("the header is not first")
        match kind:
            case 1:
                self.header = msgspec.msgpack.decode(data, type=SnapshotHeader)
            case 2:
                self._digester.feed(data)
                self._loader.feed(data)
                self._pieces_count += 1
            case 3:
                self._footer = msgspec.msgpack.decode(data, type=SnapshotFooter)
            case _:
                raise self._damaged(f"a frame is of the unknown kind {kind}")

    def _consume(self, count: int) -> None:
        """Go on behind the next `count` bytes."""
        del self._buffer[:count]
        self._offset += count

    def _damaged(self, why: str) -> Damaged:
        """Return the error that names this place."""
        return Damaged(self._name, self._offset, why)
