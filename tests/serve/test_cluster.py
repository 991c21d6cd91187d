"""The cluster over HTTP."""

from dataclasses import replace
from typing import Any

import pytest
import trio

from reachnode.model.membership import ReplicaStatus
from tests.serve.client import ask
from tests.serve.local_replica import ALONE, PAIR, LocalReplica, front_of


async def test_the_cluster_is_shown() -> None:
    """Members, leader, term, index and quorum, and how many instances there are."""
    front = front_of(LocalReplica())
    await ask(front, "POST", "/register", {"agent_id": "a"})
    got = await ask(front, "GET", "/api/v1/cluster?consistency=consistent")
    assert got.json == {
        "cluster_id": "c",
        "node": "n1",
        "client_address": "127.0.0.1:7400",
        "phase": "running",
        "role": "leader",
        "leader": "n1",
        "term": 3,
        "index": 1,
        "commit_index": 1,
        "synced_index": 1,
        "quorum": True,
        "disk": "ok",
        "level": 1,
        "members": [
            {
                "id": "n1",
                "address": "h:1",
                "role": "leader",
                "alive": True,
                "index": 0,
                "lag_ms": 0,
            }
        ],
        "agents": {"pending": 1},
    }


async def test_a_founding_cluster_is_shown_too() -> None:
    """An operator needs it most when nothing works yet; only a fresh read is refused."""
    status = replace(ALONE, phase="founding", cluster_id="", founding_waits_for=("n2",))
    front = front_of(LocalReplica(now=status))
    got = await ask(front, "GET", "/api/v1/cluster")
    assert (got.json["cluster_id"], got.json["agents"]) == (None, {})
    assert got.json["founding_waits_for"] == ["n2"]
    assert (await ask(front, "GET", "/api/v1/cluster?min_index=1")).json["code"] == "too_stale"


async def test_a_member_is_replaced() -> None:
    """The disk a member came back with is admitted; a stranger isn't."""
    front = front_of(LocalReplica())
    got = await ask(front, "POST", "/api/v1/cluster/members", {"action": "replace", "id": "n1"})
    assert (got.status, got.json) == (200, {"id": "n1", "index": 1})
    got = await ask(front, "POST", "/api/v1/cluster/members", {"action": "replace", "id": "n9"})
    assert (got.status, got.json["code"]) == (404, "unknown_member")


@pytest.mark.parametrize(
    "wish", [{"action": "add", "id": "n2"}, {"id": "n1"}, {"action": "replace", "id": "n1", "x": 1}]
)
async def test_another_action_is_refused(wish: dict[str, Any]) -> None:
    """What this version can't do is said, not passed over."""
    got = await ask(front_of(LocalReplica()), "POST", "/api/v1/cluster/members", wish)
    assert (got.status, got.json["code"]) == (400, "invalid_request")


async def test_leadership_is_handed_over() -> None:
    """The leader names its successor; another node names the leader."""
    front = front_of(LocalReplica(now=PAIR, takes_over=True))
    got = await ask(front, "POST", "/api/v1/cluster/transfer")
    assert (got.status, got.json) == (200, {"node": "n1", "leader": "n2"})
    got = await ask(front, "POST", "/api/v1/cluster/transfer")
    assert (got.status, got.json["code"]) == (409, "not_leader")
    assert got.json["details"] == {"leader": "n2"}


@pytest.mark.parametrize("status", [ALONE, PAIR])
async def test_nobody_may_be_ready_to_lead(autojump_clock: Any, status: ReplicaStatus) -> None:
    """A leader without a successor stays, and says so in time."""
    front = front_of(LocalReplica(now=status))
    got = await ask(front, "POST", "/api/v1/cluster/transfer")
    assert (got.status, got.json["code"]) == (503, "no_quorum")
    assert trio.current_time() in (0.0, 5.0)


async def test_who_does_not_lead_names_who_may() -> None:
    """Without a leader the caller is told to come back."""
    front = front_of(LocalReplica(now=replace(ALONE, role="follower", leader=None)))
    got = await ask(front, "POST", "/api/v1/cluster/transfer")
    assert got.json["detail"] == "n1 doesn't lead; ask again in a second"
