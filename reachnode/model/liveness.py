"""What is said and known of an instance's life: never replicated, and without a wall clock.

A heartbeat is what an instance says; a report is what one node knows of one instance; a delta
is what a node tells its peers. `Liveness` is what one node makes of it all.
"""

import math
from dataclasses import dataclass
from typing import Literal

from reachnode.model.agents import HealthType
from reachnode.model.nouns import Noun

AnnouncedState = Literal["updating", "healthy", "disabled"]
InstanceState = Literal["pending", "healthy", "suspect", "down", "updating", "disabled"]
Reach = Literal["", "good", "failed"]
"""Whether an instance can be reached from a node; empty while the node hasn't seen enough."""
Use = Literal["full", "reduced", "last", "after_suspects", "never"]
"""How far routing goes with an instance, best first: as usual; at reduced weight; when none of
these is left (suspects); when not even a suspect is (pending); not at all."""
Basis = Literal["own", "hearsay", "none"]
"""Whose evidence a state stands on: this node's, another's, or nobody's."""

COUNTERS_MAX = 32
"""How many cumulative counts of one heartbeat are kept."""
COUNT_MAX = 2**53


class Heartbeat(Noun, frozen=True, kw_only=True):
    """What an instance says of itself now and then; None is what it didn't say.

    It holds no time: only the receiver's monotonic clock judges it.
    """

    incarnation: int | None = None
    """Which registration it is of; None is taken for the current one."""
    load: float | None = None
    in_flight: int | None = None
    self_check: bool | None = None
    """Whether its last look at itself was good."""
    counters: tuple[tuple[str, int], ...] = ()
    """Cumulative counts, `(name, count)`."""
    state: AnnouncedState | None = None
    """What it announces; whoever takes the heartbeat proposes it when it is news."""


class Report(Noun, frozen=True, kw_only=True):
    """What one node knows of one instance, as it tells its peers."""

    agent_id: str
    incarnation: int
    sequence: int
    """When its node said it: a larger one of the same boot holds."""
    beat: int = 0
    """Of the lease this node holds: larger than any it knew of when it heard the heartbeat.

    0 without a lease. The node with the largest beat is the instance's home.
    """
    age_ms: int = 0
    """Since the last heartbeat, at the moment of telling."""
    is_suspect: bool = False
    """Whether the lease ran out."""
    load: float | None = None
    in_flight: int | None = None
    self_check: bool | None = None
    reach: Reach = ""
    fault: str = ""
    """Why the last probe failed, such as `timeout`; empty after a good one."""


class Delta(Noun, frozen=True, kw_only=True):
    """What a node tells a peer: everything of its own that changed after a sequence."""

    node: str
    boot: int
    """Which start of the node it is of, larger for a later one."""
    sequence: int
    """All it had said up to here is now told; where the next delta goes on."""
    reports: tuple[Report, ...] = ()
    """In the order of their sequences. None at all still says that the node is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What becomes of a heartbeat: what the instance is told, and what is news to the node."""

    interval_ms: int
    """When it is to beat next."""
    lease_ms: int
    """How long it may be silent before it is suspect."""
    is_new: bool
    """Whether the lease began with it."""
    is_recovered: bool
    """Whether it had been suspect here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOrder:
    """A probe to be made now."""

    agent_id: str
    incarnation: int
    type: HealthType
    endpoint: str
    timeout_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows from a probe or an opinion; usually nothing."""

    ask: str | None = None
    """The node to be asked for its own probe of the instance."""
    is_down: bool = False
    """Propose that it is down."""
    is_up: bool = False
    """Propose that it is no longer down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """What one node makes of everything it knows of an instance."""

    agent_id: str
    incarnation: int
    state: InstanceState
    why: str
    """What the state stands on, a phrase."""
    use: Use
    basis: Basis
    home: str | None = None
    """The node it beats to; None when no node holds a lease."""
    heard_at: float | None = None
    """When it beat last, on this node's clock; None when nobody says, or its home is silent."""
    load: float | None = None
    in_flight: int | None = None
    unreachable_from: tuple[str, ...] = ()
    """Nodes whose probes of it fail, sorted."""
    is_beating: bool = False
    """Whether its lease is known to hold."""
    fault: str = ""
    """Why the last probe failed, as far as a node says."""

    def age_ms(self, now: float) -> int | None:
        """Return the time since its last heartbeat; None when that is unknown."""
        return None if self.heard_at is None else max(0, round((now - self.heard_at) * 1000))


def clamped_load(load: float | None) -> float | None:
    """Return a load within 0 to 1; what is no number was not said."""
    return None if load is None or math.isnan(load) else min(max(load, 0.0), 1.0)


def clamped_count(count: int | None) -> int | None:
    """Return a count within 0 and the largest that every JSON reader keeps exactly."""
    return None if count is None else min(max(count, 0), COUNT_MAX)


def risen(
    counters: tuple[tuple[str, int], ...], later: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Return cumulative counts after more were said, sorted by name.

    A count never falls, and the first names that came are the ones that are kept.
    """
    table = dict(counters)
    for name, count in later:
        if name in table or len(table) < COUNTERS_MAX:
            table[name] = min(max(table.get(name, 0), count), COUNT_MAX)
    return tuple(sorted(table.items()))
