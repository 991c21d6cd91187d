"""`reachnode sim`: the simulator, loaded only when it is asked for."""

import argparse

from reachnode.cli.parsers import Commands, add_command


def add(commands: Commands) -> None:
    """Offer the command; its own options are read by the simulator."""
    parser = add_command(
        commands,
        "sim",
        "Run clusters in virtual time under faults; see `reachnode sim --help`.",
        run,
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="What the simulator is to do.")


def run(args: argparse.Namespace) -> int:
    """Hand over to the simulator; return the exit status."""
    return simulate(args.rest)


def simulate(arguments: list[str]) -> int:
    """Run the simulator's own command line; return the exit status."""
    from sim.main import main

    return main(arguments)
