"""Who is alive: the loops around this node's outlook.

    every 0.1 s   probes that are due are made; each result goes to the outlook
    every 0.5 s   what changed is pushed to the peers, silence is looked at, and what follows
                  for the log (down, up again) is proposed

The outlook decides, here it is done. It follows the log entry by entry, and so does the list
of changes that watchers are told from.
"""

import logging
from collections import deque
from collections.abc import Mapping

import trio

from reachnode.channels.probe import probe
from reachnode.liveness.outlook import Outlook
from reachnode.liveness.probes import order_of
from reachnode.model.liveness import Heard, Heartbeat, InstanceState, Liveness, ProbeOrder
from reachnode.node.ports import FollowedReplica
from reachnode.peers.gossip import Gossip
from reachnode.peers.switchboard import Switchboard
from reachnode.registry.changes import ChangeLog, Was, note_changes
from reachnode.registry.commands import Command, MarkDown, MarkUp
from reachnode.registry.outcomes import Applied
from reachnode.registry.state import Record, State
from reachnode.world.network import Network
from reachnode.world.sources import Sources

LOG = logging.getLogger(__name__)
PROBE_SECONDS = 0.1
PUSH_SECONDS = 0.5
PROBES_MAX = 256
"""Probes under way at once. The outlook makes at most 100 a second, each with a timeout, so
that as many again may wait for a place."""
ASKED_MAX = 256
"""Opinions that peers wait for; further questions are dropped, and asked again."""
PROPOSE_SECONDS = 5.0


class Lookout:
    """One node's eyes and ears.

    Args:
        me: This node's id.
        replica: What is registered, and the way to mark instances down.
        switchboard: The mesh that gossip shares.
        network: How instances are probed.
        sources: Time and chance.
    """

    def __init__(
        self,
        *,
        me: str,
        replica: FollowedReplica,
        switchboard: Switchboard,
        network: Network,
        sources: Sources,
    ) -> None:
        self._me = me
        self._replica = replica
        self._network = network
        self._sources = sources
        self._state = replica.state
        self._asked: deque[tuple[str, ProbeOrder]] = deque(maxlen=ASKED_MAX)
        self._under_way = trio.CapacityLimiter(PROBES_MAX)
        self._is_proposing = False
        self.changes: ChangeLog[Was | None] = ChangeLog(replica.applied_index)
        """What the log changed of instances lately."""
        self.outlook = Outlook(me=me, boot=sources.wall_ms(), state=self._state, now=sources.now())
        self.gossip = Gossip(self.outlook, switchboard, sources, self._take_question)
        replica.arrivals.followers.append(self)

    # --- what clients bring and ask

    def heartbeat(self, agent_id: str, heartbeat: Heartbeat) -> Heard:
        """Take a heartbeat and return what the instance is to be told.

        Raises:
            UnknownAgent: It isn't registered, and should register again.
            Superseded: Its id was taken over by a later registration.
        """
        return self.outlook.heartbeat(agent_id, heartbeat, now=self._sources.now())

    def of(self, record: Record) -> Liveness:
        """Return what this node makes of an instance."""
        return self.outlook.of(record)

    @property
    def counts(self) -> Mapping[InstanceState, int]:
        """How many instances are in each state."""
        return self.outlook.counts

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where the clients of each connected peer connect."""
        return self.gossip.addresses

    @property
    def counters(self) -> Mapping[str, int]:
        """What was told to the peers, and asked of them, by name."""
        return self.gossip.counters

    def stirred(self) -> Mapping[str, InstanceState]:
        """Return whose state was seen to change since this was last asked, and from what."""
        return self.outlook.stirred()

    async def is_there(self, record: Record) -> bool:
        """Return whether an instance answers a probe now.

        One that can't be probed is there while it beats. So is one that beats and that this
        node couldn't reach before either: the fault may be here.
        """
        seen = self.of(record)
        order = order_of(record.instance, self._state.settings.probes)
        if order is None:
            return seen.is_beating
        async with self._under_way:
            fault = await probe(order, self._network)
        return not fault or (seen.is_beating and self._me in seen.unreachable_from)

    # --- following the log

    def followed(
        self, index: int, before: State, after: State, commands: tuple[Command, ...] | None
    ) -> None:
        """Take note of an applied entry."""
        if commands is None or before is not self._state:
            # A snapshot, or a start from one: anything may have changed.
            touched = set(self._state.agents) | set(after.agents)
            self.changes.restart(index)
            agent_ids: tuple[str, ...] = tuple(sorted(touched))
        else:
            agent_ids = note_changes(
                self.changes, index, before=before, after=after, commands=commands
            )
        is_new = after.settings is not self._state.settings
        self._state = after
        if agent_ids or is_new:
            self.outlook.follow(after, agent_ids, now=self._sources.now())

    # --- the loops

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look out until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_probing, nursery)
            nursery.start_soon(self._keep_telling, nursery)
            task_status.started()

    async def _keep_probing(self, nursery: trio.Nursery) -> None:
        """Make the probes that are due, and those that peers ask for."""
        while True:
            now = self._sources.now()
            for order in self.outlook.probes_due(now=now, draw=self._sources.draw.random):
                nursery.start_soon(self._probe, order)
            while self._asked:
                nursery.start_soon(self._answer, *self._asked.popleft())
            await trio.sleep(PROBE_SECONDS)

    async def _probe(self, order: ProbeOrder) -> None:
        """Make a probe, and ask a peer for its opinion if that follows."""
        async with self._under_way:
            fault = await probe(order, self._network)
        peer = self.outlook.probed(order, fault, now=self._sources.now())
        if peer is not None:
            self.gossip.ask(peer, order.agent_id, order.incarnation)

    async def _answer(self, peer: str, order: ProbeOrder) -> None:
        """Make a probe for a peer, and tell it the opinion."""
        async with self._under_way:
            fault = await probe(order, self._network)
        is_reached = self.outlook.opined(order, fault, now=self._sources.now())
        self.gossip.answer(peer, order, is_reached=is_reached)

    async def _keep_telling(self, nursery: trio.Nursery) -> None:
        """Tell the peers, look at silence, and propose what follows for the log."""
        while True:
            if self._replica.state is not self._state:
                # What this node started from was loaded, not applied.
                self.followed(self._replica.applied_index, self._state, self._replica.state, None)
            self.gossip.push()
            for agent_id in self.outlook.sweep(now=self._sources.now()):
                LOG.warning("%s is silent: suspect", agent_id)
            if not self._is_proposing:
                commands = self.outlook.proposals()
                if commands:
                    self._is_proposing = True
                    nursery.start_soon(self._propose, commands)
            await trio.sleep(PUSH_SECONDS)

    async def _propose(self, commands: tuple[MarkDown | MarkUp, ...]) -> None:
        """Propose that instances are down, or no longer are; what fails comes up again."""
        try:
            for command in commands:
                deadline = self._sources.now() + PROPOSE_SECONDS
                fate = await self._replica.propose(command, deadline=deadline)
                word = "down" if isinstance(command, MarkDown) else "up again"
                names = ", ".join(mark.agent_id for mark in command.marks[:10])
                if isinstance(fate, Applied):
                    LOG.warning("%d instances are %s: %s", len(command.marks), word, names)
                else:
                    LOG.warning("not marked as %s: %s (%s)", word, names, fate)
        finally:
            self._is_proposing = False

    def _take_question(self, peer: str, order: ProbeOrder) -> None:
        """Queue a peer's question; the oldest makes room for it."""
        self._asked.append((peer, order))
