"""What is killed when; that nothing is lost by it is shown with real nodes in tests/e2e."""

import random

from sim.live.killing import plan


def test_a_plan_has_every_kill_and_every_kind() -> None:
    """All kills, half of the rounds at the leader, one, two and three at a time."""
    rounds = list(plan(random.Random(1), 200))
    assert sum(one.count for one in rounds) == 200
    assert {one.count for one in rounds} == {1, 2, 3}
    assert all(one.count == 1 for one in rounds if one.aims_at_leader)
    share = sum(one.aims_at_leader for one in rounds) / len(rounds)
    assert 0.4 < share < 0.6
    assert all(len(one.gaps_seconds) == one.count == len(one.pauses_seconds) for one in rounds)


def test_a_seed_repeats_its_plan() -> None:
    """The same seed, the same rounds; another, others."""
    first, again, other = (list(plan(random.Random(seed), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
