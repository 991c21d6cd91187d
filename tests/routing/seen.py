"""Tables of instances and how they are seen, for the tests of discovery."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.model.liveness import InstanceState, Liveness, Use
from reachnode.registry.agents import register
from reachnode.registry.commands import Register
from reachnode.registry.seen import LivenessOf, unseen
from reachnode.registry.state import Record, State
from tests.registry.test_agents import parser
from tests.strategies import fresh_state

USE_OF: Mapping[InstanceState, Use] = {
    "healthy": "full",
    "suspect": "last",
    "pending": "after_suspects",
    "down": "never",
    "updating": "never",
    "disabled": "never",
}


def liveness(agent_id: str, state: InstanceState = "healthy", **fields: Any) -> Liveness:
    """Return what is known of an instance in a state."""
    return Liveness(
        **{
            "agent_id": agent_id,
            "incarnation": 1,
            "state": state,
            "why": "a test says so",
            "use": USE_OF[state],
            "basis": "own",
            **fields,
        }
    )


def told_by(table: Mapping[str, Liveness]) -> LivenessOf:
    """Return what tells what a table says; nothing was heard of the others."""
    return lambda record: table.get(record.instance.agent_id) or unseen(record)


def record_of(agent_id: str, *names: str, **metadata: Any) -> Record:
    """Return a registered instance with some metadata."""
    instance = parser(agent_id, *names)
    return Record(
        instance=replace(instance, metadata=replace(instance.metadata, **metadata)), index=1
    )


def state_of(*records: Record) -> State:
    """Return a state in which instances are registered, at indexes from 1."""
    state = fresh_state()
    for index, record in enumerate(records, start=1):
        state, _ = register(state, index, Register(instance=record.instance))
    return state


ANY_STATE: tuple[InstanceState, ...] = tuple(USE_OF)
livenesses = st.builds(
    liveness,
    st.just("any"),
    st.sampled_from(ANY_STATE),
    load=st.none() | st.floats(0, 1),
    unreachable_from=st.sampled_from([(), ("n1",), ("n2",), ("n1", "n2")]),
)
