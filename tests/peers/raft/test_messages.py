"""What nodes say to each other, as bytes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.messages import (
    CHECK_DIGEST,
    Ack,
    AnyMessage,
    Append,
    BadMessage,
    Greet,
    Nack,
    Poll,
    PollAnswer,
    Propose,
    Proposed,
    RequestVote,
    SnapshotAck,
    SnapshotPiece,
    TakeOver,
    Vote,
    decode,
    encode,
    from_engine,
    to_engine,
)
from reachnode.peers.raft.opening import COMMAND_BYTES_MAX, NO_OP, REGULAR

numbers = st.integers(0, 2**60)
names = st.text(max_size=8)
appends = st.builds(
    lambda previous, kinds: Append(
        9, 3, previous, 1, [(kind + b"x", previous + 1 + at, 1) for at, kind in enumerate(kinds)]
    ),
    numbers,
    st.lists(st.sampled_from([REGULAR, NO_OP, CHECK_DIGEST]), max_size=4),
)
for_engine = st.one_of(
    st.builds(RequestVote, numbers, numbers, numbers),
    st.builds(Vote, numbers),
    appends,
    st.builds(Ack, numbers, numbers, st.booleans(), st.booleans()),
    st.builds(TakeOver, numbers),
)
messages: st.SearchStrategy[AnyMessage] = st.one_of(
    for_engine,
    st.builds(
        Greet,
        incarnation=names,
        cluster_id=names,
        founders=st.dictionaries(names, names, max_size=3),
        peers=st.lists(names, max_size=3),
        term=numbers,
        log_end=numbers,
        noted=numbers,
        version=numbers,
    ),
    st.builds(Nack, numbers),
    st.builds(Poll, numbers, numbers, numbers, numbers),
    st.builds(PollAnswer, numbers, numbers, st.booleans()),
    st.builds(Propose, numbers, st.binary(max_size=20)),
    st.builds(
        Proposed,
        numbers,
        st.sampled_from(["applied", "refused", "discarded", "lost", "elsewhere"]),
        numbers,
        st.binary(max_size=20),
    ),
    st.builds(
        SnapshotPiece,
        term=numbers,
        index=numbers,
        offset=numbers,
        data=st.binary(max_size=20),
        is_last=st.booleans(),
    ),
    st.builds(SnapshotAck, numbers, numbers, st.integers(-1, 9)),
)


@given(messages)
def test_a_message_comes_back_as_it_was(message: AnyMessage) -> None:
    """What one node encodes another decodes to the same."""
    assert decode(encode(message)) == message


@given(st.binary(max_size=64))
def test_noise_is_refused_by_one_error(data: bytes) -> None:
    """Whatever bytes come, they are a message or a BadMessage."""
    try:
        decode(data)
    except BadMessage:
        return


@given(messages, st.data())
def test_a_damaged_message_is_refused_by_one_error(
    message: AnyMessage, data: st.DataObject
) -> None:
    """So it is for bytes that are almost a message."""
    encoded = bytearray(encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(encoded))
    except BadMessage:
        return


def test_what_a_newer_node_adds_at_the_end_is_ignored() -> None:
    """An older node reads the fields it knows."""
    fields: list[Any] = msgspec.msgpack.decode(encode(Vote(4)))
    assert decode(msgspec.msgpack.encode([*fields, "new"])) == Vote(4)


def test_a_greeting_of_the_first_version_is_read() -> None:
    """A field that was added later has a default."""
    greet = Greet(incarnation="i", cluster_id="", founders={}, peers=[], term=0, log_end=0, noted=0)
    fields: list[Any] = msgspec.msgpack.decode(encode(greet))
    assert decode(msgspec.msgpack.encode(fields[:-1])) == greet


@pytest.mark.parametrize(
    "entries",
    [
        [(REGULAR, 7, 2)],
        [(REGULAR, 6, 2), (REGULAR, 6, 2)],
        [(REGULAR, 6, 1)],
        [(REGULAR, 6, 4)],
        [(REGULAR, 6, 3), (REGULAR, 7, 2)],
        [(b"", 6, 2)],
        [(b"\x02member", 6, 2)],
        [(b"\x03version", 6, 2)],
        [(REGULAR + bytes(COMMAND_BYTES_MAX), 6, 2)],
    ],
)
def test_entries_that_make_no_sense_break_the_connection(
    entries: list[tuple[bytes, int, int]],
) -> None:
    """Gaps, falling or future terms, the engine's own kinds, what no journal could take."""
    with pytest.raises(BadMessage, match="entry"):
        decode(encode(Append(3, 0, 5, 2, entries)))


@given(for_engine)
def test_the_engine_gets_back_what_it_said(
    message: Append | Ack | RequestVote | Vote | TakeOver,
) -> None:
    """Into the engine's dictionaries and out of them nothing is lost.

    An acknowledgement's term is stamped on the way out: the engine's own has none.
    """
    assert from_engine(to_engine(message), message.term) == message


def test_other_kinds_of_the_engine_are_a_mistake_of_ours() -> None:
    """Its snapshots, and commands it forwards, are never asked for."""
    for kind in ("apply_command", "apply_command_response", "add", "set_version"):
        with pytest.raises(AssertionError, match=kind):
            from_engine({"type": kind}, 1)
