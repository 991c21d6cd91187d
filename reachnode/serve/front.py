"""What every handler is given: the replica, and what this node knows of itself."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reachnode.serve.herald import Herald
from reachnode.serve.names import KnownNames
from reachnode.serve.ports import Replica, Sights
from reachnode.world.sources import Sources

CHANGE_SECONDS = 5.0
"""How long a change may take before its outcome is unknown."""
READ_SECONDS = 5.0
"""How long a read waits to be as fresh as it was asked for."""
CATCH_UP_SECONDS = 5.0
"""How long after its start a node may hold back; then it counts as cut off and answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a node says of itself that doesn't change while it runs."""

    node_id: str
    client_address: str
    """`HOST:PORT` that callers are told."""
    version: str
    listens_on_loopback: bool
    """Whether nobody reaches this node from another machine, neither clients nor peers."""


class Front:
    """One node as its clients see it.

    Args:
        about: What doesn't change.
        replica: The registry.
        sights: What this node makes of instances.
        sources: Time and identifiers.
        link_counters: Gives the peer links' counters, by name.
    """

    def __init__(
        self,
        *,
        about: About,
        replica: Replica,
        sights: Sights,
        sources: Sources,
        link_counters: Callable[[], Mapping[str, int]],
    ) -> None:
        self.about = about
        self.replica = replica
        self.sights = sights
        self.herald = Herald(replica, sights)
        self.names = KnownNames()
        self.sources = sources
        self.link_counters = link_counters
        self.started_at = sources.now()
        self._caught_up_at: int | None = None
        """The log index at which this node has caught up; 0 once it has."""
        self.is_draining = False
        """Whether the node is about to stop; `/ready` says so."""
        self.answers_count: Counter[int] = Counter()
        """Answers so far, by status."""
        self.connections_count = 0
        """Connections open now."""
        self.streams_slow_count = 0
        """Streams that were closed because nobody took what they said."""
        self.stale_answers_count = 0
        """Reads that were answered while this node was cut off."""
        self.accept_failures: Callable[[], int] = lambda: 0
        """Gives how often a connection could not be accepted; the client port sets it."""

    def drain(self) -> None:
        """Get ready to stop: watchers go to other nodes."""
        self.is_draining = True
        self.herald.end()

    def is_catching_up(self) -> bool:
        """Return whether the table may still lack what this node's own disk held.

        Just after a start the journal has entries that nobody has confirmed yet. They are
        applied soon after a leader is there.
        """
        status = self.replica.status()
        if self._caught_up_at == 0:
            return False
        if status.phase == "running" and self.sources.now() >= self.started_at + CATCH_UP_SECONDS:
            self._caught_up_at = 0
            return False
        if status.phase != "running" or status.contact_age_seconds is None:
            return True
        if self._caught_up_at is None:
            self._caught_up_at = status.log_last
        if status.index >= self._caught_up_at:
            self._caught_up_at = 0
        return self._caught_up_at != 0

    def others_alive(self) -> bool:
        """Return whether another member could take over from this node."""
        status = self.replica.status()
        return any(one.alive and one.id != status.member_id for one in status.members)

    def nodes(self) -> list[str]:
        """Return the URLs of nodes that are up, as far as this one knows."""
        others = self.sights.addresses
        addresses = (self.about.client_address, *(others[peer] for peer in sorted(others)))
        return [f"http://{address}" for address in dict.fromkeys(addresses)]

    def stale_ms(self) -> int:
        """Return the time since the last contact with a leader, in milliseconds.

        A node that had none yet says how long it has been running.
        """
        age = self.replica.status().contact_age_seconds
        seconds = self.sources.now() - self.started_at if age is None else age
        return max(0, round(seconds * 1000))
