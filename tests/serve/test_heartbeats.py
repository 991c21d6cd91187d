"""Heartbeats over HTTP."""

from dataclasses import replace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from reachnode.registry.commands import Register, SetAgentState
from reachnode.registry.outcomes import Applied, Refused
from tests.registry.test_agents import parser
from tests.serve.client import ask
from tests.serve.local_replica import ALONE, LocalReplica, front_of, sights_of

PATH = "/api/v1/agents/a1/heartbeat"


async def registered(replica: LocalReplica) -> None:
    """Register a1, and forget that it was proposed."""
    await replica.propose(Register(instance=parser("a1")), deadline=0)
    replica.proposed.clear()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PATH, {"load": 0.25, "in_flight": 3, "self_check": True}),
        ("/heartbeat", {"agent_id": "a1", "load": 0.25, "in_flight": 3}),
    ],
)
async def test_a_heartbeat_is_heard(
    autojump_clock: MockClock, path: str, body: dict[str, Any]
) -> None:
    """It makes the instance healthy, is told when to come again, and is no entry of the log."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    got = await ask(front, "POST", path, body)
    assert got.status == 200
    assert got.json == {
        "agent_id": "a1",
        "state": "healthy",
        "incarnation": 1,
        "heartbeat_interval_ms": 3000,
        "lease_ms": 10000,
        "nodes": ["http://127.0.0.1:7400"],
        "warnings": [],
    }
    assert replica.proposed == []
    await trio.sleep(1.5)
    shown = (await ask(front, "GET", "/api/v1/agents/a1")).json
    assert (shown["state"], shown["home"], shown["load"]) == ("healthy", "n1", 0.25)
    assert (shown["in_flight"], shown["age_ms"], shown["basis"]) == (3, 1500, "own")
    _ = autojump_clock


async def test_nothing_need_be_said() -> None:
    """A bare POST is a heartbeat; what isn't understood is passed over and told."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    assert (await ask(front, "POST", PATH)).status == 200
    got = await ask(front, "POST", PATH, {"mood": "fine"})
    assert got.json["warnings"] == ["mood is unknown; it was ignored"]


@pytest.mark.parametrize(
    ("path", "body"),
    [(PATH, {"load": "high"}), (PATH, {"agent_id": "b"}), ("/heartbeat", {}), ("/heartbeat", [])],
)
async def test_a_wrong_heartbeat_is_refused(path: str, body: Any) -> None:
    """An agent that says nonsense is told so."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    got = await ask(front, "POST", path, body)
    assert (got.status, got.json["code"]) == (400, "invalid_request")


async def test_who_is_not_registered_is_told_to_register() -> None:
    """Once this node is sure that it lacks nothing."""
    got = await ask(front_of(LocalReplica()), "POST", PATH, {})
    assert (got.status, got.json["code"]) == (404, "unknown_agent")


async def test_who_was_replaced_is_told_so() -> None:
    """A heartbeat of an older incarnation changes nothing."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    await registered(replica)
    got = await ask(front, "POST", PATH, {"incarnation": 1})
    assert (got.status, got.json["code"]) == (409, "superseded")
    assert got.json["details"] == {"incarnation": 2}
    assert (await ask(front, "GET", "/api/v1/agents/a1")).json["state"] == "pending"


async def test_a_node_that_is_cut_off_sends_nobody_to_register() -> None:
    """What isn't known here may be known elsewhere; what is known beats as ever."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    replica.answers = Refused("no_quorum", "nobody leads")
    got = await ask(front, "POST", "/heartbeat", {"agent_id": "b"})
    assert (got.status, got.json["code"]) == (503, "too_stale")
    assert (await ask(front, "POST", PATH, {})).status == 200
    replica.now = replace(ALONE, phase="loading")
    assert (await ask(front, "POST", PATH, {})).json["code"] == "too_stale"


class LateReplica(LocalReplica):
    """A replica that lags behind what it is told by a fence."""

    ahead: int = 1

    async def read_fence(self, *, deadline: float) -> int:
        await trio.lowlevel.checkpoint()
        return self.applied_index + self.ahead


async def test_what_is_on_its_way_is_waited_for(autojump_clock: MockClock) -> None:
    """An agent that registered elsewhere a moment ago is known once its entry is here."""
    replica = LateReplica()
    front = front_of(replica)

    async def arrive() -> None:
        await trio.sleep(0.5)
        await registered(replica)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(arrive)
        assert (await ask(front, "POST", PATH, {})).status == 200
    got = await ask(front, "POST", "/heartbeat", {"agent_id": "b"})
    assert (got.status, got.json["code"]) == (503, "too_stale")
    assert "isn't known here yet" in got.json["detail"]
    _ = autojump_clock


async def test_an_announced_state_is_logged_once() -> None:
    """It is news the first time; an agent says it with each heartbeat all the same."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    for state in ("healthy", "updating", "updating", "healthy", "healthy"):
        got = await ask(front, "POST", PATH, {"state": state})
        assert got.json["state"] == state
    proposed = [command for command, _, _ in replica.proposed]
    assert proposed == [
        SetAgentState(agent_id="a1", state="updating", incarnation=1),
        SetAgentState(agent_id="a1", state="healthy", incarnation=1),
    ]


async def test_an_agent_does_not_enable_itself() -> None:
    """What an operator disabled stays so, whatever its heartbeats say."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    await replica.propose(SetAgentState(agent_id="a1", state="disabled"), deadline=0)
    got = await ask(front, "POST", PATH, {"state": "healthy"})
    assert got.json["state"] == "disabled"


async def test_a_state_that_cannot_be_announced_is_no_reason_to_lose_the_heartbeat() -> None:
    """The lease is held, and the agent hears that the rest has to wait."""
    replica = LocalReplica()
    front = front_of(replica)
    await registered(replica)
    replica.answers = Refused("no_quorum", "nobody leads")
    got = await ask(front, "POST", PATH, {"state": "updating"})
    assert (got.status, got.json["state"]) == (200, "healthy")
    assert got.json["warnings"] == ["state updating isn't announced yet: nobody leads"]


class FarewellReplica(LocalReplica):
    """A replica in which an instance goes while a change of it is under way."""

    async def propose(self, *_: Any, **__: Any) -> Applied:
        await trio.lowlevel.checkpoint()
        self.install(replace_agents(self), self.applied_index + 1)
        return Applied(self.applied_index)


def replace_agents(replica: LocalReplica) -> Any:
    """Return the state without instances."""
    return LocalReplica().state if replica.state.agents else replica.state


async def test_who_goes_meanwhile_is_told_to_register() -> None:
    """It was there when it beat, and isn't when it is answered."""
    before = LocalReplica()
    await registered(before)
    replica = FarewellReplica(state=before.state, applied_index=1)
    front = front_of(replica)
    got = await ask(front, "POST", PATH, {"state": "updating"})
    assert (got.status, got.json["code"]) == (404, "unknown_agent")
    assert sights_of(front).counts == {}
