"""What falls due when: names with a time each, at a cost that doesn't grow with their number.

A heap that is tidied late. Putting off costs nothing, because the entry in the heap stays
where it is and is moved on only once it comes up; so a lease that is renewed a hundred times
is looked at a few times.
"""

from heapq import heapify, heappop, heappush

SLACK = 64
"""Entries that mean nothing are let stand until they outnumber the others by this."""


class Agenda:
    """Names, each with one time at which it falls due.

    Times are seconds on whatever clock the caller goes by. Equal times come up by name, so
    that the same calls give the same order in every process.
    """

    __slots__ = ("_due_at", "_heap", "_queued_at")

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._due_at: dict[str, float] = {}
        self._queued_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._due_at)

    def __contains__(self, name: str) -> bool:
        return name in self._due_at

    def put(self, name: str, at: float) -> None:
        """Let a name fall due at a time, instead of any other it had."""
        self._due_at[name] = at
        queued_at = self._queued_at.get(name)
        if queued_at is None or at < queued_at:
            self._queued_at[name] = at
            heappush(self._heap, (at, name))
            if len(self._heap) > 2 * len(self._queued_at) + SLACK:
                self._heap = [(at, name) for name, at in self._queued_at.items()]
                heapify(self._heap)

    def drop(self, name: str) -> None:
        """Forget a name, if it is there."""
        self._due_at.pop(name, None)

    def pop(self, now: float) -> str | None:
        """Return the next name that is due and forget it; None when nothing is due yet."""
        while self._heap and self._heap[0][0] <= now:
            at, name = heappop(self._heap)
            if self._queued_at.get(name) != at:
                continue  # it was put earlier since
            del self._queued_at[name]
            due_at = self._due_at.get(name)
            if due_at is None:
                continue
            if due_at > now:
                self._queued_at[name] = due_at
                heappush(self._heap, (due_at, name))
                continue
            del self._due_at[name]
            return name
        return None
