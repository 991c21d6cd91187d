"""Writes on their way to the disk."""

import errno
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.disk import (
    AppendEntry,
    Condition,
    CutTail,
    Disk,
    Performed,
    ReadSnapshot,
    RewriteJournal,
    SealSnapshot,
    Write,
    WriteIdentity,
    WriteSnapshot,
    WriteVote,
    is_of_journal,
)
from reachnode.peers.raft.opening import REGULAR

VOTE = WriteVote(term=1, voted_for=None, notes={})
FULL = OSError(errno.ENOSPC, "no space")
BROKEN = OSError(errno.EIO, "broken")
REWRITE = RewriteJournal(base_index=1, base_term=0, entries=((REGULAR, 2, 1),))


def append(index: int) -> AppendEntry:
    """Return an entry's write."""
    return AppendEntry((REGULAR, index, 1))


@dataclass(slots=True)
class Shadow:
    """A disk and, beside it, which numbers really were performed or made up for."""

    disk: Disk = field(default_factory=Disk)
    waiting: list[tuple[int, Write]] = field(default_factory=list)
    """Every write with the lowest number that must not count as done before it is."""
    taken: int = 0

    def submit(self, write: Write) -> None:
        """Queue a write."""
        self.waiting.append((self.disk.submit(write), write))

    def take(self) -> None:
        """Let the worker take what waits."""
        writes = self.disk.take(0.0)
        assert list(writes) == [write for _, write in self.waiting]
        self.taken = len(writes)

    def settle(self, count: int, *, error: OSError | None, suspect: bool) -> None:
        """Let the worker report."""
        count = min(count, self.taken)
        del self.waiting[:count]
        self.taken = 0
        is_append = bool(self.waiting) and is_of_journal(self.waiting[0][1])
        suspect = suspect and error is not None and is_append
        self.disk.settle(Performed(count=count, error=error, is_journal_suspect=suspect))

    def rewrite(self) -> None:
        """Write the journal anew, if it is suspect; it stands for all of its writes."""
        if not self.disk.is_journal_suspect:
            return
        self.disk.rewrite(REWRITE)
        journal = [number for number, write in self.waiting if is_of_journal(write)]
        image = max([number for number, write in self.waiting if write is REWRITE], default=0)
        others = [(number, write) for number, write in self.waiting if not is_of_journal(write)]
        self.waiting = [
            *[pair for pair in others if pair[0] < journal[0]],
            *[(journal[0], write) for number, write in others if journal[0] < number < image],
            (journal[0], REWRITE),
            *[pair for pair in others if pair[0] > max(image, journal[0])],
        ]
        self.taken = 0

    def check(self) -> None:
        """Nothing that waits counts as done, and nothing done is waited for."""
        lowest = min([number for number, _ in self.waiting], default=self.disk.newest + 1)
        assert self.disk.done == lowest - 1
        assert self.disk.is_idle == (not self.waiting)
        assert self.disk.bytes_waiting >= 64 * len(self.waiting)
        if self.disk.is_idle:
            assert self.disk.bytes_waiting == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "cut", "vote", "image", "take", "settle", "rewrite"]),
            st.integers(0, 6),
            st.sampled_from([None, None, FULL, BROKEN]),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_done_never_passes_a_write_that_was_not_performed(
    steps: list[tuple[str, int, OSError | None, bool]],
) -> None:
    """In any order of submitting, taking, settling and writing anew."""
    shadow = Shadow()
    index = 1
    for kind, count, error, suspect in steps:
        match kind:
            case "append":
                index += 1
                shadow.submit(append(index))
            case "cut":
                shadow.submit(CutTail(index))
            case "vote":
                shadow.submit(VOTE)
            case "image":
                shadow.submit(REWRITE)
            case "take":
                shadow.take()
            case "settle":
                shadow.settle(count, error=error, suspect=suspect)
                shadow.rewrite()
            case _:
                shadow.rewrite()
        shadow.check()


def test_writes_are_numbered_and_told_of() -> None:
    """Numbers count up from one, and whoever performs is woken for each."""
    disk = Disk()
    kicks: deque[int] = deque()
    disk.kick = lambda: kicks.append(disk.newest)
    assert [disk.submit(append(2)), disk.submit(VOTE)] == [1, 2]
    assert list(kicks) == [1, 2]
    assert disk.done == 0


def test_what_failed_stays_queued_and_says_how_the_disk_is() -> None:
    """A full disk and a broken one are told apart; a later success ends either."""
    disk = Disk()
    for write in (append(2), append(3), append(4)):
        disk.submit(write)
    disk.take(0.0)
    disk.settle(Performed(count=1, error=FULL))
    assert (disk.done, disk.condition, disk.error) == (1, Condition.FULL, FULL)
    assert disk.take(0.0) == (append(3), append(4))
    disk.settle(Performed(count=0, error=BROKEN, is_journal_suspect=True))
    assert (disk.done, disk.condition, disk.is_journal_suspect) == (1, Condition.FAILED, True)
    disk.rewrite(REWRITE)
    assert disk.take(0.0) == (REWRITE,)
    disk.settle(Performed(count=1))
    assert (disk.done, disk.condition, disk.error) == (3, Condition.OK, None)


