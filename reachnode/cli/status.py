"""`reachnode status`: the cluster as one node sees it."""

import argparse
from typing import Any

from reachnode.cli.flags import add_node_flags, api_of
from reachnode.cli.output import EXIT_OK, say, say_json, table
from reachnode.cli.parsers import Commands, add_command

COLUMNS = ("id", "address", "role", "alive", "index", "lag_ms")


def add(commands: Commands) -> None:
    """Offer the command."""
    parser = add_command(
        commands, "status", "Show members, leader, term, index, lag and instances by state.", run
    )
    add_node_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print where the cluster stands; return the exit status."""
    cluster = api_of(args).get("/api/v1/cluster")
    if args.json:
        say_json(cluster)
        return EXIT_OK
    for line in lines(cluster):
        say(line)
    return EXIT_OK


def lines(cluster: dict[str, Any]) -> list[str]:
    """Return what people want to know, most important first."""
    if cluster["phase"] != "running":
        waits_for = ", ".join(cluster.get("founding_waits_for", ())) or "its data"
        head = f"{cluster['node']} is {cluster['phase']}, waiting for {waits_for}"
    elif cluster["quorum"]:
        head = f"{cluster['leader']} leads, as {cluster['node']} sees it"
    else:
        head = f"{cluster['node']} has no quorum: it answers from what it knows, changes nothing"
    agents = cluster["agents"]
    counted = ", ".join(f"{count} {state}" for state, count in sorted(agents.items()))
    found = [
        head,
        f"term {cluster['term']}, index {cluster['index']}, disk {cluster['disk']}",
        table(cluster["members"], columns=COLUMNS),
        f"instances: {counted or 'none'}",
    ]
    if cluster["role"] == "learner" and cluster["phase"] == "running":
        found.append(f"next: reachnode cluster replace {cluster['node']} lets its new disk vote")
    return found
