"""Who else serves a capability."""

from hypothesis import given

from reachnode.registry.agents import register, set_agent_state, without
from reachnode.registry.commands import Register, SetAgentState
from reachnode.registry.coverage import uncovered
from reachnode.registry.state import Record, State
from tests.registry.test_agents import parser
from tests.strategies import fresh_state, states


def served(state: State) -> set[str]:
    """Return the capabilities of instances of which nothing keeps them from serving."""
    return {
        capability.name
        for record in state.agents.values()
        if not record.standing
        for capability in record.instance.capabilities
    }


@given(states)
def test_what_is_left_uncovered_is_what_nobody_serves_then(state: State) -> None:
    """Exactly the capabilities that are served now and wouldn't be without the instance."""
    for record in state.agents.values():
        lost = served(state) - served(without(state, record))
        assert uncovered(state, record) == tuple(sorted(lost))


def test_who_covers_whom() -> None:
    """Another that serves covers, one that is updating doesn't, and who is out covers nothing."""
    state = fresh_state()
    for instance in (parser("a1", "x", "y"), parser("a2", "x"), parser("a3", "y")):
        state, _ = register(state, 1, Register(instance=instance))

    def record(agent_id: str) -> Record:
        return state.agents[agent_id]

    assert uncovered(state, record("a1")) == ()
    state, _ = set_agent_state(state, 2, SetAgentState(agent_id="a3", state="updating"))
    assert uncovered(state, record("a1")) == ("y",)
    assert uncovered(state, record("a2")) == ()
    assert uncovered(state, record("a3")) == ()
