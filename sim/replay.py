"""`reachnode sim replay SEED`: one run again, told in detail."""

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path

from sim.circumstances import draw_circumstances
from sim.printing import counted
from sim.world import World


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe what the command takes."""
    parser.add_argument("seed", type=int, help="As a run printed it.")
    parser.add_argument("--trace", metavar="FILE", help="Write what happened, a line each.")


def run(args: argparse.Namespace) -> int:
    """Run one seed and tell of it; return the exit status."""
    circumstances = draw_circumstances(args.seed)
    with ExitStack() as stack:
        tell: Callable[[str], None] | None = None
        if args.trace:
            file = stack.enter_context(Path(args.trace).open("w", encoding="utf-8"))

            def write(line: str) -> None:
                file.write(line + "\n")

            tell = write
        report = World(args.seed, circumstances, tell=tell).run()
    print(f"seed {report.seed}: {report.seconds:.0f} simulated seconds, {report.events:,} events")
    print("  circumstances")
    for field in fields(circumstances):
        if field.name != "safeguards":
            print(f"    {field.name.replace('_', ' ')}: {getattr(circumstances, field.name)}")
    print(f"  faults\n{counted(report.faults)}")
    print(f"  fates\n{counted(report.fates)}")
    print(f"  rare\n{counted(report.rare)}")
    print(f"  trace hash    {report.trace_hash}")
    print(f"  result digest {report.result_digest}")
    print(f"  violations    {len(report.violations)}")
    for violation in report.violations:
        print(f"    {violation}")
    return 1 if report.violations else 0
