"""Virtual time: a heap of what happens next, and each node's own view of the clock."""

import random
from collections.abc import Callable
from heapq import heappop, heappush

EPSILON_SECONDS = 1e-7
"""How far the clock moves when it is read: code that waits for it to move must not hang."""


class Timeline:
    """What happens, in order. Equal times keep the order in which they were asked for."""

    __slots__ = ("_counter", "_heap", "events_count", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.events_count = 0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._counter = 0

    def after(self, seconds: float, do: Callable[..., None], *args: object) -> None:
        """Ask for `do(*args)` in so many seconds, at least 0."""
        assert seconds >= 0
        self._counter += 1
        heappush(self._heap, (self.now + seconds, self._counter, do, args))

    def run_until(self, at: float) -> None:
        """Let everything happen that is due by `at`."""
        heap = self._heap
        while heap and heap[0][0] <= at:
            when, _, do, args = heappop(heap)
            self.now = max(self.now, when)  # Clocks that were read have moved it on.
            self.events_count += 1
            do(*args)
        self.now = max(self.now, at)


class SimSources:
    """A node's clock and dice.

    Args:
        timeline: The true time.
        draw: The node's own dice.
        offset: Seconds its clock is ahead; each boot starts elsewhere.
        rate: Seconds its clock counts in a true second.
    """

    __slots__ = ("_offset", "_rate", "_timeline", "draw")

    def __init__(
        self, timeline: Timeline, draw: random.Random, *, offset: float, rate: float
    ) -> None:
        self.draw: random.Random = draw
        self._timeline = timeline
        self._offset = offset
        self._rate = rate

    def now(self) -> float:
        """Return the node's monotonic clock in seconds."""
        timeline = self._timeline
        timeline.now += EPSILON_SECONDS
        return self._offset + timeline.now * self._rate

    def wall_ms(self) -> int:
        """Return milliseconds of a wall clock that begins in 2026."""
        return 1_767_225_600_000 + int(self._timeline.now * 1000)

    def new_id(self) -> str:
        """Return 32 hexadecimal digits from the dice."""
        return f"{self.draw.getrandbits(128):032x}"

    def until(self, at: float) -> float:
        """Return true seconds until this clock shows `at`, at least 0."""
        return max(0.0, (at - self._offset) / self._rate - self._timeline.now)
