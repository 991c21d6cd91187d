"""What is set about consensus, with the reason for each default."""

from dataclasses import dataclass, field, replace

from reachnode.peers.raft.opening import Times
from reachnode.peers.raft.safeguards import ALL_ON, Safeguards
from reachnode.registry.state import REQUESTS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    """Times in seconds on the monotonic clock."""

    times: Times = field(default_factory=Times)
    disk_stall_seconds: float = 1.0
    """A leader whose disk has been at the same writes this long gives up leadership."""
    disk_retry_seconds: float = 1.0
    """Between two attempts to write to a disk that refused."""
    leaderless_seconds: float = 1.5
    """How long a change waits for a leader before it is refused with `no_quorum`."""
    contact_seconds: float = 1.2
    """Without a word for this long, a leader is not believed to be there."""
    snapshot_entries: int = 5_000
    """Entries in the journal, behind the last snapshot, that call for the next one."""
    snapshot_bytes: int = 8 << 20
    """Bytes of commands in the journal that call for a snapshot."""
    keep_entries: int = 1_000
    """Entries kept in front of a snapshot for followers that are a little behind."""
    digest_every: int = 1_000
    """Entries between two comparisons of digests."""
    unsynced_bytes_max: int = 16 << 20
    """Bytes waiting for the disk beyond which no entries are taken from a leader."""
    transfer_stall_seconds: float = 5.0
    """Without progress for this long, a snapshot is sent again from its beginning."""
    requests_max: int = REQUESTS_MAX
    """Request ids the state remembers; the same on every node of a cluster, for ever."""
    safeguards: Safeguards = ALL_ON

    def snapshot_every(self, entries: int) -> "RaftSettings":
        """Return the settings with a snapshot every so many entries, a fifth of them kept."""
        return replace(
            self, snapshot_entries=entries, keep_entries=min(self.keep_entries, entries // 5)
        )

    def scaled(self, factor: float) -> "RaftSettings":
        """Return the settings for a machine that is slower by `factor`."""
        return replace(
            self,
            times=self.times.scaled(factor),
            disk_stall_seconds=self.disk_stall_seconds * factor,
            leaderless_seconds=self.leaderless_seconds * factor,
            contact_seconds=self.contact_seconds * factor,
        )
