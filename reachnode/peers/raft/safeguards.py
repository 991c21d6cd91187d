"""The safeguards around the engine, each with a switch that only the simulator turns.

A node runs with all of them on. `reachnode sim mutants` turns each off in turn and must
notice, which is how we know that the simulator looks and that the safeguard is needed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Safeguards:
    """One field per rule; B numbers are faults of the library, told in docs/explanation."""

    vote_waits_for_sync: bool = True
    """A vote leaves only once it is durable."""
    candidacy_waits_for_sync: bool = True
    """A request for votes leaves only once the term and the vote for itself are durable."""
    ack_waits_for_sync: bool = True
    """A follower acknowledges entries only once they are durable."""
    leader_waits_for_sync: bool = True
    """A leader counts followers' acknowledgements only up to what itself has durable."""
    ack_is_clamped: bool = True
    """What is durable of an acknowledgement is said at once, so that no quorum starves."""
    held_die_with_term: bool = True
    """What was held in a former term, or as a leader that is none any more, is dropped."""
    held_die_with_connection: bool = True
    """What was held for a connection that is gone is dropped."""
    held_die_with_tail: bool = True
    """Acknowledgements held for entries that were cut are dropped."""
    ack_is_stamped: bool = True
    """An acknowledgement counts only in the term it was given in (B6)."""
    vote_counts_once: bool = True
    """A second vote of the same peer in the same term isn't counted (B6)."""
    overlap_is_trimmed: bool = True
    """Entries that are held already are not cut and added again (B19)."""
    backoff_is_fast: bool = True
    """A follower that lacks entries says where its committed log ends (B10)."""
    ack_never_rewinds: bool = True
    """An acknowledgement doesn't make the leader send again what is on its way (B19)."""
    stale_append_is_answered: bool = True
    """A leader of a past term is told so (B24)."""
    pre_vote: bool = True
    """Nobody campaigns before a majority would vote for it."""
    old_snapshot_is_refused: bool = True
    """A snapshot that is behind what is applied changes nothing (B20)."""
    snapshot_claims_itself: bool = True
    """After a snapshot only its own index is acknowledged, not the tail kept behind it."""
    snapshot_before_trim: bool = True
    """The journal is trimmed only once the snapshot it relies on is durable."""
    lone_voter_syncs_at_once: bool = True
    """A cluster of one syncs inside the append (B22)."""
    wiped_disk_counts_not: bool = True
    """A disk that nobody admitted has no vote and acknowledges nothing."""
    admission_is_noted: bool = True
    """An admission is remembered beside the vote, before the state that holds it is."""
    requests_are_remembered: bool = True
    """A request that is repeated isn't applied again."""


ALL_ON = Safeguards()
