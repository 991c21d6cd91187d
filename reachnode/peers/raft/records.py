"""The bytes of a data directory: journal records, marks, votes and identities.

Journal, appended to and never overwritten, so that a torn tail is all that power loss
can leave:

    header   magic 8 | generation u64 | base index u64 | base term u64 | crc u32
    record   crc u32 | length u32 | kind u8 | index u64 | term u64 | synced u64 | payload

`synced` is the length of the file that was durable when the record was written. With
it, damage in what had been durable is told from a tail that never was: see `read_journal`.
The crc (CRC-32) covers all that follows it. Numbers are little-endian.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

import msgspec

from reachnode.peers.raft.disk import Note
from reachnode.peers.raft.opening import COMMAND_BYTES_MAX, Entry

MAGIC = b"RNJRNL\x00\x01"
HEADER = struct.Struct("<8sQQQI")
RECORD = struct.Struct("<IIBQQQ")
ENTRY_KIND, CUT_KIND = 1, 2
PAYLOAD_BYTES_MAX = COMMAND_BYTES_MAX + 4096
SCAN_BYTES_MAX = 1 << 22
"""How far behind a broken record a whole one is looked for."""


class Damaged(Exception):
    """What the disk holds isn't what was written: the node must not start.

    Args:
        name: The file.
        offset: Byte offset of the damage in it.
        why: What is wrong there.
    """

    def __init__(self, name: str, offset: int, why: str) -> None:
        super().__init__(f"{name} is damaged at byte {offset}: {why}")
        self.name = name
        self.offset = offset
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a journal is durable and committed, written beside it without a sync.

    It survives the process, not the power; after power loss it may be old, never ahead.
    """

    generation: int
    synced_bytes: int
    commit_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalImage:
    """A journal read back.

    `bytes_count` is the length of the whole part; what lay behind it was torn off.
    """

    generation: int
    base_index: int
    base_term: int
    entries: list[Entry]
    bytes_count: int
    torn_bytes: int


def pack_header(generation: int, base_index: int, base_term: int) -> bytes:
    """Return the first bytes of a journal."""
    body = struct.pack("<8sQQQ", MAGIC, generation, base_index, base_term)
    return body + crc32(body).to_bytes(4, "little")


def pack_record(kind: int, index: int, term: int, synced: int, payload: bytes) -> bytes:
    """Return the bytes of one record."""
    assert len(payload) <= PAYLOAD_BYTES_MAX
    body = struct.pack("<IBQQQ", len(payload), kind, index, term, synced) + payload
    return crc32(body).to_bytes(4, "little") + body


@dataclass(frozen=True, slots=True)
class _Record:
    kind: int
    index: int
    term: int
    synced: int
    payload: bytes
    bytes_count: int


def _record_at(data: bytes, offset: int) -> _Record | None:
    """Return the whole record at an offset, None if there is none."""
    if offset + RECORD.size > len(data):
        return None
    crc, length, kind, index, term, synced = RECORD.unpack_from(data, offset)
    if length > PAYLOAD_BYTES_MAX or kind not in (ENTRY_KIND, CUT_KIND):
        return None
    end = offset + RECORD.size + length
    if end > len(data) or crc32(memoryview(data)[offset + 4 : end]) != crc:
        return None
    payload = data[offset + RECORD.size : end]
    return _Record(kind, index, term, synced, payload, end - offset)


