"""Reading a data directory at start: all of it, or a clear refusal.

What was durable is either there as it was written, or the node does not start (`Damaged`).
What power loss may leave is left out: a torn tail, unfinished files, a journal that a newer
snapshot has overruled. The journal is written anew when the node begins (`journal.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from reachnode.peers.raft.disk import Note
from reachnode.peers.raft.identity import Identity, read_identity
from reachnode.peers.raft.opening import Entry
from reachnode.peers.raft.records import Damaged, JournalImage, read_journal, read_mark, read_vote
from reachnode.peers.raft.snapshot import SnapshotHeader, SnapshotReader
from reachnode.peers.raft.storage import (
    IDENTITY,
    JOURNAL,
    MARK,
    UNFINISHED_SUFFIXES,
    VOTE,
    snapshot_indexes,
    snapshot_name,
)
from reachnode.registry.state import State
from reachnode.world.files import Files

READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a data directory held. `snapshot` is (index, term, state), or None at the start."""

    identity: Identity | None
    term: int = 0
    voted_for: str | None = None
    notes: Mapping[str, Note]
    snapshot: tuple[int, int, State] | None = None
    base: tuple[int, int] = (1, 0)
    entries: tuple[Entry, ...] = ()
    commit_index: int = 1
    generation: int = 0
    journal_bytes: int = 0
    torn_bytes: int = 0


def load(files: Files) -> Loaded:
    """Return what the directory holds, without what power loss may have torn.

    Raises:
        Damaged: Something durable is missing or not as it was written.
        OSError: The directory can't be read.
    """
    present = files.names()
    for name in present:
        if name.endswith(UNFINISHED_SUFFIXES):
            files.remove(name)
    names = [name for name in present if not name.endswith(UNFINISHED_SUFFIXES)]
    if IDENTITY not in names:
        if names and names != [MARK]:
            raise Damaged(IDENTITY, 0, f"it is missing, though there is {names[0]}")
        return Loaded(identity=None, notes={})
    identity = read_identity(files.read(IDENTITY))
    if not identity.cluster_id:
        return Loaded(identity=identity, notes={})
    for name in (VOTE, JOURNAL):
        if name not in names:
            raise Damaged(name, 0, "it is missing, though this disk belongs to a cluster")
    term, voted_for, notes = read_vote(files.read(VOTE))
    mark = read_mark(files.read(MARK)) if MARK in names else None
    image = read_journal(files.read(JOURNAL), mark)
    snapshot = _newest_snapshot(files, names)
    base, entries = _behind_snapshot(image, snapshot)
    floor = snapshot[0] if snapshot is not None else base[0]
    end = entries[-1][1] if entries else base[0]
    hint = mark.commit_index if mark is not None and mark.generation == image.generation else 0
    return Loaded(
        identity=identity,
        term=term,
        voted_for=voted_for,
        notes=notes,
        snapshot=snapshot,
        base=base,
        entries=entries,
        commit_index=max(floor, min(hint, end)),
        generation=image.generation,
        journal_bytes=image.bytes_count,
        torn_bytes=image.torn_bytes,
    )


def _newest_snapshot(files: Files, names: list[str]) -> tuple[int, int, State] | None:
    """Return index, term and state of the newest snapshot.

    An older one beside it is only the remainder of an interrupted removal; the newest was
    durable before it got its name, so if it is damaged no older one may take its place.
    """
    indexes = snapshot_indexes(names)
    if not indexes:
        return None
    header, state, _ = read_snapshot(files, indexes[-1])
    return header.index, header.term, state


def read_snapshot(files: Files, index: int) -> tuple[SnapshotHeader, State, str]:
    """Return header, state and digest of a snapshot.

    Raises:
        Damaged: It is not as it was written.
    """
    name = snapshot_name(index)
    reader = SnapshotReader(name)
    offset = 0
    while data := files.read(name, offset, READ_BYTES):
        reader.feed(data)
        offset += len(data)
    header, state, digest = reader.finish()
    if header.index != index:
        raise Damaged(name, 8, f"it is of index {header.index}")
    return header, state, digest


def _behind_snapshot(
    image: JournalImage, snapshot: tuple[int, int, State] | None
) -> tuple[tuple[int, int], tuple[Entry, ...]]:
    """Return base and entries of a journal that goes with a snapshot.

    A crash can fall between a snapshot and the journal that relies on it: then the journal
    holds entries that the snapshot covers, or, after one was received, others that it has
    overruled.
    """
    base = (image.base_index, image.base_term)
    if snapshot is None:
        if image.base_index > 1:
            raise Damaged(JOURNAL, 16, f"it begins at {image.base_index}, with no snapshot")
        return base, tuple(image.entries)
    index, term, _ = snapshot
    if image.base_index > index:
        raise Damaged(JOURNAL, 16, f"it begins at {image.base_index}, behind snapshot {index}")
    terms = {base[0]: base[1]} | {entry[1]: entry[2] for entry in image.entries}
    if terms.get(index) == term:
        return base, tuple(image.entries)
    return (index, term), ()
