"""The one place where the replicated state changes."""

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reachnode.errors import BY_CODE, UnknownCommand
from reachnode.registry.apply import EFFECTS, REQUEST_ID_BYTES_MAX, apply, apply_batch
from reachnode.registry.codec import decode_envelope, encode_batch, encode_envelope
from reachnode.registry.commands import Advance, Command, Envelope, RaiseLevel
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import Remembered, State
from tests.strategies import after, commands, envelopes, fresh_state, logs, states

STEP = Advance(by_ms=100)
WRONG = Advance(by_ms=0)


def ask(request_id: str, command: Command = STEP, *, since_index: int = 0) -> Envelope:
    """Return a command under an id."""
    return Envelope(request_id=request_id, since_index=since_index, command=command)


def without_window(state: State) -> State:
    """Return a state whose window of requests is empty, for comparing all the rest."""
    empty = fresh_state()
    return replace(
        state,
        requests=empty.requests,
        requests_order=empty.requests_order,
        requests_count=0,
        requests_floor=0,
    )


@given(states, envelopes)
def test_a_refusal_changes_nothing(state: State, envelope: Envelope) -> None:
    """A command that is refused leaves everything but the window the very object it was."""
    changed, outcome = apply(state, 50, envelope)
    if isinstance(outcome, Refused):
        assert changed.agents is state.agents
        assert changed.capabilities is state.capabilities
        assert changed.members is state.members
        assert changed.settings_history is state.settings_history
        assert without_window(changed) == without_window(state)


@given(states, envelopes)
def test_a_repeat_changes_nothing(state: State, envelope: Envelope) -> None:
    """The same request again, however late, gets the same answer and leaves the state alone."""
    once, first = apply(state, 50, replace(envelope, since_index=49))
    twice, second = apply(once, 60, envelope)
    assert twice is once
    assert second == first


@given(states, envelopes)
def test_nothing_is_an_accident(state: State, envelope: Envelope) -> None:
    """Every envelope that can be read is applied or refused, with a code clients know."""
    read = decode_envelope(encode_envelope(envelope))
    assert read == envelope
    _, outcome = apply(state, 50, read)
    if isinstance(outcome, Refused):
        assert outcome.code in BY_CODE
        assert outcome.code != "internal"
        assert outcome.why
    else:
        assert outcome.index == 50 or envelope.request_id in state.requests


@given(logs)
def test_the_window_is_bounded(log: list[Envelope]) -> None:
    """However long the log, only so many requests are remembered, each in its order."""
    state = after(log)
    assert len(state.requests) == min(state.requests_count, state.requests_max)
    assert len(state.requests_order) == len(state.requests)
    assert sorted(state.requests_order.values()) == sorted(state.requests)
    assert all(kept.index >= state.requests_floor for kept in state.requests.values())


def test_the_oldest_request_is_forgotten_first() -> None:
    """A full window loses the request that was decided first, and notes its index."""
    state = fresh_state(requests_max=3)
    for index, name in enumerate(["a", "b", "c", "d"], start=10):
        state, _ = apply(state, index, ask(name, since_index=9))
    assert sorted(state.requests) == ["b", "c", "d"]
    assert state.requests_floor == 10
    assert state.requests["b"] == Remembered(11, Applied(11, {"time_ms": 200}))


def test_an_old_request_is_not_run_blindly() -> None:
    """One that may have run before it was forgotten is refused, and takes no room either."""
    state = fresh_state(requests_max=2)
    for index, name in enumerate(["a", "b", "c", "d"], start=10):
        state, _ = apply(state, index, ask(name, since_index=index - 1))
    assert state.requests_floor == 11
    again, outcome = apply(state, 20, ask("a", since_index=10))
    assert again is state
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.details) == ("request_expired", {"floor": 11})
    # An id chosen at the floor can't have run at or before it: it is surely new.
    later, outcome = apply(state, 20, ask("e", since_index=11))
    assert outcome == Applied(20, {"time_ms": 500})
    assert later.time_ms == 500


