"""When many vanish at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.mass_loss import doubted, is_mass_loss, readmitted
from reachnode.liveness.probes import DOUBT_SECONDS
from reachnode.model.liveness import InstanceState, Liveness
from tests.liveness.clusters import alone, homes, three
from tests.liveness.crowds import registered

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


def test_many_lost_by_one_home_put_the_home_in_doubt() -> None:
    """They stay candidates at reduced weight and are probed from elsewhere."""
    cluster = three(*(f"a{at}" for at in range(30)))
    cluster.homes = homes(cluster.state.agents, "n1", "n2", "n3")
    cluster.run(10.0)
    silent = [agent_id for agent_id, home in cluster.homes.items() if home == "n1"]
    for agent_id in silent:
        del cluster.homes[agent_id]
    cluster.run(15.0)
    for node in cluster.nodes:
        assert {cluster.seen(a, node).state for a in silent} == {"suspect"}
        assert {cluster.seen(a, node).use for a in silent} == {"reduced"}
    cluster.probes.clear()
    cluster.run(6.0)
    assert "n1" not in {node for node, agent_id in cluster.probes if agent_id in silent}
    cluster.homes.update(dict.fromkeys(silent, "n1"))
    cluster.run(5.0)
    assert cluster.states() == {"healthy"}
    assert cluster.commands == []


def test_a_node_alone_calls_a_few_down_but_doubts_itself_at_many() -> None:
    """Without others it decides alone; when half of many fail it waits, for its own fault."""
    few = alone(registered("a1", "b1"))
    few.reachable = lambda node, agent_id: False
    few.run(20.0)
    assert few.states() == {"down"}
    many = alone(registered(*(f"a{at}" for at in range(20))))
    many.run(6.0)
    many.reachable = lambda node, agent_id: False
    many.run(30.0)
    assert many.commands == []
    many.run(DOUBT_SECONDS)
    assert many.states() == {"down"}
