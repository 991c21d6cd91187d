"""What all that is said of an instance amounts to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.liveness.hearsay import Sight
from reachnode.liveness.states import held, joined
from reachnode.model.liveness import Liveness
from reachnode.registry.state import Record, Standing
from tests.liveness.crowds import registered

RECORD = registered("a1").agents["a1"]


def sight(node: str, **said: Any) -> Sight:
    """Return what a node knows of the first incarnation, unless another is said."""
    return Sight(**{"node": node, "incarnation": 1, **said})


def beat(node: str, number: int = 1, **said: Any) -> Sight:
    """Return what a home knows."""
    return sight(node, beat=number, heard_at=5.0, **said)


def judged(
    *sights: Sight,
    record: Record = RECORD,
    live: tuple[str, ...] = ("n1", "n2", "n3"),
    doubted: tuple[str, ...] = (),
) -> Liveness:
    """Return what n1 makes of it."""
    return joined(record, sights, me="n1", live=live, doubted=doubted)


def announced(standing: Standing) -> Record:
    """Return the record with something announced of it."""
    return Record(instance=RECORD.instance, index=2, standing=standing)


def brief(seen: Liveness) -> tuple[str, str, str]:
    """Return state, use and basis."""
    return seen.state, seen.use, seen.basis


@pytest.mark.parametrize(
    ("sights", "expected", "why"),
    [
        ((), ("pending", "after_suspects", "none"), "nothing was heard of it yet"),
        ((sight("n2"),), ("pending", "after_suspects", "none"), "nothing was heard of it yet"),
        ((beat("n1"),), ("healthy", "full", "own"), "it beats at n1"),
        ((beat("n2"),), ("healthy", "full", "hearsay"), "it beats at n2"),
        ((beat("n2", is_suspect=True),), ("suspect", "last", "hearsay"), "it fell silent at n2"),
        ((sight("n1", reach="good"),), ("healthy", "full", "own"), "n1 reaches it"),
        ((sight("n2", reach="failed"),), ("suspect", "last", "hearsay"), "n2 can't reach it"),
        (
            (sight("n2", reach="failed"), sight("n3", reach="good")),
            ("healthy", "full", "hearsay"),
            "n3 reaches it",
        ),
        # Silence is silence, even where a probe gets through.
        (
            (beat("n1", is_suspect=True, reach="good"),),
            ("suspect", "last", "own"),
            "it fell silent at n1",
        ),
        # n9 isn't heard any more.
        (
            (beat("n9"),),
            ("healthy", "reduced", "hearsay"),
            "n9, where it beat, is silent itself",
        ),
        (
            (beat("n9", is_suspect=True),),
            ("suspect", "last", "hearsay"),
            "n9, where it beat, is silent itself",
        ),
        ((beat("n9"), sight("n1", reach="good")), ("healthy", "full", "own"), "n1 reaches it"),
        (
            (beat("n9"), sight("n1", reach="failed")),
            ("suspect", "last", "own"),
            "n1 can't reach it",
        ),
        ((sight("n9", reach="failed"),), ("pending", "after_suspects", "none"), "nothing was"),
    ],
)
def test_the_table_holds(
    sights: tuple[Sight, ...], expected: tuple[str, str, str], why: str
) -> None:
    """Each kind of evidence makes the state, the use and the reason that the table names."""
    seen = judged(*sights)
    assert brief(seen) == expected
    assert seen.why.startswith(why)


@pytest.mark.parametrize("standing", ["updating", "disabled", "down"])
def test_the_log_stands_over_everything(standing: Standing) -> None:
    """What was announced or agreed holds, and no evidence brings work to such an instance."""
    seen = judged(beat("n1", load=0.5), record=announced(standing))
    assert (seen.state, seen.use, seen.basis) == (standing, "never", "own")
    assert (seen.is_beating, seen.load) == (True, 0.5)


def test_the_latest_beat_names_the_home() -> None:
    """Of two nodes with a lease the one that heard the later beat is believed."""
    seen = judged(beat("n1", 4, is_suspect=True), beat("n2", 5, load=0.2, in_flight=3))
    assert (seen.state, seen.home, seen.load, seen.in_flight) == ("healthy", "n2", 0.2, 3)
    assert (seen.heard_at, seen.is_beating) == (5.0, True)
    # One that is heard is believed before one that isn't.
    seen = judged(beat("n9", 9), beat("n2", 5))
    assert seen.home == "n2"


def test_the_age_of_a_silent_home_is_unknown() -> None:
    """When gossip stops nothing grows old: age and load are unknown, the state stays."""
    seen = judged(beat("n9", load=0.5, in_flight=2))
    assert (seen.state, seen.home) == ("healthy", "n9")
    assert (seen.heard_at, seen.load, seen.in_flight, seen.is_beating) == (None, None, None, False)
    assert seen.age_ms(99.0) is None


def test_failing_probes_are_from_somewhere() -> None:
    """A beating instance is never worse than unreachable from where its probes fail."""
    seen = judged(beat("n2", reach="failed", fault="timeout"), sight("n1", reach="failed"))
    assert (seen.state, seen.use) == ("healthy", "full")
    assert (seen.unreachable_from, seen.fault) == (("n1", "n2"), "timeout")


def test_a_home_that_lost_many_is_in_doubt() -> None:
    """Its silent instances stay suspect but work at reduced weight; others are as before."""
    lost = beat("n2", is_suspect=True)
    assert brief(judged(lost, doubted=("n2",))) == ("suspect", "reduced", "hearsay")
    assert brief(judged(lost, doubted=("n1",))) == ("suspect", "last", "hearsay")
    assert brief(judged(beat("n2"), doubted=("n2",))) == ("healthy", "full", "hearsay")


def test_a_flap_is_held_at_suspect() -> None:
    """An instance whose state flips is a candidate of last resort, whatever it says just now."""
    seen = held(judged(beat("n1")))
    assert brief(seen) == ("suspect", "last", "own")
    assert "flips" in seen.why
    assert seen.is_beating
    for sight_of_it in (judged(), judged(beat("n1"), record=announced("down"))):
        assert held(sight_of_it) is sight_of_it


def test_another_incarnation_is_another_process() -> None:
    """What was said of a predecessor, or of a successor not known yet, counts for nothing."""
    assert judged(beat("n1", incarnation=0), beat("n2", incarnation=2)).state == "pending"


sights = st.lists(
    st.builds(
        Sight,
        node=st.sampled_from(["n1", "n2", "n3", "n9"]),
        incarnation=st.integers(0, 2),
        beat=st.integers(0, 3),
        heard_at=st.just(1.0),
        is_suspect=st.booleans(),
        reach=st.sampled_from(["", "good", "failed"]),
        fault=st.sampled_from(["", "timeout", "refused"]),
    ),
    max_size=4,
    unique_by=lambda one: one.node,
)
standings = st.sampled_from(["", "updating", "disabled", "down"])


@given(sights, standings, st.sets(st.sampled_from(["n1", "n2"])), st.data())
def test_the_state_keeps_its_promises(
    some: list[Sight], standing: Standing, doubted: set[str], data: st.DataObject
) -> None:
    """Whatever is said: the order doesn't matter, and no evidence takes an instance away."""
    record = announced(standing)
    seen = judged(*some, record=record, doubted=tuple(doubted))
    order = data.draw(st.permutations(some))
    again = judged(*order, record=record, doubted=tuple(doubted))
    assert again == seen
    assert (seen.use == "never") == (standing != "")
    assert standing or seen.state in {"pending", "healthy", "suspect"}
    assert seen.why
    if seen.is_beating and not standing:
        assert seen.state == "healthy"
    assert "n9" not in seen.unreachable_from
