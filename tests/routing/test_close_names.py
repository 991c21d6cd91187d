"""Names that read alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.routing.close_names import (
    NEIGHBORS_MAX,
    SUGGESTIONS_MAX,
    CloseNames,
    likeness,
    pairs_of,
)

NAMES = ("intent.detect", "intent.route", "order.search", "demo.echo", "意图.识别")
words = st.text(st.sampled_from("aAb.意"), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("asked", "best"),
    [
        ("intent.detct", "intent.detect"),
        ("intent.detect2", "intent.detect"),
        ("ntent.detect", "intent.detect"),
        ("Intent.Detect", "intent.detect"),
        ("intent", "intent.detect"),
        ("detect", "intent.detect"),
        ("demo.ehco", "demo.echo"),
        ("意图.识", "意图.识别"),
    ],
)
def test_a_slip_of_the_pen_is_understood(asked: str, best: str) -> None:
    """A letter too few, too many or in another case, a part alone, two letters swapped."""
    assert CloseNames(NAMES).close_to(asked)[0] == best


def test_what_reads_otherwise_is_not_suggested() -> None:
    """A wrong hint is worse than none."""
    assert CloseNames(NAMES).close_to("quux") == ()
    assert CloseNames().close_to("intent.detect") == ()


def test_a_slip_is_found_in_a_crowd() -> None:
    """Thirty thousand names that begin and end alike don't hide the one that was meant."""
    names = CloseNames(f"agent.{number:05}.answer" for number in range(30_000))
    assert len(names) == 30_000
    for asked in ("agent.1234x.answer", "agent.x2345.answer", "agent.12345.answre"):
        found = names.close_to(asked)
        assert 1 <= len(found) <= SUGGESTIONS_MAX
    assert names.close_to("agent.12345.answre")[0] == "agent.12345.answer"
    assert "agent.12345.answer" in names.close_to("agent.12345answer")


def test_the_work_is_bounded() -> None:
    """What is compared doesn't grow with the names: who isn't near in either order isn't seen."""
    between = [f"l{number:02}" for number in range(NEIGHBORS_MAX)]
    between_backwards = [f"{number:02}l.x" for number in range(NEIGHBORS_MAX)]
    assert "k.x" in CloseNames(["k.x"]).close_to("m.x")
    assert "k.x" in CloseNames(["k.x", *between]).close_to("m.x")
    assert "k.x" not in CloseNames(["k.x", *between, *between_backwards]).close_to("m.x")


def test_a_long_question_costs_no_more() -> None:
    """Only its beginning is looked at."""
    assert CloseNames(NAMES).close_to("x" * 1_000_000) == ()


@given(st.lists(st.tuples(st.booleans(), words)), words)
def test_upkeep_gives_what_starting_anew_gives(log: list[tuple[bool, str]], asked: str) -> None:
    """Names that come and go leave no trace, and each stands once."""
    names = CloseNames()
    kept: set[str] = set()
    for is_added, name in log:
        (names.add if is_added else names.discard)(name)
        (kept.add if is_added else kept.discard)(name)
    assert len(names) == len(kept)
    assert names.close_to(asked) == CloseNames(sorted(kept)).close_to(asked)
    for name in kept:
        assert name in names.close_to(name) or len(kept) > SUGGESTIONS_MAX


@given(words, words)
def test_likeness_is_a_share(one: str, other: str) -> None:
    """0 to 1, the same both ways, 1 for a name and itself."""
    share = likeness(pairs_of(one), pairs_of(other))
    assert 0 <= share <= 1
    assert share == likeness(pairs_of(other), pairs_of(one))
    assert likeness(pairs_of(one), pairs_of(one)) == 1