@given(st.lists(st.integers(0, 11), max_size=60), st.integers(1, 4))
def test_no_request_runs_twice(order: list[int], requests_max: int) -> None:
    """Whatever is repeated, and however late, each request takes effect at most once."""
    state = fresh_state(requests_max=requests_max)
    born: dict[int, int] = {}
    ran: list[int] = []
    for index, number in enumerate(order, start=1):
        since = born.setdefault(number, index - 1)
        before = state.time_ms
        state, _ = apply(state, index, ask(f"r{number}", since_index=since))
        if state.time_ms != before:
            ran.append(number)
    assert len(ran) == len(set(ran))
    # And the first try of each always runs: expiry never hits what is new.
    assert len(ran) == len(born)


def test_a_refusal_is_remembered() -> None:
    """A repeat of what was refused is refused alike, even if it would be applied by now."""
    state, first = apply(fresh_state(), 1, ask("a", WRONG))
    assert isinstance(first, Refused)
    again, second = apply(state, 2, ask("a", STEP))
    assert again is state
    assert second == first


@pytest.mark.parametrize("request_id", ["", "x" * (REQUEST_ID_BYTES_MAX + 1), "é" * 65])
def test_an_id_has_a_length(request_id: str) -> None:
    """No id, or one that is too long, is refused and takes no room."""
    state = fresh_state()
    changed, outcome = apply(state, 1, ask(request_id))
    assert changed is state
    assert isinstance(outcome, Refused)
    assert outcome.code == "invalid_request"
    assert isinstance(apply(state, 1, ask("x" * REQUEST_ID_BYTES_MAX))[1], Applied)


def breaking(fault: Exception) -> MappingProxyType[type, Any]:
    """Return effects of which one, for steps of time, has a fault."""

    def broken(state: State, index: int, command: Advance) -> tuple[State, Outcome]:
        raise fault

    return MappingProxyType({**EFFECTS, Advance: broken})


def test_a_fault_of_ours_is_a_refusal() -> None:
    """An effect that raises changes nothing, on every node alike, and never stops the log."""
    fault = KeyError("address 0x7f of this process")
    state, outcome = apply(fresh_state(), 1, ask("a"), effects=breaking(fault))
    assert outcome == Refused("internal", "KeyError")
    assert without_window(state) == fresh_state()
    assert apply(state, 2, ask("a")) == (state, outcome)


def test_a_command_without_an_effect_is_a_fault_of_ours() -> None:
    """Even a command that nobody wired is refused, not raised."""
    outcome = apply(fresh_state(), 1, ask("a"), effects=MappingProxyType({}))[1]
    assert outcome == Refused("internal", "KeyError")


def test_a_node_without_memory_stops() -> None:
    """What only this node can't do is no outcome: the others did it."""
    with pytest.raises(MemoryError):
        apply(fresh_state(), 1, ask("a"), effects=breaking(MemoryError()))


@given(commands)
def test_every_command_has_an_effect(command: Command) -> None:
    """No command was forgotten in the table."""
    assert type(command) in EFFECTS


@given(logs)
def test_a_batch_is_its_envelopes_in_order(log: list[Envelope]) -> None:
    """One entry of the log does what its envelopes do one after the other."""
    state = fresh_state()
    expected: list[Outcome] = []
    for envelope in log:
        state, outcome = apply(state, 7, envelope)
        expected.append(outcome)
    batch = encode_batch([encode_envelope(envelope) for envelope in log])
    assert apply_batch(fresh_state(), 7, batch) == (state, tuple(expected))


def test_a_batch_of_the_future_stops_the_node() -> None:
    """What can't be read is not guessed at."""
    with pytest.raises(UnknownCommand):
        apply_batch(fresh_state(), 1, b"\x02\x90")


def test_a_level_of_the_future_stops_the_node() -> None:
    """A node that doesn't know the effects of the new level must not go on without them."""
    rise = encode_envelope(ask("a", RaiseLevel(level=1)))
    beyond = rise.replace(b"\xa5level\x01", b"\xa5level\x02")
    assert beyond != rise
    with pytest.raises(UnknownCommand, match="the cluster rose to level 2"):
        apply_batch(fresh_state(), 1, encode_batch([beyond]))
