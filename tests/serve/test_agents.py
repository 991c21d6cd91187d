"""Registering instances over HTTP, and looking at them."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from reachnode.serve.agents import SLICE
from tests.serve.client import Got, ask
from tests.serve.local_replica import ALONE, LocalReplica, front_of, sights_of


def body(agent_id: str = "a1", *, endpoint: str = "http://h/x", **fields: Any) -> dict[str, Any]:
    """Return a registration of one capability."""
    return {
        "agent_id": agent_id,
        "capabilities": [{"name": "demo.echo", "protocol": "rest", "endpoint": endpoint}],
        **fields,
    }


@pytest.mark.parametrize("path", ["/register", "/api/v1/agents/register"])
async def test_an_instance_registers_and_is_read_back(path: str) -> None:
    """What was confirmed is there, with its index and incarnation."""
    front = front_of(LocalReplica())
    got = await ask(front, "POST", path, body(colour="red"))
    assert got.status == 201
    assert got.json == {
        "agent_id": "a1",
        "state": "pending",
        "index": 1,
        "incarnation": 1,
        "heartbeat_interval_ms": 3000,
        "lease_ms": 10000,
        "nodes": ["http://127.0.0.1:7400"],
        "warnings": ["colour is unknown; it was ignored"],
    }
    shown = await ask(front, "GET", "/api/v1/agents/a1")
    assert shown.json == {
        **body(),
        "agent": "a1",
        "metadata": {},
        "state": "pending",
        "incarnation": 1,
        "index": 1,
        "home": None,
        "age_ms": None,
        "load": None,
        "in_flight": None,
        "unreachable_from": [],
        "why": "nothing was heard of it yet",
        "basis": "none",
    }


async def test_the_same_instance_replaces_itself() -> None:
    """Coming back with the same endpoints is a 200 with a new incarnation."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", body())
    got = await ask(front, "POST", "/register", body())
    assert (got.status, got.json["incarnation"]) == (200, 2)


@pytest.mark.parametrize("proof", [{"incarnation": 1}, {"replace": True}])
async def test_moving_needs_a_proof_or_the_will(proof: dict[str, Any]) -> None:
    """Another endpoint under a taken id is refused while the old one answers."""
    front = front_of(LocalReplica())
    sights_of(front).there.add("a1")
    await ask(front, "POST", "/register", body())
    got = await ask(front, "POST", "/register", body(endpoint="http://other/"))
    assert (got.status, got.json["code"]) == (409, "agent_id_in_use")
    assert got.json["details"] == {"incarnation": 1, "endpoint": "http://h/x"}
    assert "registered at http://h/x, and that one answers" in got.json["detail"]
    got = await ask(front, "POST", "/register", body(endpoint="http://other/", **proof))
    assert got.status == 200
    assert sights_of(front).looked_for == ["a1"]


async def test_who_is_gone_is_replaced() -> None:
    """Another endpoint under a taken id is looked into: nobody answers, so it is free."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", body())
    got = await ask(front, "POST", "/register", body(endpoint="http://other/"))
    assert (got.status, got.json["incarnation"]) == (200, 2)
    assert sights_of(front).looked_for == ["a1"]


async def test_an_id_without_an_address_is_in_use_too() -> None:
    """What pulls its work has no endpoint to name."""
    front = front_of(LocalReplica())
    sights_of(front).there.add("a1")
    await ask(front, "POST", "/register", {"agent_id": "a1"})
    got = await ask(front, "POST", "/register", body())
    assert got.json["details"] == {"incarnation": 1, "endpoint": ""}
    assert "without an endpoint" in got.json["detail"]


@pytest.mark.parametrize(
    ("endpoint", "is_local", "status"),
    [
        ("http://127.0.0.1:9/", True, 201),
        ("http://127.0.0.1:9/", False, 422),
        ("http://10.0.0.7:9/", False, 201),
        ("http://169.254.169.254/", True, 422),
        ("http://0.0.0.0:9/", True, 422),
    ],
)
async def test_an_endpoint_that_leads_inside_is_refused(
    endpoint: str, is_local: bool, status: int
) -> None:
    """Local ones are taken while the node itself is local, and others never."""
    replica = LocalReplica()
    front = front_of(replica)
    front.about = replace(front.about, listens_on_loopback=is_local)
    got = await ask(front, "POST", "/register", body(endpoint=endpoint))
    assert got.status == status
    if status == 422:
        assert got.json["code"] == "endpoint_refused"
        assert got.json["details"]["problems"][0]["at"] == "capabilities[0].endpoint"
        assert replica.proposed == []


async def test_the_cluster_may_take_local_endpoints() -> None:
    """Where the settings say so, whichever way the node listens."""
    front = front_of(LocalReplica())
    front.about = replace(front.about, listens_on_loopback=False)
    rules = {"registry": {"allow_local_endpoints": True}}
    assert (await ask(front, "PUT", "/api/v1/settings", rules)).status == 200
    local = body(endpoint="http://localhost:9/")
    assert (await ask(front, "POST", "/register", local)).status == 201


async def test_every_node_that_is_up_is_told() -> None:
    """An agent moves on by itself when its own goes."""
    front = front_of(LocalReplica())
    sights_of(front).addresses = {"n3": "h3:7400", "n2": "h2:7400"}
    got = await ask(front, "POST", "/register", body())
    assert got.json["nodes"] == ["http://127.0.0.1:7400", "http://h2:7400", "http://h3:7400"]


async def test_who_is_disabled_stays_so_when_it_comes_back() -> None:
    """A registration is told the state that it is in, and not the one it hopes for."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", body())
    wish = {"state": "disabled", "force": True}
    await ask(front, "POST", "/api/v1/agents/a1/state", wish)
    assert (await ask(front, "POST", "/register", body())).json["state"] == "disabled"


