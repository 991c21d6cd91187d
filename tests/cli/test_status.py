"""`reachnode status`."""

import json
from dataclasses import replace

import pytest

from reachnode.cli.main import main
from tests.cli.conftest import LiveNode
from tests.serve.local_replica import ALONE


def test_a_healthy_cluster(node: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """Leader, term, index, members and instances, most important first."""
    assert main(["status"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "n1 leads, as n1 sees it",
        "term 3, index 0, disk ok",
        "id  address  role    alive  index  lag_ms",
        "n1  h:1      leader  yes    0      0",
        "instances: none",
    ]


def test_the_document_for_programs(node: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` is the shape of the API."""
    assert main(["status", "--json", "--node", node.url]) == 0
    status = json.loads(capsys.readouterr().out)
    assert {"cluster_id", "node", "role", "leader", "term", "index", "quorum"} <= set(status)
    assert status["agents"] == {}


def test_trouble_comes_first(node: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """Founding, a missing quorum and a new disk are said with what to do."""
    node.replica.now = replace(ALONE, phase="founding", founding_waits_for=("n2", "n3"))
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith("n1 is founding, waiting for n2, n3\n")
    node.replica.now = replace(ALONE, phase="loading")
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith("n1 is loading, waiting for its data\n")
    node.replica.now = replace(ALONE, quorum=False, leader=None, role="learner")
    assert main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("n1 has no quorum")
    assert lines[-1] == "next: reachnode cluster replace n1 lets its new disk vote"
