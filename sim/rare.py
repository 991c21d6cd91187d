"""Rare branches: what a run must have entered, or it has shown less than it seems to.

Each is counted where it happens. A long run in which one of them stays at zero fails: a
rule that is never needed is a rule that is never tested.
"""

from collections.abc import Mapping

BRANCHES: Mapping[str, str] = {
    "acks_clamped": "a follower said at once what of an acknowledgement was durable",
    "acks_held": "a follower's acknowledgement waited for its disk",
    "counts_held": "a leader counted an acknowledgement only once its own disk had the entry",
    "disk_forgot_and_was_noticed": "an older copy of a directory came back, and was not believed",
    "disk_full_entered": "a disk took no more",
    "disk_full_left": "a disk took writes again",
    "fenced_reads": "a linearizable read was answered",
    "founding_interrupted": "a member died before it had founded the cluster",
    "gave_up_for_full_disk": "a leader whose disk was full gave up leadership",
    "gave_up_for_stalled_disk": "a leader whose disk stalled gave up leadership",
    "held_dropped": "something held back belonged to a term or connection that was gone",
    "leadership_transferred": "a leader handed over to a follower",
    "learner_acks_dropped": "acknowledgements of a disk nobody admitted were not counted",
    "learner_votes_dropped": "votes of a disk nobody admitted were not counted",
    "polls_asked": "a member asked whether it would be elected before it campaigned",
    "repeat_answered": "a repeated request was answered from the window, not applied again",
    "replacement_had_to_wait": "a second disk was not replaced before all knew of the first",
    "snapshot_installed": "a follower took its leader's snapshot",
    "snapshot_onto_divergent_tail": "a snapshot replaced entries that would never be committed",
    "sync_failed_and_rewritten": "a sync of the journal failed, and all of it was written anew",
    "tail_truncated": "a follower replaced entries at the end of its log",
    "terms_adopted": "a member learned of a higher term from a refusal",
    "torn_tail_cut": "a journal that power loss had torn was cut at load",
    "unknown_resolved_by_retry": "an outcome that was unknown was told by a repeat",
    "votes_held": "a vote or a candidacy waited for its disk",
}
"""Name to what happened."""

OF_COUNTERS: Mapping[str, str] = {
    "held_clamped": "acks_clamped",
    "held_acks": "acks_held",
    "held_counts": "counts_held",
    "held_votes": "votes_held",
    "polls": "polls_asked",
    "snapshots_installed": "snapshot_installed",
    "snapshots_onto_divergent_tail": "snapshot_onto_divergent_tail",
    "proposals_rescued": "unknown_resolved_by_retry",
}
"""A core's own counters by the name of the branch, where they differ."""


def of_counters(counters: Mapping[str, int]) -> dict[str, int]:
    """Return the branches that a core entered, by its counters."""
    named = {OF_COUNTERS.get(name, name): count for name, count in counters.items()}
    return {name: count for name, count in named.items() if name in BRANCHES}


def at_zero(counts: Mapping[str, int]) -> list[str]:
    """Return the branches that were never entered, sorted."""
    return sorted(name for name in BRANCHES if not counts.get(name))
