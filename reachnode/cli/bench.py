"""`reachnode bench`: measure a row of the performance page, peers beside it where installed."""

import argparse
from pathlib import Path

from reachnode.cli.output import EXIT_USAGE, fail
from reachnode.cli.parsers import Commands, add_command

ROWS = ("changes", "failover")


def add(commands: Commands) -> None:
    """Offer the command."""
    parser = add_command(
        commands,
        "bench",
        "Measure three real nodes beside three of etcd where it is installed.",
        run,
    )
    parser.add_argument(
        "row",
        nargs="?",
        metavar="ROW",
        choices=ROWS,
        help=f"What to measure: {' or '.join(ROWS)}; all of them when none is named.",
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="Turns of `changes`. Default: 3."
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=3.0,
        metavar="S",
        help="Of each measurement of `changes`. Default: 3.",
    )
    parser.add_argument(
        "--runs", type=int, default=20, metavar="N", help="Kills of `failover`. Default: 20."
    )
    parser.add_argument("--dir", type=Path, metavar="DIR", help="Where data is kept while it runs.")
    parser.add_argument("--json", action="store_true", help="Answer in JSON.")


def run(args: argparse.Namespace) -> int:
    """Measure; return the exit status."""
    if args.rounds < 1 or args.runs < 1 or not 0 < args.seconds < 3600:
        return fail("rounds and runs must be 1 or more, seconds above 0", status=EXIT_USAGE)
    from sim.bench import Wish, main

    wish = Wish(
        rows=[args.row] if args.row else ROWS,
        rounds=args.rounds,
        seconds=args.seconds,
        runs=args.runs,
        directory=args.dir,
        json=args.json,
    )
    return main(wish)
