"""Time, chance and names: where a node gets what it cannot compute.

Every room above the waterline is handed a `Sources` and asks nothing else, so that a
simulated node sees the simulator's time and dice. Rooms below the waterline are not
handed one at all: time and chance reach them as arguments.
"""

import random
import secrets
import time
from typing import Protocol

import trio


class Sources(Protocol):
    """A clock, dice and a maker of identifiers."""

    draw: random.Random
    """The dice. Seeded in the simulator, from the operating system in a node."""

    def now(self) -> float:
        """Return the monotonic clock in seconds; its zero means nothing."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch: for people, cron and token expiry only."""
        ...

    def new_id(self) -> str:
        """Return a fresh identifier: 32 lower-case hexadecimal digits, 128 random bits."""
        ...


class SystemSources:
    """The sources of a real node: trio's clock and the operating system's entropy."""

    def __init__(self) -> None:
        self.draw: random.Random = random.SystemRandom()

    def now(self) -> float:
        """Return trio's clock in seconds, which a test may replace by a virtual one."""
        return trio.current_time()

    def wall_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """Return 32 hexadecimal digits of operating-system entropy."""
        return secrets.token_hex(16)
