"""Writes on their way to the disk, each with a number, and when they are known to be there.

Nothing here touches a file. The loop submits writes; the disk worker takes all that
queued, performs them (`storage.py`) and reports. A write is durable once `done` has
reached its number. Numbers are compared, never log indexes: a replaced tail uses the
same indexes again.

    submit -> queue -> take -> (worker: perform, sync) -> settle -> done
                         ^                                   |
                         +----- what failed stays queued ----+
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from reachnode.peers.raft.opening import Entry
from reachnode.world.files import FULL_ERRNOS


@dataclass(frozen=True, slots=True)
class AppendEntry:
    """Add an entry at the end of the journal."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class CutTail:
    """Take back the entries from `index` on."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteJournal:
    """Replace the journal in one step."""

    base_index: int
    base_term: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """An admission a disk remembers: see `identity.py`."""

    index: int
    incarnation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteVote:
    """Remember the term, the vote in it, and the admissions noted so far."""

    term: int
    voted_for: str | None
    notes: Mapping[str, Note]


@dataclass(frozen=True, slots=True)
class WriteIdentity:
    """Remember who this disk is; the bytes are `identity.py`'s."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSnapshot:
    """Write a piece of a snapshot in progress."""

    name: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SealSnapshot:
    """Make a finished snapshot the newest one; older ones go."""

    name: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSnapshot:
    """Read a piece of a sealed snapshot; `deliver` gets None when it is gone, or bad."""

    index: int
    offset: int
    count: int
    deliver: Callable[[bytes | None], None]


Write = (
    AppendEntry
    | CutTail
    | RewriteJournal
    | WriteVote
    | WriteIdentity
    | WriteSnapshot
    | SealSnapshot
    | ReadSnapshot
)


class Condition(Enum):
    """How the disk is."""

    OK = "ok"
    FULL = "full"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed:
    """What the disk worker achieved.

    `count` writes are durable. With an `error` the next one could not be made; with
    `is_journal_suspect` nobody knows what the journal's file holds.
    """

    count: int
    reads: tuple[tuple[ReadSnapshot, bytes | None], ...] = ()
    error: OSError | None = None
    is_journal_suspect: bool = False


class Disk:
    """The queue between the loop and the disk worker.

    Args:
        perform_now: For a cluster of one voter: performs writes and syncs them inside
            `submit`, since the engine commits in the very next tick (B22).
    """

    def __init__(
        self, perform_now: Callable[[Sequence[Write], int], Performed] | None = None
    ) -> None:
        self.newest = 0
        self.done = 0
        self.condition = Condition.OK
        self.error: OSError | None = None
        self.is_journal_suspect = False
        self.kick: Callable[[], None] = lambda: None
        """Called when there is something to take."""
        self.committed: Callable[[], int] = lambda: 0
        """Returns the commit index; asked when writes are taken."""
        self.commit_index = 0
        """The commit index when the writes were taken that are being performed."""
        self.bytes_waiting = 0
        self._perform_now = perform_now
        self._queue: list[tuple[int, Write]] = []
        self._taken_at: float | None = None

    def submit(self, write: Write) -> int:
        """Queue a write and return its number."""
        self.newest += 1
        self._queue.append((self.newest, write))
        self.bytes_waiting += weight(write)
        is_free = self._taken_at is None and self.condition is Condition.OK
        if self._perform_now is not None and is_free:
            waiting = [write for _, write in self._queue]
            self.settle(self._perform_now(waiting, self.committed()))
        if self._queue:
            self.kick()  # Also where the call failed: from now on the worker tries again.
        return self.newest

    def take(self, now: float) -> tuple[Write, ...]:
        """Return all that waits, oldest first; it stays queued until `settle`.

        Args:
            now: Seconds on the monotonic clock, from which a stalled disk is told.
        """
        if self._queue and self._taken_at is None:
            self._taken_at = now
            self.commit_index = self.committed()
        return tuple(write for _, write in self._queue)

    def settle(self, performed: Performed) -> None:
        """Record what became of the writes that were taken, and hand out what was read."""
        assert performed.count <= len(self._queue)
        settled = self._queue[: performed.count]
        del self._queue[: performed.count]
        self.done = self._queue[0][0] - 1 if self._queue else self.newest
        self.bytes_waiting -= sum(weight(write) for _, write in settled)
        self._taken_at = None
        self.error = performed.error
        self.condition = condition_of(performed.error)
        self.is_journal_suspect = self.is_journal_suspect or performed.is_journal_suspect
        for read, data in performed.reads:
            read.deliver(data)

    def rewrite(self, write: RewriteJournal) -> None:
        """Queue the whole journal anew, in place of its queued writes.

        After a failed sync nobody knows what the file holds, and syncing it again would
        only claim success; so it is written afresh from memory. If that begins at a snapshot
        that is still queued, it stays behind it.
        """
        places = [i for i, (_, item) in enumerate(self._queue) if is_of_journal(item)]
        assert places, "a journal becomes suspect by a write that is still queued"
        first, place = places[0], places[0]
        for i in places:
            if isinstance(self._queue[i][1], RewriteJournal):
                place = i
        # All up to it takes the number of the first, so that `done` passes none of the
        # dropped ones before it is performed.
        number = self._queue[first][0]
        sooner = [(number, item) for _, item in self._queue[first:place] if not is_of_journal(item)]
        later = [item for item in self._queue[place:] if not is_of_journal(item[1])]
        self._queue[first:] = [*sooner, (number, write), *later]
        self.is_journal_suspect = False
        self.bytes_waiting = sum(weight(item) for _, item in self._queue)
        self.kick()

    def stalled_seconds(self, now: float) -> float:
        """Return for how long the worker has been at the same writes; 0 when it is idle."""
        return 0.0 if self._taken_at is None else now - self._taken_at

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return not self._queue


def is_of_journal(write: Write) -> bool:
    """Return whether a write changes the journal."""
    return isinstance(write, AppendEntry | CutTail | RewriteJournal)


def condition_of(error: OSError | None) -> Condition:
    """Return how the disk is, judged by the last error."""
    if error is None:
        return Condition.OK
    return Condition.FULL if error.errno in FULL_ERRNOS else Condition.FAILED


def weight(write: Write) -> int:
    """Return roughly how many bytes a write holds in memory."""
    match write:
        case AppendEntry(entry):
            return len(entry[0]) + 64
        case RewriteJournal():
            return sum(len(entry[0]) + 64 for entry in write.entries)
        case WriteSnapshot():
            return len(write.data) + 64
        case _:
            return 64
