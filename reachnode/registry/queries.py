"""What readers ask of a state. Answers are sorted by `agent_id`, alike on every node."""

from immutables import Map

from reachnode.model.agents import Instance
from reachnode.model.capabilities import Capability
from reachnode.registry.state import Record, Standing, State


def record_of(state: State, agent_id: str) -> Record | None:
    """Return one instance with what the log says of it, None if it isn't registered."""
    return state.agents.get(agent_id)


def records(
    state: State,
    *,
    capability: str | None = None,
    standing: Standing | None = None,
    agent: str | None = None,
    zone: str | None = None,
) -> tuple[Record, ...]:
    """Return the instances that fit all that is asked; None asks nothing.

    With a capability the cost goes by the instances that offer it, else by all of them.
    """
    names = state.agents if capability is None else offering(state, capability)
    found = []
    for agent_id in sorted(names):
        record = state.agents[agent_id]
        instance = record.instance
        if (
            standing in {None, record.standing}
            and agent in {None, instance.agent}
            and zone in {None, instance.metadata.zone}
        ):
            found.append(record)
    return tuple(found)


def offering(state: State, capability: str) -> Map[str, str]:
    """Return who offers a capability: `agent_id` to `agent`, in no order."""
    return state.capabilities.get(capability) or Map()


def capability_of(instance: Instance, name: str) -> Capability | None:
    """Return what an instance says of one capability, None if it doesn't offer it."""
    for capability in instance.capabilities:
        if capability.name == name:
            return capability
    return None
