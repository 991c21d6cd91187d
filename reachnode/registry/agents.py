"""What commands do to instances, and the indexes over them."""

from immutables import Map
from msgspec.structs import replace

from reachnode.model.agents import Instance
from reachnode.registry.commands import Deregister, Register, SetAgentState
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import Record, Standing, State

Offers = Map[str, Map[str, str]]


def register(state: State, index: int, command: Register) -> tuple[State, Outcome]:
    """Apply a registration, all of it or nothing.

    An operator's `disabled` outlives the process it was said of; `updating` ends when the
    updated process registers. Where the cluster is set to exclusive names, a capability
    belongs to the agent that offered it first, until none of its instances offers it;
    instances of that agent share it freely.
    """
    instance = command.instance
    old = state.agents.get(instance.agent_id)
    if old and command.replaces is not None and command.replaces != old.instance.incarnation:
        return state, _in_use(old)
    names = tuple(capability.name for capability in instance.capabilities)
    if len(set(names)) < len(names):
        return state, Refused(
            "duplicate_capability", f"{instance.agent_id} names a capability twice"
        )
    if state.settings.registry.capability_names == "exclusive":
        taken = _taken(state, instance, names)
        if taken:
            return state, taken
    incarnation = state.incarnation + 1
    kept: Standing = "disabled" if old and old.standing == "disabled" else ""
    record = Record(instance=replace(instance, incarnation=incarnation), index=index, standing=kept)
    after = replace(
        with_record(state, record),
        incarnation=incarnation,
        capabilities=offered(state.capabilities, old.instance if old else None, instance),
    )
    value = {"agent_id": instance.agent_id, "incarnation": incarnation, "replaced": bool(old)}
    return after, Applied(index, value)


def deregister(state: State, index: int, command: Deregister) -> tuple[State, Outcome]:
    """Apply a farewell."""
    old = state.agents.get(command.agent_id)
    if old is None:
        return state, _unknown(command.agent_id)
    if command.incarnation is not None and command.incarnation != old.instance.incarnation:
        return state, _superseded(command.agent_id, old)
    return without(state, old), Applied(index)


def set_agent_state(state: State, index: int, command: SetAgentState) -> tuple[State, Outcome]:
    """Apply an announced state; saying what stands already changes nothing."""
    old = state.agents.get(command.agent_id)
    if old is None:
        return state, _unknown(command.agent_id)
    if command.incarnation is not None and command.incarnation != old.instance.incarnation:
        return state, _superseded(command.agent_id, old)
    standing: Standing = "" if command.state == "healthy" else command.state
    if standing == old.standing:
        return state, Applied(index)
    record = replace(old, index=index, standing=standing, down_at_ms=None)
    return with_record(state, record), Applied(index)


def with_record(state: State, record: Record) -> State:
    """Return the state with a record put in place, which offers what it offered before."""
    agent_id = record.instance.agent_id
    down = state.down
    if record.down_at_ms is not None:
        down = down.set(agent_id, record.down_at_ms)
    elif agent_id in down:
        down = down.delete(agent_id)
    return replace(state, agents=state.agents.set(agent_id, record), down=down)


def without(state: State, record: Record) -> State:
    """Return the state without a record that is in it."""
    agent_id = record.instance.agent_id
    return replace(
        state,
        agents=state.agents.delete(agent_id),
        down=state.down.delete(agent_id) if agent_id in state.down else state.down,
        capabilities=offered(state.capabilities, record.instance, None),
    )


def offered(capabilities: Offers, old: Instance | None, new: Instance | None) -> Offers:
    """Return the index of who offers what, after one instance replaced another.

    Args:
        capabilities: The index so far.
        old: What the instance was, None if it is new.
        new: What it is now, None if it is gone.
    """
    before = {one.name: old.agent for one in old.capabilities} if old else {}
    now = {one.name: new.agent for one in new.capabilities} if new else {}
    if before == now:
        return capabilities
    for name, agent in now.items():
        assert new
        if before.get(name) != agent:
            offers = capabilities.get(name) or Map[str, str]()
            capabilities = capabilities.set(name, offers.set(new.agent_id, agent))
    for name in before:
        assert old
        if name not in now:
            offers = capabilities[name].delete(old.agent_id)
            capabilities = capabilities.set(name, offers) if offers else capabilities.delete(name)
    return capabilities


def owner(state: State, name: str, *, besides: str) -> str | None:
    """Return the agent that offers an exclusive capability, None if nobody else does.

    Args:
        state: A state with exclusive names: all who offer one are of one agent.
        name: The capability.
        besides: The `agent_id` of an instance that doesn't count, because it is replaced.
    """
    for agent_id, agent in (state.capabilities.get(name) or Map[str, str]()).items():
        if agent_id != besides:
            return agent  # whichever comes first: they are all of one agent
    return None


def _taken(state: State, instance: Instance, names: tuple[str, ...]) -> Refused | None:
    for name in names:
        holder = owner(state, name, besides=instance.agent_id)
        if holder is not None and holder != instance.agent:
            return Refused(
                "capability_taken",
                f"{name} belongs to {holder}",
                {"capability": name, "agent": holder},
            )
    return None


def _in_use(old: Record) -> Refused:
    instance = old.instance
    endpoint = instance.base_url or next((one.endpoint for one in instance.capabilities), "")
    return Refused(
        "agent_id_in_use",
        f"{instance.agent_id} was registered meanwhile, at {endpoint or 'no endpoint'}",
        {"incarnation": instance.incarnation, "endpoint": endpoint},
    )


def _unknown(agent_id: str) -> Refused:
    return Refused("unknown_agent", f"{agent_id} isn't registered")


def _superseded(agent_id: str, old: Record) -> Refused:
    incarnation = old.instance.incarnation
    return Refused(
        "superseded",
        f"{agent_id} is at incarnation {incarnation} now",
        {"incarnation": incarnation},
    )
