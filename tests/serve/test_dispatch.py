"""From request to answer, whatever goes wrong between."""

import logging

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from reachnode.registry.outcomes import Refused
from tests.serve.client import ask
from tests.serve.clients import questions
from tests.serve.local_replica import LocalReplica, front_of


class BrokenReplica(LocalReplica):
    """A replica with a fault of ours."""

    async def wait_applied(self, index: int, *, deadline: float) -> bool:
        raise ValueError("secret inner workings")


async def test_a_fault_of_ours_shows_nothing_of_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The caller gets a request id, and the log has the rest under it."""
    got = await ask(front_of(BrokenReplica()), "GET", "/api/v1/agents?min_index=1")
    assert (got.status, got.json["code"]) == (500, "internal")
    assert "secret" not in got.body.decode()
    assert got.json["request_id"] in caplog.text
    assert "secret inner workings" in caplog.text


async def test_an_internal_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A fault inside the state machine is ours too."""
    front = front_of(LocalReplica(answers=Refused("internal", "KeyError")))
    got = await ask(front, "PUT", "/api/v1/settings", {})
    assert (got.status, got.json["code"]) == (500, "internal")
    assert caplog.records[0].levelno == logging.ERROR


@pytest.mark.parametrize(
    ("method", "target", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("DELETE", "/health", 405, "method_not_allowed"),
        ("GET", "/api/v1/agents?limits=3", 400, "invalid_request"),
        ("GET", "/api/v1/agents?xyzzy=3", 400, "invalid_request"),
        ("OPTIONS", "*", 400, "invalid_request"),
    ],
)
async def test_what_is_not_there_is_said(method: str, target: str, status: int, code: str) -> None:
    """Every answer is problem details and says who answered."""
    got = await ask(front_of(LocalReplica()), method, target)
    assert (got.status, got.json["code"]) == (status, code)
    assert got.headers["x-reach-node"] == "n1"
    assert ("allow" in got.headers) is (status == 405)
    assert got.headers["date"].endswith("GMT")


@settings(max_examples=300)
@given(st.lists(questions, min_size=1, max_size=6))
def test_no_request_is_a_fault_of_ours(
    asked: list[tuple[str, str, object, dict[str, str]]],
) -> None:
    """Whatever clients ask one after the other, no answer is a 500, and each is a promised one."""

    async def session() -> None:
        front = front_of(LocalReplica())
        for method, target, body, headers in asked:
            got = await ask(front, method, target, body, **headers)
            assert got.status != 500

    trio.run(session, clock=trio.testing.MockClock(autojump_threshold=0))
