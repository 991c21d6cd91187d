"""What a node makes of instances, without loops, peers and probes: tests say what happened."""

from collections.abc import Mapping

import trio

from reachnode.liveness.outlook import Outlook
from reachnode.model.liveness import Heard, Heartbeat, InstanceState, Liveness
from reachnode.node.ports import Arriving
from reachnode.registry.changes import ChangeLog, Was, note_changes
from reachnode.registry.commands import Command
from reachnode.registry.state import Record, State
from tests.fakes import SeededSources


class LocalSights:
    """Keeps the promises of `serve.ports.Sights` for a node alone.

    Args:
        state: What is registered.
        index: Up to which log index.
        arrivals: Where to hear what is applied after it.
        sources: The clock.
    """

    def __init__(
        self, state: State, index: int, arrivals: Arriving, sources: SeededSources
    ) -> None:
        self._sources = sources
        self.outlook = Outlook(me="n1", boot=1, state=state, now=sources.now())
        self.changes: ChangeLog[Was | None] = ChangeLog(index)
        self.addresses: dict[str, str] = {}
        self.counters: dict[str, int] = {"deltas_sent": 3}
        self.there: set[str] = set()
        """Who answers when it is looked for."""
        self.looked_for: list[str] = []
        arrivals.followers.append(self)

    def followed(
        self, index: int, before: State, after: State, commands: tuple[Command, ...] | None
    ) -> None:
        """Take note of an applied entry."""
        if commands is None:
            agent_ids: tuple[str, ...] = tuple({*before.agents, *after.agents})
            self.changes.restart(index)
        else:
            agent_ids = note_changes(
                self.changes, index, before=before, after=after, commands=commands
            )
        self.outlook.follow(after, agent_ids, now=self._sources.now())

    def sweep(self) -> None:
        """Let what time alone does be done."""
        self.outlook.sweep(now=self._sources.now())

    @property
    def counts(self) -> Mapping[InstanceState, int]:
        return self.outlook.counts

    def heartbeat(self, agent_id: str, heartbeat: Heartbeat) -> Heard:
        return self.outlook.heartbeat(agent_id, heartbeat, now=self._sources.now())

    def of(self, record: Record) -> Liveness:
        return self.outlook.of(record)

    def stirred(self) -> Mapping[str, InstanceState]:
        return self.outlook.stirred()

    async def is_there(self, record: Record) -> bool:
        await trio.lowlevel.checkpoint()
        self.looked_for.append(record.instance.agent_id)
        return record.instance.agent_id in self.there
