"""Discovery over HTTP."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from reachnode.registry.commands import Register
from reachnode.registry.outcomes import Refused
from reachnode.serve.front import Front
from reachnode.serve.names import SLICE
from tests.registry.test_agents import parser
from tests.serve.client import Got, ask
from tests.serve.local_replica import ALONE, LocalReplica, front_of

PATH = "/api/v1/discover"


async def with_agents(*agent_ids: str, replica: LocalReplica | None = None) -> Front:
    """Return a front of a node at which agents have registered demo.echo."""
    front = front_of(replica or LocalReplica())
    for agent_id in agent_ids:
        registration = {
            "agent_id": agent_id,
            "base_url": "http://127.0.0.1:9/",
            "metadata": {"tags": {"gpu": "a100"}},
            "capabilities": [{"name": "demo.echo", "version": "1.2", "endpoint": f"/{agent_id}"}],
        }
        assert (await ask(front, "POST", "/register", registration)).status == 201
    return front


@pytest.mark.parametrize("path", [PATH, "/query"])
async def test_candidates_are_ranked(path: str) -> None:
    """Healthy ones first, each ready to be called, at an index."""
    front = await with_agents("a1", "a2")
    await ask(front, "POST", "/heartbeat", {"agent_id": "a2", "load": 0.5})
    got = await ask(front, "POST", path, {"capability": "reach:demo.echo", "version": "^1"})
    assert got.status == 200
    assert (got.json["gap"], got.json["index"]) == (None, 2)
    assert got.headers["x-reach-index"] == "2"
    first, second = got.json["candidates"]
    assert (first["agent_id"], first["state"], first["home"]) == ("a2", "healthy", "n1")
    assert (first["endpoint"], first["version"]) == ("http://127.0.0.1:9/a2", "1.2.0")
    assert (second["agent_id"], second["state"]) == ("a1", "pending")
    assert first["score"] > second["score"]


async def test_a_gap_says_why() -> None:
    """Who was left out, for what reason; it is no error that nobody is there."""
    front = await with_agents("a1")
    await ask(front, "POST", "/api/v1/agents/a1/state", {"state": "disabled", "force": True})
    got = await ask(front, "POST", PATH, {"capability": "demo.echo"})
    assert (got.status, got.json["candidates"]) == (200, [])
    gap = got.json["gap"]
    assert (gap["code"], gap["reasons"]) == ("no_reachable_agent", {"state": 1})
    assert gap["excluded"][0]["detail"] == "it is disabled"


async def test_a_name_that_nobody_declares_is_compared() -> None:
    """Close names are those declared at this moment, whoever came and went before."""
    front = await with_agents("a1")

    async def close_to(name: str) -> list[str]:
        got = await ask(front, "POST", PATH, {"capability": name})
        assert got.json["gap"]["code"] == "unknown_capability"
        found: list[str] = got.json["gap"]["close_names"]
        return found

    assert await close_to("demo.ecko") == ["demo.echo"]
    more = {"agent_id": "b", "capabilities": [{"name": "demo.ecto", "protocol": "pull"}]}
    await ask(front, "POST", "/register", more)
    await ask(front, "DELETE", "/api/v1/agents/a1")
    assert await close_to("demo.ecko") == ["demo.ecto"]


async def test_exclusions_are_told_beside_candidates_when_asked_for() -> None:
    """With `explain`."""
    front = await with_agents("a1", "a2")
    await ask(front, "POST", "/api/v1/agents/a1/state", {"state": "updating"})
    question: dict[str, Any] = {"capability": "demo.echo"}
    assert "excluded" not in (await ask(front, "POST", PATH, question)).json
    got = await ask(front, "POST", PATH, {**question, "explain": True})
    assert [one["agent_id"] for one in got.json["excluded"]] == ["a1"]
    assert [one["agent_id"] for one in got.json["candidates"]] == ["a2"]


async def test_a_cut_off_node_goes_on_and_says_so() -> None:
    """From what it last knew, marked and counted; whoever asks for more is refused."""
    replica = LocalReplica()
    front = await with_agents("a1", replica=replica)
    replica.now = replace(ALONE, quorum=False, contact_age_seconds=7.5)
    replica.answers = Refused("no_quorum", "nobody leads")
    got = await ask(front, "POST", PATH, {"capability": "demo.echo"})
    assert [one["agent_id"] for one in got.json["candidates"]] == ["a1"]
    assert got.headers["x-reach-stale-ms"] == "7500"
    metrics = await ask(front, "GET", "/metrics")
    assert "reachnode_stale_answers_total 1\n" in metrics.body.decode()
    for query, code in (("consistency=consistent", "no_quorum"), ("max_stale_ms=1", "too_stale")):
        got = await ask(front, "POST", f"{PATH}?{query}", {"capability": "demo.echo"})
        assert (got.status, got.json["code"]) == (503, code)


@pytest.mark.parametrize(
    "question",
    [{}, {"text": "who echoes"}, {"capability": "a b"}, {"capability": "x", "version": "?"}, []],
)
async def test_another_question_is_refused(question: Any) -> None:
    """What isn't a question gets one problem document."""
    got = await ask(await with_agents(), "POST", PATH, question)
    assert (got.status, got.json["code"]) == (400, "invalid_request")


async def test_a_question_may_wait_for_its_own_change() -> None:
    """Whoever registered elsewhere names the index that it was told."""
    front = await with_agents("a1")
    got = await ask(front, "POST", f"{PATH}?min_index=1", {"capability": "demo.echo"})
    assert len(got.json["candidates"]) == 1


async def test_an_answer_is_of_the_index_it_names() -> None:
    """Though the table changes while close names are looked up."""
    replica = LocalReplica()
    front = front_of(replica)
    every = [f"c{at:04}" for at in range(3 * SLICE)]
    await replica.propose(Register(instance=parser("a1", *every)), deadline=0)
    got: list[Got] = []

    async def look() -> None:
        got.append(await ask(front, "POST", PATH, {"capability": "late"}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await trio.lowlevel.checkpoint()
        await replica.propose(Register(instance=parser("a2", "late")), deadline=0)
    (answer,) = got
    assert len(answer.json["candidates"]) == (answer.json["index"] == 2)
