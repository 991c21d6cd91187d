"""Virtual time: what is due happens in order, and each node sees it through its own clock."""

import random

from sim.clock import EPSILON_SECONDS, SimSources, Timeline


def test_what_is_due_happens_in_order() -> None:
    """Earlier comes first; of equal times whatever was asked for first."""
    timeline, seen = Timeline(), list[str]()
    timeline.after(2.0, seen.append, "late")
    timeline.after(1.0, seen.append, "first")
    timeline.after(1.0, seen.append, "second")
    timeline.run_until(1.5)
    assert seen == ["first", "second"]
    assert timeline.now == 1.5
    timeline.run_until(2.0)
    assert seen == ["first", "second", "late"]
    assert timeline.events_count == 3


def test_what_happens_may_ask_for_more() -> None:
    """An event may plan the next one, which happens in the same sweep if it is due."""
    timeline, seen = Timeline(), list[float]()

    def again() -> None:
        seen.append(timeline.now)
        if len(seen) < 3:
            timeline.after(0.5, again)

    timeline.after(0, again)
    timeline.run_until(10.0)
    assert seen == [0.0, 0.5, 1.0]


def test_a_clock_that_is_read_moves() -> None:
    """Code that waits for the clock to move gets on, though nothing else happens."""
    timeline = Timeline()
    sources = SimSources(timeline, random.Random(1), offset=100.0, rate=2.0)
    first, second = sources.now(), sources.now()
    assert first == 100.0 + 2 * EPSILON_SECONDS
    assert second > first


def test_until_is_in_true_seconds() -> None:
    """A clock that runs twice as fast gets to a time in half of it, and never waits below 0."""
    sources = SimSources(Timeline(), random.Random(1), offset=100.0, rate=2.0)
    assert sources.until(104.0) == 2.0
    assert sources.until(99.0) == 0.0


def test_ids_come_from_the_dice() -> None:
    """The same seed gives the same ids, 32 digits each."""
    ids = [SimSources(Timeline(), random.Random(7), offset=0, rate=1).new_id() for _ in range(2)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 32
