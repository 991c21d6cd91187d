"""Journals for tests: steps to draw, what they make of a log, and the bytes they leave."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from reachnode.peers.raft.disk import AppendEntry, CutTail, RewriteJournal, Write
from reachnode.peers.raft.opening import REGULAR, Entry

Step = tuple[str, int, bytes, bool]
"""What is done, a number to choose by, a payload, and whether a sync comes before it."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "raise", "cut", "trim"]),
        st.integers(0, 99),
        st.binary(max_size=24),
        st.booleans(),
    ),
    max_size=16,
)


@dataclass(slots=True)
class Log:
    """A log as it should be read back."""

    base: tuple[int, int] = (1, 0)
    entries: list[Entry] = field(default_factory=list)
    term: int = 1

    @property
    def end(self) -> int:
        """Index of the last entry."""
        return self.entries[-1][1] if self.entries else self.base[0]

    def play(self, step: Step) -> Write | None:
        """Take a step; return the write that makes it durable, None if there is nothing to do."""
        kind, number, payload, _ = step
        if kind == "raise":
            self.term += 1
        if kind in ("append", "raise"):
            entry = (REGULAR + payload, self.end + 1, self.term)
            self.entries.append(entry)
            return AppendEntry(entry)
        if not self.entries:
            return None
        place = number % len(self.entries)
        if kind == "cut":
            index = self.entries[place][1]
            del self.entries[place:]
            return CutTail(index)
        self.base = self.entries[place][1:]
        del self.entries[: place + 1]
        return RewriteJournal(
            base_index=self.base[0], base_term=self.base[1], entries=tuple(self.entries)
        )
