"""`reachnode`: which command, and what every command does alike when something goes wrong."""

import argparse
import os
import sys
from collections.abc import Sequence

from reachnode import __version__
from reachnode.cli import agents, bench, cluster, config, discover, serve, sim, status, version
from reachnode.cli.api import NodeRefused, NoNodeAnswered, WrongUrl
from reachnode.cli.output import EXIT_NO, EXIT_NO_NODE, EXIT_USAGE, fail

COMMANDS = (serve, status, agents, discover, cluster, config, sim, bench, version)


def parser() -> argparse.ArgumentParser:
    """Return the whole command line."""
    top = argparse.ArgumentParser(
        prog="reachnode",
        description="Find an AI agent by what it can do, and reach it.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"reachnode {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["sim"]:  # Its options are its own, --help among them.
        return sim.simulate(arguments[1:])
    args = parser().parse_args(arguments)
    try:
        result: int = args.run(args)
        sys.stdout.flush()
    except WrongUrl as error:
        return fail(str(error), status=EXIT_USAGE)
    except NoNodeAnswered as error:
        return fail(str(error), status=EXIT_NO_NODE)
    except NodeRefused as error:
        return fail(str(error))
    except BrokenPipeError:  # Whoever read our answer has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NO
    return result
