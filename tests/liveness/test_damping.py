"""Instances whose state flips again and again."""

from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.damping import FALLS_MAX, HOLD_SECONDS, WINDOW_SECONDS, Damper
from reachnode.model.agents import Health
from reachnode.model.settings import ProbeRules
from reachnode.registry.commands import Register
from tests.liveness.clusters import alone
from tests.liveness.crowds import instance, registered, set_to


def test_a_flap_is_held_until_it_is_quiet() -> None:
    """Three falls are taken as they come; the fourth in two minutes holds, each more for longer."""
    damper = Damper()
    assert [damper.fell("a1", now=at * 20.0) for at in range(5)] == [
        False,
        False,
        False,
        True,
        False,
    ]
    assert damper.is_held("a1")
    assert not damper.is_held("a2")
    assert damper.released(80.0 + HOLD_SECONDS - 1) == ()
    assert damper.released(80.0 + HOLD_SECONDS) == ("a1",)
    assert not damper.is_held("a1")
    assert not damper.fell("a1", now=150.0)


def test_slow_falls_are_no_flap() -> None:
    """Whoever falls now and then is taken as it comes, for ever."""
    damper = Damper()
    assert not any(damper.fell("a1", now=at * WINDOW_SECONDS / FALLS_MAX) for at in range(50))


@given(st.lists(st.integers(1, 200), max_size=30))
def test_what_is_kept_is_of_late(gaps: list[int]) -> None:
    """Once it was quiet for the window nothing is kept, and held is only whoever fell."""
    damper = Damper()
    now = 0.0
    for gap in gaps:
        now += gap
        damper.fell("a1", now=now)
        assert len(damper) == 1
    ended = damper.released(now + WINDOW_SECONDS)
    assert set(ended) <= {"a1"}
    assert len(damper) == 0
    assert not damper.is_held("a1")


def test_who_is_gone_is_not_held() -> None:
    """An instance that was removed takes its falls along."""
    damper = Damper()
    for at in range(FALLS_MAX + 1):
        damper.fell("a1", now=float(at))
    damper.forget("a1")
    assert not damper.is_held("a1")
    assert damper.released(10_000.0) == ()


def test_a_flap_is_held() -> None:
    """An instance that falls again and again is a last resort until it is quiet."""
    cluster = alone(registered(instance("a1", health=Health(type="none"))))
    for _ in range(FALLS_MAX + 1):
        cluster.beat("n1", "a1")
        assert cluster.seen("a1").state == "healthy"
        cluster.run(11.0)
        assert cluster.seen("a1").state == "suspect"
    cluster.homes = {"a1": "n1"}
    cluster.run(5.0)
    seen = cluster.seen("a1")
    assert (seen.state, seen.is_beating) == ("suspect", True)
    cluster.run(HOLD_SECONDS)
    assert cluster.seen("a1").state == "healthy"


def test_a_flap_between_up_and_down_is_held_down() -> None:
    """The log isn't filled by one that comes and goes; a new registration is back at once."""
    quick = ProbeRules(interval_ms=1_000, failures=1)
    cluster = alone(set_to(registered("a1"), probes=quick))
    cluster.run(2.0)
    for _ in range(60):
        cluster.reachable = lambda node, agent_id: False
        cluster.run(2.0)
        cluster.reachable = lambda node, agent_id: True
        cluster.run(2.0)
    # Up and down once for each fall that is free, and then once in each hold.
    assert len(cluster.commands) <= 2 * (FALLS_MAX + 1) * (1 + 240 / HOLD_SECONDS)
    assert len(cluster.commands) < 60
    cluster.apply(Register(instance=instance("a1")))
    assert cluster.seen("a1").state == "pending"
