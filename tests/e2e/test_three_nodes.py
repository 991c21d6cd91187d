"""Three real nodes: they agree, and lose one without losing a change."""

import signal
from pathlib import Path

from tests.e2e.processes import NodeProcess, cluster_of, running


def leader_of(nodes: list[NodeProcess]) -> NodeProcess:
    """Return the node that leads."""
    by_id = {node.node_id: node for node in nodes}
    while True:
        # A fenced read waits until there is a leader, so this is no busy loop.
        nodes[0].insist("GET", "/api/v1/agents?consistency=consistent")
        leader = nodes[0].ask("GET", "/api/v1/cluster")[1]["leader"]
        if leader in by_id:
            return by_id[leader]


def test_three_nodes_agree_and_survive_their_leader(tmp_path: Path) -> None:
    """A change made on one is read on another; kill -9 of the leader loses nothing."""
    nodes = cluster_of(3, tmp_path)
    with running(*nodes):
        first = nodes[0].insist("POST", "/register", {"agent_id": "a"}, key="k1")
        for node in nodes:
            assert node.see("/api/v1/agents/a", index=first["index"])["agent_id"] == "a"
        leader = leader_of(nodes)
        leader.stop(signal.SIGKILL)
        left = [node for node in nodes if node is not leader]
        second = left[0].insist("POST", "/register", {"agent_id": "b"}, key="k2")
        assert left[1].see("/api/v1/agents/a", index=second["index"])["agent_id"] == "a"
        leader.start()
        assert leader.see("/api/v1/agents/b", index=second["index"])["agent_id"] == "b"


def test_a_leader_that_is_told_to_stop_hands_over(tmp_path: Path) -> None:
    """An orderly end exits with 0, and the others go on at once."""
    nodes = cluster_of(3, tmp_path)
    with running(*nodes):
        nodes[0].insist("POST", "/register", {"agent_id": "a"}, key="k1")
        leader = leader_of(nodes)
        assert leader.stop() == 0
        left = [node for node in nodes if node is not leader]
        done = left[0].insist("POST", "/register", {"agent_id": "b"}, key="k2")
        assert left[1].see("/api/v1/agents/b", index=done["index"])["agent_id"] == "b"


def test_a_minority_changes_nothing(tmp_path: Path) -> None:
    """One of three answers from what it knows and refuses changes with `no_quorum`."""
    nodes = cluster_of(3, tmp_path)
    with running(*nodes):
        done = nodes[0].insist("POST", "/register", {"agent_id": "a"}, key="k1")
        nodes[2].see("/api/v1/agents/a", index=done["index"])
        for node in nodes[:2]:
            node.stop(signal.SIGKILL)
        status, answer = nodes[2].ask("POST", "/register", {"agent_id": "b"})
        assert (status, answer["code"]) in ((503, "no_quorum"), (504, "unknown_outcome"))
        assert nodes[2].see("/api/v1/agents/a", index=done["index"])["agent_id"] == "a"
        status, answer = nodes[2].ask("GET", "/api/v1/agents?consistency=consistent")
        assert (status, answer["code"]) == (503, "no_quorum")