async def test_a_repeat_hears_what_was_decided() -> None:
    """Under the same key the first answer holds, though another took the id meanwhile."""
    front = front_of(LocalReplica())
    first = await ask(front, "POST", "/register", body(), Idempotency_Key="k")
    other = body(endpoint="http://other/", replace=True)
    assert (await ask(front, "POST", "/register", other)).status == 200
    again = await ask(front, "POST", "/register", body(), Idempotency_Key="k")
    assert (again.status, again.json) == (first.status, first.json)
    sights_of(front).there.add("a1")
    assert (await ask(front, "POST", "/register", body())).status == 409


async def test_an_old_incarnation_does_not_replace_a_newer() -> None:
    """Who was replaced meanwhile is told so."""
    front = front_of(LocalReplica())
    assert (await ask(front, "POST", "/register", body(incarnation=5))).status == 201
    await ask(front, "POST", "/register", body())
    got = await ask(front, "POST", "/register", body(incarnation=1))
    assert (got.status, got.json["code"]) == (409, "agent_id_in_use")


@pytest.mark.parametrize("incarnation", [-1, 2**53 + 1, 10**30])
@pytest.mark.parametrize("more", [{}, {"replace": True}])
async def test_no_instance_has_such_an_incarnation(incarnation: int, more: dict[str, Any]) -> None:
    """A number that no log can hold is refused before it is proposed."""
    replica = LocalReplica()
    got = await ask(front_of(replica), "POST", "/register", body(incarnation=incarnation, **more))
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert replica.proposed == []


async def test_a_wrong_registration_is_refused_with_the_place() -> None:
    """Nothing is proposed, and the caller learns where it is wrong."""
    replica = LocalReplica()
    got = await ask(front_of(replica), "POST", "/register", body(name=7))
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert got.json["details"]["problems"][0]["at"] == "name"
    assert replica.proposed == []


async def test_nothing_registers_before_the_table_is_there() -> None:
    """Who holds an id can't be known from an empty table."""
    front = front_of(LocalReplica(now=replace(ALONE, phase="loading")))
    assert (await ask(front, "POST", "/register", body())).json["code"] == "too_stale"


async def test_an_instance_takes_leave() -> None:
    """A farewell removes it, a second one finds nothing, an outdated one removes nothing."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", body("a:1"))
    late = await ask(front, "DELETE", "/api/v1/agents/a%3A1?incarnation=9")
    assert (late.status, late.json["code"]) == (409, "superseded")
    got = await ask(front, "DELETE", "/api/v1/agents/a:1?incarnation=1")
    assert (got.status, got.json) == (200, {"agent_id": "a:1", "index": 3})
    for method in ("DELETE", "GET"):
        got = await ask(front, method, "/api/v1/agents/a:1")
        assert (got.status, got.json["code"]) == (404, "unknown_agent")


async def test_a_registration_hears_how_to_beat() -> None:
    """What the cluster bears of the wish is granted, and a longer lease is lent."""
    front = front_of(LocalReplica())
    wish = {"interval_ms": 5000, "ttl_ms": 60_000}
    got = await ask(front, "POST", "/register", body(heartbeat=wish))
    assert (got.json["heartbeat_interval_ms"], got.json["lease_ms"]) == (5000, 60_000)
    await ask(front, "PUT", "/api/v1/settings", {"registry": {"heartbeat_interval_ms": 2000}})
    got = await ask(front, "POST", "/register", body())
    assert (got.json["heartbeat_interval_ms"], got.json["lease_ms"]) == (2000, 10_000)


async def test_a_state_is_announced() -> None:
    """An instance is updating, disabled, or back."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", body())
    await ask(front, "POST", "/register", body("a2", endpoint="http://h2/"))
    for state, seen in (("updating", "updating"), ("disabled", "disabled"), ("healthy", "pending")):
        got = await ask(front, "POST", "/api/v1/agents/a1/state", {"state": state})
        assert (got.status, got.json["state"]) == (200, state)
        assert (await ask(front, "GET", "/api/v1/agents/a1")).json["state"] == seen


