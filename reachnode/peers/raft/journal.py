"""The log in memory, as the engine reads it, and its mirror on disk as queued writes.

The engine changes the log inside its own steps and expects it to be stored when the call
returns. It is not: each change becomes a numbered write (`disk.py`), and this class knows
how far the log is durable. What must wait for that is `held.py`'s matter.

The first entry is a placeholder for everything up to the base: its index and term are
true, its command is not. Entries follow each other without a gap.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from reachnode.errors import UnknownCommand
from reachnode.peers.raft.disk import (
    AppendEntry,
    CutTail,
    Disk,
    Note,
    RewriteJournal,
    WriteVote,
)
from reachnode.peers.raft.opening import NO_OP, REGULAR, Entry
from reachnode.registry.codec import decode_batch
from reachnode.registry.commands import ReplaceMember

REPLACEMENT_TAG = str(ReplaceMember.__struct_config__.tag).encode()
"""Stands in the bytes of every entry that replaces a disk."""


class Journal:
    """One member's log.

    Args:
        disk: Where changes are queued.
        base: Index and term of the last entry that a snapshot has replaced.
        entries: What follows the base, durable already.
        term: The current term on disk.
        voted_for: Whom this disk voted for in that term.
        notes: Admissions noted, by member.
    """

    def __init__(
        self,
        disk: Disk,
        *,
        base: tuple[int, int],
        entries: Sequence[Entry],
        term: int,
        voted_for: str | None,
        notes: Mapping[str, Note],
    ) -> None:
        self._disk = disk
        self._entries: list[Entry] = [(NO_OP, *base), *entries]
        self._numbers: list[int] = [0] * len(self._entries)
        self.vote_number = 0
        self.bytes_count = sum(len(entry[0]) for entry in self._entries)
        self.is_protected = False
        """While set, the tail is not cut: nothing in the message conflicts with it (B19)."""
        self.lowest_cut: int | None = None
        """Lowest index cut since it was last looked at; see `take_cut`."""
        self.replacements: dict[int, tuple[ReplaceMember, ...]] = {}
        """What entries of the log admit new disks, by index; see `Standing.counts`."""
        for entry in entries:
            self._look_for_replacements(entry)
        self._term = term
        self._voted_for = voted_for
        self._notes = dict(notes)

    # --- what we ask

    @property
    def base(self) -> int:
        """Index of the placeholder."""
        return self._entries[0][1]

    @property
    def end(self) -> int:
        """Index of the last entry."""
        return self._entries[-1][1]

    @property
    def end_term(self) -> int:
        """Term of the last entry."""
        return self._entries[-1][2]

    @property
    def notes(self) -> Mapping[str, Note]:
        """Admissions noted, by member; perhaps not durable yet."""
        return self._notes

    def term_at(self, index: int) -> int | None:
        """Return the term of the entry at `index`, None outside the log."""
        place = index - self.base
        return self._entries[place][2] if 0 <= place < len(self._entries) else None

    def synced_index(self) -> int:
        """Return the index up to which the log is durable.

        Judged by the number of the write that carried each entry; numbers never fall
        along the log. 0 while not even the base is: just after a start, or a snapshot.
        """
        count = bisect_right(self._numbers, self._disk.done)
        return self._entries[count - 1][1] if count else 0

    def take_cut(self) -> int | None:
        """Return the lowest index cut since the last call, None if none was."""
        cut, self.lowest_cut = self.lowest_cut, None
        return cut

    def entries_after(self, index: int) -> tuple[Entry, ...]:
        """Return the entries above `index`."""
        return tuple(self._entries[max(1, index - self.base + 1) :])

    # --- what we change

    def trim(self, index: int) -> None:
        """Forget the entries up to `index`, which a durable snapshot covers."""
        term = self.term_at(index)
        assert term is not None
        place = index - self.base
        if place == 0:
            return
        self._entries[: place + 1] = [(NO_OP, index, term)]
        self.replacements = {at: ones for at, ones in self.replacements.items() if at > index}
        del self._numbers[:place]
        self._rewrite()

    def install(self, *, index: int, term: int) -> None:
        """Go on from a snapshot, keeping the tail if it follows from it (Raft, section 7)."""
        tail = self.entries_after(index) if self.term_at(index) == term else ()
        self._entries = [(NO_OP, index, term), *tail]
        kept = {entry[1] for entry in tail}
        self.replacements = {at: ones for at, ones in self.replacements.items() if at in kept}
        number = self._rewrite()
        self._numbers = [number] * len(self._entries)
        if not tail:
            self._note_cut(index + 1)

    def begin(self) -> None:
        """Write everything anew at start, and count nothing as durable before.

        What was read may have been written and never synced by the process before this one,
        or its sync may have failed: it reads well, and is gone after a power loss.
        """
        self._write_vote()
        self._numbers = [self._rewrite()] * len(self._entries)

    def rewrite_suspect(self) -> None:
        """Write the whole journal anew: its file can no longer be believed."""
        self._disk.rewrite(self._image())

    def note(self, member: str, note: Note) -> int:
        """Remember an admission; return the number of the write."""
        self._notes[member] = note
        return self._write_vote()

    # --- what the engine calls (its names, not ours)

    def add(self, command: bytes, idx: int, term: int) -> None:
        """Append an entry."""
        assert idx == self.end + 1
        entry = (command, idx, term)
        self._entries.append(entry)
        self._look_for_replacements(entry)
        self.bytes_count += len(command)
        # The place is taken before the write is submitted: a lone voter's disk performs it
        # at once, and may ask how far the log is durable.
        self._numbers.append(self._disk.newest + 1)
        self._disk.submit(AppendEntry(entry))

    def clear(self) -> None:
        """Refuse: only the engine's own snapshots would do this, and it has none."""
        raise AssertionError("the engine cleared the journal")

    def deleteEntriesFrom(self, entryFrom: int) -> None:  # noqa: N802, N803 (the library's names)
        """Cut the tail, beginning with the entry at a place in the log."""
        if self.is_protected:
            return
        assert entryFrom >= 1, "the base was committed long ago"
        if entryFrom >= len(self._entries):
            return
        index = self._entries[entryFrom][1]
        self.bytes_count -= sum(len(entry[0]) for entry in self._entries[entryFrom:])
        del self._entries[entryFrom:]
        del self._numbers[entryFrom:]
        self.replacements = {at: ones for at, ones in self.replacements.items() if at < index}
        self._note_cut(index)
        self._disk.submit(CutTail(index))

    def deleteEntriesTo(self, entryTo: int) -> None:  # noqa: N802, N803 (the library's names)
        """Refuse: `trim` is ours to call."""
        raise AssertionError(f"the engine trimmed the journal to {entryTo}")

    def __getitem__(self, place: Any) -> Any:
        """Return the entry, or list of entries, at a place or slice."""
        return self._entries[place]

    def __len__(self) -> int:
        """Return the number of entries, the placeholder counted."""
        return len(self._entries)

    def setRaftCommitIndex(self, _index: int) -> None:  # noqa: N802 (the library's name)
        """Ignore: the disk worker notes what is both committed and durable."""

    def getRaftCommitIndex(self) -> int:  # noqa: N802 (the library's name)
        """Return the base; `engine.py` sets what is known beyond it."""
        return self.base

    def setCurrentTerm(self, term: int, votedForNodeId: str | None) -> None:  # noqa: N802, N803 (the library's names)
        """Remember the term and the vote in it."""
        self._term, self._voted_for = term, votedForNodeId
        self._write_vote()

    def getCurrentTerm(self) -> int:  # noqa: N802 (the library's name)
        """Return the term remembered."""
        return self._term

    def getVotedForNodeId(self) -> str | None:  # noqa: N802 (the library's name)
        """Return the vote remembered."""
        return self._voted_for

    def onOneSecondTimer(self) -> None:  # noqa: N802 (the library's name)
        """Do nothing: nothing here is written by the clock."""

    def _destroy(self) -> None:
        """Do nothing: files are closed by their owner."""

    # --- inside

    def _write_vote(self) -> int:
        """Queue the term, the vote and the notes; return the write's number."""
        write = WriteVote(term=self._term, voted_for=self._voted_for, notes=dict(self._notes))
        self.vote_number = self._disk.newest + 1
        return self._disk.submit(write)

    def _rewrite(self) -> int:
        """Queue the whole journal; return the write's number."""
        self.bytes_count = sum(len(entry[0]) for entry in self._entries)
        return self._disk.submit(self._image())

    def _image(self) -> RewriteJournal:
        """Return the journal as one write."""
        _, index, term = self._entries[0]
        entries = tuple(self._entries[1:])
        return RewriteJournal(base_index=index, base_term=term, entries=entries)

    def _look_for_replacements(self, entry: Entry) -> None:
        """Keep what an entry says of new disks; few have the word, so that few are decoded."""
        command, index, _ = entry
        if REPLACEMENT_TAG not in command or command[:1] != REGULAR:
            return
        try:
            commands = [envelope.command for envelope in decode_batch(command[1:])]
        except UnknownCommand:
            return  # Applying it will stop the node.
        found = tuple(one for one in commands if isinstance(one, ReplaceMember))
        if found:
            self.replacements[index] = found

    def _note_cut(self, index: int) -> None:
        """Keep the lowest index that was cut."""
        self.lowest_cut = index if self.lowest_cut is None else min(index, self.lowest_cut)
