"""`reachnode sim linear`: histories of simulated runs."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sim import recorded
from sim.histories import Tally
from sim.linear import Operation, Verdict, search
from sim.recorded import add_arguments, cut, run


def parsed(*arguments: str) -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(arguments))


def writes(count: int, *, lasting: float = 0.5) -> list[Operation]:
    """Return writes one after the other, or overlapping when they last longer than 1."""
    return [
        Operation(
            client="c",
            kind="write",
            key="k",
            argument=number,
            invoked_at=float(number),
            returned_at=number + lasting,
        )
        for number in range(count)
    ]


def read(value: int, at: float) -> Operation:
    """Return a read."""
    return Operation(
        client="r", kind="read", key="k", result=value, invoked_at=at, returned_at=at + 0.1
    )


def verdicts(histories: Sequence[Sequence[Operation]]) -> list[Verdict]:
    """Return what a search says of each."""
    return [search(one) for one in histories]


def test_simulated_runs_are_linearizable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What clients of a few runs saw has an order, and can be checked by somebody else."""
    assert run(parsed("--histories", "7", "--export", str(tmp_path), "--json")) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {"histories", "operations", "illegal", "given_up"} <= answer.keys()
    assert (answer["histories"], answer["illegal"], answer["given_up"]) == (7, 0, 0)
    assert answer["planted"] == answer["rejected"] == 50
    exported = sorted(tmp_path.iterdir())
    assert len(exported) == 7
    assert sum(len(json.loads(path.read_text())) for path in exported) == answer["operations"]


def test_an_illegal_history_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One history without an order is one too many, and it is named."""
    bad = {"name": "seed-1-k-0", "operations": 2, "verdict": "illegal", "porcupine": ""}
    monkeypatch.setattr(recorded, "_histories", lambda *_args, **_more: iter([bad]))
    assert run(parsed()) == 1
    assert "illegal: seed-1-k-0" in capsys.readouterr().out


@pytest.mark.parametrize("tally", [Tally(rejected=24), Tally(rejected=25)])
def test_a_search_that_finds_no_fault_fails_the_command(
    tally: Tally, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It must reject what has a fault, and nothing else, or its verdicts are worth nothing."""
    legal = Tally(rejected=tally.rejected - 24)
    tallies = {"legal": legal, "stale_read": tally, "lost_write": Tally(rejected=25)}
    monkeypatch.setattr(recorded, "_histories", lambda *_args, **_more: iter([]))
    monkeypatch.setattr(recorded, "main_self_check", lambda *_: tallies)
    assert run(parsed()) == 1
    found = 0 if legal.rejected else 49
    assert f"self-check: {found} of 50" in capsys.readouterr().out


def test_a_long_history_is_cut_where_one_value_is_held() -> None:
    """Pieces are searched apart, and each begins with the value that was held."""
    pieces = cut([*writes(90), read(89, 90.0)])
    assert len(pieces) == 3
    assert all(len(piece) <= 41 for piece in pieces)
    assert verdicts(pieces) == [Verdict.LEGAL] * 3


def test_a_stale_read_behind_a_cut_is_illegal() -> None:
    """Nothing gets lost by cutting: a value from before the cut is not accepted behind it."""
    pieces = cut([*writes(40), read(3, 40.0)])
    assert len(pieces) == 2
    assert verdicts(pieces) == [Verdict.LEGAL, Verdict.ILLEGAL]


def test_nothing_is_cut_amid_what_overlaps() -> None:
    """While something is under way nobody knows the value; what is too long is left out."""
    (piece,) = cut(writes(300, lasting=1.5))
    assert len(piece) == 200
    (whole,) = cut(writes(200, lasting=1.5))
    assert all(one.returned_at is not None for one in whole), "nothing was left out"
    unknown = Operation(
        client="u", kind="write", key="k", argument=-1, invoked_at=0.5, returned_at=None
    )
    assert len(cut([unknown, *writes(100)])) == 1


def test_what_is_left_out_explains_nothing_away() -> None:
    """An answer that may have seen a change beyond the limit is left out with it."""
    history = writes(199, lasting=2.5)
    seer = replace(read(500, 199.0), returned_at=205.0)
    beyond = replace(history[0], argument=500, invoked_at=200.0, returned_at=204.0)
    (piece,) = cut([*history, seer, beyond])
    assert verdicts([piece]) == [Verdict.LEGAL]
    assert seer not in piece
    assert piece[-1] == replace(history[-1], returned_at=None), "it was under way"
