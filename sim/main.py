"""`reachnode sim`: the simulator's command line."""

import argparse
import sys
from collections.abc import Callable, Sequence

from sim.crew import JobFailed

EXIT_FAILED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulator; return the exit status.

    Args:
        argv: What follows `reachnode sim`; None for the process's own arguments.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["kill9"]:
        # It reads its own options, and drives real processes instead of simulated ones.
        from sim.kill9 import main as kill9

        return kill9(arguments[1:])
    args = _parser().parse_args(arguments)
    act: Callable[[argparse.Namespace], int] = args.act
    try:
        return act(args)
    except JobFailed as failure:
        print(f"reachnode sim: {failure}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("reachnode sim: interrupted", file=sys.stderr)
        return EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    """Return the parser of everything but `kill9`."""
    from sim import disk_command, mutants, recorded, replay, run

    parser = argparse.ArgumentParser(
        prog="reachnode sim",
        description="Runs clusters in virtual time under faults, and judges them.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    modules = {
        "run": (run, "many seeds on all cores, and a summary"),
        "replay": (replay, "one seed again, told in detail"),
        "mutants": (mutants, "each safeguard removed in turn must be noticed"),
        "disk": (disk_command, "power loss at every step of writing to a disk; flipped bits"),
        "linear": (recorded, "histories of simulated runs, searched for an order"),
    }
    for name, (module, text) in modules.items():
        command = commands.add_parser(name, help=text, description=module.__doc__)
        module.add_arguments(command)
        command.set_defaults(act=module.run)
    commands.add_parser("kill9", help="kill -9 of real processes under load")
    return parser
