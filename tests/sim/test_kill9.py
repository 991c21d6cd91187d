"""What `sim kill9` plans and says; that it holds is shown with real nodes in tests/e2e."""

from pathlib import Path

import pytest

from sim.kill9 import newest_snapshot, parser, report, summary
from sim.live.cluster import LiveCluster
from sim.live.killing import Run, Tally, Wish
from sim.live.verdict import Verdict
from sim.live.writers import History
from tests.sim.live.test_verdict import A1, A3, B2, LAST


def said_of(
    verdict: Verdict, tally: Tally, told: History, cluster: LiveCluster
) -> dict[str, object]:
    """Return the report of a run that never ran."""
    run = Run(cluster, Wish())
    run.tally, run.history = tally, told
    return report(run, verdict, 1)


CLEAN = Verdict(lost=(), doubled=(), unequal=(), disordered=())


@pytest.fixture(name="cluster")
def cluster_fixture(tmp_path_factory: pytest.TempPathFactory) -> LiveCluster:
    """Give a cluster that is never started."""
    return LiveCluster(tmp_path_factory.mktemp("kill9"))


def test_a_clean_run_has_no_problems(cluster: LiveCluster) -> None:
    """The figures of the contract are there under their names."""
    tally = Tally(kills=3, leader_kills=2, failover_seconds=[0.4, 0.5])
    said = said_of(CLEAN, tally, History(confirmed=[A1, B2, A3, LAST]), cluster)
    assert said["problems"] == []
    assert (said["kills"], said["acknowledged"]) == (3, 4)
    assert (said["lost"], said["doubled"], said["failed_idempotent"]) == (0, 0, 0)
    assert said["failover_ms"] == {"p50": 400.0, "p99": 500.0, "max": 500.0}


def test_everything_wrong_is_a_problem(cluster: LiveCluster) -> None:
    """Lost, doubled, unequal, disordered, refused, left open, crashed, late: each is told."""
    verdict = Verdict(lost=("l",), doubled=("d",), unequal=("u",), disordered=("o",))
    tally = Tally(crashed=["c"], late=["t"])
    told = History(open={"k": A1.change}, refused=["r"])
    said = said_of(verdict, tally, told, cluster)
    assert said["problems"] == ["l", "d", "u", "o", "r", "k was left open", "c", "t"]
    assert said["failed_idempotent"] == 2
    machine = {"cores": 2, "processor": "p", "file_system": "f", "python": "3", "reachnode": "0"}
    ended = {"index": 9, "snapshot_index": 4, "machine": machine}
    assert summary({**said, **ended}).count("WRONG: ") == 8


@pytest.mark.parametrize("said", [["--kills", "0"], ["--kill", "1"], ["--seconds", "x"]])
def test_wrong_use_is_refused(said: list[str]) -> None:
    """Exit status 2, as everywhere."""
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(said)
    assert ended.value.code == 2


def test_the_newest_snapshot_of_any_node_counts(tmp_path: Path) -> None:
    """Unfinished ones don't, and without any it is 0."""
    assert newest_snapshot(tmp_path) == 0
    for name in ("n1/snapshot-07", "n2/snapshot-11", "n2/snapshot-20.new", "n2/journal"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert newest_snapshot(tmp_path) == 11
