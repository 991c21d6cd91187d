"""The log in memory, and its mirror on disk as queued writes."""

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
    RewriteJournal,
    Write,
    WriteVote,
)
from reachnode.peers.raft.journal import REPLACEMENT_TAG, Journal
from reachnode.peers.raft.opening import REGULAR, Entry
from reachnode.registry.codec import encode_batch, encode_envelope
from reachnode.registry.commands import Advance, Envelope, ReplaceMember


def entries(*terms: int, start: int = 2) -> list[Entry]:
    """Return entries of these terms."""
    return [(REGULAR + bytes([at]), at, term) for at, term in enumerate(terms, start=start)]


def journal_of(disk: Disk, *terms: int) -> Journal:
    """Return a journal behind base 1 whose entries have these terms, all durable."""
    return Journal(disk, base=(1, 0), entries=entries(*terms), term=3, voted_for="n2", notes={})


def settled(disk: Disk, count: int | None = None) -> tuple[Write, ...]:
    """Perform what waits, or so much of it."""
    writes = disk.take(0.0)
    disk.settle(Performed(count=len(writes) if count is None else count))
    return writes


def played(log: Sequence[Entry], writes: Sequence[Write]) -> tuple[Entry, ...]:
    """Return the entries a disk has after writes."""
    have = list(log)
    for write in writes:
        match write:
            case AppendEntry(entry):
                have.append(entry)
            case CutTail(index):
                have = [entry for entry in have if entry[1] < index]
            case RewriteJournal():
                have = list(write.entries)
            case _:
                continue
    return tuple(have)


STEPS = ("add", "add", "add", "cut", "trim", "install", "install", "vote", "settle", "begin")


@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), max_size=40)
)
def test_the_disk_follows_and_the_synced_index_is_really_synced(
    steps: list[tuple[str, int, int]],
) -> None:
    """After any changes, with any part of the writes performed.

    What the performed writes leave on disk begins with every entry up to the synced index,
    as the log in memory has it; performing the rest makes the two equal.
    """
    disk = Disk()
    journal = journal_of(disk, 1, 1, 2)
    on_disk: tuple[Entry, ...] = tuple(entries(1, 1, 2))
    term = 3
    for kind, number, other in steps:
        place = 1 + number % max(1, len(journal) - 1)
        match kind:
            case "add":
                term += other == 0
                journal.add(REGULAR + bytes(other), journal.end + 1, term)
            case "cut":
                journal.deleteEntriesFrom(place)
            case "trim":
                journal.trim(journal.base + place - (len(journal) == 1))
            case "install":
                index = journal.base + number
                of = journal.term_at(index)
                journal.install(index=index, term=of if of is not None and other else term)
            case "vote":
                term += 1
                journal.setCurrentTerm(term, "n1")
            case "begin":
                journal.begin()
            case _:
                writes = disk.take(0.0)[:number]
                on_disk = played(on_disk, writes)
                disk.settle(Performed(count=len(writes)))
        synced = journal.synced_index()
        durable = {entry[1]: entry for entry in on_disk}
        for entry in journal[1:]:
            if entry[1] <= synced and disk.is_idle:
                assert durable[entry[1]] == entry
        is_rewriting = any(isinstance(write, RewriteJournal) for write in disk.take(0.0))
        if not is_rewriting:
            assert all(durable.get(e[1]) == e for e in journal[1:] if e[1] <= synced)
        assert journal.bytes_count == sum(len(entry[0]) for entry in journal[:])
    on_disk = played(on_disk, settled(disk))
    assert on_disk == tuple(journal[1:])
    assert journal.synced_index() == journal.end