@pytest.mark.parametrize("state", ["updating", "disabled"])
async def test_a_capability_is_not_left_without_an_instance(state: str) -> None:
    """The last that serves one stays, unless it is forced; then nothing holds it any more."""
    replica = LocalReplica()
    front = front_of(replica)
    await ask(front, "POST", "/register", body())
    got = await ask(front, "POST", "/api/v1/agents/a1/state", {"state": state})
    assert (got.status, got.json["code"]) == (409, "would_uncover")
    assert got.json["details"] == {"capabilities": ["demo.echo"]}
    assert len(replica.proposed) == 1
    wish = {"state": state, "force": True}
    for again in (wish, wish, {"state": "updating"}, {"state": "disabled"}):
        assert (await ask(front, "POST", "/api/v1/agents/a1/state", again)).status == 200


async def test_who_is_not_meant_leaves_nothing_uncovered() -> None:
    """An unknown instance, or another incarnation, is refused for what it is."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", body())
    wish = {"state": "disabled", "incarnation": 7}
    assert (await ask(front, "POST", "/api/v1/agents/a1/state", wish)).json["code"] == "superseded"
    assert (await ask(front, "POST", "/api/v1/agents/b/state", wish)).json[
        "code"
    ] == "unknown_agent"
    wish["incarnation"] = 1
    got = await ask(front, "POST", "/api/v1/agents/a1/state", wish)
    assert got.json["code"] == "would_uncover"


@pytest.mark.parametrize(
    "wish",
    [
        {"state": "gone"},
        {},
        {"state": "updating", "forse": True},
        {"state": 1},
        {"state": "updating", "incarnation": 10**30},
        {"state": "updating", "incarnation": -1},
    ],
)
async def test_another_state_is_refused(wish: dict[str, Any]) -> None:
    """Words that mean nothing change nothing."""
    got = await ask(front_of(LocalReplica()), "POST", "/api/v1/agents/a1/state", wish)
    assert (got.status, got.json["code"]) == (400, "invalid_request")


async def test_instances_are_listed_by_what_is_asked() -> None:
    """Filters add up; pages follow one another in the order of ids."""
    front = front_of(LocalReplica())
    for number, zone in enumerate("abab"):
        registration = body(f"i{number}", agent=f"g{number // 2}", metadata={"zone": zone})
        await ask(front, "POST", "/register", registration)
    await ask(front, "POST", "/register", {"agent_id": "bare"})
    await ask(front, "POST", "/api/v1/agents/i3/state", {"state": "disabled"})

    async def ids(query: str) -> list[str]:
        got = await ask(front, "GET", f"/api/v1/agents?{query}")
        return [one["agent_id"] for one in got.json["items"]]

    assert await ids("") == ["bare", "i0", "i1", "i2", "i3"]
    assert await ids("capability=demo.echo") == ["i0", "i1", "i2", "i3"]
    assert await ids("capability=nothing") == []
    assert await ids("zone=a&agent=g1") == ["i2"]
    assert await ids("state=disabled") == ["i3"]
    assert await ids("state=pending&zone=b") == ["i1"]
    page = await ask(front, "GET", "/api/v1/agents?limit=2&zone=a")
    assert page.json["next"] is None
    page = await ask(front, "GET", "/api/v1/agents?limit=2")
    assert page.json["next"] == "i0"
    assert await ids("limit=2&cursor=i0") == ["i1", "i2"]
    assert (await ask(front, "GET", "/api/v1/agents?state=lost")).status == 400


async def test_a_long_list_is_of_one_moment() -> None:
    """It is made in slices while others get their turn, and says of which index it is."""
    front = front_of(LocalReplica())
    for number in range(2 * SLICE):
        await ask(front, "POST", "/register", body(f"i{number:03}"))
    got: list[Got] = []

    async def read() -> None:
        got.append(await ask(front, "GET", "/api/v1/agents?limit=1000"))

    async def change() -> None:
        await ask(front, "DELETE", "/api/v1/agents/i099")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(change)
    (page,) = got
    is_before = page.headers["x-reach-index"] == str(2 * SLICE)
    assert len(page.json["items"]) == 2 * SLICE - (not is_before)
