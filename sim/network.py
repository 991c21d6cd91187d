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
class Way:
    """One direction of one connection."""

    is_cut: bool = False
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
        self._up: dict[frozenset[str], bool] = {}
        self._epoch: dict[frozenset[str], int] = {}
        self._cuts: dict[Edge, int] = {}
        self._ways: dict[tuple[str, str, int], Way] = {}
        self.messages_count = 0
        for a in self._members:
            for b in self._members:
                if a == b:
                    continue
                self._up[frozenset((a, b))] = False
                self._epoch[frozenset((a, b))] = 0
                self._cuts[a, b] = 0
                for lane in LANES:
                    self._ways[a, b, lane] = Way()

    def is_up(self, a: str, b: str) -> bool:
        """Return whether two members are connected."""
        return self._up[frozenset((a, b))]

    def send(self, a: str, b: str, lane: int, data: bytes) -> bool:
        """Send from `a` to `b`; return whether there is a connection."""
        pair = frozenset((a, b))
        if not self._up[pair]:
            return False
        self._send_on(a, b, lane, data)
        return True

    def _send_on(self, a: str, b: str, lane: int, data: bytes) -> None:
        """Deliver after a delay, behind everything sent before."""
        way = self._ways[a, b, lane]
        low, high = self._delay
        at = max(way.last_at + 1e-6, self._timeline.now + low + self._draw.random() * (high - low))
        way.last_at = at
        epoch = self._epoch[frozenset((a, b))]
        self._timeline.after(at - self._timeline.now, self._arrive, a, b, lane, data, epoch)

    def _arrive(self, a: str, b: str, lane: int, data: bytes, epoch: int) -> None:
        """Hand a message over, unless its connection is gone, or cut: then it waits.

        Only here is a cut looked at. What is under way when it begins comes before what is
        sent later, and when it ends what waited comes before what is under way.
        """
        if self._epoch[frozenset((a, b))] != epoch or not self._ends.is_alive(b):
            return
        way = self._ways[a, b, lane]
        if self._cuts[a, b] or way.stalled:
            way.stalled.append(data)
            return
        self.messages_count += 1
        self._ends.deliver(a, b, lane, data)

    def _drain(self, a: str, b: str, lane: int, epoch: int) -> None:
        """Deliver what waited, one message after the other."""
        way = self._ways[a, b, lane]
        if self._epoch[frozenset((a, b))] != epoch or self._cuts[a, b] or not way.stalled:
            return
        if self._ends.is_alive(b):
            self.messages_count += 1
            self._ends.deliver(a, b, lane, way.stalled[0])
        if self._epoch[frozenset((a, b))] == epoch and way.stalled:
            way.stalled.popleft()
            self._timeline.after(1e-6, self._drain, a, b, lane, epoch)

    def connect(self, a: str, b: str) -> None:
        """Try to connect two members; try again later if there is no way."""
        pair = frozenset((a, b))
        if self._up[pair] or not (self._ends.is_alive(a) and self._ends.is_alive(b)):
            return
        if self._cuts[a, b] or self._cuts[b, a]:
            self._timeline.after(0.2 + self._draw.random() * 0.5, self.connect, a, b)
            return
        self._up[pair] = True
        self._epoch[pair] += 1
        self._ends.up(a, b)
        if self._up[pair]:
            self._ends.up(b, a)

    def connect_soon(self, member: str) -> None:
        """Connect a member to all the others in a moment."""
        for other in self._members:
            if other != member:
                delay = 0.02 + self._draw.random() * 0.2
                self._timeline.after(delay, self.connect, member, other)

    def break_off(self, a: str, b: str, *, again: bool = True) -> None:
        """Break the connection of two members; they connect again in a while."""
        pair = frozenset((a, b))
        if not self._up[pair]:
            return
        self._up[pair] = False
        self._epoch[pair] += 1
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
            self._cuts[a, b] += 1
            pair = frozenset((a, b))
            self._timeline.after(DEAD_AFTER_SECONDS, self._find_dead, a, b, self._epoch[pair])
        self._timeline.after(seconds, self.heal, edges)

    def isolate(self, member: str, seconds: float, *, besides: Iterable[str] = ()) -> None:
        """Cut a member off from all the others, both ways."""
        spared = set(besides)
        others = [other for other in self._members if other != member and other not in spared]
        self.cut([(member, o) for o in others] + [(o, member) for o in others], seconds)

    def _find_dead(self, a: str, b: str, epoch: int) -> None:
        """Break a connection that has been cut all the time."""
        pair = frozenset((a, b))
        if self._cuts[a, b] and self._epoch[pair] == epoch:
            self.break_off(a, b)

    def heal(self, edges: Iterable[Edge]) -> None:
        """Let some directions work again; what stalled arrives, in order."""
        for a, b in edges:
            if self._cuts[a, b] == 0:
                continue
            self._cuts[a, b] -= 1
            if self._cuts[a, b] == 0:
                self._resume(a, b)

    def heal_all(self) -> None:
        """Let everything work again."""
        for (a, b), count in self._cuts.items():
            if count:
                self._cuts[a, b] = 0
                self._resume(a, b)
        for a in self._members:
            self.connect_soon(a)

    def _resume(self, a: str, b: str) -> None:
        """Let what waited in one direction arrive, after a delay."""
        epoch = self._epoch[frozenset((a, b))]
        for lane in LANES:
            delay = self._draw.uniform(*self._delay)
            self._timeline.after(delay, self._drain, a, b, lane, epoch)
        self._timeline.after(0.05 + self._draw.random() * 0.5, self.connect, a, b)
