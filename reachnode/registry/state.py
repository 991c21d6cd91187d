"""The replicated state: what all nodes agree on, as one value that never changes.

Readers keep the state they were given and never lock. Change is a new state that shares
what stayed. Everything is in a snapshot but `capabilities` and `down`, indexes over `agents`.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec
from immutables import Map

from reachnode.model.agents import Instance
from reachnode.model.members import Member
from reachnode.model.nouns import Noun
from reachnode.model.settings import Settings, SettingsRevision
from reachnode.registry.outcomes import Outcome

REQUESTS_MAX = 16_384
"""How many request ids are remembered with what became of them.

At a thousand changes a second that is a quarter of a minute, three times as long as a client
waits for one answer. A repeat that comes later counts as a new request.
"""
HISTORY_MAX = 20
"""How many revisions of the settings are kept, the current one included."""

Standing = Literal["", "updating", "disabled", "down"]
"""What was announced of an instance, or found (`down`); empty when nothing was."""


class Record(Noun, frozen=True, kw_only=True):
    """An instance and what the log says of it."""

    instance: Instance
    index: int
    """The log index that last changed it."""
    standing: Standing = ""
    down_at_ms: int | None = None
    """When it was found down, in cluster time; None while it isn't."""


class Remembered(msgspec.Struct, frozen=True):
    """What became of a request."""

    index: int
    outcome: Outcome


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the cluster agrees on at one log index."""

    cluster_id: str
    time_ms: int = 0
    """Cluster time: it moves only by logged steps, and is no wall clock."""
    level: int = 1
    """Which effects all members know; see `RaiseLevel`."""
    incarnation: int = 0
    """The last incarnation given to an instance; each is larger than all before it."""
    settings_history: tuple[SettingsRevision, ...]
    """The last revisions, oldest first; the last one holds."""
    members: Map[str, Member]
    agents: Map[str, Record] = Map()
    """By `agent_id`."""
    capabilities: Map[str, Map[str, str]] = Map()
    """By capability name: `agent_id` to `agent` of each instance that offers it."""
    down: Map[str, int] = Map()
    """By `agent_id`: `down_at_ms` of each instance that is down."""
    requests: Map[str, Remembered] = Map()
    """By request id: the last `requests_max` that were decided."""
    requests_order: Map[int, str] = Map()
    """A ring of their ids: the n-th decided since the founding is at n modulo the size."""
    requests_count: int = 0
    """How many were decided since the founding."""
    requests_floor: int = 0
    """The highest log index of a request that is no longer remembered."""
    requests_max: int = REQUESTS_MAX

    @property
    def settings(self) -> Settings:
        """The shared settings that hold."""
        return self.settings_history[-1].settings

    @property
    def settings_revision(self) -> int:
        """The revision of the settings that hold; 0 before any were put."""
        return self.settings_history[-1].revision

    @property
    def settings_index(self) -> int:
        """The log index that made the settings that hold."""
        return self.settings_history[-1].index


def genesis(
    cluster_id: str, members: Mapping[str, str], *, requests_max: int = REQUESTS_MAX
) -> State:
    """Return the state of a cluster at its founding.

    Args:
        cluster_id: What the founders agreed on.
        members: The incarnation of every founding voter, by member id.
        requests_max: How many request ids are remembered, 1 or more; tests make it small.
    """
    assert requests_max >= 1
    return State(
        cluster_id=cluster_id,
        settings_history=(SettingsRevision(revision=0, index=0, settings=Settings()),),
        members=Map(
            {
                member_id: Member(member_id=member_id, incarnation=incarnation, admitted_index=0)
                for member_id, incarnation in members.items()
            }
        ),
        requests_max=requests_max,
    )
