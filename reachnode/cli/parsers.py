"""The shape of the command line: what `argparse` calls a group of commands."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

# `argparse` has no public name for what `add_subparsers` returns.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - so be it
Run = Callable[[argparse.Namespace], int]


def add_command(commands: Commands, name: str, text: str, run: Run) -> argparse.ArgumentParser:
    """Return the parser of a new command.

    Args:
        commands: Where it belongs.
        name: What is typed.
        text: What it does, a sentence.
        run: Does it; returns the exit status.
    """
    parser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    parser.set_defaults(run=run)
    return parser
