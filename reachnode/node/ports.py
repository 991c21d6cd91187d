"""What a node needs from the replica beyond what its clients do."""

from collections.abc import Mapping
from typing import Protocol

import trio

from reachnode.model.address import Address
from reachnode.peers.raft.arrivals import Follower
from reachnode.peers.switchboard import Switchboard
from reachnode.serve.ports import Replica


class Arriving(Protocol):
    """Where those join who follow what a replica applies."""

    followers: list[Follower]


class FollowedReplica(Replica, Protocol):
    """A replica that can be followed."""

    @property
    def arrivals(self) -> Arriving:
        """Where its followers join."""
        ...


class RunningReplica(FollowedReplica, Protocol):
    """A replica that has to be run."""

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Take part in the cluster until cancelled.

        Started, with the bound peer address, once what the disk held is read.
        """
        ...

    @property
    def switchboard(self) -> Switchboard:
        """Where other services share its mesh."""
        ...

    def link_counters(self) -> Mapping[str, int]:
        """Return the peer links' counters, by name."""
        ...
