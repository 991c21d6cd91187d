"""A replica without consensus that can be followed."""

from dataclasses import dataclass, field

from reachnode.peers.raft.arrivals import Follower
from reachnode.registry.commands import Command
from reachnode.registry.state import State
from reachnode.serve.ports import Fate
from tests.serve.local_replica import LocalReplica


@dataclass
class Arriving:
    """Where its followers join."""

    followers: list[Follower] = field(default_factory=list)


@dataclass
class FollowedReplica(LocalReplica):
    """Keeps the promises of `node.ports.FollowedReplica` for a cluster of one."""

    arrivals: Arriving = field(default_factory=Arriving)

    async def propose(
        self, command: Command, *, deadline: float, request_id: str | None = None
    ) -> Fate:
        before = self.state
        fate = await super().propose(command, deadline=deadline, request_id=request_id)
        if self.answers is None:
            self.tell(before, (command,))
        return fate

    def install(self, state: State, index: int) -> None:
        """Go on from a snapshot."""
        before, self.state, self.applied_index = self.state, state, index
        self.tell(before, None)

    def tell(self, before: State, commands: tuple[Command, ...] | None) -> None:
        """Tell the followers."""
        for follower in self.arrivals.followers:
            follower.followed(self.applied_index, before, self.state, commands)
