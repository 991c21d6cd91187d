"""How fresh an answer is."""

from dataclasses import replace

import pytest
import trio

from reachnode.model.membership import Unknown
from reachnode.registry.outcomes import Refused
from tests.serve.client import ask
from tests.serve.local_replica import ALONE, LocalReplica, front_of


@pytest.mark.parametrize("consistency", ["default", "stale", "consistent"])
async def test_each_consistency_answers_while_all_is_well(consistency: str) -> None:
    """A cluster of one is always fresh."""
    front = front_of(LocalReplica())
    got = await ask(front, "GET", f"/api/v1/settings?consistency={consistency}&max_stale_ms=0")
    assert got.status == 200
    assert (got.headers["x-reach-node"], got.headers["x-reach-index"]) == ("n1", "0")
    assert got.headers["x-reach-stale-ms"] == "0"


@pytest.mark.parametrize(
    "query",
    ["consistency=strong", "min_index=x", "max_stale_ms=-1", "consistancy=consistent"],
)
async def test_a_wrong_wish_is_refused(query: str) -> None:
    """A typo must not weaken a read."""
    got = await ask(front_of(LocalReplica()), "GET", f"/api/v1/settings?{query}")
    assert (got.status, got.json["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("phase", ["founding", "loading"])
async def test_an_empty_table_is_no_answer(phase: str) -> None:
    """Before the table is there even a stale read is refused."""
    replica = LocalReplica(now=replace(ALONE, phase=phase))  # type: ignore[arg-type] # parametrized
    for query in ("", "?consistency=stale"):
        got = await ask(front_of(replica), "GET", f"/api/v1/agents{query}")
        assert (got.status, got.json["code"]) == (503, "too_stale")
        assert got.headers["retry-after"] == "1"


async def test_min_index_waits(autojump_clock: trio.testing.MockClock) -> None:
    """A read waits until the index is there, and says so when it doesn't come."""
    replica = LocalReplica()
    front = front_of(replica)

    async def advance() -> None:
        await trio.sleep(1)
        replica.applied_index = 7

    async with trio.open_nursery() as nursery:
        nursery.start_soon(advance)
        got = await ask(front, "GET", "/api/v1/agents?min_index=7")
    assert (got.status, got.headers["x-reach-index"]) == (200, "7")
    before = trio.current_time()
    got = await ask(front, "GET", "/api/v1/agents?min_index=8")
    assert (got.status, got.json["code"]) == (503, "too_stale")
    assert got.json["details"] == {"index": 7}
    assert trio.current_time() - before < 6


async def test_an_old_answer_is_refused_where_asked() -> None:
    """`max_stale_ms` bounds the age."""
    replica = LocalReplica(now=replace(ALONE, contact_age_seconds=1.5))
    front = front_of(replica)
    assert (await ask(front, "GET", "/api/v1/agents?max_stale_ms=1500")).status == 200
    got = await ask(front, "GET", "/api/v1/agents?max_stale_ms=1499")
    assert (got.status, got.json["code"]) == (503, "too_stale")
    assert (await ask(front, "GET", "/api/v1/agents")).headers["x-reach-stale-ms"] == "1500"


@pytest.mark.parametrize(
    ("answers", "code"),
    [(Refused("no_quorum", "cut off"), "no_quorum"), (Unknown("late"), "no_quorum")],
)
async def test_a_consistent_read_needs_a_majority(answers: Refused | Unknown, code: str) -> None:
    """Without a fence there is no consistent answer, and the others go on."""
    front = front_of(LocalReplica(answers=answers))
    got = await ask(front, "GET", "/api/v1/agents?consistency=consistent")
    assert (got.status, got.json["code"], got.json["can_retry"]) == (503, code, True)
    assert (await ask(front, "GET", "/api/v1/agents")).status == 200
