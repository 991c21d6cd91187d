"""Performing writes on the data directory, durably; the disk worker's half of `disk.py`.

Every call blocks. Files:

    identity        who this disk is                 (replaced in one step)
    vote            term, vote, admissions noted     (replaced in one step)
    journal         the log                          (appended; replaced when trimmed)
    mark            how far the journal is durable   (overwritten, never synced)
    snapshot-<i>    the state at index i             (written aside, synced, renamed)

A name that ends in ``.new`` or ``.in`` is unfinished work and is removed at start.
"""

from collections.abc import Sequence

from reachnode.peers.raft.disk import (
    AppendEntry,
    CutTail,
    Performed,
    ReadSnapshot,
    RewriteJournal,
    SealSnapshot,
    Write,
    WriteIdentity,
    WriteSnapshot,
    WriteVote,
)
from reachnode.peers.raft.records import (
    CUT_KIND,
    ENTRY_KIND,
    Mark,
    pack_header,
    pack_mark,
    pack_record,
    pack_vote,
)
from reachnode.world.files import Files

JOURNAL, VOTE, IDENTITY, MARK = "journal", "vote", "identity", "mark"
SNAPSHOT_PREFIX = "snapshot-"
UNFINISHED_SUFFIXES = (".new", ".in")


def snapshot_name(index: int) -> str:
    """Return the name of the snapshot that covers `index`."""
    return f"{SNAPSHOT_PREFIX}{index:020d}"


def snapshot_indexes(names: Sequence[str]) -> list[int]:
    """Return the indexes of the snapshots among `names`, lowest first."""
    tails = [name.removeprefix(SNAPSHOT_PREFIX) for name in names if name.startswith("snapshot-")]
    return sorted(int(tail) for tail in tails if tail.isdecimal())


class _SyncFailed(OSError):
    """A sync of the journal failed: what the file holds is unknown."""


