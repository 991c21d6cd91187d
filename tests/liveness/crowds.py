"""States and heartbeats for the tests of this room."""

from msgspec.structs import replace

from reachnode.model.agents import Health, HeartbeatWish, Instance
from reachnode.model.capabilities import Capability
from reachnode.model.liveness import Report
from reachnode.model.settings import ProbeRules, RegistryRules, Settings, SettingsRevision
from reachnode.registry.agents import register
from reachnode.registry.commands import Register
from reachnode.registry.state import State
from tests.strategies import fresh_state


def instance(
    agent_id: str,
    *,
    wish: HeartbeatWish | None = None,
    health: Health | None = None,
    incarnation: int = 0,
) -> Instance:
    """Return an instance that can be probed by TCP when nothing else is said."""
    return Instance(
        agent_id=agent_id,
        agent="nlp",
        capabilities=(Capability(name="x", protocol="rest", endpoint="http://10.0.0.7:9/x"),),
        heartbeat=wish,
        health=health,
        incarnation=incarnation,
    )


def registered(*instances: Instance | str, state: State | None = None) -> State:
    """Return a state with instances, whose incarnations count up from 1."""
    state = state or fresh_state()
    for index, one in enumerate(instances, start=1):
        made = instance(one) if isinstance(one, str) else one
        state, _ = register(state, index, Register(instance=made))
    return state


def crowd(count: int) -> State:
    """Return a state with many instances, `a0` and up."""
    return registered(*(f"a{at}" for at in range(count)))


def set_to(
    state: State, *, registry: RegistryRules | None = None, probes: ProbeRules | None = None
) -> State:
    """Return a state with other settings."""
    settings = Settings(registry=registry or RegistryRules(), probes=probes or ProbeRules())
    revision = SettingsRevision(revision=1, index=1, settings=settings)
    return replace(state, settings_history=(revision,))


def report(agent_id: str, sequence: int, *, incarnation: int = 1, beat: int = 0) -> Report:
    """Return what a node tells of an instance."""
    return Report(agent_id=agent_id, incarnation=incarnation, sequence=sequence, beat=beat)


def always(agent_id: str) -> bool:
    return True


def never(agent_id: str) -> bool:
    return False


def middle() -> float:
    """Return the draw that makes no jitter."""
    return 0.5
