"""What readers ask of a state."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.model.agents import Metadata
from reachnode.registry.agents import register, set_agent_state
from reachnode.registry.commands import Forget, Mark, MarkDown, Register, SetAgentState
from reachnode.registry.health import forget, mark_down
from reachnode.registry.outcomes import Applied
from reachnode.registry.queries import Due, capability_of, due, offering, record_of, records
from reachnode.registry.state import Record, State
from tests.registry.test_agents import parser
from tests.strategies import AGENTS, CAPABILITIES, fresh_state, states


def table() -> State:
    """Return three instances: two of one agent in two zones, one of another, updating."""
    state = fresh_state()
    for instance in (
        replace(parser("b1", "x", "y", agent="search"), metadata=Metadata(zone="z2")),
        replace(parser("a2", "x"), metadata=Metadata(zone="z2")),
        replace(parser("a1", "x"), metadata=Metadata(zone="z1")),
    ):
        state, _ = register(state, 1, Register(instance=instance))
    return set_agent_state(state, 2, SetAgentState(agent_id="b1", state="updating"))[0]


def ids(found: tuple[Record, ...]) -> list[str]:
    """Return who was found, in order."""
    return [record.instance.agent_id for record in found]


def test_one_instance_is_found_by_its_id() -> None:
    """What was registered is found, what wasn't is None."""
    record = record_of(table(), "b1")
    assert record is not None
    assert (record.instance.agent, record.standing) == ("search", "updating")
    assert record_of(table(), "b9") is None


def test_instances_are_listed_in_order() -> None:
    """A list is sorted by id, whatever the order of registration."""
    assert ids(records(table())) == ["a1", "a2", "b1"]
    assert ids(records(table(), capability="x")) == ["a1", "a2", "b1"]


def test_what_is_asked_must_all_fit() -> None:
    """Each question narrows the list."""
    state = table()
    assert ids(records(state, capability="y")) == ["b1"]
    assert ids(records(state, capability="nothing")) == []
    assert ids(records(state, agent="nlp")) == ["a1", "a2"]
    assert ids(records(state, zone="z2")) == ["a2", "b1"]
    assert ids(records(state, standing="updating")) == ["b1"]
    assert ids(records(state, standing="")) == ["a1", "a2"]
    assert ids(records(state, capability="x", zone="z2", agent="nlp", standing="")) == ["a2"]


def test_a_capability_is_found_in_its_instance() -> None:
    """What an instance says of a capability, or None where it doesn't offer it."""
    instance = parser("a1", "x", "y")
    found = capability_of(instance, "y")
    assert found is not None
    assert found.endpoint == "http://10.0.0.7/y"
    assert capability_of(instance, "z") is None


def test_who_offers_a_capability_is_at_hand() -> None:
    """Each instance with its agent; nobody for a name that nobody offers."""
    assert dict(offering(table(), "x")) == {"a1": "nlp", "a2": "nlp", "b1": "search"}
    assert dict(offering(table(), "nothing")) == {}


@given(states, st.sampled_from(CAPABILITIES), st.sampled_from(AGENTS))
def test_the_index_finds_what_a_search_finds(state: State, name: str, agent: str) -> None:
    """Asking by capability gives what looking at every instance gives."""
    assert records(state, capability=name, agent=agent) == tuple(
        record
        for record in records(state)
        if capability_of(record.instance, name) and record.instance.agent == agent
    )


def test_what_is_due_goes_by_cluster_time() -> None:
    """The leader learns whom to forget, and whether time must be logged at all."""
    state = fresh_state()
    for agent_id in ("a1", "b1"):
        state, _ = register(state, 1, Register(instance=parser(agent_id)))
    assert due(state) == Due(forget=(), needs_time=False)
    both = tuple(
        Mark(agent_id=agent_id, incarnation=state.agents[agent_id].instance.incarnation)
        for agent_id in ("b1", "a1")
    )
    state, _ = mark_down(state, 7, MarkDown(marks=both[:1]))
    state, _ = mark_down(replace(state, time_ms=4_000), 8, MarkDown(marks=both[1:]))
    assert due(state) == Due(forget=(), needs_time=True)
    assert due(replace(state, time_ms=600_000)) == Due(forget=both[:1], needs_time=True)
    late = replace(state, time_ms=604_000)
    assert due(late) == Due(forget=(both[1], both[0]), needs_time=False)
    done, outcome = forget(late, 9, Forget(marks=due(late).forget))
    assert outcome == Applied(9, {"changed": 2})
    assert due(done) == Due(forget=(), needs_time=False)
