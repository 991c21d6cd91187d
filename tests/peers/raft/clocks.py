"""A clock that moves when it is told, and a hair at each reading."""

import random

EPSILON_SECONDS = 1e-7
"""The engine waits for the clock to move: one that stands still would hang it."""


class Clock:
    """Time by hand, for any number of nodes."""

    def __init__(self, at: float = 100.0) -> None:
        self.at = at


class ManualSources:
    """A clock, dice with a seed, and ids that count up."""

    def __init__(self, name: str = "x", clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.draw: random.Random = random.Random(name)
        self._name = name
        self._ids_count = 0

    def now(self) -> float:
        """Return the time."""
        self.clock.at += EPSILON_SECONDS
        return self.clock.at

    def wall_ms(self) -> int:
        """Return the time in milliseconds."""
        return int(self.clock.at * 1000)

    def new_id(self) -> str:
        """Return the next id, which no other node has."""
        self._ids_count += 1
        return f"{self._name}-{self._ids_count}".ljust(32, "0")
