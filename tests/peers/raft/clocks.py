"""A clock that moves when it is told, and a hair at each reading."""

import random

EPSILON_SECONDS = 1e-7
"""The engine waits for the clock to move: one that stands still would hang it."""


class ManualSources:
    """Time by hand, dice with a seed, and ids that count up."""

    def __init__(self, name: str = "x", at: float = 100.0) -> None:
        self.draw: random.Random = random.Random(name)
        self.at = at
        self._name = name
        self._ids_count = 0

    def now(self) -> float:
        """Return the time."""
        self.at += EPSILON_SECONDS
        return self.at

    def wall_ms(self) -> int:
        """Return the time in milliseconds."""
        return int(self.at * 1000)

    def new_id(self) -> str:
        """Return the next id, which no other node has."""
        self._ids_count += 1
        return f"{self._name}-{self._ids_count}".ljust(32, "0")