class Storage:
    """The data directory, and where its journal ends.

    Args:
        files: The directory.
        generation: Of the journal present; 0 when there is none.
        journal_bytes: Its whole length; perhaps not all of it durable.
    """

    def __init__(
        self,
        files: Files,
        *,
        generation: int = 0,
        journal_bytes: int = 0,
    ) -> None:
        self.files = files
        self.generation = generation
        self.journal_bytes = journal_bytes
        self.synced_index = 0
        """Index of the last entry that this process has synced; 0 before it has."""
        self.noted_commit = 0
        self.sync_count = 0
        self._unsure = ""
        """Name of a snapshot whose sync failed, until a copy has taken its place."""

    def perform(self, writes: Sequence[Write], commit_index: int = 0) -> Performed:
        """Make writes durable, oldest first, as far as the system lets us.

        Journal entries that follow each other share one sync. What comes first in
        `writes` is durable before anything behind it is begun, except that the mark and
        removals are never waited for.

        Args:
            writes: What to do.
            commit_index: As it was when the writes were taken: of the log that the disk
                holds once they are all performed.
        """
        count = 0
        reads: list[tuple[ReadSnapshot, bytes | None]] = []
        try:
            while count < len(writes):
                count += self._perform_some(writes, count, reads)
        except _SyncFailed as error:
            return Performed(count=count, reads=tuple(reads), error=error, is_journal_suspect=True)
        except OSError as error:
            return Performed(count=count, reads=tuple(reads), error=error)
        self.noted_commit = max(self.noted_commit, min(commit_index, self.synced_index))
        self._write_mark()
        return Performed(count=count, reads=tuple(reads))

    def _perform_some(
        self, writes: Sequence[Write], start: int, reads: list[tuple[ReadSnapshot, bytes | None]]
    ) -> int:
        """Perform the next write and those that share its sync; return how many."""
        match writes[start]:
            case AppendEntry() | CutTail():
                end = start + 1
                while end < len(writes) and isinstance(writes[end], AppendEntry | CutTail):
                    end += 1
                self._append([writes[i] for i in range(start, end)])
                return end - start
            case WriteVote():
                end = start + 1
                while end < len(writes) and isinstance(writes[end], WriteVote):
                    end += 1
                last = writes[end - 1]
                assert isinstance(last, WriteVote)
                self._replace(VOTE, pack_vote(last.term, last.voted_for, last.notes))
                return end - start
            case RewriteJournal() as write:
                self._rewrite(write)
            case WriteIdentity(data):
                self._replace(IDENTITY, data)
            case WriteSnapshot() as write:
                if write.offset == 0:
                    self.files.remove(write.name)
                self.files.write(write.name, write.offset, write.data)
            case SealSnapshot() as write:
                self._seal(write)
            case ReadSnapshot() as read:
                reads.append((read, self._read(read)))
        return 1

    def _append(self, writes: Sequence[Write]) -> None:
        """Append records and sync them together."""
        synced = self.journal_bytes
        pieces: list[bytes] = []
        for write in writes:
            if isinstance(write, AppendEntry):
                command, index, term = write.entry
                pieces.append(pack_record(ENTRY_KIND, index, term, synced, command))
            else:
                assert isinstance(write, CutTail)
                pieces.append(pack_record(CUT_KIND, write.index, 0, synced, b""))
        data = b"".join(pieces)
        self.files.write(JOURNAL, self.journal_bytes, data)
        try:
            self.files.sync(JOURNAL)
        except OSError as error:
            raise _SyncFailed(error.errno, error.strerror) from error
        self.sync_count += 1
        self.journal_bytes += len(data)
        self._note_end(writes[-1])

    def _rewrite(self, write: RewriteJournal) -> None:
        """Put a new journal in the place of the old one."""
        generation = self.generation + 1
        head = pack_header(generation, write.base_index, write.base_term)
        pieces = [head]
        # All of it is synced before it becomes the journal: each record may say so.
        size = len(head)
        for command, index, term in write.entries:
            pieces.append(pack_record(ENTRY_KIND, index, term, size, command))
            size += len(pieces[-1])
        self._replace(JOURNAL, b"".join(pieces))
        self.generation = generation
        self.journal_bytes = size
        self._note_end(write)

    def _note_end(self, last: Write) -> None:
        """Take note of the journal's end after a sync of it."""
        match last:
            case AppendEntry((_, index, _)):
                self.synced_index = index
            case CutTail(index):
                self.synced_index = index - 1
            case RewriteJournal(base_index=base, entries=entries):
                self.synced_index = entries[-1][1] if entries else base
            case _:
                raise AssertionError(last)
        self._write_mark()

    def _write_mark(self) -> None:
        """Note how far the journal is durable and committed; losing it loses nothing.

        The commit index is noted only when all writes taken with it are durable: alone it
        could outlive the entries it speaks of, and speak of others after a power loss.
        Nothing is noted of a journal that this process has not synced: what was read at start
        may be gone after a power loss, and would then be missed as if it had been durable.
        """
        if not self.synced_index:
            return
        mark = Mark(
            generation=self.generation,
            synced_bytes=self.journal_bytes,
            commit_index=self.noted_commit,
        )
        try:
            self.files.write(MARK, 0, pack_mark(mark))
        except OSError:
            return

    def _replace(self, name: str, data: bytes) -> None:
        """Replace a file in one step, durably."""
        new = f"{name}.new"
        self.files.remove(new)
        self.files.write(new, 0, data)
        self.files.sync(new)
        self.files.rename(new, name)
        self.files.sync_names()

    def _seal(self, write: SealSnapshot) -> None:
        """Make a finished snapshot durable under its name; older ones go."""
        name = snapshot_name(write.index)
        names = self.files.names()
        if write.name not in names and name in names:
            # An attempt failed at the directory. Only a changed one is synced for certain.
            self.files.rename(name, write.name)
        if write.name == self._unsure:
            self._write_again(write.name)
        try:
            self.files.sync(write.name)
        except OSError:
            self._unsure = write.name
            self._write_again(write.name)
            raise
        self.files.rename(write.name, name)
        self.files.sync_names()
        for index in snapshot_indexes(self.files.names()):
            if index < write.index:
                self.files.remove(snapshot_name(index))

    def _write_again(self, name: str) -> None:
        """Put a copy in the place of a file whose sync failed.

        The system counts what it could not write as written, so that the next sync of the
        same file would claim success. A copy is not yet written by anybody's count. If there
        is no room for it, the next attempt begins with it.
        """
        copy = f"{name}.again.new"
        self.files.remove(copy)
        self.files.write(copy, 0, self.files.read(name))
        self.files.rename(copy, name)
        self._unsure = ""

    def _read(self, read: ReadSnapshot) -> bytes | None:
        """Return a piece of a snapshot, None when a newer one has taken its place.

        None, too, when it can't be read: that is the follower's loss, and must not stop the
        writes that wait behind it.
        """
        try:
            return self.files.read(snapshot_name(read.index), read.offset, read.count)
        except OSError:
            return None
