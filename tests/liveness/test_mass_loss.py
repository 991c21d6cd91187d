"""When many vanish at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.mass_loss import doubted, is_mass_loss, readmitted
from reachnode.model.liveness import InstanceState, Liveness

STATES: tuple[InstanceState, ...] = (
    "pending",
    "healthy",
    "suspect",
    "down",
    "updating",
    "disabled",
)


def one(agent_id: str, state: InstanceState) -> Liveness:
    """Return an instance in a state."""
    return Liveness(agent_id=agent_id, incarnation=1, state=state, why="", use="full", basis="own")


def several(*states: InstanceState) -> list[Liveness]:
    """Return instances `a0` and up in these states."""
    return [one(f"a{at}", state) for at, state in enumerate(states)]


@pytest.mark.parametrize(
    ("lost", "of", "is_mass"),
    [(0, 0, False), (4, 4, False), (5, 10, True), (5, 11, False), (5_000, 9_999, True)],
)
def test_many_and_half_are_a_mass(lost: int, of: int, is_mass: bool) -> None:
    """A few, or a small part of many, are in doubt themselves; half of many are not."""
    assert is_mass_loss(lost, of=of) == is_mass


def test_each_home_is_judged_by_its_own() -> None:
    """A home is in doubt for what it lost itself."""
    assert doubted({"n1": (5, 10), "n2": (5, 11), "n3": (0, 0)}) == {"n1"}


@pytest.mark.parametrize(
    ("states", "back"),
    [
        (("healthy", "suspect"), set()),
        (("healthy", "suspect", "suspect"), {"a1", "a2"}),
        (("suspect",), {"a0"}),
        (("down", "down", "suspect", "healthy"), {"a2"}),
        (("healthy", "suspect", "updating", "disabled"), set()),
        (("down", "updating", "disabled"), set()),
        ((), set()),
    ],
)
def test_the_rest_isn_t_buried(states: tuple[InstanceState, ...], back: set[str]) -> None:
    """When fewer than half look well the suspects work again; at half they don't."""
    assert readmitted(several(*states)) == back


def test_the_ejected_work_again_too() -> None:
    """Whoever was put aside for failing doesn't look well, and comes back with the suspects."""
    assert readmitted(several("healthy", "healthy", "healthy"), ejected={"a0"}) == set()
    assert readmitted(several("healthy", "healthy", "suspect"), ejected={"a0"}) == {"a0", "a2"}


@given(st.lists(st.sampled_from(STATES), max_size=8), st.sets(st.integers(0, 7)))
def test_who_is_down_or_taken_out_stays_out(states: list[InstanceState], out: set[int]) -> None:
    """Nobody is brought back that is down, updating, disabled or still pending."""
    instances = several(*states)
    back = readmitted(instances, ejected={f"a{at}" for at in out})
    assert {one.state for one in instances if one.agent_id in back} <= {"suspect", "healthy"}
