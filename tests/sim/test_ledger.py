"""What a data directory may hold after a crash."""

from dataclasses import replace

import pytest

from reachnode.peers.raft.disk import (
    AppendEntry,
    CutTail,
    Note,
    ReadSnapshot,
    RewriteJournal,
    SealSnapshot,
    Write,
    WriteIdentity,
    WriteVote,
)
from reachnode.peers.raft.identity import pack_identity
from reachnode.peers.raft.loading import Loaded
from reachnode.peers.raft.opening import REGULAR, Entry
from sim.ledger import FOUNDED, UNFOUNDED, Ledger, Part, behind, snapshot_bytes, state_at

FOUNDING: tuple[Write, ...] = (
    RewriteJournal(base_index=1, base_term=0, entries=()),
    WriteVote(term=0, voted_for=None, notes={}),
    WriteIdentity(pack_identity(FOUNDED)),
)
EMPTY = Loaded(identity=FOUNDED, notes={})


def entry(index: int, term: int = 1) -> Entry:
    """Return an entry."""
    return REGULAR, index, term


def founded(*writes: Write) -> Ledger:
    """Return a ledger of a founded directory, and writes that are not durable yet."""
    ledger = Ledger()
    for number, write in enumerate((*FOUNDING, *writes), start=1):
        ledger.submitted(number, write)
    ledger.settled(len(FOUNDING))
    return ledger


def holding(*entries: Entry, term: int = 0) -> Loaded:
    """Return a founded directory with entries."""
    return replace(EMPTY, entries=entries, term=term)


def faults(ledger: Ledger, loaded: Loaded) -> str:
    """Return what is wrong, in one line."""
    return "; ".join(ledger.faults(loaded))


def test_what_was_settled_must_be_there() -> None:
    """An entry that was reported as durable is missed; one that was not may be lost."""
    ledger = founded(AppendEntry(entry(2)), AppendEntry(entry(3)))
    ledger.settled(4)
    assert "journal is neither" in faults(ledger, holding())
    assert not faults(ledger, holding(entry(2)))
    assert not faults(ledger, holding(entry(2), entry(3)))


def test_what_was_never_written_must_not_be_there() -> None:
    """Nor may a mixture: entries around a cut that never were in one log."""
    ledger = founded(AppendEntry(entry(2)), CutTail(2), AppendEntry(entry(2, 5)))
    assert not faults(ledger, holding(entry(2)))
    assert not faults(ledger, holding(entry(2, 5)))
    assert "journal is neither" in faults(ledger, holding(entry(2), entry(3)))
    assert "vote is neither" in faults(ledger, holding(term=9))
    other = replace(EMPTY, identity=UNFOUNDED)
    assert "identity" in faults(ledger, other)


def test_the_parts_fit_together_unless_a_sync_failed() -> None:
    """A vote that was written first is not missing beside an entry that was written later."""
    writes = (WriteVote(term=3, voted_for="n2", notes={"n3": Note(2, "e")}), AppendEntry(entry(2)))
    loaded = holding(entry(2))
    assert "earlier one is not" in faults(founded(*writes), loaded)
    ledger = founded(*writes)
    ledger.folded(5)
    assert not faults(ledger, loaded)


def test_a_snapshot_holds_the_state_of_its_index() -> None:
    """It is the newest one that was sealed, and its state is compared."""
    ledger = founded(AppendEntry(entry(2)))
    ledger.commit([entry(2)])
    ledger.submitted(5, SealSnapshot(name="snapshot.new", index=2))
    ledger.settled(5)
    loaded = replace(holding(entry(2)), snapshot=(2, 1, state_at(2)), commit_index=2)
    assert not faults(ledger, loaded)
    assert "snapshot is neither" in faults(ledger, holding(entry(2)))
    assert "another state" in faults(ledger, replace(loaded, snapshot=(2, 1, state_at(7))))
    assert snapshot_bytes(2, 1) != snapshot_bytes(3, 1)


def test_a_snapshot_overrules_the_journal() -> None:
    """Entries that contradict it don't count; a journal that begins behind it lost something."""
    log = ((1, 0), (entry(2), entry(3)))
    assert behind(log, None) == log
    assert behind(log, (3, 1)) == log
    assert behind(log, (3, 2)) == ((3, 2), ())
    assert behind(((5, 1), ()), (3, 2)) is None
    assert behind(((5, 1), ()), None) is None


def test_only_what_was_told_and_is_right_counts_as_committed() -> None:
    """A commit index speaks of the entries that were committed, not of others at its place."""
    ledger = founded(AppendEntry(entry(2)), CutTail(2), AppendEntry(entry(2, 5)))
    ledger.commit([entry(2, 5)])
    assert "only 1 are right" in faults(ledger, replace(holding(entry(2)), commit_index=2))
    right = replace(holding(entry(2, 5)), commit_index=2)
    assert "told was 1" in faults(ledger, right)
    ledger.commit_told = 2
    assert not faults(ledger, right)
    ledger.settled(6)
    assert "2 committed entries were durable, 1 are there" in faults(ledger, holding())


