"""What is said and known of an instance's life."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.liveness import (
    COUNT_MAX,
    COUNTERS_MAX,
    Delta,
    Liveness,
    Report,
    clamped_count,
    clamped_load,
    risen,
)

counters = st.lists(st.tuples(st.text(max_size=3), st.integers(-5, 2**60)), max_size=40).map(tuple)


@pytest.mark.parametrize(
    ("said", "kept"),
    [(None, None), (0.4, 0.4), (-3.0, 0.0), (7.0, 1.0), (math.nan, None), (math.inf, 1.0)],
)
def test_a_load_is_a_share(said: float | None, kept: float | None) -> None:
    """Whatever an agent says, its load is 0 to 1, or wasn't said."""
    assert clamped_load(said) == kept


@pytest.mark.parametrize(("said", "kept"), [(None, None), (-1, 0), (5, 5), (2**60, COUNT_MAX)])
def test_a_count_is_bounded(said: int | None, kept: int | None) -> None:
    """No count is below nothing, or beyond what every reader keeps exactly."""
    assert clamped_count(said) == kept


@given(st.lists(counters, max_size=4))
def test_counts_only_rise(beats: list[tuple[tuple[str, int], ...]]) -> None:
    """A late or smaller count takes nothing back, and their number is bounded."""
    kept: tuple[tuple[str, int], ...] = ()
    for said in beats:
        after = risen(kept, said)
        before = dict(kept)
        assert len(after) <= COUNTERS_MAX
        assert list(after) == sorted(after)
        assert all(0 <= count <= COUNT_MAX for _, count in after)
        assert all(dict(after)[name] >= count for name, count in before.items())
        kept = after


def test_the_first_counts_are_kept() -> None:
    """Beyond their number new names are passed over, and the old ones go on rising."""
    first = tuple((f"c{at:02}", 1) for at in range(COUNTERS_MAX))
    assert risen(first, (("c00", 5), ("late", 9))) == (("c00", 5), *first[1:])


def test_an_age_is_of_a_moment() -> None:
    """It is counted from the last heartbeat, never below 0, and unknown without one."""
    known = Liveness(
        agent_id="a1",
        incarnation=1,
        state="healthy",
        why="",
        use="full",
        basis="own",
        heard_at=10.0,
    )
    assert known.age_ms(11.5) == 1_500
    assert known.age_ms(9.0) == 0
    unknown = Liveness(
        agent_id="a1", incarnation=1, state="pending", why="", use="after_suspects", basis="none"
    )
    assert unknown.age_ms(11.5) is None


def test_a_quiet_report_is_short() -> None:
    """What a node tells of an instance most of the time fits a line."""
    report = Report(agent_id="a" * 20, incarnation=70_000, sequence=90_000, beat=800, age_ms=120)
    delta = Delta(node="n1", boot=7, sequence=90_000, reports=(report,))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(delta), type=Delta) == delta
    assert len(msgspec.msgpack.encode(report)) < 100
