"""A change on its way into the log, and what it needs of the node: nouns of `proposals.py`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from reachnode.model.membership import Unknown
from reachnode.peers.raft.messages import AnyMessage
from reachnode.registry.outcomes import Applied, Refused

Fate = Applied | Refused | Unknown
"""What became of a change."""


@dataclass(eq=False, slots=True, kw_only=True)
class Proposal:
    """A change proposed at this node; an empty envelope is a read fence.

    Args:
        deadline: On the monotonic clock, in seconds.
        resolve: Called once, with what became of it. Must not raise.
    """

    envelope: bytes
    deadline: float
    submitted_at: float
    resolve: Callable[[Fate], None]
    renew: Callable[[int], bytes] | None = None
    """Returns the envelope for a first attempt at a later index."""
    place: Literal["queue", "log", "sent", "applied", "closed"] = "queue"
    may_have_happened: bool = False

    @property
    def is_fence(self) -> bool:
        """Whether it changes nothing."""
        return not self.envelope

    @property
    def weight(self) -> int:
        """Bytes it takes in a batch."""
        return len(self.envelope) + 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A change that another node sent here; `epoch` numbers its connection."""

    peer: str
    epoch: int
    number: int
    envelope: bytes

    @property
    def is_fence(self) -> bool:
        """Whether it changes nothing."""
        return not self.envelope

    @property
    def weight(self) -> int:
        """Bytes it takes in a batch."""
        return len(self.envelope) + 16


@dataclass(frozen=True, slots=True)
class Leader:
    """Whom a node would send a change to, and over which connection."""

    member: str
    epoch: int


class Host(Protocol):
    """What proposals need of the node."""

    @property
    def is_leader(self) -> bool:
        """Whether this node leads and its disk takes entries."""
        ...

    @property
    def takes_entries(self) -> bool:
        """Whether it appends now, if it leads."""
        ...

    def reachable_leader(self) -> Leader | None:
        """Return another node that leads, was heard lately and is connected."""
        ...

    def append(self, batch: bytes) -> tuple[int, int]:
        """Append a batch as leader; return index and term."""
        ...

    def send(self, peer: str, message: AnyMessage) -> bool:
        """Send a message; return whether there is a connection."""
        ...

    def epoch(self, peer: str) -> int | None:
        """Return the number of the connection to a peer."""
        ...

    def refusal(self) -> Refused | None:
        """Return why this node takes no changes at all now, None if it does."""
        ...
