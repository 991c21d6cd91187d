"""`reachnode sim replay`: one seed again, in detail."""

import argparse
from pathlib import Path

import pytest

from sim.replay import add_arguments, run
from sim.world import run_seed


def test_a_replay_tells_of_the_run_that_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints the hash that the run had, and writes what happened where it is told to."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    trace = tmp_path / "trace"
    assert run(parser.parse_args(["3", "--trace", str(trace)])) == 0
    text = capsys.readouterr().out
    assert run_seed(3).trace_hash in text
    assert "fault every seconds" in text
    assert "violations    0" in text
    assert "Append(" in trace.read_text()
