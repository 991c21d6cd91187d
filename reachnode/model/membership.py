"""What a node says of its place in the cluster: nouns only, nothing is decided here.

The consensus room fills them in; the HTTP front and the command line show them.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Phase = Literal["founding", "loading", "running"]
Role = Literal["leader", "follower", "learner"]
Disk = Literal["ok", "full", "failed"]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A change was proposed and its fate isn't known: it may be applied later, or never.

    Repeating it under the same request id is safe: it is applied at most once.
    """

    why: str


SYNC_BOUNDS_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Upper bounds by which the disk's syncs are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncs:
    """How long the disk took to make writes durable, since the start of the process."""

    counts: tuple[int, ...] = (0,) * (len(SYNC_BOUNDS_SECONDS) + 1)
    """Syncs that took at most each bound and longer than the one before; last, all others."""
    total_seconds: float = 0.0

    def with_one(self, seconds: float) -> "Syncs":
        """Return the same with one more sync."""
        place = bisect_left(SYNC_BOUNDS_SECONDS, seconds)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Syncs(counts=counts, total_seconds=self.total_seconds + seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatus:
    """One voter, as the node that answers sees it."""

    id: str
    address: str
    """Its peer address, `HOST:PORT`."""
    role: Role
    alive: bool
    """Whether the answering node heard from it lately."""
    index: int | None
    """The last log index it is known to hold; None where the answering node can't know."""
    lag_ms: int | None
    """How long ago it was heard, in milliseconds; None when never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """One node's replica at one moment."""

    member_id: str
    cluster_id: str
    """Empty until the cluster is founded."""
    phase: Phase
    role: Role
    leader: str | None
    term: int
    index: int
    """The last applied log index."""
    commit_index: int
    log_first: int
    log_last: int
    synced_index: int
    """The last log index that is durable on this node's disk."""
    quorum: bool
    """Whether a majority, this node included, is in contact with one leader."""
    contact_age_seconds: float | None
    """Since the last contact with a leader; on a leader, since a majority acknowledged it."""
    disk: Disk
    level: int
    """The cluster level: which effects all members support."""
    members: tuple[MemberStatus, ...]
    counters: Mapping[str, int]
    """Monotone counts since the start of the process, by name (`leader_changes_total`)."""
    founding_waits_for: tuple[str, ...]
    """Members that are missing before the cluster can be founded."""
    syncs: Syncs = Syncs()
