"""A safeguard that is removed is noticed, or an argument says why not."""

import argparse
import json

import pytest

from sim.mutants import MUTANTS, Mutant, add_arguments, run, search


def parsed(*arguments: str) -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(list(arguments))


def test_every_mutant_can_be_noticed_or_argued() -> None:
    """A safeguard has chaos aimed at it or a trial, and its argument is a sentence."""
    for name, mutant in MUTANTS.items():
        assert mutant.trial or mutant.circumstances, name
        assert not mutant.argument or mutant.argument.endswith(".")


def test_quick_mutants_are_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    """Votes and acknowledgements that don't wait for the disk, and a wiped disk that counts."""
    names = ["vote_waits_for_sync", "ack_waits_for_sync", "wiped_disk_counts_not"]
    assert run(parsed(*names, "--seeds-max", "10", "--json")) == 0
    mutants = json.loads(capsys.readouterr().out)["mutants"]
    assert [(one["name"], one["found"]) for one in mutants] == [(name, True) for name in names]
    assert all(one["violation"] and one["seeds"] >= 1 for one in mutants)


def test_a_trial_is_searched_like_chaos(capsys: pytest.CaptureFixture[str]) -> None:
    """A mutant with a scene of its own is found by it, and the seed is printed."""
    assert run(parsed("doubled_vote", "--seeds-max", "1")) == 2
    assert "there is no safeguard doubled_vote" in capsys.readouterr().out
    assert run(parsed("vote_counts_once", "--seeds-max", "3")) == 0
    assert "vote_counts_once: noticed at seed" in capsys.readouterr().out


def test_what_nobody_notices_fails_without_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command fails when a removal goes unseen and nobody has said why it may."""
    quiet = {"chaos_seconds": 0.1}
    monkeypatch.setitem(MUTANTS, "pre_vote", Mutant(circumstances=quiet))
    (finding,) = search(["pre_vote"], 2, workers=1)
    assert (finding.seed, finding.seeds, finding.is_as_expected) == (None, 2, False)
    argued = Mutant(circumstances=quiet, argument="Because.")
    monkeypatch.setitem(MUTANTS, "pre_vote", argued)
    (finding,) = search(["pre_vote"], 2, workers=1)
    assert finding.is_as_expected
