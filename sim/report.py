"""What one run came to."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one run came to. `seconds` are simulated."""

    seed: int
    voters: int
    seconds: float
    acknowledged: int
    fates: Mapping[str, int]
    faults: Mapping[str, int]
    rare: Mapping[str, int]
    violations: tuple[str, ...]
    trace_hash: str
    """Of everything that was sent and happened: equal runs have equal ones."""
    result_digest: str
    """Of the log that came out of it."""
    events: int
