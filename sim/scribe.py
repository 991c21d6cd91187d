"""A pretend process that writes a data directory as a node does, out of dice.

It founds or begins, then draws what to do: entries, cut tails, votes, notes, snapshots of
its own and received ones, reads, and turns of the disk worker. Journal, disk queue and
storage are the node's own; the engine is missing, and its rules are kept by what is drawn:
nothing committed is cut, terms never fall, a term has one entry at an index.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reachnode.peers.raft.disk import (
    Condition,
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
from reachnode.peers.raft.identity import pack_identity
from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.loading import Loaded
from reachnode.peers.raft.machine import SnapshotMaker
from reachnode.peers.raft.opening import REGULAR, Entry
from reachnode.peers.raft.storage import Storage
from reachnode.peers.raft.transfer import INCOMING_SNAPSHOT
from sim.disk import FakeFiles
from sim.ledger import FOUNDED, UNFOUNDED, Ledger, is_founded, snapshot_bytes, state_at

TURNS_MAX = 100
PATIENCE_TURNS = 3
"""Failed turns after which there is room on the disk again."""
MEMBERS = ("n1", "n2", "n3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """What is tried: the node's own, or something broken to see whether that is noticed."""

    storage: type[Storage] = Storage
    journal: type[Journal] = Journal


NODE = Rooms()


class LedgerDisk(Disk):
    """The node's queue to the disk; the ledger sees what goes in and what comes out."""

    def __init__(
        self,
        ledger: Ledger,
        perform_now: Callable[[Sequence[Write], int], Performed] | None,
    ) -> None:
        super().__init__(perform_now)
        self._ledger = ledger

    def submit(self, write: Write) -> int:
        """Queue a write and return its number."""
        self._ledger.submitted(self.newest + 1, write)
        return super().submit(write)

    def settle(self, performed: Performed) -> None:
        """Record what became of the writes that were taken."""
        super().settle(performed)
        self._ledger.settled(self.done)

    def rewrite(self, write: RewriteJournal) -> None:
        """Queue the whole journal anew, in place of its queued writes."""
        super().rewrite(write)
        self._ledger.folded(next(number for number, one in self._queue if one is write))


