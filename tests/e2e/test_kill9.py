"""`sim kill9` on real nodes: a short run, with snapshots so often that kills fall into them."""

import json
from pathlib import Path

import pytest

from sim.kill9 import main


def test_nothing_confirmed_is_lost_or_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten kills under load: every confirmed change is there, once, the same on all nodes."""
    options = ["--kills", "10", "--seed", "3", "--snapshot-entries", "20", "--json"]
    status = main(options)
    said = json.loads(capsys.readouterr().out)
    assert said["problems"] == []
    assert (said["lost"], said["doubled"], said["failed_idempotent"]) == (0, 0, 0)
    assert said["kills"] == 10
    assert said["leader_kills"] >= 1
    assert said["acknowledged"] > 100
    assert said["snapshot_index"] > 0
    assert said["failover_ms"]["max"] > 0
    assert status == 0


def test_a_cluster_that_never_begins_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says why, and the exit status that it failed."""
    monkeypatch.setenv("REACHNODE_CLUSTER__TIME_SCALE", "nonsense")
    assert main(["--kills", "1", "--json", "--dir", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "'nonsense' is not a number" in said.err
