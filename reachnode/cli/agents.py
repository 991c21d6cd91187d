"""`reachnode agents`: the registered instances."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from reachnode.cli.api import segment
from reachnode.cli.flags import add_node_flags, api_of
from reachnode.cli.output import EXIT_OK, EXIT_USAGE, fail, say, say_json, table
from reachnode.cli.parsers import Commands, add_command

COLUMNS = ("agent_id", "agent", "state", "home", "age_ms", "load", "capabilities", "index")
FILTERS = ("capability", "agent", "zone", "state")
PATH = "/api/v1/agents"


def add(commands: Commands) -> None:
    """Offer the commands."""
    parser = add_command(commands, "agents", "Look after the registered instances.", list_all)
    parser.set_defaults(**dict.fromkeys(FILTERS))
    add_node_flags(parser)
    below = parser.add_subparsers(title="commands", metavar="COMMAND")
    one = add_command(below, "list", "List instances (when no command is named).", list_all)
    for name in FILTERS:
        one.add_argument(f"--{name}", metavar="WORD", help=f"Only those with this {name}.")
    add_node_flags(one, is_below=True)
    one = add_command(below, "show", "Show one instance.", show)
    one.add_argument("id", metavar="ID", help="Its agent_id.")
    add_node_flags(one, is_below=True)
    one = add_command(below, "register", "Register an instance, or replace what it said.", register)
    one.add_argument(
        "file", metavar="FILE", help="The registration in JSON; - reads it from input."
    )
    add_node_flags(one, is_below=True)
    one = add_command(below, "deregister", "Remove an instance.", deregister)
    one.add_argument("id", metavar="ID", help="Its agent_id.")
    add_node_flags(one, is_below=True)
    one = add_command(
        below, "drain", "Take an instance out; refused where it is the last of a capability.", drain
    )
    one.add_argument("id", metavar="ID", help="Its agent_id.")
    one.add_argument(
        "--force", action="store_true", help="Even if a capability is left without an instance."
    )
    add_node_flags(one, is_below=True)
    one = add_command(below, "enable", "Take a drained instance in again.", enable)
    one.add_argument("id", metavar="ID", help="Its agent_id.")
    add_node_flags(one, is_below=True)


def list_all(args: argparse.Namespace) -> int:
    """Print the instances; return the exit status."""
    api = api_of(args)
    query = {name: getattr(args, name) for name in FILTERS}
    items: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = api.get(PATH, {**query, "cursor": page["next"] or None})
        items += page["items"]
    if args.json:
        say_json({"items": items, "next": None})
        return EXIT_OK
    say(table([row_of(item) for item in items], columns=COLUMNS))
    say(f"{len(items)} instances")
    return EXIT_OK


def row_of(item: dict[str, Any]) -> dict[str, Any]:
    """Return an instance as one row."""
    names = ", ".join(one["name"] for one in item.get("capabilities", ()))
    return {**item, "capabilities": names}


def show(args: argparse.Namespace) -> int:
    """Print one instance, which is a document; return the exit status."""
    say_json(api_of(args).get(f"{PATH}/{segment(args.id)}"))
    return EXIT_OK


def register(args: argparse.Namespace) -> int:
    """Register what a file says; return the exit status."""
    try:
        data = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
        document = json.loads(data)
    except OSError as error:
        return fail(f"{args.file} can't be read: {error.strerror}", status=EXIT_USAGE)
    except ValueError as error:
        return fail(f"{args.file} is no JSON: {error}", status=EXIT_USAGE)
    done = api_of(args).change("POST", f"{PATH}/register", document)
    if args.json:
        say_json(done)
        return EXIT_OK
    say(f"{done['agent_id']} is registered at index {done['index']}, {done['state']}")
    for warning in done["warnings"]:
        say(f"warning: {warning}")
    return EXIT_OK


def deregister(args: argparse.Namespace) -> int:
    """Remove an instance; return the exit status."""
    done = api_of(args).change("DELETE", f"{PATH}/{segment(args.id)}")
    if args.json:
        say_json(done)
    else:
        say(f"{done['agent_id']} is gone since index {done['index']}")
    return EXIT_OK


def drain(args: argparse.Namespace) -> int:
    """Take an instance out until it is enabled; return the exit status."""
    return announce(args, {"state": "disabled", "force": args.force})


def enable(args: argparse.Namespace) -> int:
    """Take an instance in again; return the exit status."""
    return announce(args, {"state": "healthy"})


def announce(args: argparse.Namespace, wish: dict[str, Any]) -> int:
    """Announce a state for an instance; return the exit status."""
    done = api_of(args).change("POST", f"{PATH}/{segment(args.id)}/state", wish)
    if args.json:
        say_json(done)
    else:
        word = "disabled" if wish["state"] == "disabled" else "enabled"
        say(f"{done['agent_id']} is {word} since index {done['index']}")
    return EXIT_OK
