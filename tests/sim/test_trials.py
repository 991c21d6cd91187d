"""Each trial plays its scene: clean with every safeguard on, not without its own."""

from dataclasses import replace

import pytest

from reachnode.peers.raft.safeguards import ALL_ON
from sim.mutants import MUTANTS
from sim.trials import TRIALS

SEEDS = range(2)
OF_TRIAL = {mutant.trial: name for name, mutant in MUTANTS.items() if mutant.trial}
ALSO = {"resent_entries": "overlap_is_trimmed"}
"""Trials of safeguards that chaos notices as well."""


@pytest.mark.parametrize("trial", TRIALS)
def test_a_trial_is_passed_with_every_safeguard(trial: str) -> None:
    """The core keeps what the trial promises."""
    for seed in SEEDS:
        assert TRIALS[trial](seed, ALL_ON) == []


@pytest.mark.parametrize("trial", TRIALS)
def test_a_trial_is_failed_without_its_safeguard(trial: str) -> None:
    """The promise rests on that one safeguard, and the trial sees it broken."""
    name = OF_TRIAL.get(trial) or ALSO[trial]
    without = replace(ALL_ON, **{name: False})
    assert any(TRIALS[trial](seed, without) for seed in range(8))