def test_what_a_kill_leaves_may_still_be_lost() -> None:
    """The next process read it, but only what it writes again and syncs is durable."""
    ledger = founded(AppendEntry(entry(2)), AppendEntry(entry(3)))
    ledger.reborn(holding(entry(2)), has_lost_power=False)
    assert not faults(ledger, holding())
    assert "journal" in faults(ledger, holding(entry(2), entry(3))), "it was not there any more"
    ledger.submitted(1, WriteVote(term=0, voted_for=None, notes={}))
    ledger.settled(1)
    assert not faults(ledger, holding()), "the journal is not written anew"
    ledger.submitted(2, RewriteJournal(base_index=1, base_term=0, entries=(entry(2),)))
    ledger.settled(2)
    assert "journal" in faults(ledger, holding())
    assert not faults(ledger, holding(entry(2)))


def test_names_become_durable_with_the_journal_written_anew() -> None:
    """A snapshot that a killed process named is not named again, and is durable from then on."""
    ledger = founded(AppendEntry(entry(2)))
    ledger.commit([entry(2)])
    ledger.settled(4)
    ledger.submitted(5, SealSnapshot(name="snapshot.new", index=2))
    loaded = replace(holding(entry(2)), snapshot=(2, 1, state_at(2)), commit_index=2)
    ledger.reborn(loaded, has_lost_power=False)
    assert not faults(ledger, holding(entry(2)))
    ledger.submitted(1, RewriteJournal(base_index=1, base_term=0, entries=(entry(2),)))
    ledger.settled(1)
    assert "snapshot is neither" in faults(ledger, holding(entry(2)))
    assert not faults(ledger, loaded)


def test_a_number_speaks_of_one_process() -> None:
    """What a killed process wrote under a number is not settled by another's."""
    ledger = Ledger()
    ledger.submitted(1, WriteIdentity(pack_identity(UNFOUNDED)))
    ledger.reborn(Loaded(identity=UNFOUNDED, notes={}), has_lost_power=False)
    ledger.submitted(1, FOUNDING[1])
    ledger.settled(1)
    assert not faults(ledger, Loaded(identity=None, notes={}))


def test_what_a_power_loss_leaves_is_durable() -> None:
    """Nothing is left in a cache that could be lost later."""
    ledger = founded(AppendEntry(entry(2)))
    ledger.reborn(holding(entry(2)), has_lost_power=True)
    assert "journal" in faults(ledger, holding())


def test_an_unfounded_directory_is_its_identity() -> None:
    """What else lies there from an interrupted founding is not read, and may be anything."""
    ledger = Ledger()
    ledger.submitted(1, WriteIdentity(pack_identity(UNFOUNDED)))
    ledger.submitted(2, FOUNDING[0])
    nothing, unfounded = Loaded(identity=None, notes={}), Loaded(identity=UNFOUNDED, notes={})
    assert not faults(ledger, nothing)
    ledger.settled(1)
    assert faults(ledger, nothing)
    assert not faults(ledger, unfounded)
    ledger.reborn(unfounded, has_lost_power=True)
    for number, write in enumerate(FOUNDING, start=1):
        ledger.submitted(number, write)
    ledger.settled(3)
    assert not faults(ledger, EMPTY)


def test_a_founding_begun_anew_has_no_snapshot() -> None:
    """A snapshot gets its name behind the identity of a member: without that, there is none."""
    ledger = founded()
    ledger.identity.later, ledger.identity.sure = [(3, ledger.identity.sure)], None
    ledger.commit([entry(2)])
    ledger.submitted(4, SealSnapshot(name="snapshot.new", index=2))
    ledger.reborn(Loaded(identity=None, notes={}), has_lost_power=True)
    for number, write in enumerate(FOUNDING, start=1):
        ledger.submitted(number, write)
    ledger.settled(3)
    assert not faults(ledger, EMPTY)


def test_reads_change_nothing() -> None:
    """A read is no write, and a wrong answer is told."""
    ledger = founded(ReadSnapshot(index=2, offset=0, count=1, deliver=lambda _: None))
    assert not faults(ledger, EMPTY)
    ledger.read_faults.append("it reads differently")
    assert faults(ledger, EMPTY) == "it reads differently"


def test_committed_is_committed() -> None:
    """The ledger itself is told one story."""
    ledger = founded()
    ledger.commit([entry(2)])
    ledger.commit([entry(2), entry(3)])
    assert ledger.commit_index == 3
    with pytest.raises(AssertionError):
        ledger.commit([entry(3, 7)])


def test_a_part_settles_in_the_order_of_its_writes() -> None:
    """What is passed by is no longer possible."""
    part = Part(sure="a", later=[(0, "b"), (3, "c"), (5, "d")])
    part.settle(2)
    assert part.values() == ["a", "b", "c", "d"]
    part.settle_former()
    assert part.values() == ["b", "c", "d"]
    part.settle(4)
    assert part.values() == ["c", "d"]
    assert (part.value_after(4), part.newest) == ("c", "d")
