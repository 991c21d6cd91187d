"""Discovery: candidates, or why there are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import InvalidRequest, NoMatchingAgent, NoReachableAgent, UnknownCapability
from reachnode.model.discovery import Found, Question, Vantage
from reachnode.model.liveness import Liveness
from reachnode.registry.queries import records
from reachnode.registry.state import State
from reachnode.routing.close_names import CloseNames
from reachnode.routing.discover import EXCLUDED_SHOWN_MAX, discover, gap_error
from tests.routing.seen import liveness, livenesses, record_of, state_of, told_by
from tests.strategies import CAPABILITIES, states

HERE = Vantage(node_id="n1")


def answer(state: State, question: Question, seen: dict[str, Liveness] | None = None) -> Found:
    """Return what discovery says at n1."""
    names = CloseNames(state.capabilities)
    return discover(
        state, question, liveness_of=told_by(seen or {}), here=HERE, close_names=names.close_to
    )


def ids(found: Found) -> list[str]:
    """Return the candidates' ids, best first."""
    return [one.agent_id for one in found.candidates]


STATE = state_of(
    record_of("a1", "intent.detect", zone="z1"),
    record_of("a2", "intent.detect", zone="z2"),
    record_of("b1", "order.search"),
)
SEEN = {"a1": liveness("a1", "suspect"), "a2": liveness("a2", "healthy")}


def test_who_offers_a_capability_is_found() -> None:
    """Those who offer it, the best first, and no gap."""
    found = answer(STATE, Question(capability="reach:intent.detect"), SEEN)
    assert ids(found) == ["a2", "a1"]
    assert (found.gap, found.excluded) == (None, ())
    assert [one.capability.name for one in found.candidates] == ["intent.detect"] * 2


def test_no_more_than_asked_are_told() -> None:
    """A limit cuts off the worse ones."""
    assert ids(answer(STATE, Question(capability="intent.detect", limit=1), SEEN)) == ["a2"]


def test_a_preference_orders_and_excludes_nobody() -> None:
    """The preferred zone comes first among equals."""
    question = Question(capability="intent.detect", prefer=(("zone", "z2"),))
    assert ids(answer(STATE, question)) == ["a2", "a1"]
    assert ids(answer(STATE, Question(capability="intent.detect"))) == ["a1", "a2"]


def test_exclusions_are_told_when_asked_for() -> None:
    """Beside candidates only with `explain`."""
    wanted: dict[str, Any] = {"capability": "intent.detect", "require": (("zone", "z1"),)}
    assert answer(STATE, Question(**wanted)).excluded == ()
    explained = answer(STATE, Question(**wanted, explain=True))
    assert ids(explained) == ["a1"]
    assert [(one.agent_id, one.reason) for one in explained.excluded] == [("a2", "hint")]


def test_a_name_that_nobody_declares_is_told_its_neighbors() -> None:
    """The gap says so, and which names read alike."""
    found = answer(STATE, Question(capability="intent.detct"))
    assert found.candidates == ()
    assert found.gap is not None
    assert found.gap.code == "unknown_capability"
    assert found.gap.close_names == ("intent.detect",)
    assert found.gap.missing == "no registered instance declares intent.detct"
    error = gap_error(found.gap)
    assert isinstance(error, UnknownCapability)
    assert error.why.endswith("; did you mean intent.detect?")
    assert error.details["gap"]["close_names"] == ["intent.detect"]


def test_when_all_are_ruled_out_by_what_they_declare_nobody_matches() -> None:
    """Waiting won't help, and the caller is told so."""
    found = answer(STATE, Question(capability="intent.detect", version="^3"), SEEN)
    assert found.gap is not None
    assert found.gap.code == "no_matching_agent"
    assert found.gap.reasons == {"version": 2}
    assert [one.agent_id for one in found.gap.excluded] == ["a1", "a2"]
    error = gap_error(found.gap)
    assert isinstance(error, NoMatchingAgent)
    assert not error.can_retry


def test_when_health_rules_one_out_waiting_may_help() -> None:
    """One that would match but is down makes the gap a passing one."""
    question = Question(capability="intent.detect", require=(("zone", "z1"),))
    found = answer(STATE, question, {"a1": liveness("a1", "down")})
    assert found.gap is not None
    assert found.gap.code == "no_reachable_agent"
    assert found.gap.missing == (
        "intent.detect is declared, and every instance is ruled out: 1 by hint, 1 by state"
    )
    error = gap_error(found.gap)
    assert isinstance(error, NoReachableAgent)
    assert error.can_retry
    assert "did you mean" not in error.why


def test_a_gap_of_many_instances_is_short() -> None:
    """All are counted, the first hundred are told one by one."""
    count = EXCLUDED_SHOWN_MAX + 20
    state = state_of(*(record_of(f"a{at:03}", "x") for at in range(count)))
    found = answer(state, Question(capability="x", version="1", explain=True))
    assert found.gap is not None
    assert found.gap.reasons == {"version": count}
    assert len(found.gap.excluded) == len(found.excluded) == EXCLUDED_SHOWN_MAX


def test_words_alone_find_nothing_without_an_embedder() -> None:
    """The error says what is missing."""
    with pytest.raises(InvalidRequest, match="needs an embedder"):
        answer(STATE, Question(text="what does she want"))


@given(states, st.sampled_from([*CAPABILITIES, "no.such"]), st.booleans(), livenesses)
def test_there_is_a_gap_or_a_candidate(
    state: State, name: str, is_explained: bool, seen: Liveness
) -> None:
    """Never both, never neither; a gap names the error that fits, and nobody is lost."""
    question = Question(capability=name, version="*", explain=is_explained)
    everybody = {one.instance.agent_id for one in records(state, capability=name)}
    found = answer(state, question, dict.fromkeys(everybody, seen))
    assert bool(found.candidates) is (found.gap is None)
    told = found.excluded if found.gap is None else found.gap.excluded
    if is_explained or found.gap is not None:
        assert {*ids(found), *(one.agent_id for one in told)} == everybody
    if found.gap is not None:
        assert gap_error(found.gap).code == found.gap.code
        assert (found.gap.code == "unknown_capability") is (not everybody)
        assert sum(found.gap.reasons.values()) == len(everybody)
