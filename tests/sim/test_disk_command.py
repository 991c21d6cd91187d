"""`reachnode sim disk`."""

import argparse
import json

import pytest

from sim import disk_command
from sim.disk_command import VIOLATIONS_MAX, Totals, add_arguments, document, run, summary


def parsed(*arguments: str) -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(arguments))


def test_a_short_run_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """As many crash points as were asked for, counted for programs."""
    assert run(parsed("--points", "100", "--seed", "46", "--workers", "1", "--json")) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["points"] >= 100
    assert answer["points"] == sum(answer["at"].values())
    assert set(answer["at"]) == {"kill", "power", "sync_error", "full"}
    assert min(answer["kills"], answer["power_losses"], answer["torn"], answer["flips"]) > 0
    assert answer["violations"] == []


def test_a_violation_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told with the command that tries it again."""
    totals = Totals()
    totals.add({"counts": {"points": 9, "at_kill": 9}, "violations": []})
    totals.add({"counts": {"points": 9, "at_kill": 9}, "violations": [[4, "an entry is gone"]]})
    monkeypatch.setattr(disk_command, "crash", lambda **_limits: totals)
    assert run(parsed("--seed", "3")) == 1
    told = capsys.readouterr().out
    assert "script 1, trial 4: an entry is gone" in told
    assert "reachnode sim disk --seed 3 --repeat 1:4" in told
    assert "crash points  18" in told


def test_only_so_many_violations_are_listed() -> None:
    """All of them are counted."""
    totals = Totals()
    broken = [[place, "gone"] for place in range(VIOLATIONS_MAX + 5)]
    totals.add({"counts": {"points": 500}, "violations": broken})
    assert len(document(totals, seed=0, took=1.0)["violations"]) == VIOLATIONS_MAX
    assert f"violations    {VIOLATIONS_MAX + 5}" in summary(totals, seed=0, took=0.0)


def test_one_trial_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it is and what came of it; the exit status says whether it was violated."""
    assert run(parsed("--repeat", "1:0")) == 0
    assert "Point(call=0" in capsys.readouterr().out
    monkeypatch.setattr(disk_command, "repeat_trial", lambda *_: ("a point", ["gone"]))
    assert run(parsed("--repeat", "1:0")) == 1
    assert "gone" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "why"), [("1", "SCRIPT:TRIAL"), ("1:99999", "no trial 99999")])
def test_a_trial_that_is_none_is_refused(
    name: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is wrong about it, as wrong usage."""
    assert run(parsed("--repeat", name)) == 2
    assert why in capsys.readouterr().err
