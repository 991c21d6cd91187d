"""Who wants to know when this node has applied something: waiters once, followers always."""

from typing import Protocol

import trio

from reachnode.peers.raft.machine import Machine
from reachnode.registry.commands import Command
from reachnode.registry.state import State


class Follower(Protocol):
    """Whoever keeps something of its own beside the state. Must not raise, nor wait."""

    def followed(
        self, index: int, before: State, after: State, commands: tuple[Command, ...] | None
    ) -> None:
        """Take note of an applied entry.

        Args:
            index: Its index.
            before: The state it was applied to.
            after: The state it made.
            commands: What stood in it, applied and refused alike; None for a snapshot, which
                may have changed everything.
        """
        ...


class Arrivals:
    """The waiters and followers of one replica."""

    def __init__(self) -> None:
        self.followers: list[Follower] = []
        """Told of each entry in this order; whoever joins is told of what comes after."""
        self._waiters: dict[trio.Event, int] = {}
        """Who waits for an index; as many as there are requests that do."""

    def arrived(self, machine: Machine) -> None:
        """Tell everybody of the entry, or snapshot, that was just applied."""
        for follower in self.followers:
            follower.followed(machine.index, machine.before, machine.state, machine.commands)
        for reached, index in self._waiters.items():
            if index <= machine.index:
                reached.set()

    async def wait(self, index: int, *, deadline: float) -> None:
        """Wait until an index is applied, or the deadline passes."""
        reached = trio.Event()
        self._waiters[reached] = index
        try:
            with trio.move_on_at(deadline):
                await reached.wait()
        finally:
            del self._waiters[reached]