def test_a_journal_written_anew_keeps_the_order_of_the_rest() -> None:
    """It stands where the first of its writes stood; what is not the journal's stays."""
    disk = Disk()
    disk.submit(VOTE)
    disk.submit(append(2))
    disk.submit(VOTE)
    disk.submit(CutTail(2))
    disk.settle(Performed(count=0, error=BROKEN, is_journal_suspect=True))
    kicks: list[int] = []
    disk.kick = lambda: kicks.append(disk.newest)
    disk.rewrite(REWRITE)
    assert kicks == [4], "there is something to do"
    assert disk.take(0.0) == (VOTE, REWRITE, VOTE)
    assert not disk.is_journal_suspect
    disk.settle(Performed(count=2))
    assert disk.done == 2


def test_a_journal_written_anew_stays_behind_the_snapshot_it_begins_at() -> None:
    """Alone it would begin behind what the disk holds; and none of its writes counts before."""
    disk = Disk()
    seal = SealSnapshot(name="snapshot.in", index=9)
    for write in (append(2), seal, REWRITE, append(3), VOTE):
        disk.submit(write)
    disk.settle(Performed(count=0, error=BROKEN, is_journal_suspect=True))
    disk.rewrite(REWRITE)
    assert disk.take(0.0) == (seal, REWRITE, VOTE)
    disk.settle(Performed(count=1))
    assert disk.done == 0
    disk.settle(Performed(count=1))
    assert disk.done == 4


def test_a_journal_is_suspect_only_by_a_write_that_waits() -> None:
    """Writing it anew without one is a mistake of ours."""
    with pytest.raises(AssertionError):
        Disk().rewrite(REWRITE)


def test_a_stall_is_counted_from_the_first_taking() -> None:
    """Taking again doesn't shorten it, settling ends it, and an idle disk never stalls."""
    disk = Disk()
    disk.take(1.0)
    assert disk.stalled_seconds(9.0) == 0
    disk.submit(VOTE)
    assert disk.stalled_seconds(9.0) == 0, "nobody has begun"
    disk.take(10.0)
    disk.take(11.0)
    assert disk.stalled_seconds(12.5) == pytest.approx(2.5)
    disk.settle(Performed(count=1))
    assert disk.stalled_seconds(13.0) == 0


def test_the_commit_index_is_that_of_the_first_taking() -> None:
    """It speaks of a log that is on disk once these writes are: a later one may not be."""
    disk = Disk()
    commits = iter([5, 9])
    disk.committed = lambda: next(commits)
    disk.submit(VOTE)
    disk.take(0.0)
    disk.take(0.0)
    assert disk.commit_index == 5
    disk.settle(Performed(count=1))
    disk.submit(VOTE)
    disk.take(0.0)
    assert disk.commit_index == 9


def test_what_was_read_is_handed_out() -> None:
    """Each reader gets its own, the one whose file is gone nothing."""
    got: list[bytes | None] = []
    read = ReadSnapshot(index=5, offset=0, count=9, deliver=got.append)
    disk = Disk()
    disk.submit(read)
    disk.submit(read)
    disk.settle(Performed(count=2, reads=((read, b"abc"), (read, None))))
    assert got == [b"abc", None]


def test_a_lone_voter_performs_inside_the_call() -> None:
    """The write is durable before `submit` returns; while the disk refuses, it queues."""
    performed: list[tuple[Write, ...]] = []
    errors: deque[OSError | None] = deque([None, FULL])

    def perform(writes: Sequence[Write], commit_index: int) -> Performed:
        assert commit_index == 7
        performed.append(tuple(writes))
        error = errors.popleft() if errors else None
        return Performed(count=0 if error else len(writes), error=error)

    kicks: list[int] = []
    disk = Disk(perform)
    disk.committed = lambda: 7
    disk.kick = lambda: kicks.append(disk.newest)
    assert disk.submit(append(2)) == disk.done == 1
    disk.submit(append(3))
    assert (disk.done, disk.condition) == (1, Condition.FULL)
    disk.submit(append(4))
    assert performed == [(append(2),), (append(3),)]
    assert kicks == [2, 3], "the worker tries again, whether or not there is more to write"
    disk.settle(perform(disk.take(0.0), disk.commit_index))
    assert disk.done == 3
    disk.submit(append(5))
    assert disk.done == 4


def test_nothing_is_performed_in_the_call_while_the_worker_performs() -> None:
    """Two at once would write the same twice; once it has settled, calls are enough again."""
    performed: list[int] = []

    def perform(writes: Sequence[Write], _: int) -> Performed:
        performed.append(len(writes))
        return Performed(count=len(writes))

    disk = Disk(perform)
    disk.settle(Performed(count=0, error=FULL))
    disk.submit(append(2))
    disk.settle(Performed(count=0))
    disk.take(0.0)
    disk.submit(append(3))
    assert performed == []
    disk.settle(Performed(count=1))
    disk.submit(append(4))
    assert performed == [2]
    assert disk.done == 3


def test_what_waits_is_weighed() -> None:
    """Commands and pieces of snapshots count by their bytes, everything a little."""
    disk = Disk()
    big = bytes(1000)
    disk.submit(AppendEntry((big, 2, 1)))
    disk.submit(RewriteJournal(base_index=1, base_term=0, entries=((big, 2, 1), (big, 3, 1))))
    disk.submit(WriteSnapshot(name="s", offset=0, data=big))
    assert disk.bytes_waiting == 4 * 1064
    disk.submit(WriteIdentity(big))
    disk.submit(SealSnapshot(name="s", index=1))
    assert disk.bytes_waiting == 4 * 1064 + 2 * 64
    disk.settle(Performed(count=5))
    assert disk.bytes_waiting == 0
