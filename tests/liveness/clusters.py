"""Nodes whose loops are run by hand, for the stories of this room."""

import random
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from reachnode.liveness.outlook import Outlook
from reachnode.model.liveness import Heartbeat, Liveness, ProbeOrder
from reachnode.registry.apply import EFFECTS
from reachnode.registry.commands import Command
from reachnode.registry.state import State, genesis
from tests.liveness.crowds import registered

BEAT = Heartbeat()
FINE = Heartbeat(self_check=True)
TICK = 0.5


class Cluster:
    """Outlooks of several nodes, in virtual time, whose loops are run by hand.

    Agents beat to a home and answer probes, unless a test says otherwise.
    """

    def __init__(self, state: State, *nodes: str) -> None:
        self.now = 100.0
        self.state = state
        self.dice = random.Random(1)
        self.nodes = {node: Outlook(me=node, boot=1, state=state, now=self.now) for node in nodes}
        self.told: dict[tuple[str, str], int] = {}
        self.cut: set[str] = set()
        self.homes: dict[str, str] = {}
        self.beat_at: dict[str, float] = {}
        self.reachable: Callable[[str, str], bool] = lambda node, agent_id: True
        self.index = 1_000
        self.commands: list[Command] = []
        self.probes: list[tuple[str, str]] = []

    def __getitem__(self, node: str) -> Outlook:
        return self.nodes[node]

    def apply(self, command: Command) -> None:
        """Let the log say something, on every node alike."""
        self.index += 1
        before = self.state
        self.state, _ = EFFECTS[type(command)](before, self.index, command)
        changed = [
            agent_id
            for agent_id in sorted({*before.agents, *self.state.agents})
            if before.agents.get(agent_id) is not self.state.agents.get(agent_id)
        ]
        for outlook in self.nodes.values():
            outlook.follow(self.state, changed, now=self.now)

    def beat(self, node: str, agent_id: str, heartbeat: Heartbeat = BEAT) -> None:
        """Let an instance beat to a node."""
        self[node].heartbeat(agent_id, heartbeat, now=self.now)

    def gossip(self) -> None:
        """Let every node tell every other what is new, unless one of them is cut off."""
        for node, outlook in self.nodes.items():
            for peer, other in self.nodes.items():
                if node == peer or {node, peer} & self.cut:
                    continue
                while True:
                    delta = outlook.tell(self.told.get((node, peer), 0), now=self.now, most=7)
                    self.told[node, peer] = delta.sequence
                    other.take(delta, now=self.now)
                    if delta.sequence == outlook.told_up_to:
                        break

    def probe(self, node: str) -> None:
        """Let a node make the probes that are due, and ask whom it wants to ask."""
        outlook = self[node]
        for order in outlook.probes_due(now=self.now, draw=self.dice.random):
            self.probes.append((node, order.agent_id))
            asked = outlook.probed(order, self.fault(node, order), now=self.now)
            if asked is None or {node, asked} & self.cut:
                continue
            peer = self[asked]
            second = peer.asked(order.agent_id, order.incarnation, now=self.now)
            if second is not None:
                is_reached = peer.opined(second, self.fault(asked, second), now=self.now)
                outlook.opinion(order.agent_id, order.incarnation, is_reached=is_reached)

    def fault(self, node: str, order: ProbeOrder) -> str:
        return "" if self.reachable(node, order.agent_id) else "timeout"

    def propose(self, node: str) -> None:
        """Let a node propose what it wants to; a cut-off one can't."""
        commands = self[node].proposals()
        if node in self.cut:
            return
        for command in commands:
            self.commands.append(command)
            self.apply(command)

    def run(self, seconds: float) -> None:
        """Let time pass: heartbeats, sweeps, gossip, probes and proposals of every node."""
        for _ in range(round(seconds / TICK)):
            self.now += TICK
            for agent_id, home in self.homes.items():
                if self.now >= self.beat_at.get(agent_id, 0.0) + 3.0:
                    self.beat_at[agent_id] = self.now
                    self.beat(home, agent_id, FINE)
            for node in self.nodes:
                self[node].sweep(now=self.now)
            self.gossip()
            for node in self.nodes:
                self.probe(node)
                self.propose(node)

    def seen(self, agent_id: str, node: str = "n1") -> Liveness:
        """Return what a node makes of an instance."""
        return self[node].of(self.state.agents[agent_id])

    def states(self, node: str = "n1") -> set[str]:
        """Return all states that a node sees."""
        return {self.seen(agent_id, node).state for agent_id in self.state.agents}


def three(*agent_ids: str) -> Cluster:
    """Return a cluster of three nodes with some instances registered."""
    return Cluster(registered(*agent_ids), "n1", "n2", "n3")


def alone(state: State) -> Cluster:
    """Return a cluster that has one member."""
    return Cluster(replace(state, members=genesis("c1", {"n1": "d0"}).members), "n1")


def homes(agent_ids: Iterable[str], *nodes: str) -> dict[str, str]:
    """Return a home for each instance, in turn."""
    return {agent_id: nodes[at % len(nodes)] for at, agent_id in enumerate(sorted(agent_ids))}
