"""What a benchmark compares: clusters of three that take the same change over HTTP."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from reachnode import __version__
from sim.live.client import Answer, request_bytes
from sim.live.cluster import LiveCluster, LiveNode


class Contender(Protocol):
    """A cluster under test."""

    @property
    def name(self) -> str:
        """What it is called in results."""
        ...

    @property
    def version(self) -> str:
        """What it says its version is."""
        ...

    @property
    def nodes(self) -> Sequence[LiveNode]:
        """Its members."""
        ...

    async def start(self) -> None:
        """Start every member and wait for a leader."""
        ...

    def end(self) -> None:
        """Kill whatever still runs."""
        ...

    async def agreed(self, *, seconds: float) -> LiveNode:
        """Return the leader, once every member names the same one."""
        ...

    def change(self, name: str, agent_id: str) -> bytes:
        """Return a request for one change.

        Args:
            name: Unlike every other change's.
            agent_id: What is changed.
        """
        ...

    def is_confirmed(self, answer: Answer) -> bool:
        """Return whether an answer says that the change is made."""
        ...


def registration(name: str, agent_id: str) -> dict[str, Any]:
    """Return the document that is written: one agent with one capability, 200 bytes or so."""
    return {
        "agent_id": agent_id,
        "replace": True,
        "metadata": {"zone": "z1", "tags": {"value": name}},
        "capabilities": [
            {"name": "load.write", "protocol": "rest", "endpoint": "http://127.0.0.1:9/work"}
        ],
    }


class Ours:
    """Three nodes of reachnode with default settings."""

    name = "reachnode"
    version = __version__

    def __init__(self, directory: Path) -> None:
        self._cluster = LiveCluster(directory)
        self.nodes = self._cluster.nodes

    async def start(self) -> None:
        """Start every node and wait for a leader."""
        await self._cluster.start()

    def end(self) -> None:
        """Kill whatever still runs."""
        self._cluster.end()

    async def agreed(self, *, seconds: float) -> LiveNode:
        """Return the leader, once every node names the same one."""
        return await self._cluster.agreed(seconds=seconds)

    def change(self, name: str, agent_id: str) -> bytes:
        """Return a request that registers an agent."""
        headers = {"Idempotency-Key": name}
        return request_bytes("POST", "/register", registration(name, agent_id), headers)

    def is_confirmed(self, answer: Answer) -> bool:
        """Return whether an answer says that the change is made."""
        return answer.status in (200, 201)
