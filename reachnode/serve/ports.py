"""What the HTTP front needs from rooms beside it, as ports."""

from typing import Protocol

from reachnode.model.membership import ReplicaStatus, Unknown
from reachnode.registry.commands import Command
from reachnode.registry.outcomes import Applied, Refused
from reachnode.registry.state import State

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
