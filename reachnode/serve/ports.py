"""What the HTTP front needs from rooms beside it, as ports."""

from collections.abc import Mapping
from typing import Protocol

from reachnode.model.liveness import Heard, Heartbeat, InstanceState, Liveness
from reachnode.model.membership import ReplicaStatus, Unknown
from reachnode.registry.changes import ChangeLog, Was
from reachnode.registry.commands import Command
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.state import Record, State

Fate = Applied | Refused | Unknown
"""What became of a change by its deadline."""


class Replica(Protocol):
    """This node's copy of the registry, and the way to change it.

    Deadlines are on the clock of `world.sources`.
    """

    @property
    def state(self) -> State:
        """The state at `applied_index`; it never changes, a newer one takes its place."""
        ...

    @property
    def applied_index(self) -> int:
        """The log index up to which `state` has everything."""
        ...

    def status(self) -> ReplicaStatus:
        """Return where this replica stands now."""
        ...

    async def propose(
        self, command: Command, *, deadline: float, request_id: str | None = None
    ) -> Fate:
        """Return what became of a change; a repeat under the same id counts once."""
        ...

    async def read_fence(self, *, deadline: float) -> int | Refused | Unknown:
        """Return the index at which this node's state is linearizable."""
        ...

    async def wait_applied(self, index: int, *, deadline: float) -> bool:
        """Return whether the state reached an index by the deadline."""
        ...

    async def replace_member(self, member_id: str, deadline: float) -> Fate:
        """Return what became of admitting the disk a member greets with now."""
        ...

    async def transfer_leadership(self) -> bool:
        """Return whether this node led and another took over."""
        ...


class Sights(Protocol):
    """What this node makes of instances. Times are on the clock of `world.sources`."""

    @property
    def changes(self) -> ChangeLog[Was | None]:
        """What the log changed of instances lately, by applied index."""
        ...

    @property
    def counts(self) -> Mapping[InstanceState, int]:
        """How many instances are in each state."""
        ...

    @property
    def addresses(self) -> Mapping[str, str]:
        """Where the clients of other nodes that are up connect, by node."""
        ...

    @property
    def counters(self) -> Mapping[str, int]:
        """What was told to other nodes, and asked of them, by name."""
        ...

    def heartbeat(self, agent_id: str, heartbeat: Heartbeat) -> Heard:
        """Take a heartbeat and return what the instance is to be told.

        Raises:
            UnknownAgent: It isn't registered, as far as this node knows.
            Superseded: Its id was taken over by a later registration.
        """
        ...

    def of(self, record: Record) -> Liveness:
        """Return what this node makes of an instance."""
        ...

    def stirred(self) -> Mapping[str, InstanceState]:
        """Return whose state was seen to change since this was last asked, and from what."""
        ...

    async def is_there(self, record: Record) -> bool:
        """Return whether an instance answers, looked at now; it takes seconds if it doesn't."""
        ...
