"""Where an engine begins: its times, its place in the log, and what an entry is."""

from collections.abc import Sequence
from dataclasses import dataclass

REGULAR = b"\x00"
"""First byte of a command the library treats as data."""
NO_OP = b"\x01"
"""First byte of the entry a new leader begins its term with."""

NEVER_SECONDS = 1e9
APPEND_BYTES_MAX = 1 << 20
"""Bytes of commands in one append; commands are smaller, so the library never cuts one up."""
COMMAND_BYTES_MAX = 1 << 18
"""Bytes of one command, a batch of changes."""

Entry = tuple[bytes, int, int]
"""A log entry as the library holds it: command, index, term."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Timing of elections, in seconds. Defaults: see docs/explanation/consensus.md."""

    election_min: float = 0.3
    election_max: float = 0.6
    heartbeat: float = 0.08
    fallback: float = 0.6

    def scaled(self, factor: float) -> "Times":
        """Return the same proportions, slower by `factor` (> 0)."""
        assert factor > 0
        return Times(
            election_min=self.election_min * factor,
            election_max=self.election_max * factor,
            heartbeat=self.heartbeat * factor,
            fallback=self.fallback * factor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Where an engine begins.

    Args:
        member: This node's id.
        others: The other voters' ids.
        applied_index: Index that the state machine's snapshot covers.
        commit_index: Index known to be committed, applied_index <= it <= end of the log.
    """

    member: str
    others: Sequence[str]
    applied_index: int
    commit_index: int
    times: Times
