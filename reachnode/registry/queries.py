"""What readers ask of a state. Answers are sorted by `agent_id`, alike on every node."""

from dataclasses import dataclass

from immutables import Map

from reachnode.model.agents import Instance
from reachnode.model.capabilities import Capability
from reachnode.registry.commands import MARKS_MAX, Mark
from reachnode.registry.health import is_forgotten
from reachnode.registry.state import Record, Standing, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What the leader has to propose, so that time does its work in the log."""

    forget: tuple[Mark, ...]
    """Down for long enough, a batch of them at most: then ask again."""
    needs_time: bool
    """Whether something waits for cluster time to move; else no step of it is to be logged."""


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


def due(state: State) -> Due:
    """Return what falls due at this moment of cluster time. The cost goes by who is down."""
    marks = []
    for agent_id in sorted(state.down):
        record = state.agents[agent_id]
        if is_forgotten(state, record):
            marks.append(Mark(agent_id=agent_id, incarnation=record.instance.incarnation))
    return Due(forget=tuple(marks[:MARKS_MAX]), needs_time=len(state.down) > len(marks))