class Scribe:
    """One life of a pretend process.

    Args:
        loaded: What its disk held.
        is_alone: Writes are made inside the calls, as for a cluster of one voter.
    """

    def __init__(
        self,
        files: FakeFiles,
        ledger: Ledger,
        draw: random.Random,
        *,
        loaded: Loaded,
        is_alone: bool,
        rooms: Rooms = NODE,
    ) -> None:
        self._files, self._ledger, self._draw, self._rooms = files, ledger, draw, rooms
        self._loaded = loaded
        self.storage = rooms.storage(
            files, generation=loaded.generation, journal_bytes=loaded.journal_bytes
        )
        self.disk = LedgerDisk(ledger, self.storage.perform if is_alone else None)
        self.disk.committed = self._tell_commit
        self._journal: Journal | None = None
        self._maker = SnapshotMaker(self.disk)
        self._commit_index = 1
        self._covered = 1
        self._failed_turns = 0
        self._notes_count = 0

    # --- a life

    def live(self, steps: int) -> None:
        """Begin, do so many things, and let the disk come to rest."""
        if not is_founded(self._loaded):
            self._found()
        self._begin()
        self._catch_up()
        for _ in range(steps):
            self._step()
        self.flush()

    def flush(self) -> None:
        """Let the disk worker do all that waits."""
        for _ in range(TURNS_MAX):
            if self.disk.is_idle:
                return
            self._turn()
        raise AssertionError("the disk does not come to rest")

    def _found(self) -> None:
        """Make an empty directory a member's, as `standing.py` does."""
        self.disk.submit(WriteIdentity(pack_identity(UNFOUNDED)))
        self.flush()
        self.disk.submit(RewriteJournal(base_index=1, base_term=0, entries=()))
        self.disk.submit(WriteVote(term=0, voted_for=None, notes={}))
        self.disk.submit(WriteIdentity(pack_identity(FOUNDED)))
        self.flush()

    def _begin(self) -> None:
        """Begin on what was loaded, as `core.py` does."""
        loaded = self._loaded
        if loaded.snapshot is not None:
            self._covered = loaded.snapshot[0]
        self._journal = self._rooms.journal(
            self.disk,
            base=loaded.base,
            entries=loaded.entries,
            term=loaded.term,
            voted_for=loaded.voted_for,
            notes=loaded.notes,
        )
        self._commit_index = max(loaded.commit_index, self._covered)
        self._journal.begin()

    def _catch_up(self) -> None:
        """Take from the cluster what it has committed, cutting what contradicts it."""
        journal, ledger = self._log(), self._ledger
        newest = max(
            journal.getCurrentTerm(), journal.end_term, ledger.term_at(ledger.commit_index)
        )
        journal.setCurrentTerm(newest + 1, None)
        for index in range(max(journal.base, self._commit_index) + 1, ledger.commit_index + 1):
            command, _, term = ledger.committed[index - 2]
            if index <= journal.end:
                if journal.term_at(index) == term:
                    continue
                journal.deleteEntriesFrom(index - journal.base)
            journal.add(command, index, term)
            if self._draw.random() < 0.2:
                self._turn()

    # --- things to do

    def _step(self) -> None:
        """Do one thing."""
        (do,) = self._draw.choices(DEEDS, WEIGHTS)
        do(self)
        self._finish_snapshot()

    def _append(self) -> None:
        """Add entries of the current term."""
        for _ in range(self._draw.randint(1, 4)):
            self._log().add(self._command(), self._log().end + 1, self._log().getCurrentTerm())

    def _vote(self) -> None:
        """Go to a new term, voting for somebody or nobody."""
        voted_for = self._draw.choice((*MEMBERS, None))
        self._log().setCurrentTerm(self._log().getCurrentTerm() + 1, voted_for)

    def _cut(self) -> None:
        """Replace a tail that is not committed, as a new leader wants it."""
        journal = self._log()
        committed = self._ledger.commit_index
        if journal.end > committed:
            self._vote()
            index = self._draw.randint(committed + 1, journal.end)
            journal.deleteEntriesFrom(index - journal.base)
            if self._draw.random() < 0.7:
                self._append()

    def _note(self) -> None:
        """Note an admission."""
        self._notes_count += 1
        incarnation = f"e{self._draw.randint(0, 999)}"
        note = Note(self._notes_count, incarnation)
        self._log().note(self._draw.choice(MEMBERS), note)

    def _commit(self) -> None:
        """Learn that more is committed; the own disk may not have it yet."""
        journal = self._log()
        index = self._draw.randint(self._commit_index, journal.end)
        self._commit_up_to(index, journal.entries_after(self._commit_index))

    def _snapshot(self) -> None:
        """Begin a snapshot of what is committed, or write some of it."""
        if self._maker.is_idle and self._commit_index > self._covered:
            index = self._commit_index
            term = self._log().term_at(index)
            assert term is not None
            self._maker.begin(state_at(index), index=index, term=term)
        for _ in range(self._draw.randint(1, 4)):
            if self._maker.is_writing:
                self._maker.step()

    def _finish_snapshot(self) -> None:
        """Trim the journal once a snapshot is durable, as `upkeep.py` does."""
        header = self._maker.take_finished()
        if header is None or self._journal is None:
            return
        self._covered = header.index
        keep = self._draw.choice((0, 0, 3))
        index = max(self._journal.base, header.index - keep)
        if index > self._journal.base:
            self._journal.trim(index)

    def _receive(self) -> None:
        """Take a leader's snapshot in pieces, unless that breaks off."""
        journal, draw = self._log(), self._draw
        index = self._ledger.commit_index + draw.randint(1, 9)
        term = journal.term_at(index) if draw.random() < 0.5 else None
        if term is None:
            self._vote()
            term = journal.getCurrentTerm()
            self._vote()  # That term was another leader's: no entry of ours may be of it.
        data = snapshot_bytes(index, term)
        cuts = sorted(draw.sample(range(1, len(data)), draw.randint(0, 3)))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            piece = data[start:end]
            self.disk.submit(WriteSnapshot(name=INCOMING_SNAPSHOT, offset=start, data=piece))
            if draw.random() < 0.2:
                self._turn()
            if draw.random() < 0.05:
                return
        self._install(index, term)

    def _install(self, index: int, term: int) -> None:
        """Go on from a received snapshot, as `transfers.py` does."""
        journal, after = self._log(), self._ledger.commit_index
        entries = journal.entries_after(after)
        if journal.term_at(index) != term:
            entries = tuple((self._command(), at, term) for at in range(after + 1, index + 1))
        self._commit_up_to(index, entries)
        self.disk.submit(SealSnapshot(name=INCOMING_SNAPSHOT, index=index))
        journal.install(index=index, term=term)
        self._maker.abandon()
        self._covered = index

    def _read(self) -> None:
        """Read a piece of the newest snapshot that is known to be durable."""
        place = self._ledger.snapshot.sure
        if place is None:
            return
        assert isinstance(place, tuple)
        index, term = place
        data = snapshot_bytes(index, term)
        offset = self._draw.randint(0, len(data))
        count = self._draw.randint(1, 600)

        def deliver(piece: bytes | None) -> None:
            """Compare; a newer snapshot may have taken its place."""
            is_gone = piece is None and self._ledger.snapshot.newest != place
            if not is_gone and piece != data[offset : offset + count]:
                self._ledger.read_faults.append(f"snapshot {index} reads differently at {offset}")

        self.disk.submit(ReadSnapshot(index=index, offset=offset, count=count, deliver=deliver))

    def _turn(self) -> None:
        """Let the disk worker do what waits, while more may be submitted."""
        self._mend_journal()
        writes = self.disk.take(0.0)
        if not writes:
            return
        if self._journal is not None and self._draw.random() < 0.3:
            self._draw.choice((Scribe._append, Scribe._vote, Scribe._note))(self)
        performed = self.storage.perform(writes, self.disk.commit_index)
        self.disk.settle(performed)
        if self.disk.condition is Condition.FULL:
            self._failed_turns += 1
            if self._failed_turns >= PATIENCE_TURNS:
                self._files.full(None)
        self._mend_journal()
        self._finish_snapshot()

    # --- inside

    def _mend_journal(self) -> None:
        """Write the journal anew if its file can't be believed, as `core.py` does."""
        if self.disk.is_journal_suspect and self._journal is not None:
            self._journal.rewrite_suspect()

    def _log(self) -> Journal:
        """Return the log, once there is one."""
        assert self._journal is not None
        return self._journal

    def _command(self) -> bytes:
        """Return a command; some take more than a sector."""
        size = self._draw.choice((0, 10, 40, 40, 600, 1_500))
        return REGULAR + self._draw.randbytes(self._draw.randint(0, size))

    def _commit_up_to(self, index: int, entries: Sequence[Entry]) -> None:
        """Commit entries up to an index, beginning behind what is committed."""
        self._ledger.commit([entry for entry in entries if entry[1] <= index])
        self._commit_index = index

    def _tell_commit(self) -> int:
        """Return the commit index to the disk, and remember that it was told."""
        self._ledger.commit_told = max(self._ledger.commit_told, self._commit_index)
        return self._commit_index


DEEDS = (
    Scribe._append,
    Scribe._turn,
    Scribe._commit,
    Scribe._snapshot,
    Scribe._cut,
    Scribe._vote,
    Scribe._note,
    Scribe._receive,
    Scribe._read,
)
WEIGHTS = (8, 9, 4, 4, 3, 1, 1, 2, 2)
