"""Voters that lost their disks: the others forget nothing, and nobody founds anew."""

import shutil
import signal
from pathlib import Path

from tests.e2e.processes import NodeProcess, cluster_of, running
from tests.e2e.test_damage import replaced, role_of
from tests.e2e.test_three_nodes import leader_of


def prompt(nodes: list[NodeProcess]) -> list[NodeProcess]:
    """Return nodes that refuse as soon as a node does by default."""
    for node in nodes:
        node.environment = {"REACHNODE_CLUSTER__TIME_SCALE": "1"}
    return nodes


def wipe(node: NodeProcess) -> None:
    """Remove a stopped node's directory."""
    shutil.rmtree(node.directory / node.node_id)


def refuses(node: NodeProcess) -> bool:
    """Return whether a node refuses a change because it has no majority."""
    status, answer = node.ask("POST", "/register", {"agent_id": "refused"})
    return (status, answer["code"]) == (503, "no_quorum")


def test_a_wiped_voter_cannot_make_the_others_forget(tmp_path: Path) -> None:
    """Two of three confirm a change; one of them is wiped: with the third it has no majority."""
    nodes = prompt(cluster_of(3, tmp_path))
    with running(*nodes):
        nodes[0].insist("POST", "/register", {"agent_id": "first"}, key="k1")
        leader = leader_of(nodes)
        wiped, behind = (node for node in nodes if node is not leader)
        behind.stop(signal.SIGKILL)
        known = leader.insist("POST", "/register", {"agent_id": "known"}, key="k2")
        wiped.see("/api/v1/agents/known", index=known["index"])
        wiped.stop(signal.SIGKILL)
        leader.stop(signal.SIGKILL)

        wipe(wiped)
        wiped.start()
        behind.start()
        assert refuses(behind)
        assert refuses(wiped)
        assert behind.ask("GET", "/api/v1/agents/known?consistency=stale")[0] in (404, 503)

        leader.start()
        after = behind.insist("POST", "/register", {"agent_id": "after"}, key="k3")
        for node in nodes:
            assert node.see("/api/v1/agents/known", index=after["index"])["agent_id"] == "known"
        assert role_of(wiped, asked=leader) == "learner"
        behind.stop(signal.SIGKILL)
        status, answer = leader.ask("POST", "/register", {"agent_id": "refused"})
        assert (status, answer["code"]) in ((503, "no_quorum"), (504, "unknown_outcome"))

        behind.start()
        behind.insist("POST", "/register", {"agent_id": "third"}, key="k4")
        replaced(wiped, asked=behind)
        behind.stop(signal.SIGKILL)
        last = wiped.insist("POST", "/register", {"agent_id": "last"}, key="k5")
        assert leader.see("/api/v1/agents/known", index=last["index"])["agent_id"] == "known"


def test_two_wiped_voters_found_no_second_cluster(tmp_path: Path) -> None:
    """They wait for the third; with it there is no majority, and its table stays."""
    nodes = prompt(cluster_of(3, tmp_path))
    with running(*nodes):
        done = nodes[0].insist("POST", "/register", {"agent_id": "kept"}, key="k1")
        keeper, *wiped = nodes
        keeper.see("/api/v1/agents/kept", index=done["index"])
        cluster_id = keeper.ask("GET", "/api/v1/cluster")[1]["cluster_id"]
        for node in nodes:
            node.stop(signal.SIGKILL)
        for node in wiped:
            wipe(node)
            node.start()
        for node in wiped:
            status, answer = node.ask("GET", "/ready")
            assert (status, answer["reason"]) == (503, "founding")
            assert "n1 (not heard)" in answer["waits_for"]
            assert node.ask("POST", "/register", {"agent_id": "a"})[0] == 503

        keeper.start()
        assert refuses(keeper)
        for node in wiped:
            # Two refusals take longer than the wiped ones need to hear of their cluster.
            assert node.ask("POST", "/register", {"agent_id": "a"})[0] == 503
            assert node.ask("GET", "/api/v1/cluster")[1]["cluster_id"] in (None, cluster_id)
        assert refuses(keeper)
        assert keeper.ask("GET", "/api/v1/cluster")[1]["cluster_id"] == cluster_id
        kept = keeper.ask("GET", "/api/v1/agents/kept?consistency=stale")[0]
        assert kept in (200, 404)  # 404 where its own disk alone can't tell it was confirmed.
