"""The bytes of a whole state."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map
from msgspec.structs import replace

from reachnode.errors import BadSnapshot
from reachnode.model.agents import Instance
from reachnode.model.capabilities import Capability
from reachnode.registry.agents import register, with_record
from reachnode.registry.commands import Register
from reachnode.registry.outcomes import Applied
from reachnode.registry.snapshot import (
    PIECE_BYTES_MAX,
    RUN_NAMES_MAX,
    Digester,
    Loader,
    digest_of,
    dump,
)
from reachnode.registry.state import Record, Remembered, State
from tests.strategies import fresh_state, states

ROOT = Path(__file__).parent.parent.parent


def load(*pieces: bytes) -> State:
    """Return the state of a dump."""
    loader = Loader()
    for piece in pieces:
        loader.feed(piece)
    return loader.finish()


def crowd(count: int, *, description: str = "") -> State:
    """Return a state of many instances, registered in no order."""
    state = fresh_state()
    for at in range(count):
        instance = Instance(
            agent_id=f"a{at * 7919 % count:06}",
            agent=f"g{at % 10}",
            capabilities=(
                Capability(name="x", protocol="link", endpoint="", description=description),
            ),
        )
        state, _ = register(state, at, Register(instance=instance))
    return state


def shuffled(table: Map[str, Any], order: list[int]) -> Map[str, Any]:
    """Return an equal table that came about in another order, with detours."""
    again: Map[str, Any] = Map({f"gone {at}": at for at in order})
    ranks = {name: rank for rank, name in zip(order, sorted(table), strict=False)}
    for name in sorted(table, key=lambda one: ranks.get(one, -1)):
        again = again.set(name, None).set(name, table[name])
    for at in order:
        again = again.delete(f"gone {at}")
    return again


@given(states)
def test_a_state_is_read_as_it_was_written(state: State) -> None:
    """What is loaded equals what was dumped, and is dumped alike again."""
    pieces = list(dump(state))
    loaded = load(*pieces)
    assert loaded == state
    assert list(dump(loaded)) == pieces


def test_who_is_down_is_known_again() -> None:
    """A node that loads a snapshot knows since when instances are down."""
    state = fresh_state()
    for at, down_at_ms in enumerate((None, 0, 7_000)):
        instance = Instance(agent_id=f"a{at}", agent="g", incarnation=at + 1)
        state = with_record(
            state,
            Record(
                instance=instance,
                index=1,
                standing="" if down_at_ms is None else "down",
                down_at_ms=down_at_ms,
            ),
        )
    assert load(*dump(state)).down == Map({"a1": 0, "a2": 7_000})
    assert load(*dump(state)) == state


@given(states, st.permutations(range(8)))
def test_equal_states_are_equal_bytes(state: State, order: list[int]) -> None:
    """It doesn't matter in which order anything came into the state."""
    other = replace(
        state,
        agents=shuffled(state.agents, order),
        members=shuffled(state.members, order),
        requests=shuffled(state.requests, order),
    )
    assert other == state
    assert digest_of(dump(other)) == digest_of(dump(state))


