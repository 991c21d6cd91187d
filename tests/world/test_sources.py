"""Time, chance and names of a real node."""

import re
import time
from typing import Any

import trio
import trio.testing

from reachnode.world.sources import Sources, SystemSources


async def test_the_clock_is_trios(autojump_clock: trio.testing.MockClock) -> None:
    """A test that replaces the one replaces the other; it only moves on."""
    sources = SystemSources()
    began_at = sources.now()
    assert began_at == trio.current_time()
    await trio.sleep(2.5)
    assert sources.now() - began_at == 2.5


def test_the_wall_clock_is_in_milliseconds() -> None:
    """Since the Unix epoch, whole ones."""
    before = time.time_ns() // 1_000_000
    wall_ms: Any = SystemSources().wall_ms()
    assert isinstance(wall_ms, int)
    assert before <= wall_ms <= time.time_ns() // 1_000_000


def test_ids_are_fresh_and_of_one_shape() -> None:
    """128 random bits in lower-case hexadecimal digits."""
    sources = SystemSources()
    ids = {sources.new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)


def test_the_dice_are_the_systems() -> None:
    """Nobody can seed them, and two nodes never throw alike."""
    one, other = SystemSources(), SystemSources()
    one.draw.seed(1)
    other.draw.seed(1)
    assert one.draw.random() != other.draw.random()
    assert 0 <= one.draw.uniform(0, 1) <= 1


def test_the_system_keeps_the_port() -> None:
    """A real node and a simulated one are handed the same."""
    sources: Sources = SystemSources()
    assert sources.draw is sources.draw
