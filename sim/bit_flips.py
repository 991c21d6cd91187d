"""Single bits turned over in a directory at rest: refused by name and place, never believed.

    identity, vote, newest snapshot    refused
    journal                            refused, as far as it is known to be durable
    mark                               harmless: it says nothing then

How far the journal is durable is said by the mark and by the journal's own records. After a
power loss the mark may be gone; then a flip in the last batch can't be told from a tail that
was torn off, and is cut like one.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reachnode.peers.raft.loading import Loaded, load
from reachnode.peers.raft.records import HEADER, RECORD, Damaged
from reachnode.peers.raft.snapshot import FRAME, MAGIC
from reachnode.peers.raft.storage import (
    IDENTITY,
    JOURNAL,
    MARK,
    VOTE,
    snapshot_indexes,
    snapshot_name,
)
from sim.disk import FakeFiles, Image

NO_MARK_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Bytes of one file that mean one thing."""

    name: str
    start: int
    end: int
    record: int | None = None
    """Where the record begins that they are of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """One bit of a directory."""

    region: Region
    offset: int
    bit: int
    has_mark: bool
    """Whether the mark is there; a power loss may have taken it."""


def regions(image: Image) -> list[Region]:
    """Return the parts of a directory that belongs to a cluster."""
    found = [Region(name=MARK, start=0, end=len(image[MARK]))]
    for name in (IDENTITY, VOTE):
        found += _split(name, 0, 4, len(image[name]))
    found.append(Region(name=JOURNAL, start=0, end=HEADER.size))
    for start, end, _ in _records(image[JOURNAL]):
        pieces = _split(JOURNAL, start, RECORD.size, end)
        found += [replace(piece, record=start) for piece in pieces]
    if indexes := snapshot_indexes(list(image)):
        name = snapshot_name(indexes[-1])
        found.append(Region(name=name, start=0, end=len(MAGIC)))
        for start, end in _frames(image[name]):
            found += _split(name, start, FRAME.size, end)
    return found


def draw_flips(image: Image, draw: random.Random, count: int) -> list[Flip]:
    """Return flips, as many in each region of a directory, however small it is."""
    choices = regions(image)
    flips = []
    for _ in range(count):
        region = draw.choice(choices)
        offset = draw.randrange(region.start, region.end)
        has_mark = region.name == MARK or draw.random() >= NO_MARK_SHARE
        bit = draw.randrange(8)
        flips.append(Flip(region=region, offset=offset, bit=bit, has_mark=has_mark))
    return flips


def flip_fault(image: Image, flip: Flip) -> str | None:
    """Return what is wrong with how a flip is met, None if all is well."""
    files = FakeFiles()
    files.restore(image if flip.has_mark else without_mark(image))
    files.flip(flip.region.name, flip.offset, flip.bit)
    try:
        loaded = load(files)
    except Damaged as damage:
        if flip.region.name == MARK:
            return f"a flipped mark is refused: {damage}"
        if damage.name != flip.region.name or damage.offset > flip.offset:
            return f"{flip.region.name} byte {flip.offset} was flipped, refused was: {damage}"
        return None
    if _is_harmless(image, flip, loaded):
        return None
    return f"{flip.region.name} byte {flip.offset} bit {flip.bit} was flipped and is believed"


def without_mark(image: Image) -> Image:
    """Return a directory whose mark was lost."""
    return {name: data for name, data in image.items() if name != MARK}


def _is_harmless(image: Image, flip: Flip, loaded: Loaded) -> bool:
    """Return whether a flip may be met with what was loaded."""
    files = FakeFiles()
    files.restore(image)
    if flip.region.name == MARK:
        whole = load(files)
        return replace(loaded, commit_index=0) == replace(whole, commit_index=0)
    start = flip.region.record
    if start is None or flip.has_mark:
        return False
    if any(synced > start for at, _, synced in _records(image[JOURNAL]) if at > start):
        return False
    files.truncate(JOURNAL, start)
    files.remove(MARK)
    torn = len(image[JOURNAL]) - start
    return loaded == replace(load(files), torn_bytes=torn)


def _split(name: str, start: int, head: int, end: int) -> list[Region]:
    """Return the head and the rest of something, unless there is no rest."""
    middle = start + head
    found = [Region(name=name, start=start, end=middle)]
    return [*found, Region(name=name, start=middle, end=end)] if middle < end else found


def _records(journal: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where each record of a good journal begins and ends, and what it says is durable."""
    start = HEADER.size
    while start < len(journal):
        _, length, _, _, _, synced = RECORD.unpack_from(journal, start)
        yield start, start + RECORD.size + length, synced
        start += RECORD.size + length


def _frames(snapshot: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each frame of a good snapshot begins and ends."""
    start = len(MAGIC)
    while start < len(snapshot):
        _, length, _ = FRAME.unpack_from(snapshot, start)
        yield start, start + FRAME.size + length
        start += FRAME.size + length
