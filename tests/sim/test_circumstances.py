"""Circumstances are drawn from the seed, and may be overruled."""

from sim.circumstances import draw_circumstances


def test_a_seed_draws_the_same_circumstances() -> None:
    """A seed that is printed is enough to run it again."""
    assert draw_circumstances(5) == draw_circumstances(5)
    assert len({draw_circumstances(seed) for seed in range(20)}) > 10


def test_what_is_fixed_overrules_the_draw() -> None:
    """A mutant's circumstances hold whatever the seed draws, and leave the rest as drawn."""
    drawn, fixed = draw_circumstances(5), draw_circumstances(5, voters=1)
    assert fixed.voters == 1
    assert fixed.sync_seconds == drawn.sync_seconds


def test_both_sizes_of_clusters_are_drawn() -> None:
    """Three nodes and five nodes are both simulated."""
    assert {draw_circumstances(seed).voters for seed in range(30)} == {3, 5}
