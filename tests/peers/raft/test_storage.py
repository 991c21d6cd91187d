"""Writes performed on a pretend disk that fills up, fails and loses power."""

import errno
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.disk import (
    AppendEntry,
    CutTail,
    Disk,
    Note,
    Performed,
    ReadSnapshot,
    RewriteJournal,
    SealSnapshot,
    Write,
    WriteIdentity,
    WriteSnapshot,
    WriteVote,
)
from reachnode.peers.raft.opening import REGULAR
from reachnode.peers.raft.records import JournalImage, read_journal, read_mark, read_vote
from reachnode.peers.raft.storage import (
    JOURNAL,
    MARK,
    VOTE,
    Storage,
    snapshot_indexes,
    snapshot_name,
)
from sim.disk import CrashNow, FakeFiles
from tests.peers.raft.journals import Log, Step, steps

EMPTY = RewriteJournal(base_index=1, base_term=0, entries=())
A_VOTE = WriteVote(term=1, voted_for="n1", notes={})


def begun() -> tuple[FakeFiles, Storage]:
    """Return a directory with an empty journal and a vote, and who writes it."""
    files = FakeFiles()
    storage = Storage(files)
    assert storage.perform((EMPTY, A_VOTE)) == Performed(count=2)
    return files, storage


def image_of(files: FakeFiles) -> JournalImage:
    """Return the journal as the next process reads it."""
    return read_journal(files.read(JOURNAL), read_mark(files.read(MARK)))


def entry(index: int, term: int = 1, command: bytes = REGULAR) -> AppendEntry:
    """Return an entry's write."""
    return AppendEntry((command, index, term))


def snapshot_of(index: int, data: bytes = b"snap") -> tuple[Write, Write]:
    """Return the writes of a small snapshot."""
    write = WriteSnapshot(name="snapshot.new", offset=0, data=data)
    return write, SealSnapshot(name="snapshot.new", index=index)


@given(steps, st.lists(st.integers(1, 5), max_size=16), st.booleans())
def test_any_sequence_is_read_back(drawn: list[Step], batches: list[int], power: bool) -> None:
    """Appends, cuts and rewrites in batches of any size: after each batch all of it is there.

    With the power gone as well, since nothing was reported that was not synced.
    """
    files, storage = begun()
    log = Log()
    sizes = iter(batches)
    left = list(drawn)
    while left:
        count = next(sizes, len(left))
        batch, left = left[:count], left[count:]
        writes = [write for step in batch if (write := log.play(step)) is not None]
        assert storage.perform(writes) == Performed(count=len(writes))
        if power:
            files.power_loss(random.Random(len(left)))
        image = read_journal(files.read(JOURNAL), None)
        assert image.entries == log.entries
        assert (image.base_index, image.base_term) == log.base
        assert image.bytes_count == storage.journal_bytes
        assert storage.generation == image.generation