def test_the_order_in_a_value_doesn_t_matter() -> None:
    """What became of a request is written alike, however it was put together."""
    one, other = (
        replace(
            fresh_state(),
            requests=Map({"r1": Remembered(1, Applied(1, value))}),
            requests_order=Map({0: "r1"}),
            requests_count=1,
        )
        for value in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one == other
    assert digest_of(dump(one)) == digest_of(dump(other))


@given(states, states)
def test_other_states_are_other_bytes(one: State, other: State) -> None:
    """Two states have one digest only if they are equal."""
    assert (digest_of(dump(one)) == digest_of(dump(other))) == (one == other)


@given(states, st.lists(st.integers(0, 400), max_size=8))
def test_where_it_is_cut_doesn_t_matter(state: State, cuts: list[int]) -> None:
    """Pieces may be joined and cut on the way; the state and the digest stay."""
    whole = b"".join(dump(state))
    ends = [*sorted(cuts), len(whole)]
    pieces = [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert load(*pieces) == state
    digester = Digester()
    for piece in pieces:
        digester.feed(piece)
    assert digester.hex() == digest_of(dump(state))
    assert len(digester.hex()) == 32


def test_a_large_state_comes_in_small_pieces() -> None:
    """No piece is over its size, and sorting many names is paused after each run."""
    state = crowd(2 * RUN_NAMES_MAX + 1, description="x" * 50)
    pieces = list(dump(state))
    assert max(map(len, pieces)) <= PIECE_BYTES_MAX
    assert pieces.count(b"") == 1
    assert load(*pieces) == state
    names = [record["instance"]["agent_id"] for record in records(state) if "instance" in record]
    assert names == sorted(state.agents)


def test_a_large_record_is_a_piece_of_its_own() -> None:
    """A record longer than a piece is sent whole, alone."""
    state = crowd(3, description="x" * (PIECE_BYTES_MAX + 1))
    pieces = list(dump(state))
    assert [len(piece) > PIECE_BYTES_MAX for piece in pieces] == [False, True, True, True]
    assert load(*pieces) == state


def test_a_piece_is_made_only_when_it_is_asked_for() -> None:
    """The state may be replaced while it is dumped; the one that was given is dumped."""
    state = crowd(500)
    pieces = dump(state)
    first = next(pieces)
    assert len(first) <= PIECE_BYTES_MAX < sum(map(len, dump(state)))
    assert load(first, *pieces) == state


@given(states, st.data())
def test_a_dump_that_ends_early_is_refused(state: State, data: st.DataObject) -> None:
    """Wherever it was cut off, it isn't taken for a smaller state."""
    whole = b"".join(dump(state))
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(BadSnapshot, match=f"it ends early, at byte {end}"):
        load(whole[:end])


def test_what_follows_a_dump_is_refused() -> None:
    """A dump is over when its head says so."""
    whole = b"".join(dump(fresh_state()))
    with pytest.raises(BadSnapshot, match=f"something follows its end, at byte {len(whole)}"):
        load(whole, b"\x00")
    with pytest.raises(BadSnapshot, match=f"no record may stand at byte {len(whole)}"):
        load(whole, b"\x00\x00\x00\x00")


@given(st.binary(max_size=200))
def test_noise_is_no_dump(noise: bytes) -> None:
    """Whatever the bytes, they are refused with words, never with another error."""
    with pytest.raises(BadSnapshot):
        load(noise)


@given(states, st.data())
def test_a_flipped_byte_is_an_error_or_another_state(state: State, data: st.DataObject) -> None:
    """Damage is refused, or at least never goes unseen by the digest."""
    whole = bytearray(b"".join(dump(state)))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    try:
        loaded = load(bytes(whole))
    except BadSnapshot:
        return
    assert digest_of([bytes(whole)]) != digest_of(dump(state))
    assert isinstance(loaded, State)


def records(state: State) -> list[Any]:
    """Return the records of a dump, as plain content."""
    whole = b"".join(dump(state))
    found = []
    while whole:
        length = int.from_bytes(whole[:4], "big")
        found.append(msgspec.msgpack.decode(whole[4 : 4 + length]))
        whole = whole[4 + length :]
    return found


def written(content: list[Any]) -> bytes:
    """Return a dump of plain content."""
    encoded = [msgspec.msgpack.encode(record) for record in content]
    return b"".join(len(one).to_bytes(4, "big") + one for one in encoded)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 2}, "format 2 isn't 1: run the program that wrote it"),
        ({"level": 2}, "level 2 is above 1: run the newer program"),
        ({"settings": 0}, "its counts contradict each other"),
        ({"members": -1}, "its counts contradict each other"),
        ({"requests_max": 0}, "its counts contradict each other"),
        ({"requests": 1}, "its counts contradict each other"),
        ({"region": "eu"}, "unknown field `region`"),
        ({"time_ms": "noon"}, "Expected `int`"),
    ],
)
def test_a_wrong_head_says_what_to_do(changes: dict[str, Any], says: str) -> None:
    """The operator is told where it is wrong, and which program to run."""
    content = records(fresh_state())
    content[0] |= changes
    with pytest.raises(BadSnapshot, match=f"the record at byte 0 can't be read: .*{says}"):
        load(written(content))


def test_a_name_stands_once() -> None:
    """Two records of one name are damage, not a choice."""
    content = records(fresh_state())
    content[3]["member_id"] = "n1"
    with pytest.raises(BadSnapshot, match="a name stands in it twice"):
        load(written(content))


def test_depth_is_damage() -> None:
    """A value nested without end is refused like any other damage."""
    kept = Remembered(1, Applied(1, {"deep": "here"}))
    state = replace(
        fresh_state(),
        requests=Map({"r1": kept}),
        requests_order=Map({0: "r1"}),
        requests_count=1,
    )
    whole = b"".join(dump(state))
    assert load(whole) == state
    record = msgspec.msgpack.encode(records(state)[-1]).replace(b"\xa4here", b"\x91" * 100_000)
    head = written(records(state)[:-1])
    with pytest.raises(BadSnapshot, match="can't be read"):
        load(head, len(record).to_bytes(4, "big"), record)


def test_a_record_has_a_size() -> None:
    """A damaged length doesn't make the loader wait for gigabytes."""
    with pytest.raises(BadSnapshot, match="no record may stand at byte 0"):
        load(b"\xff\xff\xff\xff")


def test_two_processes_agree() -> None:
    """One log replayed under two hash seeds gives one digest, outcomes included."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.registry.replayed", "400", "7"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("0", "1")
    ]
    digests = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(digests[0]) == 32
    assert digests[0] == digests[1]
