"""How the replicated state changes: only here, the same on every node.

What becomes of an envelope, first that fits:

    its id isn't 1 to 128 bytes            invalid_request, not remembered
    its id is remembered                   what was said then; nothing changes
    it is older than what is remembered    request_expired, not remembered
    its effect raises                      internal, remembered
    its effect refuses                     refused, remembered
    otherwise                              applied, remembered

Remembering changes the window of requests and nothing else. A refusal therefore leaves every
other part of the state the very object it was.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from reachnode.errors import UnknownCommand
from reachnode.registry import agents, cluster, commands, health
from reachnode.registry.codec import decode_batch
from reachnode.registry.commands import LEVEL_MAX, Envelope
from reachnode.registry.outcomes import Outcome, Refused
from reachnode.registry.state import Remembered, State

REQUEST_ID_BYTES_MAX = 128

Effect = Callable[[State, int, Any], tuple[State, Outcome]]

EFFECTS: MappingProxyType[type, Effect] = MappingProxyType(
    {
        commands.Register: agents.register,
        commands.Deregister: agents.deregister,
        commands.SetAgentState: agents.set_agent_state,
        commands.MarkDown: health.mark_down,
        commands.MarkUp: health.mark_up,
        commands.Forget: health.forget,
        commands.PutSettings: cluster.put_settings,
        commands.Advance: cluster.advance,
        commands.ReplaceMember: cluster.replace_member,
        commands.RaiseLevel: cluster.raise_level,
    }
)
"""What each command does."""


def apply(
    state: State,
    index: int,
    envelope: Envelope,
    *,
    effects: MappingProxyType[type, Effect] = EFFECTS,
) -> tuple[State, Outcome]:
    """Return the state after a command, and what became of it. Never raises.

    Args:
        state: The state before, which stays as it is.
        index: The log index of the command, never lower than the one before.
        envelope: The command and the id under which it may be repeated.
        effects: What each command does; only tests give another.

    Raises:
        MemoryError: This node ran out of memory. Others didn't, so it cannot say what they
            say, and must stop.
    """
    request_id = envelope.request_id
    if not 1 <= len(request_id.encode()) <= REQUEST_ID_BYTES_MAX:
        return state, Refused("invalid_request", "a request id is 1 to 128 bytes long")
    remembered = state.requests.get(request_id)
    if remembered is not None:
        return state, remembered.outcome
    if envelope.since_index < state.requests_floor:
        why = f"requests from before index {state.requests_floor} are no longer remembered"
        return state, Refused("request_expired", why, {"floor": state.requests_floor})
    try:
        after, outcome = effects[type(envelope.command)](state, index, envelope.command)
    except MemoryError:
        raise
    except Exception as fault:  # noqa: BLE001 - the one place that keeps a fault from the log
        after, outcome = state, Refused("internal", type(fault).__name__)
    return remember(after, request_id, Remembered(index, outcome)), outcome


def remember(state: State, request_id: str, remembered: Remembered) -> State:
    """Return the state with one more request decided, the oldest forgotten when it is full."""
    slot = state.requests_count % state.requests_max
    requests = state.requests
    floor = state.requests_floor
    if state.requests_count >= state.requests_max:
        oldest = state.requests_order[slot]
        floor = requests[oldest].index
        requests = requests.delete(oldest)
    return replace(
        state,
        requests=requests.set(request_id, remembered),
        requests_order=state.requests_order.set(slot, request_id),
        requests_count=state.requests_count + 1,
        requests_floor=floor,
    )


def apply_batch(state: State, index: int, batch: bytes) -> tuple[State, tuple[Outcome, ...]]:
    """Return the state after one entry of the log, and what became of each command in it.

    Raises:
        UnknownCommand: The entry was written by a newer program. The node must stop, because
            to guess would make its state another than theirs.
    """
    return apply_all(state, index, decode_batch(batch))


def apply_all(
    state: State, index: int, envelopes: Sequence[Envelope]
) -> tuple[State, tuple[Outcome, ...]]:
    """Return the same for an entry whose batch is decoded already.

    Raises:
        UnknownCommand: The cluster rose to a level that this program doesn't know.
    """
    outcomes = []
    for envelope in envelopes:
        state, outcome = apply(state, index, envelope)
        outcomes.append(outcome)
        if state.level > LEVEL_MAX:
            raise UnknownCommand(f"the cluster rose to level {state.level}, beyond {LEVEL_MAX}")
    return state, tuple(outcomes)
