"""`reachnode sim run`: many seeds on all cores, and one summary.

Which seeds make up the answer depends on how many were asked for, or how many simulated
hours, never on which worker was faster. Only `--seconds` measures real time.
"""

import argparse
import json
import platform
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from typing import Any

from sim.circumstances import draw_circumstances
from sim.crew import Crew, Job
from sim.printing import Progress, counted
from sim.rare import at_zero
from sim.world import World

HOURS_DEFAULT = 1.0
HOURS_FOR_RARE = 5.0
"""From so many simulated hours on, a rare branch that was never entered is a failure."""
HASH_SEEDS = ("1", "4242")


@dataclass(slots=True)
class Totals:
    """The sum of many runs."""

    seeds: int = 0
    seconds: float = 0.0
    acknowledged: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    rare: Counter[str] = field(default_factory=Counter)
    voters: Counter[int] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)
    """Seed and what was violated."""
    events: int = 0
    trace: Any = field(default_factory=lambda: blake2b(digest_size=16))

    def add(self, report: Mapping[str, Any]) -> None:
        """Count one run."""
        self.seeds += 1
        self.seconds += report["seconds"]
        self.acknowledged += report["acknowledged"]
        self.fates.update(report["fates"])
        self.faults.update(report["faults"])
        self.rare.update(report["rare"])
        self.voters[report["voters"]] += 1
        self.violations += [(report["seed"], what) for what in report["violations"]]
        self.events += report["events"]
        self.trace.update(report["trace_hash"].encode())

    @property
    def hours(self) -> float:
        """Simulated hours."""
        return self.seconds / 3600

    def rare_at_zero(self) -> list[str]:
        """Return the rare branches that were never entered."""
        return at_zero(self.rare)

    def is_good(self) -> bool:
        """Return whether nothing was violated, and a long run entered every rare branch."""
        return not self.violations and (self.hours < HOURS_FOR_RARE or not self.rare_at_zero())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe what the command takes."""
    parser.add_argument("--seconds", type=float, help="Stop after so many real seconds.")
    parser.add_argument(
        "--hours", type=float, help=f"Simulated cluster hours (default {HOURS_DEFAULT:g})."
    )
    parser.add_argument("--seeds", type=int, help="Number of seeds.")
    parser.add_argument("--seed", type=int, default=0, help="The first seed (default 0).")
    parser.add_argument("--workers", type=int, default=0, help="Processes (default: one a core).")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.add_argument(
        "--digest",
        action="store_true",
        help="Instead, play the log of one seed under two hash seeds and compare the states.",
    )


def run(args: argparse.Namespace) -> int:
    """Run; return the exit status."""
    if args.digest:
        return _compare_digests(args.seed, as_json=args.json)
    started_at = time.monotonic()
    totals = simulate(
        first=args.seed,
        seeds=args.seeds,
        hours=args.hours,
        seconds=args.seconds,
        workers=args.workers,
    )
    took = time.monotonic() - started_at
    if args.json:
        print(json.dumps(document(totals, first=args.seed, took=took), indent=2))
    else:
        print(summary(totals, first=args.seed, took=took))
    return 0 if totals.is_good() else 1


def simulate(
    *,
    first: int = 0,
    seeds: int | None = None,
    hours: float | None = None,
    seconds: float | None = None,
    workers: int = 0,
) -> Totals:
    """Return the sum of runs, from one seed on until a limit is reached.

    Raises:
        JobFailed: A run raised, which is a fault of the simulator or of the core.
    """
    if seeds is None and hours is None and seconds is None:
        hours = HOURS_DEFAULT
    ends_at = None if seconds is None else time.monotonic() + seconds
    totals, progress = Totals(), Progress()
    jobs = _jobs(first, seeds)
    with Crew(workers) as crew:
        for report in crew.answers(jobs):
            totals.add(report)
            progress.say(
                f"{totals.seeds} seeds, {totals.hours:.1f} simulated hours, "
                f"{len(totals.violations)} violations"
            )
            if hours is not None and totals.hours >= hours:
                break
            if ends_at is not None and time.monotonic() >= ends_at:
                break
    progress.end()
    return totals


def _jobs(first: int, seeds: int | None) -> Iterator[Job]:
    """Yield one job for each seed."""
    numbers = count(first) if seeds is None else iter(range(first, first + seeds))
    for seed in numbers:
        yield "run", {"seed": seed}


def document(totals: Totals, *, first: int, took: float) -> Mapping[str, Any]:
    """Return the answer for programs."""
    return {
        "seeds": totals.seeds,
        "first_seed": first,
        "hours": round(totals.hours, 3),
        "faults": dict(sorted(totals.faults.items())),
        "acknowledged": totals.acknowledged,
        "fates": dict(sorted(totals.fates.items())),
        "violations": [
            {"seed": seed, "what": what, "replay": f"reachnode sim replay {seed}"}
            for seed, what in totals.violations
        ],
        "rare": dict(sorted(totals.rare.items())),
        "rare_at_zero": totals.rare_at_zero(),
        "trace_hash": totals.trace.hexdigest(),
        "wall_seconds": round(took, 1),
        "python": platform.python_version(),
    }


def summary(totals: Totals, *, first: int, took: float) -> str:
    """Return the answer for people."""
    voters = " and ".join(f"{number} of {size} nodes" for size, number in _sorted(totals.voters))
    speed = f"{took:.0f} s, {totals.seconds / max(took, 1e-9):.0f} times life"
    lines = [
        f"{totals.seeds} seeds from {first} ({voters})",
        f"  simulated     {totals.hours:.1f} cluster hours in {speed}",
        f"  faults        {totals.faults.total():,}",
        counted(totals.faults),
        f"  acknowledged  {totals.acknowledged:,} changes, and what became of all of them",
        counted(totals.fates),
        f"  rare          {len(totals.rare):,} branches entered",
        counted(totals.rare),
    ]
    if zero := totals.rare_at_zero():
        lines += ["  never entered", counted(dict.fromkeys(zero, 0))]
    lines.append(f"  trace hash    {totals.trace.hexdigest()}")
    lines.append(f"  violations    {len(totals.violations)}")
    for seed, what in totals.violations:
        lines += [f"    seed {seed}: {what}", f"      again: reachnode sim replay {seed}"]
    return "\n".join(lines)


def _sorted(counts: Counter[int]) -> list[tuple[int, int]]:
    """Return numbers with their counts, smallest number first."""
    return sorted(counts.items())


def _compare_digests(seed: int, *, as_json: bool) -> int:
    """Play one seed's log under two hash seeds; return the exit status."""
    world = World(seed, draw_circumstances(seed))
    report = world.run()
    log = [(index, b64encode(entry).decode()) for index, entry in sorted(world.judge.log.items())]
    arguments = {"cluster_id": world.cluster_id, "founders": dict(world.founders), "log": log}
    digests = {}
    for hash_seed in HASH_SEEDS:
        with Crew(1, hash_seed=hash_seed) as crew:
            digests[hash_seed] = next(crew.answers([("digest", arguments)]))["digest"]
    is_equal = len(set(digests.values())) == 1
    if as_json:
        answer = {"seed": seed, "entries": len(log), "digests": digests, "equal": is_equal}
        print(json.dumps(answer, indent=2))
    else:
        for hash_seed, digest in digests.items():
            print(f"PYTHONHASHSEED={hash_seed}: {digest}")
        print(f"{len(log)} entries of seed {seed}: {'equal' if is_equal else 'DIFFERENT'}")
    return 0 if is_equal and not report.violations else 1
