"""The shape of the command line."""

import argparse

from reachnode.cli.parsers import add_command


def test_a_command_knows_what_to_run() -> None:
    """What is typed leads to the function, abbreviations lead nowhere."""
    top = argparse.ArgumentParser()
    commands = top.add_subparsers()
    add_command(commands, "hello", "Say hello.", lambda _args: 7)
    args = top.parse_args(["hello"])
    assert args.run(args) == 7
