"""Alive, and able to serve."""

from dataclasses import replace
from typing import Any

import pytest

from tests.serve.client import ask
from tests.serve.local_replica import ALONE, LocalReplica, front_of


@pytest.mark.parametrize("path", ["/health", "/healthz", "/livez", "/health?any=thing"])
async def test_a_living_process_says_so(path: str) -> None:
    """Every alias answers, whatever the state of the cluster."""
    replica = LocalReplica(now=replace(ALONE, phase="founding", disk="failed"))
    got = await ask(front_of(replica), "GET", path)
    assert (got.status, got.json) == (200, {"status": "UP"})


@pytest.mark.parametrize("path", ["/ready", "/readyz"])
async def test_a_node_that_can_serve_is_ready(path: str) -> None:
    """Being cut off is no reason to send callers away."""
    replica = LocalReplica(now=replace(ALONE, quorum=False, leader=None, role="follower"))
    got = await ask(front_of(replica), "GET", path)
    assert (got.status, got.json) == (200, {"ready": True})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"phase": "founding"}, "founding"),
        ({"phase": "loading"}, "loading"),
        ({"disk": "full"}, "disk_full"),
        ({"disk": "failed"}, "disk_failed"),
    ],
)
async def test_a_node_that_cannot_says_why(change: dict[str, Any], reason: str) -> None:
    """The reason is one word."""
    got = await ask(front_of(LocalReplica(now=replace(ALONE, **change))), "GET", "/ready")
    assert (got.status, got.json) == (503, {"ready": False, "reason": reason})
    assert got.headers["retry-after"] == "1"


async def test_a_founding_node_says_whom_it_waits_for() -> None:
    """An operator sees which node is missing."""
    replica = LocalReplica(now=replace(ALONE, phase="founding", founding_waits_for=("n2", "n3")))
    got = await ask(front_of(replica), "GET", "/ready")
    assert got.json["waits_for"] == "n2, n3"


async def test_a_draining_node_is_not_ready() -> None:
    """Draining is said before anything else."""
    front = front_of(LocalReplica(now=replace(ALONE, phase="loading")))
    front.is_draining = True
    assert (await ask(front, "GET", "/ready")).json["reason"] == "shutting_down"
