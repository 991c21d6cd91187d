"""Instances whose state flips again and again."""

from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.damping import FALLS_MAX, HOLD_SECONDS, WINDOW_SECONDS, Damper


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