def test_the_place_of_an_entry_is_its_index_less_the_base() -> None:
    """Index, term and entries are told alike before and after trimming."""
    journal = journal_of(Disk(), 1, 1, 2, 3)
    assert (journal.base, journal.end, journal.end_term, len(journal)) == (1, 5, 3, 5)
    assert [journal.term_at(index) for index in (0, 1, 4, 5, 6)] == [None, 0, 2, 3, None]
    assert journal.entries_after(3) == tuple(entries(1, 1, 2, 3))[2:]
    assert journal.entries_after(0) == tuple(entries(1, 1, 2, 3))
    journal.trim(3)
    assert (journal.base, journal.end, len(journal)) == (3, 5, 3)
    assert [journal.term_at(index) for index in (2, 3, 4)] == [None, 1, 2]
    assert journal.getRaftCommitIndex() == 3


def test_an_entry_is_durable_once_its_own_write_is() -> None:
    """A tail cut and replaced has the same indexes, and isn't durable by the old writes."""
    disk = Disk()
    journal = journal_of(disk, 1)
    assert journal.synced_index() == 2
    journal.add(b"\x00a", 3, 3)
    journal.add(b"\x00b", 4, 3)
    settled(disk)
    assert journal.synced_index() == 4
    journal.deleteEntriesFrom(2)
    journal.add(b"\x00c", 3, 4)
    assert journal.synced_index() == 2
    settled(disk, 1)
    assert journal.synced_index() == 2
    settled(disk)
    assert journal.synced_index() == 3


def test_nothing_that_was_read_counts_before_it_is_written_anew() -> None:
    """It may never have been synced by the process before."""
    disk = Disk()
    journal = journal_of(disk, 1, 2)
    journal.begin()
    assert journal.synced_index() == 0
    vote, image = settled(disk)
    assert vote == WriteVote(term=3, voted_for="n2", notes={})
    assert image == RewriteJournal(base_index=1, base_term=0, entries=tuple(entries(1, 2)))
    assert journal.synced_index() == 3


def test_trimming_to_the_base_writes_nothing() -> None:
    """And trimming beyond the end is a mistake of ours."""
    disk = Disk()
    journal = journal_of(disk, 1)
    journal.trim(1)
    assert disk.is_idle
    with pytest.raises(AssertionError):
        journal.trim(3)


def test_trimming_keeps_what_is_durable_durable() -> None:
    """The tail needn't wait for the new file: the old one still has it."""
    disk = Disk()
    journal = journal_of(disk, 1, 1, 1)
    journal.add(b"\x00new", 5, 3)
    journal.trim(3)
    assert journal.synced_index() == 4
    settled(disk)
    assert journal.synced_index() == 5


def test_a_snapshot_keeps_the_tail_that_follows_from_it() -> None:
    """If it has the entry at its index, of the same term; the whole is written anew."""
    disk = Disk()
    journal = journal_of(disk, 1, 1, 2)
    journal.install(index=3, term=1)
    assert journal[:] == [(b"\x01", 3, 1), entries(1, 1, 2)[2]]
    assert journal.take_cut() is None
    assert journal.synced_index() == 0, "not even the base, until it is written"
    settled(disk)
    assert journal.synced_index() == 4


@pytest.mark.parametrize(("index", "term"), [(3, 2), (9, 4)])
def test_a_snapshot_drops_a_tail_that_does_not(index: int, term: int) -> None:
    """Whether it conflicts or ends before: what was said of later entries is taken back."""
    journal = journal_of(Disk(), 1, 1, 2)
    journal.install(index=index, term=term)
    assert journal[:] == [(b"\x01", index, term)]
    assert journal.take_cut() == index + 1
    assert journal.take_cut() is None


def test_the_lowest_cut_is_kept_until_looked_at() -> None:
    """Several cuts inside one step of the engine are one."""
    journal = journal_of(Disk(), 1, 1, 1, 1)
    journal.deleteEntriesFrom(3)
    journal.deleteEntriesFrom(1)
    journal.add(b"\x00x", 2, 3)
    journal.deleteEntriesFrom(1)
    assert journal.take_cut() == 2
    assert journal.take_cut() is None


