"""`reachnode cluster`: members, secret, replacement, leadership."""

import argparse

from reachnode.cli.flags import add_node_flags, api_of
from reachnode.cli.output import EXIT_OK, say, say_json, table
from reachnode.cli.parsers import Commands, add_command
from reachnode.cli.status import COLUMNS


def add(commands: Commands) -> None:
    """Offer the commands."""
    parser = add_command(commands, "cluster", "Look after the cluster.", members)
    add_node_flags(parser)
    below = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_node_flags(
        add_command(below, "members", "List the members (when none is named).", members),
        is_below=True,
    )
    add_command(below, "secret", "Print a new cluster secret: 32 random bytes as text.", secret)
    one = add_command(
        below, "replace", "Let a member vote again that lost its disk and came back empty.", replace
    )
    one.add_argument("id", metavar="ID", help="The member.")
    add_node_flags(one, is_below=True)
    add_node_flags(
        add_command(below, "transfer", "Hand leadership to another member.", transfer),
        is_below=True,
    )


def members(args: argparse.Namespace) -> int:
    """Print the members; return the exit status."""
    cluster = api_of(args).get("/api/v1/cluster")
    if args.json:
        say_json({"items": cluster["members"], "next": None})
        return EXIT_OK
    say(table(cluster["members"], columns=COLUMNS))
    alive = sum(1 for member in cluster["members"] if member["alive"])
    say(f"{alive} of {len(cluster['members'])} are alive, as {cluster['node']} sees it")
    return EXIT_OK


def secret(_args: argparse.Namespace) -> int:
    """Print a new secret; return the exit status."""
    # Late: it brings the cryptography library along, which no other command here needs.
    from reachnode.peers.secrets import new_secret

    say(new_secret())
    return EXIT_OK


def replace(args: argparse.Namespace) -> int:
    """Admit a member's new disk; return the exit status."""
    wish = {"action": "replace", "id": args.id}
    done = api_of(args).change("POST", "/api/v1/cluster/members", wish)
    if args.json:
        say_json(done)
    else:
        say(f"{args.id} votes with its new disk from index {done['index']} on")
    return EXIT_OK


def transfer(args: argparse.Namespace) -> int:
    """Hand over leadership; return the exit status."""
    done = api_of(args).change("POST", "/api/v1/cluster/transfer")
    if args.json:
        say_json(done)
    else:
        say(f"{done['node']} leads no more; {done['leader'] or 'its successor'} takes over")
    return EXIT_OK
