"""What a client hears of a change."""

import pytest
import trio

from reachnode.model.membership import Unknown
from reachnode.registry.outcomes import Refused
from tests.serve.client import ask
from tests.serve.local_replica import LocalReplica, front_of


async def test_an_unknown_outcome_says_so() -> None:
    """Nobody is told that a change failed when it may have happened."""
    front = front_of(LocalReplica(answers=Unknown("no majority confirmed it in time")))
    got = await ask(front, "PUT", "/api/v1/settings", {})
    assert (got.status, got.json["code"], got.json["can_retry"]) == (504, "unknown_outcome", False)
    assert got.json["details"] == {"cause": "no majority confirmed it in time"}


@pytest.mark.parametrize(
    ("code", "status"), [("no_quorum", 503), ("disk_full", 503), ("capability_taken", 409)]
)
async def test_a_refusal_keeps_its_code(code: str, status: int) -> None:
    """A refusal travels from the log to the client as it is."""
    front = front_of(LocalReplica(answers=Refused(code, "so it is", {"a": 1})))
    got = await ask(front, "POST", "/register", {"agent_id": "a"})
    assert (got.status, got.json["code"]) == (status, code)
    assert (got.json["detail"], got.json["details"]) == ("so it is", {"a": 1})
    assert ("retry-after" in got.headers) is (status == 503)


async def test_a_repeat_under_the_same_key_counts_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The client's key is the request id, and the change has a deadline."""
    replica = LocalReplica()
    front = front_of(replica)
    body = {"agent_id": "a"}
    first = await ask(front, "POST", "/register", body, Idempotency_Key="k-1")
    again = await ask(front, "POST", "/register", body, Idempotency_Key='"k-1"')
    assert first.json == again.json
    assert [key for _, _, key in replica.proposed] == ["k-1", "k-1"]
    assert [deadline for _, deadline, _ in replica.proposed] == [trio.current_time() + 5] * 2
    assert replica.state.agents["a"].index == 1
