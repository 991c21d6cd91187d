"""Agents at three real nodes: registered at one, found at every other, lost and back again."""

import http.client
import json
import re
import signal
import time
from pathlib import Path
from typing import Any

from tests.e2e.agents import Agent, living, watched
from tests.e2e.processes import SECONDS_MAX, NodeProcess, cluster_of, running

SWIFT = {
    "registry": {"heartbeat_interval_ms": 300, "suspect_after_ms": 1200},
    "probes": {"interval_ms": 300, "timeout_ms": 500, "failures": 3},
}
TIME_SCALE = 2
"""How much slower than usual consensus is told to be (`tests.e2e.processes`)."""
QUESTION = {"capability": "demo.echo", "explain": True}


def curl(
    node: NodeProcess, method: str, path: str, document: Any = None
) -> tuple[int, http.client.HTTPMessage, Any]:
    """Return status, headers and document, as a client that knows nothing of nodes gets them."""
    connection = http.client.HTTPConnection(*node.place, timeout=SECONDS_MAX)
    try:
        connection.request(method, path, None if document is None else json.dumps(document))
        response = connection.getresponse()
        return response.status, response.headers, json.loads(response.read())
    finally:
        connection.close()


def found(node: NodeProcess, *, index: int = 0) -> list[tuple[str, str]]:
    """Return who is found at a node that has come to an index, in order, and how each is."""
    status, _, answer = curl(node, "POST", f"/query?min_index={index}", QUESTION)
    assert status == 200, answer
    return [(one["agent_id"], one["state"]) for one in answer["candidates"]]


def figure(node: NodeProcess, name: str) -> int:
    """Return a figure of a node."""
    connection = http.client.HTTPConnection(*node.place, timeout=SECONDS_MAX)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    finally:
        connection.close()
    said = re.search(rf"^{name} ([0-9]+)$", page, re.MULTILINE)
    assert said is not None, page
    return int(said[1])


def test_an_agent_is_found_lost_and_found_again(tmp_path: Path) -> None:
    """Silence makes it suspect and last; only failed probes take it out, and it is back at once.

    Registered, asked for and heard each at another of the three nodes.
    """
    nodes = cluster_of(3, tmp_path)
    agents = [Agent(f"a{at}", nodes[(at + 2) % 3]) for at in range(3)]
    with running(*nodes), living(*agents):
        first = nodes[0].insist("PUT", "/api/v1/settings", SWIFT, key="swift")["index"]
        for at, agent in enumerate(agents):
            status, _, done = curl(nodes[at], "POST", "/register", agent.registration)
            assert (status, done["heartbeat_interval_ms"]) == (201, 300)
            assert sorted(done["nodes"]) == sorted(node.url for node in nodes)
            there = nodes[(at + 1) % 3]
            assert agent.agent_id in dict(found(there, index=done["index"]))
            agent.home.see("/api/v1/agents", index=done["index"])
            agent.start_beating()
        with watched(*nodes) as watches:
            for watch in watches:
                watch.until(lambda states: list(states.values()) == ["healthy"] * 3)
            agents[0].fall_silent()
            for node, watch in zip(nodes, watches, strict=True):
                watch.until_state("a0", "suspect")
                assert found(node)[-1] == ("a0", "suspect")
                assert {state for _, state in found(node)[:-1]} == {"healthy"}
            agents[0].close()
            for node, watch in zip(nodes, watches, strict=True):
                watch.until_state("a0", "down")
                assert [agent_id for agent_id, _ in found(node)] == ["a1", "a2"]
            assert sum(figure(node, "reachnode_gossip_opinions_asked_total") for node in nodes) > 0
            agents[0].listen()
            status, _, done = curl(nodes[1], "POST", "/register", agents[0].registration)
            assert (status, done["incarnation"]) == (200, 4)
            assert "a0" in dict(found(nodes[2], index=done["index"]))
            agents[0].start_beating()
            for watch in watches:
                watch.until_state("a0", "healthy")
            assert dict(found(nodes[0])) == dict.fromkeys(("a0", "a1", "a2"), "healthy")
        assert len(curl(nodes[1], "GET", "/api/v1/agents?state=healthy")[2]["items"]) == 3
        with watched(nodes[2], query=f"?from_index={first}") as (resumed,):
            resumed.until(lambda states: list(states.values()) == ["healthy"] * 3)


def test_a_node_that_is_cut_off_answers_and_changes_nothing(tmp_path: Path) -> None:
    """Two of three stopped: the third goes on from what it knows, and says how old that is.

    It refuses a registration within 2 s, and as soon after the others are back all three agree.
    """
    nodes = cluster_of(3, tmp_path)
    agent = Agent("a0", nodes[2])
    with running(*nodes), living(agent):
        done = nodes[0].insist("POST", "/register", agent.registration, key="a0")
        nodes[2].see("/api/v1/agents/a0", index=done["index"])
        agent.beat()
        for node in nodes[:2]:
            assert node.process is not None
            node.process.send_signal(signal.SIGSTOP)
        status, answer = nodes[2].ask("GET", "/api/v1/agents?consistency=consistent")
        assert (status, answer["code"]) == (503, "no_quorum")
        begun = time.monotonic()
        status, _, answer = curl(nodes[2], "POST", "/register", {"agent_id": "b"})
        assert (status, answer["code"]) == (503, "no_quorum")
        assert time.monotonic() - begun < 2 * TIME_SCALE
        status, headers, answer = curl(nodes[2], "POST", "/query", QUESTION)
        assert [one["agent_id"] for one in answer["candidates"]] == ["a0"]
        assert int(headers["X-Reach-Stale-Ms"]) > 0
        agent.beat()
        assert figure(nodes[2], "reachnode_stale_answers_total") > 0
        for node in nodes[:2]:
            assert node.process is not None
            node.process.send_signal(signal.SIGCONT)
        begun = time.monotonic()
        done = nodes[2].insist("POST", "/register", {**agent.registration}, key="again")
        answers = []
        for node in nodes:
            answer = curl(node, "POST", f"/api/v1/discover?min_index={done['index']}", QUESTION)[2]
            answers.append([(one["agent_id"], one["incarnation"]) for one in answer["candidates"]])
        assert answers == [[("a0", done["incarnation"])]] * 3
        assert time.monotonic() - begun < 2 * TIME_SCALE
