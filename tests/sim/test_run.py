"""`reachnode sim run`: what the seeds add up to."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

import pytest

from sim.rare import BRANCHES
from sim.run import Totals, add_arguments, run, simulate, summary


def parsed(*arguments: str) -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(arguments))


def report(**changed: Any) -> Mapping[str, Any]:
    """Return the report of a run as a worker gives it."""
    plain = {
        "seed": 1,
        "voters": 3,
        "seconds": 3600.0,
        "acknowledged": 10,
        "fates": {"applied": 10},
        "faults": {"crash": 2},
        "rare": {"fenced_reads": 1},
        "violations": [],
        "trace_hash": "ab",
        "result_digest": "cd",
        "events": 5,
    }
    return {**plain, **changed}


def test_a_small_run_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    """A few seeds under all faults: nothing is violated, and the answer has its keys."""
    assert run(parsed("--seeds", "8", "--seed", "100", "--json")) == 0
    answer = json.loads(capsys.readouterr().out)
    keys = {"seeds", "hours", "faults", "acknowledged", "violations", "rare", "trace_hash"}
    assert keys <= answer.keys()
    assert (answer["seeds"], answer["violations"]) == (8, [])
    assert answer["acknowledged"] > 100
    assert answer["faults"]["crash"] > 0


def test_the_same_seeds_have_the_same_hash() -> None:
    """How many workers there are changes nothing; other seeds have another hash."""
    alone, together = simulate(seeds=2, workers=1), simulate(seeds=2, workers=2)
    assert alone.trace.hexdigest() == together.trace.hexdigest()
    assert simulate(first=2, seeds=2).trace.hexdigest() != alone.trace.hexdigest()


def test_a_run_stops_at_its_hours_or_seconds() -> None:
    """Simulated hours are counted in whole seeds, real seconds end it after the next one."""
    assert simulate(hours=0.03).seeds == 2
    assert simulate(seconds=0.0).seeds == 1


def test_a_violation_is_shown_with_its_seed() -> None:
    """Whoever reads of a violation can run it again."""
    totals = Totals()
    totals.add(report(seed=77, violations=["divergence: n1"]))
    assert not totals.is_good()
    text = summary(totals, first=77, took=1.0)
    assert "seed 77: divergence: n1" in text
    assert "reachnode sim replay 77" in text


def test_a_long_run_must_enter_every_rare_branch() -> None:
    """Five simulated hours without a rare branch show less than they seem to, and fail."""
    totals = Totals()
    totals.add(report())
    assert totals.is_good()
    assert "votes held" in summary(totals, first=1, took=1.0)
    for _ in range(4):
        totals.add(report())
    assert not totals.is_good()
    totals.add(report(rare=dict.fromkeys(BRANCHES, 1)))
    assert totals.is_good()


def test_one_log_makes_one_state(capsys: pytest.CaptureFixture[str]) -> None:
    """A recorded log has the same digest under two hash seeds."""
    assert run(parsed("--digest", "--seed", "2", "--json")) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["equal"]
    assert len(answer["digests"]) == 2
    assert len(set(answer["digests"].values())) == 1
    assert run(parsed("--digest", "--seed", "2")) == 0
    assert "equal" in capsys.readouterr().out