def read_journal(data: bytes, mark: Mark | None) -> JournalImage:
    """Return the entries of a journal, a torn tail cut off.

    A broken record is a torn tail only if nothing says that it had been durable: neither
    the mark, nor a whole record behind it that was written when it was.

    Raises:
        Damaged: The header or something durable is not as it was written.
    """
    if len(data) < HEADER.size:
        raise Damaged("journal", len(data), "the header is cut short")
    magic, generation, base_index, base_term, crc = HEADER.unpack_from(data)
    if magic != MAGIC or crc != crc32(data[: HEADER.size - 4]):
        raise Damaged("journal", 0, "the header does not match its checksum")
    synced = 0
    if mark is not None and mark.generation == generation:
        synced = mark.synced_bytes
    entries: list[Entry] = []
    offset = HEADER.size
    while (record := _record_at(data, offset)) is not None:
        _take(record, entries, base_index, base_term, offset)
        offset += record.bytes_count
    if offset < synced:
        what = "ends there" if offset == len(data) else "does not match its checksum there"
        raise Damaged("journal", offset, f"{synced} bytes had been made durable, but it {what}")
    for later in _records_behind(data, offset):
        if later.synced > offset:
            raise Damaged("journal", offset, "a record does not match its checksum")
    return JournalImage(
        generation=generation,
        base_index=base_index,
        base_term=base_term,
        entries=entries,
        bytes_count=offset,
        torn_bytes=len(data) - offset,
    )


def _take(
    record: _Record, entries: list[Entry], base_index: int, base_term: int, offset: int
) -> None:
    """Play one record, in place."""
    end, term = (entries[-1][1], entries[-1][2]) if entries else (base_index, base_term)
    if record.kind == CUT_KIND:
        if not base_index < record.index <= end:
            raise Damaged("journal", offset, f"a cut at {record.index} is outside the log")
        del entries[record.index - base_index - 1 :]
        return
    if record.index != end + 1 or record.term < term:
        raise Damaged("journal", offset, f"entry {record.index} follows entry {end}")
    entries.append((record.payload, record.index, record.term))


def _records_behind(data: bytes, offset: int) -> Iterator[_Record]:
    """Yield whole records anywhere behind a broken one, as far as it makes sense to look."""
    place = offset + 1
    stop = min(len(data) - RECORD.size, offset + SCAN_BYTES_MAX)
    while place <= stop:
        record = _record_at(data, place)
        if record is None:
            place += 1
        else:
            yield record
            place += record.bytes_count


_MARK = struct.Struct("<QQQI")


def pack_mark(mark: Mark) -> bytes:
    """Return the bytes of a mark, always of one length."""
    body = struct.pack("<QQQ", mark.generation, mark.synced_bytes, mark.commit_index)
    return body + crc32(body).to_bytes(4, "little")


def read_mark(data: bytes) -> Mark | None:
    """Return a mark, None if power was lost while it was written."""
    if len(data) != _MARK.size or crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    generation, synced, commit, _ = _MARK.unpack(data)
    return Mark(generation=generation, synced_bytes=synced, commit_index=commit)


class VoteRecord(msgspec.Struct, frozen=True, array_like=True):
    """What a disk must not forget about elections."""

    term: int
    voted_for: str | None
    notes: dict[str, tuple[int, str]]


def pack_vote(term: int, voted_for: str | None, notes: Mapping[str, Note]) -> bytes:
    """Return the bytes of the vote file."""
    flat = {member: (note.index, note.incarnation) for member, note in sorted(notes.items())}
    return seal(msgspec.msgpack.encode(VoteRecord(term, voted_for, flat)))


def read_vote(data: bytes) -> tuple[int, str | None, dict[str, Note]]:
    """Return term, vote and notes.

    Raises:
        Damaged: The checksum does not match.
    """
    try:
        record = msgspec.msgpack.decode(unseal("vote", data), type=VoteRecord)
    except msgspec.MsgspecError as error:
        raise Damaged("vote", 4, str(error)) from error
    notes = {member: Note(index, inc) for member, (index, inc) in record.notes.items()}
    return record.term, record.voted_for, notes


def seal(body: bytes) -> bytes:
    """Return a small file's bytes: checksum, then body."""
    return crc32(body).to_bytes(4, "little") + body


def unseal(name: str, data: bytes) -> bytes:
    """Return the body of a small file.

    Raises:
        Damaged: The checksum does not match.
    """
    if len(data) < 4 or crc32(data[4:]) != int.from_bytes(data[:4], "little"):
        raise Damaged(name, 0, "it does not match its checksum")
    return data[4:]
