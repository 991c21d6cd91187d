"""Who may be asked, and why not each other one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.model.agents import AddressType
from reachnode.model.discovery import Exclusion, Vantage
from reachnode.model.liveness import InstanceState, Liveness
from reachnode.registry.state import Record
from reachnode.routing.reachable import USES, Reachable, reachable
from tests.routing.seen import ANY_STATE, liveness, livenesses, record_of, told_by
from tests.routing.test_match import demand

HERE = Vantage(node_id="n1")


def asked(
    records: list[Record], seen: dict[str, Liveness], here: Vantage = HERE, **fields: Any
) -> Reachable:
    """Return who of some may be asked for `x`."""
    prefer = fields.pop("prefer", ())
    return reachable(records, demand(**fields), liveness_of=told_by(seen), here=here, prefer=prefer)


def order(found: Reachable) -> list[str]:
    """Return the candidates' ids, best first."""
    return [one.agent_id for one in found.candidates]


def test_the_healthy_come_first_and_the_silent_last() -> None:
    """Healthy, healthy at reduced weight, suspect, and then those nothing was heard of."""
    names = ("a1", "a2", "a3", "a4")
    seen = {
        "a2": liveness("a2", "suspect"),
        "a3": liveness("a3", "healthy", use="reduced"),
        "a4": liveness("a4", "healthy"),
    }
    found = asked([record_of(name, "x") for name in names], seen)
    assert order(found) == ["a4", "a3", "a2", "a1"]
    assert [one.seen.state for one in found.candidates][2:] == ["suspect", "pending"]
    assert found.excluded == ()


def test_among_equals_preference_then_load_then_name_decide() -> None:
    """A preferred one before an idle one, an idle one before a busy one, then by `agent_id`."""
    records = [
        record_of("a1", "x"),
        record_of("a2", "x"),
        record_of("a3", "x"),
        record_of("a4", "x", zone="z1"),
    ]
    seen = {
        "a1": liveness("a1"),
        "a2": liveness("a2", load=0.4),
        "a3": liveness("a3"),
        "a4": liveness("a4", load=1.0),
    }
    assert order(asked(records, seen, prefer=(("zone", "z1"),))) == ["a4", "a2", "a1", "a3"]
    assert order(asked(records, seen)) == ["a2", "a1", "a3", "a4"]


def test_the_parts_of_a_score_are_shown() -> None:
    """Each is 0 to 1, and the score is their weighted sum."""
    records = [record_of("a1", "x", zone="z1")]
    prefer = (("env", "e"), ("zone", "z1"))
    (best,) = asked(records, {"a1": liveness("a1", load=0.25)}, prefer=prefer).candidates
    assert best.parts == {"state": 1.0, "preferred": 0.5, "free": 0.75}
    assert best.score == pytest.approx(0.80 + 0.19 * 0.5 + 0.01 * 0.75)
    (unheard,) = asked(records, {}).candidates
    assert unheard.parts == {"state": 0.0, "preferred": 1.0, "free": 0.5}


@pytest.mark.parametrize("state", ["down", "updating", "disabled"])
def test_three_states_are_never_asked(state: InstanceState) -> None:
    """They are excluded, whether the log says so or only what was seen."""
    record = record_of("a1", "x")
    announced = replace(record, standing=state)
    expected = (Exclusion(agent_id="a1", agent="nlp", reason="state", detail=f"it is {state}"),)
    assert asked([record], {"a1": liveness("a1", state)}).excluded == expected
    assert asked([announced], {"a1": liveness("a1", "healthy")}).excluded == expected


def test_whoever_is_of_no_use_is_not_asked() -> None:
    """What liveness rules out stays out, whatever its state is called."""
    found = asked([record_of("a1", "x")], {"a1": liveness("a1", "suspect", use="never")})
    assert [(one.reason, one.detail) for one in found.excluded] == [("state", "it is suspect")]


@pytest.mark.parametrize(
    ("family", "is_asked"), [("ipv4", True), ("ipv6", False), ("dual", True), (None, True)]
)
def test_an_address_of_a_family_this_node_lacks_is_not_asked(
    family: AddressType | None, *, is_asked: bool
) -> None:
    """One of both families, or of a name, is left to be tried."""
    record = record_of("a1", "x")
    record = replace(record, instance=replace(record.instance, address_type=family))
    here = Vantage(node_id="n1", families=frozenset({"ipv4"}))
    found = asked([record], {}, here)
    assert bool(found.candidates) is is_asked
    if not is_asked:
        assert found.excluded[0].reason == "address_family"
        assert found.excluded[0].detail == "it has ipv6 only, which n1 can't reach"


def test_whoever_comes_to_the_node_needs_no_address() -> None:
    """An agent on a link or one that pulls work is reached without connecting."""
    record = record_of("a1", "x")
    capability = replace(record.instance.capabilities[0], protocol="pull", endpoint="")
    instance = replace(record.instance, address_type="ipv6", capabilities=(capability,))
    here = Vantage(node_id="n1", families=frozenset({"ipv4"}))
    seen = {"a1": liveness("a1", unreachable_from=("n1",))}
    assert order(asked([replace(record, instance=instance)], seen, here)) == ["a1"]


def test_what_others_can_reach_is_excluded_from_here_alone() -> None:
    """Each node skips what it can't reach itself."""
    seen = {"a1": liveness("a1", unreachable_from=("n1", "n3"))}
    found = asked([record_of("a1", "x")], seen)
    assert [one.reason for one in found.excluded] == ["unreachable_from_here"]
    assert order(asked([record_of("a1", "x")], seen, Vantage(node_id="n2"))) == ["a1"]


def test_a_declaration_excludes_before_health_does() -> None:
    """Whoever doesn't match is told so, down or not: waiting won't help."""
    found = asked([record_of("a1", "x")], {"a1": liveness("a1", "down")}, require=(("env", "e"),))
    assert [one.reason for one in found.excluded] == ["hint"]


tables = st.lists(
    st.tuples(st.sampled_from(["", "z1", "z2"]), st.sampled_from(["", "e1"]), livenesses),
    max_size=8,
)


@given(tables, st.sampled_from([(), (("zone", "z1"),), (("env", "e1"), ("zone", "z1"))]))
def test_everybody_is_a_candidate_or_excluded(
    table: list[tuple[str, str, Liveness]], prefer: tuple[tuple[str, str], ...]
) -> None:
    """Nobody is lost, nobody stands twice, and no score rises along the list."""
    records = [
        record_of(f"a{at}", "x", zone=zone, env=env) for at, (zone, env, _) in enumerate(table)
    ]
    seen = {f"a{at}": one for at, (_, _, one) in enumerate(table)}
    found = asked(records, seen, prefer=prefer, require=(("env", "e1"),))
    everybody = [*order(found), *(one.agent_id for one in found.excluded)]
    assert sorted(everybody) == [record.instance.agent_id for record in records]
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    uses = [USES.index(one.seen.liveness.use) for one in found.candidates]
    assert uses == sorted(uses)


@given(st.lists(st.sampled_from(ANY_STATE), min_size=1, max_size=6))
def test_silence_alone_excludes_nobody(states: list[InstanceState]) -> None:
    """Suspects and those not heard of yet stay candidates, however few others there are."""
    records = [record_of(f"a{at}", "x") for at in range(len(states))]
    seen = {f"a{at}": liveness(f"a{at}", state) for at, state in enumerate(states)}
    asked_states = [one.seen.state for one in asked(records, seen).candidates]
    silent = {"healthy", "suspect", "pending"}
    assert sorted(asked_states) == sorted(state for state in states if state in silent)
