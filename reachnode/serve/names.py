"""The capabilities that are declared, for whoever misspells one.

They are brought up to date when somebody asks for a name that isn't declared: from what has
changed since the last time, or anew in slices. A node that nobody misspells to does nothing.
"""

import trio

from reachnode.registry.changes import ChangeLog, Was
from reachnode.registry.state import State
from reachnode.routing.close_names import CloseNames
from reachnode.serve.ports import Replica

SLICE = 100
"""Names taken in one turn."""


class KnownNames:
    """Close names of one node, as of the last time they were needed."""

    def __init__(self) -> None:
        self._names = CloseNames()
        self._index = -1
        """Up to which log index they are known."""
        self._busy = trio.Lock()

    def close_to(self, asked: str) -> tuple[str, ...]:
        """Return the declared names most like one, the best first."""
        return self._names.close_to(asked)

    async def refresh(self, replica: Replica, changes: ChangeLog[Was | None]) -> None:
        """Bring them up to what is declared now."""
        async with self._busy:
            state, index = replica.state, replica.applied_index
            changed = changes.since(self._index) if self._index >= 0 else None
            names = self._names if changed is not None else CloseNames()
            touched = state.capabilities if changed is None else names_of(state, changed)
            for number, name in enumerate(touched, start=1):
                if name in state.capabilities:
                    names.add(name)
                else:
                    names.discard(name)
                if number % SLICE == 0:
                    await trio.lowlevel.checkpoint()
            self._names, self._index = names, index


def names_of(state: State, changed: dict[str, Was | None]) -> list[str]:
    """Return the capabilities that changed instances offer or did, sorted."""
    names = {name for was in changed.values() if was is not None for name in was.names}
    for agent_id in changed:
        record = state.agents.get(agent_id)
        if record is not None:
            names.update(one.name for one in record.instance.capabilities)
    return sorted(names)
