"""Cutting messages into frames and putting them together again."""

import random
import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.frames import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    PING,
    FrameDecoder,
    LinkBroken,
    cut,
)

MESSAGE_BYTES_MAX = 3 * PAYLOAD_BYTES_MAX

sizes = st.one_of(
    st.integers(0, 20),
    st.integers(-2, 2).map(lambda more: PAYLOAD_BYTES_MAX + more),
    st.integers(0, MESSAGE_BYTES_MAX),
    st.just(MESSAGE_BYTES_MAX),
)
messages = st.builds(lambda size, byte: bytes([byte]) * size, sizes, st.integers(0, 255))


def frame(kind: int, flags: int, payload: bytes, length: int | None = None) -> bytes:
    """Return a frame, right or wrong."""
    return struct.pack(">BBH", kind, flags, len(payload) if length is None else length) + payload


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """Return `data` in pieces, cut at these places."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def decode(pieces: list[bytes]) -> list[bytes]:
    """Return the messages in the pieces."""
    decoder = FrameDecoder(MESSAGE_BYTES_MAX)
    return [message for piece in pieces for message in decoder.feed(piece)]


@given(st.lists(messages, max_size=5), st.lists(st.integers(0), max_size=12))
def test_messages_survive_any_splitting(sent: list[bytes], cuts: list[int]) -> None:
    """However the bytes arrive, the messages are those that were sent, in order."""
    wire = b"".join(one for message in sent for one in [*cut(message), PING])
    assert decode(split(wire, cuts)) == sent


@given(messages)
def test_frames_are_small(message: bytes) -> None:
    """No frame is over 16 KiB with its header, and no message takes more than it needs."""
    frames = list(cut(message))
    assert all(len(one) <= FRAME_BYTES_MAX for one in frames)
    assert len(frames) == max(1, -(-len(message) // PAYLOAD_BYTES_MAX))
    assert sum(map(len, frames)) == len(message) + HEADER_BYTES * len(frames)


def test_bytes_one_by_one() -> None:
    """The smallest pieces give the same messages."""
    wire = PING + b"".join(cut(b"first")) + b"".join(cut(b"")) + PING + b"".join(cut(b"last"))
    assert decode([bytes([one]) for one in wire]) == [b"first", b"", b"last"]


def test_a_ping_may_stand_inside_a_message() -> None:
    """A ping between the frames of a message leaves it whole."""
    message = b"x" * (PAYLOAD_BYTES_MAX + 1)
    assert decode([PING.join(cut(message))]) == [message]


def test_messages_come_out_as_they_are_taken() -> None:
    """What was complete before a violation is delivered before it is raised."""
    decoder = FrameDecoder(MESSAGE_BYTES_MAX)
    coming = decoder.feed(b"".join(cut(b"good")) + b"\xff" * 4)
    assert next(coming) == b"good"
    with pytest.raises(LinkBroken):
        next(coming)
    with pytest.raises(LinkBroken, match="before were broken"):
        next(decoder.feed(b"".join(cut(b"more"))))


@pytest.mark.parametrize(
    "wrong",
    [
        frame(0, 1, b""),
        frame(3, 1, b""),
        frame(1, 2, b""),
        frame(1, 2, b"x" * PAYLOAD_BYTES_MAX),
        frame(1, 3, b""),
        frame(1, 0, b""),
        frame(1, 0, b"x" * (PAYLOAD_BYTES_MAX - 1)),
        frame(1, 1, b"x" * (PAYLOAD_BYTES_MAX + 1)),
        frame(1, 0, b"x" * (PAYLOAD_BYTES_MAX + 1)),
        frame(2, 1, b""),
        frame(2, 0, b"x"),
        frame(1, 1, b"", length=65535),
    ],
)
def test_every_other_frame_is_a_violation(wrong: bytes) -> None:
    """Each message has one spelling; anything else breaks the link, by its header alone."""
    with pytest.raises(LinkBroken):
        decode([wrong[:HEADER_BYTES]])


def test_a_message_over_the_limit_is_refused_by_its_header() -> None:
    """The payload that would pass the limit is never kept."""
    full = frame(1, 0, b"x" * PAYLOAD_BYTES_MAX)
    decoder = FrameDecoder(MESSAGE_BYTES_MAX)
    assert list(decoder.feed(full * 3)) == []
    with pytest.raises(LinkBroken, match="over"):
        list(decoder.feed(frame(1, 1, b"", length=1)))
    assert decode([full * 3 + frame(1, 1, b"")]) == [b"x" * MESSAGE_BYTES_MAX]


def held_bytes(decoder: FrameDecoder) -> int:
    """Return how many bytes a decoder keeps."""
    return len(decoder._held) + sum(map(len, decoder._parts))


@given(st.lists(st.binary(max_size=50), max_size=30))
def test_random_bytes_give_an_error_or_a_message(pieces: list[bytes]) -> None:
    """Whatever comes, the decoder ends in time and holds no more than one frame and message."""
    decoder = FrameDecoder(100)
    for piece in pieces:
        try:
            assert all(len(message) <= 100 for message in decoder.feed(piece))
        except LinkBroken:
            return
        assert held_bytes(decoder) <= 100 + FRAME_BYTES_MAX


@given(
    st.lists(messages, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3),
    st.lists(st.integers(0), max_size=5),
)
def test_mutated_frames_give_an_error_or_messages(
    sent: list[bytes], changes: list[tuple[int, int]], cuts: list[int]
) -> None:
    """Changed bytes never make the decoder hang, grow, or raise something else."""
    wire = bytearray(b"".join(one for message in sent for one in cut(message)))
    for place, byte in changes:
        wire[place % len(wire)] = byte
    decoder = FrameDecoder(MESSAGE_BYTES_MAX)
    for piece in split(bytes(wire), cuts):
        try:
            assert all(len(message) <= MESSAGE_BYTES_MAX for message in decoder.feed(piece))
        except LinkBroken:
            return
        assert held_bytes(decoder) <= MESSAGE_BYTES_MAX + FRAME_BYTES_MAX


def test_a_million_random_bytes_end_soon() -> None:
    """Noise is refused at its first wrong header."""
    noise = random.Random(7).randbytes(1_000_000)
    with pytest.raises(LinkBroken):
        decode([noise[at : at + 65536] for at in range(0, len(noise), 65536)])
