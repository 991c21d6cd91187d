"""Cluster time: the leader's logged ticks, and what falls due by them.

Time in the state moves only by ticks, and ticks are logged only while something waits for
them, at most once a second. Their length is measured on the leader's monotonic clock. A new
leader begins to measure anew, so cluster time may fall behind but never runs ahead.
"""

import logging

import trio

from reachnode.registry.commands import ADVANCE_MS_MAX, Advance, Forget
from reachnode.registry.outcomes import Applied
from reachnode.registry.queries import due
from reachnode.serve.ports import Replica
from reachnode.world.sources import Sources

LOG = logging.getLogger(__name__)
TICK_SECONDS = 1.0
PROPOSE_SECONDS = 5.0


class Timekeeper:
    """One node's part in it: everything while it leads, else nothing.

    Args:
        replica: What is registered, and the way to propose.
        sources: The clock.
    """

    def __init__(self, replica: Replica, sources: Sources) -> None:
        self._replica = replica
        self._sources = sources
        self._ticked_at: float | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep time until cancelled."""
        task_status.started()
        while True:
            await trio.sleep(TICK_SECONDS)
            await self.tick()

    async def tick(self) -> None:
        """Move cluster time on if something waits for it, and log what has fallen due."""
        now = self._sources.now()
        if self._replica.status().role != "leader":
            self._ticked_at = None
            return
        found = due(self._replica.state)
        if found.forget:
            names = ", ".join(mark.agent_id for mark in found.forget[:10])
            LOG.warning("%d instances were down too long: %s", len(found.forget), names)
            await self._propose(Forget(marks=found.forget))
        if not found.needs_time:
            self._ticked_at = None
            return
        if self._ticked_at is not None:
            by_ms = min(int((now - self._ticked_at) * 1000), ADVANCE_MS_MAX)
            if by_ms < 1 or not await self._propose(Advance(by_ms=by_ms)):
                return
        self._ticked_at = now

    async def _propose(self, command: Advance | Forget) -> bool:
        """Propose something; return whether it was applied. What wasn't comes up again."""
        deadline = self._sources.now() + PROPOSE_SECONDS
        return isinstance(await self._replica.propose(command, deadline=deadline), Applied)
