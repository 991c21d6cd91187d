"""When watchers have news, and what was seen to change lately.

Nothing is kept for a watcher but its place. Twenty times a second, while there are any, it is
looked whether something changed; if so a bell rings once for all of them, and each works out
the difference between its place and now. So whatever changes within 50 ms is one update, and a
watcher that is slow costs no memory.

What the log changed is found again on every node. What was seen (`suspect`, `healthy`) each
node sees for itself: whoever comes back with an index is told again what was seen since the
log stood there.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from reachnode.errors import Busy, ShuttingDown
from reachnode.model.liveness import InstanceState
from reachnode.registry.changes import CHANGES_MAX, ChangeLog, Was
from reachnode.registry.state import State
from reachnode.serve.ports import Replica, Sights

MERGE_SECONDS = 0.05
WATCHERS_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Up to where a watcher was told everything."""

    index: int
    """Of the log."""
    number: int
    """Of what this node saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What happened since a place."""

    place: Place
    """Where whoever tells it all stands then."""
    state: State
    changed: Mapping[str, Was | None]
    stirred: Mapping[str, InstanceState]


class Herald:
    """One node's news.

    Args:
        replica: What is registered.
        sights: What is seen of it.
        seen_max: How many changes that were seen are remembered at least.
    """

    def __init__(self, replica: Replica, sights: Sights, *, seen_max: int = CHANGES_MAX) -> None:
        self._replica = replica
        self._sights = sights
        self._seen: ChangeLog[InstanceState] = ChangeLog(0, changes_max=seen_max)
        """What was seen to change, counted by `_number`, with the state before it."""
        self._marks: list[tuple[int, int]] = []
        """At which applied index each number was noted, both rising."""
        self._forgotten_at = -1
        """At which the last of those was noted that are no longer remembered."""
        self._number = 0
        self._index = replica.applied_index
        self._is_wanted = trio.Event()
        self._looking = trio.CancelScope()
        self.bell = trio.Event()
        """Set with the next news; another takes its place then."""
        self.is_over = False
        self.watchers_count = 0
        self.watchers_max = WATCHERS_MAX
        self.counters: Counter[str] = Counter(refused=0, expired=0)
        """Watchers that were refused, or had to start over because they were slow."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look for news until it is over."""
        task_status.started()
        with self._looking:
            while True:
                if not self.watchers_count:
                    self._is_wanted = trio.Event()
                    await self._is_wanted.wait()
                self.look()
                await trio.sleep(MERGE_SECONDS)

    def end(self) -> None:
        """Let every watcher go, and take none."""
        self.is_over = True
        self._looking.cancel()
        self._ring()

    def look(self) -> None:
        """Note what was seen to change, and ring if there is news."""
        stirred = self._sights.stirred()
        index = self._replica.applied_index
        if stirred:
            self._number += 1
            self._marks.append((index, self._number))
            for agent_id, state in stirred.items():
                self._seen.note(self._number, agent_id, state)
            while self._marks[0][1] <= self._seen.floor:
                self._forgotten_at, _ = self._marks.pop(0)
        if stirred or self._sights.changes.since(self._index) != {}:
            self._ring()
        self._index = index

    def refuse_more(self) -> None:
        """Raise where there is no place for a further watcher.

        Raises:
            Busy: There are as many as this node bears.
            ShuttingDown: It is about to stop.
        """
        if self.is_over:
            raise ShuttingDown("this node is about to stop; watch another")
        if self.watchers_count >= self.watchers_max:
            self.counters["refused"] += 1
            raise Busy(f"{self.watchers_count} watch this node already; watch another")

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Count one watcher in, while it watches."""
        self.watchers_count += 1
        self._is_wanted.set()
        try:
            yield
        finally:
            self.watchers_count -= 1

    def here(self) -> Place:
        """Return the place of whoever takes everything as it is at this moment."""
        self.look()
        return Place(index=self._replica.applied_index, number=self._number)

    def back_at(self, index: int) -> Place:
        """Return the place of whoever was told everything up to an index of the log.

        What was seen while the log stood there counts as news: it may be.
        """
        self.look()
        if self._forgotten_at >= index:
            return Place(index=index, number=-1)
        at = bisect_left(self._marks, (index, 0))
        number = self._marks[at][1] - 1 if at < len(self._marks) else self._number
        return Place(index=index, number=number)

    def since(self, place: Place) -> News | None:
        """Return what happened since a place, None if that isn't remembered."""
        changed = self._sights.changes.since(place.index)
        stirred = self._seen.since(place.number)
        if changed is None or stirred is None:
            return None
        now = Place(index=self._replica.applied_index, number=self._number)
        return News(place=now, state=self._replica.state, changed=changed, stirred=stirred)

    def _ring(self) -> None:
        self.bell.set()
        self.bell = trio.Event()
