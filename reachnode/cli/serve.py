"""`reachnode serve`: run a node until it is told to stop."""

import argparse
import os

from reachnode.cli.flags import add_config_flags, config_of
from reachnode.cli.output import fail
from reachnode.cli.parsers import Commands, add_command
from reachnode.model.config import ConfigError


def add(commands: Commands) -> None:
    """Offer the command."""
    parser = add_command(
        commands, "serve", "Run a node; with no options a cluster of one on loopback.", run
    )
    add_config_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Run a node; return its exit status."""
    # Late: only this command needs the node, and the others start faster without it.
    from reachnode.node.logs import configure_logs
    from reachnode.peers.raft.failstop import FailStop

    try:
        # Whatever the engine is, it is found out when it is loaded.
        from reachnode.node.start import make_replica, run_process
    except FailStop as stop:
        return fail(f"{stop} ({stop.remedy})", status=stop.status)
    try:
        config = config_of(args, os.environ)
    except ConfigError as error:
        return fail(str(error))
    configure_logs(config)
    return run_process(config, make_replica)
