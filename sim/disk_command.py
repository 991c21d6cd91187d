"""`reachnode sim disk`: power loss at every step of writing a data directory; flipped bits.

Scripts of writes are drawn from a seed and made by the node's own journal, disk queue and
storage on a pretend disk. Each script is cut short at each of its system calls.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sim.crew import Crew, Job
from sim.disk_trials import repeat_trial
from sim.printing import Progress, counted

POINTS_DEFAULT = 20_000
VIOLATIONS_MAX = 100
EXIT_USAGE = 2


@dataclass(slots=True)
class Totals:
    """The sum of many scripts."""

    scripts: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, int, str]] = field(default_factory=list)
    """Script, trial, and what was violated."""
    violations_count: int = 0

    def add(self, answer: Mapping[str, Any]) -> None:
        """Count the next script."""
        self.counts.update(answer["counts"])
        for trial, what in answer["violations"]:
            self.violations_count += 1
            if len(self.violations) < VIOLATIONS_MAX:
                self.violations.append((self.scripts, trial, what))
        self.scripts += 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe what the command takes."""
    parser.add_argument(
        "--points",
        type=int,
        default=POINTS_DEFAULT,
        help=f"Crash points, and then to the end of a script (default {POINTS_DEFAULT:,}).",
    )
    parser.add_argument("--seed", type=int, default=0, help="Draws the scripts (default 0).")
    parser.add_argument("--workers", type=int, default=0, help="Processes (default: one a core).")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")
    parser.add_argument(
        "--repeat", metavar="SCRIPT:TRIAL", help="Instead, try one trial again, as it was printed."
    )


def run(args: argparse.Namespace) -> int:
    """Run; return the exit status."""
    if args.repeat is not None:
        return _repeat(args.seed, args.repeat)
    started_at = time.monotonic()
    totals = crash(points=args.points, seed=args.seed, workers=args.workers)
    took = time.monotonic() - started_at
    if args.json:
        print(json.dumps(document(totals, seed=args.seed, took=took), indent=2))
    else:
        print(summary(totals, seed=args.seed, took=took))
    return 1 if totals.violations else 0


def crash(*, points: int, seed: int = 0, workers: int = 0) -> Totals:
    """Return what came of at least so many crash points.

    Raises:
        JobFailed: A script could not even be run undisturbed.
    """
    totals, progress = Totals(), Progress()
    jobs = _jobs(seed)
    with Crew(workers) as crew:
        for answer in crew.answers(jobs):
            totals.add(answer)
            progress.say(
                f"{totals.scripts} scripts, {totals.counts['points']:,} crash points, "
                f"{totals.violations_count} violations"
            )
            if totals.counts["points"] >= points:
                break
        jobs.close()
    progress.end()
    return totals


def document(totals: Totals, *, seed: int, took: float) -> Mapping[str, Any]:
    """Return the answer for programs."""
    counts = totals.counts
    return {
        "seed": seed,
        "scripts": totals.scripts,
        "points": counts["points"],
        "at": dict(sorted(_at(counts).items())),
        "kills": counts["kills"],
        "power_losses": counts["power_losses"],
        "torn": counts["torn"],
        "flips": counts["flips"],
        "violations": [
            {"script": script, "trial": trial, "what": what, "repeat": _again(seed, script, trial)}
            for script, trial, what in totals.violations
        ],
        "violations_count": totals.violations_count,
        "wall_seconds": round(took, 1),
    }


def summary(totals: Totals, *, seed: int, took: float) -> str:
    """Return the answer for people."""
    counts = totals.counts
    speed = counts["points"] / took if took else 0.0
    lines = [
        f"{totals.scripts} scripts of seed {seed}",
        f"  crash points  {counts['points']:,} in {took:.0f} s, {speed:.0f} a second",
        counted(_at(counts)),
        f"  kills         {counts['kills']:,}, the later ones of the same disk among them",
        f"  power losses  {counts['power_losses']:,}",
        f"  torn journals {counts['torn']:,}",
        f"  flipped bits  {counts['flips']:,}",
        f"  violations    {totals.violations_count}",
    ]
    for script, trial, what in totals.violations:
        lines += [
            f"    script {script}, trial {trial}: {what}",
            f"      again: {_again(seed, script, trial)}",
        ]
    return "\n".join(lines)


def _at(counts: Mapping[str, int]) -> Mapping[str, int]:
    """Return the number of crash points by what happened at them."""
    return {
        name.removeprefix("at_"): number
        for name, number in counts.items()
        if name.startswith("at_")
    }


def _jobs(seed: int) -> Generator[Job, None, None]:
    """Yield one job for each script."""
    for number in count():
        yield "disk", {"seed": seed, "number": number}


def _again(seed: int, script: int, trial: int) -> str:
    """Return the command that tries one trial again."""
    return f"reachnode sim disk --seed {seed} --repeat {script}:{trial}"


def _repeat(seed: int, name: str) -> int:
    """Try one trial again and tell of it; return the exit status."""
    script, _, trial = name.partition(":")
    if not (script.isdecimal() and trial.isdecimal()):
        print(f"--repeat takes SCRIPT:TRIAL, as in 12:345, not {name}", file=sys.stderr)
        return EXIT_USAGE
    try:
        what, faults = repeat_trial(seed, int(script), int(trial))
    except IndexError:
        print(f"script {script} of seed {seed} has no trial {trial}", file=sys.stderr)
        return EXIT_USAGE
    print(what)
    print(f"  violations    {len(faults)}")
    for fault in faults:
        print(f"    {fault}")
    return 1 if faults else 0
