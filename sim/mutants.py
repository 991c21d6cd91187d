"""`reachnode sim mutants`: each safeguard removed in turn must be noticed.

A run with one safeguard off is searched for seed by seed until something is violated; chaos
is aimed by circumstances, or a trial plays the scene that the safeguard is about. Where no
simulation can notice, because another rule already rules the harm out, the argument is
written down here, and the search is made all the same.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from reachnode.peers.raft.safeguards import Safeguards
from sim.crew import Crew, Job
from sim.printing import Progress

SEEDS_MAX_DEFAULT = 60
SEEDS_MAX_ARGUED = 10
"""Seeds searched for a safeguard whose removal nobody expects to see."""

SLOW_DISKS: Mapping[str, Any] = {
    "sync_seconds": [0.005, 0.06],
    "change_every_seconds": 0.1,
    "fault_every_seconds": 0.6,
}
MANY_ELECTIONS: Mapping[str, Any] = {
    "voters": 5,
    "sync_seconds": [0.005, 0.06],
    "fault_every_seconds": 0.5,
    "snapshot_entries": 1000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """How the absence of one safeguard is looked for."""

    circumstances: Mapping[str, Any] = field(default_factory=dict)
    """What aims the chaos at it."""
    trial: str = ""
    """The scene that shows it, instead of chaos."""
    argument: str = ""
    """Why nothing is expected to be noticed; empty where something must be."""

    def job(self, name: str, seed: int) -> Job:
        """Return the search of one seed without the safeguard."""
        if self.trial:
            return "try", {"trial": self.trial, "seed": seed, "off": [name]}
        return "hunt", {"seed": seed, "fixed": dict(self.circumstances), "off": [name]}


MUTANTS: Mapping[str, Mutant] = {
    "vote_waits_for_sync": Mutant(circumstances=SLOW_DISKS),
    "candidacy_waits_for_sync": Mutant(circumstances=SLOW_DISKS),
    "ack_waits_for_sync": Mutant(circumstances=SLOW_DISKS),
    "leader_waits_for_sync": Mutant(circumstances=SLOW_DISKS),
    "ack_is_clamped": Mutant(trial="stalling_disks"),
    "held_die_with_term": Mutant(
        circumstances=MANY_ELECTIONS,
        argument="What leaves carries the term it was said in, and is dropped by whoever is in "
        "another. What a leader holds back is released by its own sync, in the order of its "
        "writes: to lead again it needs a durable candidacy, which comes behind the entry in "
        "question, and by then the count was let go while it did not lead.",
    ),
    "held_die_with_connection": Mutant(
        circumstances=MANY_ELECTIONS,
        argument="Within its term an acknowledgement and a vote stay true, whatever connection "
        "they arrive on, and both carry their term. The rule keeps messages in order.",
    ),
    "held_die_with_tail": Mutant(
        circumstances=MANY_ELECTIONS,
        argument="A tail is cut only for a leader of a later term, and what was said of it "
        "carries the earlier one: it is dropped on arrival, and here with the term.",
    ),
    "ack_is_stamped": Mutant(trial="late_acknowledgement"),
    "vote_counts_once": Mutant(trial="doubled_vote"),
    "overlap_is_trimmed": Mutant(circumstances=SLOW_DISKS),
    "backoff_is_fast": Mutant(trial="long_divergence"),
    "ack_never_rewinds": Mutant(trial="entries_sent_once"),
    "stale_append_is_answered": Mutant(trial="one_term_ahead"),
    "pre_vote": Mutant(trial="flapping_link"),
    "old_snapshot_is_refused": Mutant(trial="late_snapshot"),
    "snapshot_claims_itself": Mutant(trial="kept_tail"),
    "snapshot_before_trim": Mutant(circumstances={"snapshot_entries": 20}),
    "lone_voter_syncs_at_once": Mutant(circumstances={"voters": 1}),
    "wiped_disk_counts_not": Mutant(circumstances={"wipes": True, "fault_every_seconds": 0.6}),
    "admission_is_noted": Mutant(circumstances={"wipes": True}),
    "requests_are_remembered": Mutant(circumstances=SLOW_DISKS),
}
"""Every safeguard, and how its absence is looked for."""

assert MUTANTS.keys() == {one.name for one in fields(Safeguards)}, "a safeguard has no mutant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What became of the search for one mutant."""

    name: str
    seed: int | None
    """The first seed that shows it, None if none did."""
    seeds: int
    """How many were tried."""
    violation: str
    argument: str

    @property
    def is_as_expected(self) -> bool:
        """Whether it was noticed, or an argument says why not."""
        return self.seed is not None or bool(self.argument)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe what the command takes."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="Safeguards; all by default.")
    parser.add_argument(
        "--seeds-max",
        type=int,
        default=SEEDS_MAX_DEFAULT,
        help=f"Seeds to try for each (default {SEEDS_MAX_DEFAULT}).",
    )
    parser.add_argument("--workers", type=int, default=0, help="Processes (default: one a core).")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")


def run(args: argparse.Namespace) -> int:
    """Search for the mutants; return the exit status."""
    unknown = sorted(set(args.names) - MUTANTS.keys())
    if unknown:
        print(f"reachnode sim mutants: there is no safeguard {', '.join(unknown)}")
        print(f"  there are: {', '.join(MUTANTS)}")
        return 2
    findings = []
    for finding in search(args.names or list(MUTANTS), args.seeds_max, workers=args.workers):
        findings.append(finding)
        if not args.json:
            print(told(finding), flush=True)
    if args.json:
        print(json.dumps({"mutants": [_document(one) for one in findings]}, indent=2))
    else:
        noticed = sum(one.seed is not None for one in findings)
        print(f"{noticed} of {len(findings)} noticed")
    return 0 if all(one.is_as_expected for one in findings) else 1


def search(names: Sequence[str], seeds_max: int, *, workers: int = 0) -> Iterator[Finding]:
    """Yield what becomes of each mutant, the first seed that shows it or none."""
    progress = Progress()
    with Crew(workers) as crew:
        for name in names:
            mutant = MUTANTS[name]
            limit = min(seeds_max, SEEDS_MAX_ARGUED) if mutant.argument else seeds_max
            jobs = (mutant.job(name, seed) for seed in range(limit))
            found, tried, violation = None, 0, ""
            for seed, answer in enumerate(crew.answers(jobs)):
                tried = seed + 1
                progress.say(f"{name}: {tried} seeds")
                if answer["violation"] is not None:
                    found, violation = seed, answer["violation"]
                    break
            progress.end()
            yield Finding(
                name=name,
                seed=found,
                seeds=tried,
                violation=violation,
                argument=mutant.argument,
            )


def told(finding: Finding) -> str:
    """Return a finding as people read it."""
    if finding.seed is not None:
        how = MUTANTS[finding.name].trial or "chaos"
        where = f"seed {finding.seed}, {finding.seeds} tried, {how.replace('_', ' ')}"
        return f"{finding.name}: noticed at {where}\n    {finding.violation}"
    tried = f"{finding.name}: NOT noticed in {finding.seeds} seeds"
    return f"{tried}\n    {finding.argument or 'and no argument says why'}"


def _document(finding: Finding) -> Mapping[str, Any]:
    """Return a finding for programs."""
    return {
        "name": finding.name,
        "found": finding.seed is not None,
        "seeds": finding.seeds,
        "seed": finding.seed,
        "trial": MUTANTS[finding.name].trial or None,
        "violation": finding.violation or None,
        "argument": finding.argument or None,
    }
