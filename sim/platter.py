"""The content of one pretend file: what a reader sees, and what a power cut leaves of it.

Each unsynced change holds only the bytes it replaced, so an append costs the same however
long the file is, a sync forgets a list, and what is durable is found by undoing. Names,
faults and the directory are in `sim.disk`.
"""

import random
from dataclasses import dataclass

Change = tuple[int, int, bytes]
"""Offset, bytes that now stand there, and the bytes that stood there before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cruelty:
    """How badly a power cut treats what was not synced. The default is the worst."""

    contents_lost: bool = True
    """Unsynced content may be lost; else all of it survives."""

    names_lost: bool = True
    """Unsynced creations, renamings and removals may be lost; else all survive."""

    nothing_share: float = 0.3
    """How often a file, or the directory, keeps none of its unsynced changes; 0 to 1."""

    everything_share: float = 0.2
    """How often it keeps all of them; 0 to 1. Otherwise a prefix of any length."""

    torn_share: float = 0.5
    """How often the first lost change leaves some of its first bytes; 0 to 1."""

    scattered_share: float = 0.3
    """How often each sector of a file keeps its own age instead of a prefix; 0 to 1."""

    has_holes: bool = True
    """A scattered file may be long and yet hold zeros where nothing durable stood."""

    sector_bytes: int = 512
    """What reaches the disk whole or not at all."""

    def __post_init__(self) -> None:
        assert self.nothing_share + self.everything_share <= 1


CRUEL = Cruelty()
"""The worst that is played."""

GENTLE = Cruelty(contents_lost=False, names_lost=False)
"""A machine whose battery flushes every cache: nothing is lost."""


class Content:
    """The bytes of one file, whatever it is called."""

    __slots__ = ("cache", "platter", "unsynced")

    def __init__(self, cache: bytes | bytearray = b"") -> None:
        self.cache = bytearray(cache)
        self.unsynced: list[Change] = []
        # Only after a failed sync: the durable bytes, which the cache no longer tells.
        self.platter: bytearray | None = None

    def put(self, offset: int, data: bytes) -> None:
        """Write `data` at `offset`; a gap before it reads as zeros."""
        cache, size = self.cache, len(self.cache)
        if offset == size:
            self.unsynced.append((size, len(data), b""))
            cache += data
        elif offset < size:
            end = offset + len(data)
            self.unsynced.append((offset, len(data), bytes(cache[offset:end])))
            cache[offset:end] = data
        else:
            self.put(size, bytes(offset - size) + data)

    def resize(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        old_size = len(self.cache)
        if size > old_size:
            self.put(old_size, bytes(size - old_size))
        elif size < old_size:
            self.unsynced.append((size, 0, bytes(self.cache[size:])))
            del self.cache[size:]

    def sync(self) -> None:
        """Make durable what was written since the last sync, and nothing older."""
        if self.platter is not None:
            platter = self.rebased()
            self.platter = None if platter.cache == self.cache else platter.cache
        self.unsynced.clear()

    def fail_sync(self) -> None:
        """Forget that the unsynced changes are dirty, as the kernel does after an I/O error."""
        self.platter = self.durable()
        self.unsynced.clear()

    def durable(self) -> bytearray:
        """Return the bytes that no power cut can take."""
        if self.platter is not None:
            return bytearray(self.platter)
        image = bytearray(self.cache)
        for change in reversed(self.unsynced):
            undo(image, change)
        return image

    def rebased(self) -> "Content":
        """Return the unsynced changes made upon what is really on the platter."""
        assert self.platter is not None
        image, calls = bytearray(self.cache), []
        for change in reversed(self.unsynced):
            offset, length, _ = change
            calls.append((offset, bytes(image[offset : offset + length]), len(image)))
            undo(image, change)
        based = Content(self.platter)
        for offset, data, size in reversed(calls):
            based.resize(size)
            if data:
                based.put(offset, data)
        return based

    def lose_power(self, draw: random.Random, cruelty: Cruelty) -> None:
        """Keep what a power cut leaves; all of it is durable afterwards."""
        if self.platter is not None:
            based = self.rebased()
            self.cache, self.unsynced, self.platter = based.cache, based.unsynced, None
        if self.unsynced and cruelty.contents_lost:
            if draw.random() < cruelty.scattered_share:
                self.cache = scattered(self, draw, cruelty)
            else:
                self._keep_prefix(draw, cruelty)
        self.unsynced.clear()

    def _keep_prefix(self, draw: random.Random, cruelty: Cruelty) -> None:
        """Keep the first changes, and perhaps some bytes of the next one."""
        keep = prefix(len(self.unsynced), draw, cruelty)
        torn, new = keep < len(self.unsynced) and draw.random() < cruelty.torn_share, b""
        for change in reversed(self.unsynced[keep:]):
            new = bytes(self.cache[change[0] : change[0] + change[1]])
            undo(self.cache, change)
        if torn:
            offset, length, old = self.unsynced[keep]
            count = draw.randint(0, length)
            self.cache[offset : offset + min(count, len(old))] = new[:count]

    def flip(self, offset: int, bit: int) -> None:
        """Turn one bit over in every copy of a byte, old or new."""
        mask = 1 << bit
        for image in (self.cache, self.platter):
            if image is not None and offset < len(image):
                image[offset] ^= mask
        for place, (start, length, old) in enumerate(self.unsynced):
            if start <= offset < start + len(old):
                other = bytearray(old)
                other[offset - start] ^= mask
                self.unsynced[place] = (start, length, bytes(other))


def undo(image: bytearray, change: Change) -> None:
    """Take back the latest change of an image."""
    offset, length, old = change
    image[offset : offset + length] = old


def prefix(count: int, draw: random.Random, cruelty: Cruelty) -> int:
    """Return how many of `count` changes, in order, outlive the power; 0 to `count`."""
    chance = draw.random()
    if chance < cruelty.nothing_share:
        return 0
    if chance < cruelty.nothing_share + cruelty.everything_share:
        return count
    return draw.randint(0, count)


def scattered(content: Content, draw: random.Random, cruelty: Cruelty) -> bytearray:
    """Return a file whose unsynced sectors each stem from a moment of their own.

    Pages reach the disk in any order, and so does the length of the file: later bytes may
    be there while earlier ones are zero. What was durable and untouched stays as it was.
    """
    changes, unit, count = content.unsynced, cruelty.sector_bytes, len(content.unsynced)
    sizes = [len(content.cache)]
    for _, length, old in reversed(changes):
        sizes.append(sizes[-1] - length + len(old))
    low, high = min(sizes), max(sizes)
    chosen: dict[int, list[int]] = {}  # sectors by the number of changes they have seen
    shortest = count - sizes.index(low)
    first = min(change[0] for change in changes) // unit
    for sector in range(first, -(-high // unit)):
        age = draw.choice((0, shortest, draw.randint(0, count), count))
        if not cruelty.has_holes and (sector + 1) * unit > low:
            age = count
        chosen.setdefault(age, []).append(sector)
    size = draw.choice((draw.choice(sizes), draw.randint(low, high)))
    image, pieces = bytearray(content.cache), {}
    for age in range(count, -1, -1):
        for sector in chosen.get(age, ()):
            pieces[sector] = bytes(image[sector * unit : (sector + 1) * unit])
        if age:
            undo(image, changes[age - 1])
    result = image[: first * unit]
    for sector in sorted(pieces):
        # A sector that the file did not reach at its age was never written: zeros.
        result += pieces[sector].ljust(unit, b"\0")
    return result[:size]
