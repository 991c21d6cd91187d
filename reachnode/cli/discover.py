"""`reachnode discover`: who can do something now, or why nobody can."""

import argparse
from typing import Any

from reachnode.cli.flags import add_node_flags, api_of
from reachnode.cli.output import EXIT_NO, EXIT_OK, EXIT_USAGE, fail, say, say_json, table
from reachnode.cli.parsers import Commands, add_command

COLUMNS = ("agent_id", "agent", "version", "state", "score", "load", "endpoint")
EXCLUDED_COLUMNS = ("agent_id", "agent", "reason", "detail")


def add(commands: Commands) -> None:
    """Offer the command."""
    parser = add_command(
        commands, "discover", "Show who can do something now, best first, or why nobody can.", run
    )
    parser.add_argument(
        "wanted", metavar="CAPABILITY_OR_TEXT", help="A capability; with blanks in it, any words."
    )
    parser.add_argument("--version", metavar="RANGE", help="Only these versions, such as ^3.2.")
    parser.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="Only instances with this tag, repeatable; NAME alone takes any value.",
    )
    parser.add_argument(
        "--explain", action="store_true", help="Tell of each why it is where it is."
    )
    add_node_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the candidates, or the gap; return the exit status."""
    question: dict[str, Any] = {"text" if " " in args.wanted else "capability": args.wanted}
    tags: dict[str, str] = {}
    for said in args.tag:
        name, _, value = said.partition("=")
        if not name or name in tags:
            return fail(f"--tag {said}: write each NAME=VALUE once", status=EXIT_USAGE)
        tags[name] = value
    question |= {"tags": tags, "explain": args.explain}
    if args.version is not None:
        question["version"] = args.version
    found = api_of(args).question("/api/v1/discover", question)
    if args.json:
        say_json(found)
    else:
        for line in lines(found, is_explained=args.explain):
            say(line)
    return EXIT_OK if found["candidates"] else EXIT_NO


def lines(found: dict[str, Any], *, is_explained: bool) -> list[str]:
    """Return what people want to know, most important first."""
    candidates, gap = found["candidates"], found["gap"]
    if gap is not None:
        return gap_lines(gap)
    told = [table(candidates, columns=COLUMNS)]
    if is_explained:
        told += [reason(one) for one in candidates]
    excluded = found.get("excluded", [])
    if excluded:
        told += ["not to be called:", table(excluded, columns=EXCLUDED_COLUMNS)]
    return [*told, f"{len(candidates)} candidates at index {found['index']}"]


def reason(candidate: dict[str, Any]) -> str:
    """Return why a candidate has its score."""
    parts = ", ".join(f"{name} {value:g}" for name, value in candidate["parts"].items())
    return f"{candidate['agent_id']}: {candidate['why']} ({parts})"


def gap_lines(gap: dict[str, Any]) -> list[str]:
    """Return why there is nobody."""
    told = [f"{gap['code']}: {gap['missing']}"]
    if gap["excluded"]:
        told.append(table(gap["excluded"], columns=EXCLUDED_COLUMNS))
    if gap["close_names"]:
        told.append(f"did you mean {', '.join(gap['close_names'])}?")
    return told
