"""`reachnode config`: check a file as `serve` would read it, show what the cluster shares."""

import argparse
import os

from reachnode.cli.flags import add_node_flags, api_of, config_of
from reachnode.cli.output import EXIT_OK, fail, say, say_json
from reachnode.cli.parsers import Commands, add_command
from reachnode.model.config import ConfigError, settings


def add(commands: Commands) -> None:
    """Offer the commands."""
    parser = add_command(commands, "config", "Look at configurations.", check)
    below = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    one = add_command(
        below, "check", "Read a file as `serve` would, and name the line that is wrong.", check
    )
    one.add_argument("config", metavar="FILE", help="The YAML file.")
    said_by_nobody = dict.fromkeys(setting.key for setting in settings().values())
    one.set_defaults(observer=False, **said_by_nobody)
    one = add_command(below, "show", "Show the settings that the cluster shares, as JSON.", show)
    add_node_flags(one)


def check(args: argparse.Namespace) -> int:
    """Say whether a node could start with a file; return the exit status."""
    # Late: reading the secret brings the cryptography library along.
    from reachnode.node.start import read_secrets

    try:
        config = config_of(args, os.environ)
        read_secrets(config)
    except ConfigError as error:
        return fail(str(error))
    for warning in config.warnings:
        say(f"warning: {warning}")
    say(f"{args.config} is fine: node {config.id} of {len(config.voters)}")
    return EXIT_OK


def show(args: argparse.Namespace) -> int:
    """Print the shared settings, which are a document; return the exit status."""
    say_json(api_of(args).get("/api/v1/settings"))
    return EXIT_OK
