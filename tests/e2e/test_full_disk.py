"""A full disk is a state, not damage: changes are refused, reads go on, room heals it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.disks import fill, give_room, small_disk
from tests.e2e.processes import NodeProcess, alone, cluster_of, running
from tests.e2e.test_three_nodes import leader_of

DISK_KIB = 2048
TRIES_MAX = 2_000
"""Questions that are asked until a state shows; each of them is answered by a node."""


@pytest.fixture(name="nodes")
def nodes_fixture(tmp_path: Path, require: Callable[[str], str]) -> Iterator[list[NodeProcess]]:
    """Give three running nodes, each on a small disk of its own."""
    nodes = cluster_of(3, tmp_path)
    with ExitStack() as stack:
        for node in nodes:
            disk = small_disk(disk_of(node), require, size_kib=DISK_KIB)
            stack.enter_context(disk)
        stack.enter_context(running(*nodes))
        yield nodes


def disk_of(node: NodeProcess) -> Path:
    """Return the directory that a node's disk is mounted at."""
    return node.directory / node.node_id


def register(node: NodeProcess, agent_id: str) -> tuple[int, Any]:
    """Return what a node says to a change, large enough to need room."""
    document = {"agent_id": agent_id, "name": "x" * 120, "replace": True}
    return node.ask("POST", "/register", document)


def until_full(node: NodeProcess) -> None:
    """Ask for changes through a node until it says that its disk is full."""
    for number in range(TRIES_MAX):
        status, answer = register(node, f"filling-{number % 10}")
        if status == 503 and answer["code"] == "disk_full":
            return
        assert status in (200, 201, 503, 504), answer
    raise AssertionError(f"{node.node_id} never said disk_full: {node.log()}")


def until_ready(node: NodeProcess, reason: str | None) -> None:
    """Ask a node until it is ready, or isn't for this reason."""
    for _ in range(TRIES_MAX):
        status, answer = node.ask("GET", "/ready")
        if (status, answer.get("reason")) == (200 if reason is None else 503, reason):
            return
        node.ask("GET", "/api/v1/agents?consistency=consistent")  # It takes its time.
    raise AssertionError(f"{node.node_id}: {answer}, not {reason}: {node.log()}")


def test_a_leader_with_a_full_disk_gives_way_and_comes_back(nodes: list[NodeProcess]) -> None:
    """It refuses changes and leads no more; the others go on; room is all that it needs."""
    before = nodes[0].insist("POST", "/register", {"agent_id": "before"}, key="k1")
    leader = leader_of(nodes)
    fill(disk_of(leader))
    until_full(leader)
    until_ready(leader, "disk_full")
    shown = leader.see("/api/v1/agents/before", index=before["index"])
    assert shown["agent_id"] == "before"

    others = [node for node in nodes if node is not leader]
    after = others[0].insist("POST", "/register", {"agent_id": "after"}, key="k2")
    assert others[1].see("/api/v1/agents/after", index=after["index"])["agent_id"] == "after"
    assert leader.ask("GET", "/api/v1/cluster")[1]["role"] == "follower"
    assert leader.process is not None
    assert leader.process.poll() is None

    give_room(disk_of(leader))
    assert leader.see("/api/v1/agents/after", index=after["index"])["agent_id"] == "after"
    until_ready(leader, None)
    again = leader.insist("POST", "/register", {"agent_id": "again"}, key="k3")
    for node in nodes:
        assert node.see("/api/v1/agents/again", index=again["index"])["agent_id"] == "again"


def test_all_disks_full_refuse_changes_and_answer_reads(nodes: list[NodeProcess]) -> None:
    """Nothing crashes, nothing confirmed is forgotten, and room brings changes back."""
    before = nodes[0].insist("POST", "/register", {"agent_id": "before"}, key="k1")
    for node in nodes:
        node.see("/api/v1/agents/before", index=before["index"])
        fill(disk_of(node))
    until_full(leader_of(nodes))
    for node in nodes:
        status, answer = register(node, "refused")
        assert (status, answer["code"]) in (
            (503, "disk_full"),
            (503, "no_quorum"),
            (504, "unknown_outcome"),
        )
        status, answer = node.ask("GET", "/api/v1/agents/before?consistency=stale")
        assert (status, answer["agent_id"]) == (200, "before")
        assert node.process is not None
        assert node.process.poll() is None
    for node in nodes:
        give_room(disk_of(node))
    after = nodes[0].insist("POST", "/register", {"agent_id": "after"}, key="k2")
    for node in nodes:
        node.see("/api/v1/agents/after", index=after["index"])
        assert node.see("/api/v1/agents/before", index=after["index"])["agent_id"] == "before"


def test_a_node_starts_on_a_full_disk(nodes: list[NodeProcess]) -> None:
    """Killed and started while full it answers reads, and takes part once there is room."""
    before = nodes[0].insist("POST", "/register", {"agent_id": "before"}, key="k1")
    full, *others = nodes
    full.see("/api/v1/agents/before", index=before["index"])
    fill(disk_of(full))
    full.stop(signal.SIGKILL)
    after = others[0].insist("POST", "/register", {"agent_id": "after"}, key="k2")
    full.start()
    until_full(full)
    assert full.see("/api/v1/agents/before", index=before["index"])["agent_id"] == "before"
    assert register(full, "refused")[1]["code"] == "disk_full"
    give_room(disk_of(full))
    assert full.see("/api/v1/agents/after", index=after["index"])["agent_id"] == "after"
    until_ready(full, None)


def test_a_lone_node_comes_back_as_well(tmp_path: Path, require: Callable[[str], str]) -> None:
    """It has nobody to give way to, refuses changes, and takes them again by itself."""
    node = alone(tmp_path)
    with small_disk(disk_of(node), require, size_kib=512), running(node):
        before = node.insist("POST", "/register", {"agent_id": "before"}, key="k1")
        fill(disk_of(node))
        until_full(node)
        until_ready(node, "disk_full")
        assert node.see("/api/v1/agents/before", index=before["index"])["agent_id"] == "before"
        give_room(disk_of(node))
        after = node.insist("POST", "/register", {"agent_id": "after"}, key="k2")
        until_ready(node, None)
        node.stop(signal.SIGKILL)
        node.start()
        for agent_id in ("before", "after"):
            shown = node.see(f"/api/v1/agents/{agent_id}", index=after["index"])
            assert shown["agent_id"] == agent_id