def test_a_protected_tail_is_not_cut() -> None:
    """Nor is one that isn't there; the base never is."""
    disk = Disk()
    journal = journal_of(disk, 1, 1)
    journal.is_protected = True
    journal.deleteEntriesFrom(1)
    journal.is_protected = False
    journal.deleteEntriesFrom(3)
    assert journal.end == 3
    assert disk.is_idle
    with pytest.raises(AssertionError):
        journal.deleteEntriesFrom(0)


def test_entries_come_without_a_gap() -> None:
    """Anything else is a mistake of ours."""
    journal = journal_of(Disk(), 1)
    for index in (2, 4):
        with pytest.raises(AssertionError):
            journal.add(b"\x00", index, 3)


def test_term_vote_and_notes_are_written_together() -> None:
    """Each change of one writes all three, and its number is that of the last."""
    disk = Disk()
    journal = journal_of(disk)
    journal.setCurrentTerm(4, None)
    number = journal.note("n3", Note(7, "disk"))
    assert journal.vote_number == number == disk.newest
    journal.setCurrentTerm(4, "n1")
    notes = {"n3": Note(7, "disk")}
    assert settled(disk) == (
        WriteVote(term=4, voted_for=None, notes={}),
        WriteVote(term=4, voted_for=None, notes=notes),
        WriteVote(term=4, voted_for="n1", notes=notes),
    )
    assert (journal.getCurrentTerm(), journal.getVotedForNodeId()) == (4, "n1")
    assert journal.notes == notes


def test_a_suspect_journal_is_written_from_memory() -> None:
    """Whole, in place of what waits."""
    disk = Disk()
    journal = journal_of(disk, 1)
    journal.add(b"\x00x", 3, 3)
    disk.settle(Performed(count=0, error=OSError(5, "broken"), is_journal_suspect=True))
    journal.rewrite_suspect()
    (write,) = settled(disk)
    assert write == RewriteJournal(base_index=1, base_term=0, entries=tuple(journal[1:]))
    assert journal.synced_index() == 3


def test_what_the_engine_must_not_do_is_refused() -> None:
    """It has no snapshots of its own, so it neither clears nor trims; its timer does nothing."""
    disk = Disk()
    journal = journal_of(disk, 1)
    with pytest.raises(AssertionError, match="cleared"):
        journal.clear()
    with pytest.raises(AssertionError, match="trimmed"):
        journal.deleteEntriesTo(1)
    journal.setRaftCommitIndex(9)
    journal.onOneSecondTimer()
    journal._destroy()
    assert disk.is_idle
    assert journal.getRaftCommitIndex() == 1


def admitting(index: int) -> Entry:
    """Return an entry that replaces a disk."""
    command = ReplaceMember(member_id="n3", incarnation="new", follows=0)
    envelope = encode_envelope(Envelope(request_id="r", since_index=0, command=command))
    return (REGULAR + encode_batch([envelope]), index, 1)


def test_it_knows_which_of_its_entries_replace_disks() -> None:
    """Those read at start and those added; not those cut, trimmed, or overruled by a snapshot."""
    disk = Disk()
    log = Journal(disk, base=(1, 0), entries=[admitting(2)], term=1, voted_for=None, notes={})
    tag = REGULAR + REPLACEMENT_TAG
    for at, entry in enumerate([admitting(3), (tag, 4, 1), (b"\x04" + tag, 5, 1)], start=3):
        log.add(entry[0], at, 1)
    log.add(REGULAR + encode_batch([encode_envelope(NAMED)]), 6, 1)
    log.add(admitting(7)[0], 7, 1)
    assert [(at, one.incarnation) for at, (one,) in log.replacements.items()] == [
        (2, "new"),
        (3, "new"),
        (7, "new"),
    ]
    log.trim(2)
    assert list(log.replacements) == [3, 7]
    log.deleteEntriesFrom(5)
    assert list(log.replacements) == [3]
    log.install(index=2, term=1)
    assert list(log.replacements) == [3]
    log.install(index=2, term=9)
    assert log.replacements == {}


NAMED = Envelope(request_id=REPLACEMENT_TAG.decode(), since_index=0, command=Advance(by_ms=1))
"""Has the word in it, and replaces nothing."""