@given(
    drawn=steps,
    before=st.integers(0, 30),
    part=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_a_crash_keeps_what_was_reported(
    drawn: list[Step], before: int, part: float, seed: int
) -> None:
    """Power lost in any call of any batch: all that had been performed is there.

    Of the batch under way there is a beginning: the log is one that the steps passed.
    """
    files, storage = begun()
    log = Log()
    passed = [(log.base, tuple(log.entries))]
    reported = 0
    files.fail_after(before, part=part)
    try:
        for start in range(0, len(drawn), 3):
            writes = []
            for step in drawn[start : start + 3]:
                write = log.play(step)
                if write is not None:
                    writes.append(write)
                    passed.append((log.base, tuple(log.entries)))
            storage.perform(writes)
            reported = len(passed) - 1
    except CrashNow:
        pass
    files.power_loss(random.Random(seed))
    image = image_of(files)
    found = ((image.base_index, image.base_term), tuple(image.entries))
    assert found in passed[reported:]


def test_entries_that_follow_each_other_share_a_sync() -> None:
    """And so do votes, of which the last holds."""
    files, storage = begun()
    before = files.operations
    storage.perform([entry(2), entry(3), CutTail(3), entry(3, 2)])
    assert storage.sync_count == 1
    assert files.operations == before + 4, "write and sync, and the mark twice"
    before = files.operations
    note = {"n2": Note(5, "disk")}
    votes = [WriteVote(term=term, voted_for=None, notes=note) for term in (2, 3)]
    storage.perform(votes)
    assert files.operations == before + 6, "one file replaced, and the mark"
    assert read_vote(files.read(VOTE)) == (3, None, note)
    assert [one[2] for one in image_of(files).entries] == [1, 2]


def test_the_mark_says_how_far_the_journal_is_durable() -> None:
    """It carries a commit index no higher than what is durable, which never falls."""
    files, storage = begun()
    storage.perform([entry(2), entry(3)], 9)
    mark = read_mark(files.read(MARK))
    assert mark is not None
    assert (mark.generation, mark.synced_bytes) == (1, files.size(JOURNAL))
    assert mark.commit_index == 3
    storage.perform([CutTail(3)], 2)
    mark = read_mark(files.read(MARK))
    assert mark is not None
    assert mark.synced_bytes == files.size(JOURNAL)
    assert storage.synced_index == 2


def test_a_commit_index_is_noted_only_with_the_log_it_speaks_of() -> None:
    """While some writes taken with it are missing it would speak of other entries."""
    files, storage = begun()
    files.full(40)
    assert storage.perform([entry(2), entry(3)], 3).error is not None
    mark = read_mark(files.read(MARK))
    assert mark is not None
    assert mark.commit_index == 0


def test_a_disk_without_a_journal_gets_no_mark() -> None:
    """There is nothing to mark before the cluster is founded."""
    files = FakeFiles()
    assert Storage(files).perform([WriteIdentity(b"me")]) == Performed(count=1)
    assert files.names() == ["identity"]


def test_nothing_is_noted_of_a_journal_before_this_process_has_synced_it() -> None:
    """What was read may be gone after a power loss; noted, it would be missed as damage."""
    files, storage = begun()
    files.fail_after(1)
    with pytest.raises(CrashNow):
        storage.perform([entry(2)])
    files.kill()
    noted, image = read_mark(files.read(MARK)), image_of(files)
    assert [one[1] for one in image.entries] == [2], "written, not synced"
    later = Storage(files, generation=image.generation, journal_bytes=image.bytes_count)
    assert later.perform([A_VOTE]) == Performed(count=1)
    assert read_mark(files.read(MARK)) == noted
    assert later.perform([entry(3)]) == Performed(count=1)
    assert read_mark(files.read(MARK)) != noted


@pytest.mark.parametrize("room_bytes", [0, 10, 60, 130])
def test_a_full_disk_takes_what_it_can(room_bytes: int) -> None:
    """What came before is performed; the rest, tried again with room, follows without a gap."""
    files, storage = begun()
    writes: list[Write] = [entry(2), A_VOTE, entry(3, 1, bytes(40)), entry(4)]
    files.full(room_bytes)
    performed = storage.perform(writes)
    assert performed.error is not None
    assert performed.error.errno == errno.ENOSPC
    assert not performed.is_journal_suspect
    files.full(None)
    rest = writes[performed.count :]
    assert storage.perform(rest) == Performed(count=len(rest))
    assert [one[1] for one in image_of(files).entries] == [2, 3, 4]


def test_after_a_failed_sync_the_journal_is_suspect() -> None:
    """Nobody knows what the file holds; a rewrite makes it good whatever that is."""
    files, storage = begun()
    storage.perform([entry(2)])
    files.sync_errors(1)
    performed = storage.perform([A_VOTE, entry(3)])
    assert performed.error is not None
    assert performed.error.errno == errno.EIO
    assert (performed.count, performed.is_journal_suspect) == (0, False), "it was the vote's"
    files.sync_errors(1)
    performed = storage.perform([entry(3)])
    assert (performed.count, performed.is_journal_suspect) == (0, True)
    whole = RewriteJournal(base_index=1, base_term=0, entries=(entry(2).entry, entry(3).entry))
    assert storage.perform([whole]) == Performed(count=1)
    files.power_loss(random.Random(1))
    assert [one[1] for one in image_of(files).entries] == [2, 3]


def test_a_lost_mark_loses_nothing() -> None:
    """It is a hint: no room for it is no error."""
    files, storage = begun()
    files.remove(MARK)
    files.full(len(REGULAR) + 33)
    assert storage.perform([entry(2)]) == Performed(count=1)
    assert [one[1] for one in read_journal(files.read(JOURNAL), None).entries] == [2]


# --- snapshots


def test_a_sealed_snapshot_is_durable_and_the_older_ones_go() -> None:
    """Written in pieces, named when whole; its forerunner is removed afterwards."""
    files, storage = begun()
    storage.perform(snapshot_of(5))
    pieces: list[Write] = [
        WriteSnapshot(name="snapshot.new", offset=0, data=b"abc"),
        WriteSnapshot(name="snapshot.new", offset=3, data=b"def"),
        SealSnapshot(name="snapshot.new", index=20),
    ]
    storage.perform(pieces)
    files.power_loss(random.Random(3))
    assert files.read(snapshot_name(20)) == b"abcdef"
    assert snapshot_indexes(files.names())[-1] == 20


def test_a_snapshot_begun_anew_keeps_nothing_of_the_one_before() -> None:
    """A longer one that was abandoned leaves no tail."""
    files, storage = begun()
    storage.perform([WriteSnapshot(name="snapshot.new", offset=0, data=bytes(100))])
    storage.perform(snapshot_of(7, b"short"))
    assert files.read(snapshot_name(7)) == b"short"


@pytest.mark.parametrize("errors", [1, 2, 3])
def test_a_seal_that_failed_is_durable_once_it_succeeds(errors: int) -> None:
    """A failed sync loses what it should have written, so a copy is written and synced."""
    files, storage = begun()
    assert storage.perform(snapshot_of(5)) == Performed(count=2)
    write, seal = snapshot_of(9, b"newer")
    files.sync_errors(errors)
    left: Sequence[Write] = (write, seal)
    for _ in range(errors):
        performed = storage.perform(left)
        assert performed.error is not None
        assert not performed.is_journal_suspect
        left = left[performed.count :]
        assert left == (seal,)
    assert storage.perform(left) == Performed(count=1)
    files.power_loss(random.Random(errors))
    assert files.read(snapshot_name(9)) == b"newer"


def test_a_seal_that_failed_on_a_full_disk_is_durable_once_it_succeeds() -> None:
    """There was no room for the copy that has to take its place: the next attempt makes it."""
    files, storage = begun()
    write, seal = snapshot_of(9, b"newer")
    assert storage.perform([write]) == Performed(count=1)
    files.sync_errors(1)
    files.full(0)
    for _ in range(2):
        performed = storage.perform([seal])
        assert performed.error is not None
        assert performed.error.errno == errno.ENOSPC
    files.full(None)
    assert storage.perform([seal]) == Performed(count=1)
    files.power_loss(random.Random(1))
    assert files.read(snapshot_name(9)) == b"newer"


def test_a_seal_that_failed_at_the_directory_is_made_again() -> None:
    """The file had its name already; only a changed directory is synced for certain."""
    files, storage = begun()
    write, seal = snapshot_of(9)
    storage.perform([write])
    files.sync("snapshot.new")
    files.rename("snapshot.new", snapshot_name(9))
    assert storage.perform([seal]) == Performed(count=1)
    files.power_loss(random.Random(5))
    assert files.read(snapshot_name(9)) == b"snap"


def test_a_piece_is_read_or_is_gone() -> None:
    """A newer snapshot takes the place of the one that is being sent."""
    _, storage = begun()
    storage.perform(snapshot_of(5, b"abcdef"))
    got: list[bytes | None] = []
    reads = [ReadSnapshot(index=index, offset=2, count=3, deliver=got.append) for index in (5, 4)]
    disk = Disk()
    for read in reads:
        disk.submit(read)
    disk.settle(storage.perform(disk.take(0.0)))
    assert got == [b"cde", None]


def test_a_piece_that_cannot_be_read_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad spot in a snapshot is its follower's loss: what waits behind it is written."""
    files, storage = begun()
    got: list[bytes | None] = []

    def unreadable(*_: object) -> bytes:
        raise OSError(errno.EIO, "a bad spot")

    monkeypatch.setattr(files, "read", unreadable)
    read = ReadSnapshot(index=5, offset=0, count=3, deliver=got.append)
    performed = storage.perform([read, A_VOTE])
    assert performed.error is None
    assert performed.count == 2
    assert performed.reads == ((read, None),)


def test_what_was_read_before_an_error_is_handed_out() -> None:
    """It is done, and isn't done again."""
    files, storage = begun()
    storage.perform(snapshot_of(5, b"abc"))
    got: list[bytes | None] = []
    read = ReadSnapshot(index=5, offset=0, count=3, deliver=got.append)
    files.sync_errors(1)
    performed = storage.perform([read, A_VOTE])
    assert performed.count == 1
    assert performed.reads == ((read, b"abc"),)
    assert performed.error is not None


def test_names_of_snapshots_sort_by_index() -> None:
    """What is unfinished, or isn't a snapshot's, is none."""
    names = [snapshot_name(10), snapshot_name(9), "snapshot.new", "snapshot-x", "journal"]
    assert snapshot_indexes(names) == [9, 10]
    assert sorted([snapshot_name(10), snapshot_name(9)]) == [snapshot_name(9), snapshot_name(10)]
