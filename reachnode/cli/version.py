"""`reachnode version`: what is installed."""

import argparse
import platform
from importlib.metadata import version

from reachnode import __version__
from reachnode.cli.output import EXIT_OK, say, say_json
from reachnode.cli.parsers import Commands, add_command

LIBRARIES = ("trio", "h11", "pysyncobj", "msgpack", "msgspec", "immutables", "cryptography")


def add(commands: Commands) -> None:
    """Offer the command."""
    parser = add_command(commands, "version", "Print the versions of reachnode and its parts.", run)
    parser.add_argument("--json", action="store_true", help="Answer in JSON.")


def run(args: argparse.Namespace) -> int:
    """Print the versions; return the exit status."""
    libraries = {name: version(name) for name in LIBRARIES}
    python = platform.python_version()
    if args.json:
        say_json({"version": __version__, "python": python, "libraries": libraries})
        return EXIT_OK
    say("reachnode", __version__)
    say("python", python)
    for name, number in libraries.items():
        say(name, number)
    return EXIT_OK
