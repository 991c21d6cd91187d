"""Connections between simulated nodes: in order like TCP, and broken in every way TCP is.

A message is delayed, or stalled while its direction is cut and delivered later in order,
or lost together with its connection. It is never reordered, doubled or changed.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sim.clock import Timeline

Edge = tuple[str, str]
CONSENSUS, BULK = 0, 1
LANES = (CONSENSUS, BULK)
DEAD_AFTER_SECONDS = 3.5
"""A connection that is cut for so long is found dead by its ends."""


@dataclass(slots=True)
class Pair:
    """Two members and whether they are connected."""

    is_up: bool = False
    epoch: int = 0
    """Numbers their connections, and the gaps between them."""


@dataclass(slots=True)
class Direction:
    """From one member to another, whatever the connection."""

    cuts_count: int = 0


@dataclass(slots=True, eq=False)
class Way:
    """One direction of one connection."""

    sender: str
    receiver: str
    lane: int
    pair: Pair
    direction: Direction
    last_at: float = 0.0
    stalled: deque[bytes] = field(default_factory=deque)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """How the network tells the nodes. `deliver` gets (from, to, lane, data)."""

    is_alive: Callable[[str], bool]
    up: Callable[[str, str], None]
    down: Callable[[str, str], None]
    deliver: Callable[[str, str, int, bytes], None]


class SimNetwork:
    """Every pair of members, with a connection per lane that stands or falls together.

    Args:
        delay_seconds: The least and the most a message takes.
    """

    def __init__(
        self,
        members: Iterable[str],
        *,
        timeline: Timeline,
        draw: random.Random,
        delay_seconds: tuple[float, float],
        ends: Ends,
    ) -> None:
        self._members = sorted(members)
        self._timeline = timeline
        self._draw = draw
        self._delay = delay_seconds
        self._ends = ends
        self._pairs: dict[Edge, Pair] = {}
        self._directions: dict[Edge, Direction] = {}
        self._ways: dict[tuple[str, str, int], Way] = {}
        for a in self._members:
            for b in self._members:
                if a == b:
                    continue
                pair = self._pairs[a, b] = self._pairs.get((b, a)) or Pair()
                direction = self._directions[a, b] = Direction()
                for lane in LANES:
                    self._ways[a, b, lane] = Way(a, b, lane, pair, direction)

    def is_up(self, a: str, b: str) -> bool:
        """Return whether two members are connected."""
        return self._pairs[a, b].is_up

    def send(self, a: str, b: str, lane: int, data: bytes) -> bool:
        """Send from `a` to `b`, behind everything sent before; return whether there is a way."""
        way = self._ways[a, b, lane]
        if not way.pair.is_up:
            return False
        low, high = self._delay
        now = self._timeline.now
        at = max(way.last_at + 1e-6, now + low + self._draw.random() * (high - low))
        way.last_at = at
        self._timeline.after(at - now, self._arrive, way, data, way.pair.epoch)
        return True

    def _arrive(self, way: Way, data: bytes, epoch: int) -> None:
        """Hand a message over, unless its connection is gone, or cut: then it waits.

        Only here is a cut looked at. What is under way when it begins comes before what is
        sent later, and when it ends what waited comes before what is under way.
        """
        if way.pair.epoch != epoch:
            return
        if way.direction.cuts_count or way.stalled:
            way.stalled.append(data)
            return
        self._ends.deliver(way.sender, way.receiver, way.lane, data)

    def _drain(self, way: Way, epoch: int) -> None:
        """Deliver what waited, one message after the other."""
        if way.pair.epoch != epoch or way.direction.cuts_count or not way.stalled:
            return
        self._ends.deliver(way.sender, way.receiver, way.lane, way.stalled[0])
        if way.pair.epoch == epoch and way.stalled:
            way.stalled.popleft()
            self._timeline.after(1e-6, self._drain, way, epoch)

    def connect(self, a: str, b: str) -> None:
        """Try to connect two members; try again later if there is no way."""
        pair = self._pairs[a, b]
        if pair.is_up or not (self._ends.is_alive(a) and self._ends.is_alive(b)):
            return
        if self._directions[a, b].cuts_count or self._directions[b, a].cuts_count:
            self._timeline.after(0.2 + self._draw.random() * 0.5, self.connect, a, b)
            return
        pair.is_up = True
        pair.epoch += 1
        self._ends.up(a, b)
        if pair.is_up:
            self._ends.up(b, a)

    def connect_soon(self, member: str) -> None:
        """Connect a member to all the others in a moment."""
        for other in self._members:
            if other != member:
                delay = 0.02 + self._draw.random() * 0.2
                self._timeline.after(delay, self.connect, member, other)

    def break_off(self, a: str, b: str, *, again: bool = True) -> None:
        """Break the connection of two members; they connect again in a while."""
        pair = self._pairs[a, b]
        if not pair.is_up:
            return
        pair.is_up = False
        pair.epoch += 1
        for x, y in ((a, b), (b, a)):
            for lane in LANES:
                self._ways[x, y, lane].stalled.clear()
            if self._ends.is_alive(x):
                self._ends.down(x, y)
        if again:
            self._timeline.after(0.1 + self._draw.random(), self.connect, a, b)

    def cut(self, edges: Iterable[Edge], seconds: float) -> None:
        """Stall some directions for a while; a connection cut too long is found dead."""
        edges = list(edges)
        for a, b in edges:
            self._directions[a, b].cuts_count += 1
            epoch = self._pairs[a, b].epoch
            self._timeline.after(DEAD_AFTER_SECONDS, self._find_dead, a, b, epoch)
        self._timeline.after(seconds, self.heal, edges)

    def isolate(self, member: str, seconds: float, *, besides: Iterable[str] = ()) -> None:
        """Cut a member off from all the others, both ways."""
        spared = set(besides)
        others = [other for other in self._members if other != member and other not in spared]
        self.cut([(member, o) for o in others] + [(o, member) for o in others], seconds)

    def _find_dead(self, a: str, b: str, epoch: int) -> None:
        """Break a connection that has been cut all the time."""
        if self._directions[a, b].cuts_count and self._pairs[a, b].epoch == epoch:
            self.break_off(a, b)

    def heal(self, edges: Iterable[Edge]) -> None:
        """Let some directions work again; what stalled arrives, in order."""
        for a, b in edges:
            direction = self._directions[a, b]
            if direction.cuts_count == 0:
                continue
            direction.cuts_count -= 1
            if direction.cuts_count == 0:
                self._resume(a, b)

    def heal_all(self) -> None:
        """Let everything work again."""
        for (a, b), direction in self._directions.items():
            if direction.cuts_count:
                direction.cuts_count = 0
                self._resume(a, b)
        for a in self._members:
            self.connect_soon(a)

    def _resume(self, a: str, b: str) -> None:
        """Let what waited in one direction arrive, after a delay."""
        epoch = self._pairs[a, b].epoch
        for lane in LANES:
            delay = self._draw.uniform(*self._delay)
            self._timeline.after(delay, self._drain, self._ways[a, b, lane], epoch)
        self._timeline.after(0.05 + self._draw.random() * 0.5, self.connect, a, b)
