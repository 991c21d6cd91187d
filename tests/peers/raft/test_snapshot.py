"""The whole state as a file."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.records import Damaged
from reachnode.peers.raft.snapshot import (
    FOOTER_KIND,
    FRAME_BYTES_MAX,
    HEADER_KIND,
    MAGIC,
    PIECE_KIND,
    SnapshotFooter,
    SnapshotHeader,
    SnapshotReader,
    frame,
    write_snapshot,
)
from reachnode.registry.snapshot import digest_of, dump
from reachnode.registry.state import State
from tests.strategies import fresh_state, states

HEADER = SnapshotHeader("c1", 40, 3)
STATE = fresh_state()
WHOLE = b"".join(write_snapshot(STATE, HEADER))
HEAD = MAGIC + frame(HEADER_KIND, msgspec.msgpack.encode(HEADER))


def read(*portions: bytes) -> tuple[SnapshotHeader, State, str]:
    """Return what the portions make together."""
    reader = SnapshotReader("snapshot")
    for portion in portions:
        reader.feed(portion)
    return reader.finish()


def footer(pieces_count: int, digest: str) -> bytes:
    """Return a last frame."""
    return frame(FOOTER_KIND, msgspec.msgpack.encode(SnapshotFooter(pieces_count, digest)))


def cut_anywhere(data: bytes, draw: random.Random) -> list[bytes]:
    """Return bytes in portions of any sizes, empty ones among them."""
    places = sorted(draw.randint(0, len(data)) for _ in range(draw.randint(0, 12)))
    ends = [*places, len(data)]
    return [data[start:end] for start, end in zip([0, *places], ends, strict=True)]


@given(states, st.integers(0, 2**32))
def test_any_portions_give_the_same_state(state: State, seed: int) -> None:
    """However the bytes are cut: the header, the state and its digest."""
    header = SnapshotHeader(state.cluster_id, 40, 3)
    whole = b"".join(write_snapshot(state, header))
    portions = cut_anywhere(whole, random.Random(seed))
    assert read(*portions) == (header, state, digest_of(dump(state)))


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 7), st.integers(0, 2**32))
def test_a_flipped_bit_is_refused_wherever_it_is(place: int, bit: int, seed: int) -> None:
    """At an offset no later than the damage."""
    damaged = bytearray(WHOLE)
    damaged[place] ^= 1 << bit
    with pytest.raises(Damaged) as caught:
        read(*cut_anywhere(bytes(damaged), random.Random(seed)))
    assert caught.value.offset <= place


@given(st.integers(0, len(WHOLE) - 1))
def test_a_snapshot_cut_short_is_refused(length: int) -> None:
    """It ends early, wherever that is."""
    with pytest.raises(Damaged, match="ends early"):
        read(WHOLE[:length])


@pytest.mark.parametrize("more", [b"x", frame(PIECE_KIND, b"x"), WHOLE])
def test_nothing_follows_the_end(more: bytes) -> None:
    """A snapshot is whole, and is all there is."""
    with pytest.raises(Damaged, match=r"goes on|ends early"):
        read(WHOLE + more)


def pieces() -> tuple[bytes, int, str]:
    """Return the frames between header and footer, their count, and the digest."""
    all_pieces = list(dump(STATE))
    return (
        b"".join(frame(PIECE_KIND, one) for one in all_pieces),
        len(all_pieces),
        digest_of(all_pieces),
    )


def test_a_snapshot_that_is_another_one_than_it_says_is_refused() -> None:
    """The count of its pieces and the digest of its state are checked."""
    middle, count, digest = pieces()
    assert read(HEAD + middle + footer(count, digest))[1] == STATE
    with pytest.raises(Damaged, match=f"{count + 1} pieces were written"):
        read(HEAD + middle + footer(count + 1, digest))
    with pytest.raises(Damaged, match="digest differs"):
        read(HEAD + middle + footer(count, "0" * 32))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"NOT A SNAPSHOT", "does not begin like a snapshot"),
        (MAGIC + frame(PIECE_KIND, b""), "the header is not first"),
        (HEAD + frame(HEADER_KIND, b""), "the header is not first"),
        (HEAD + frame(9, b""), "unknown kind 9"),
        (MAGIC + frame(HEADER_KIND, b"\xc1"), "malformed|invalid|Invalid|truncated"),
        (HEAD + frame(FOOTER_KIND, b"\xc1"), "malformed|invalid|Invalid|truncated"),
        (HEAD + frame(PIECE_KIND, b"\0\0\0\1\xc1"), "can't be read"),
        (HEAD + (b"\0" * 4 + (FRAME_BYTES_MAX + 1).to_bytes(4, "little") + b"\2"), "too long"),
    ],
)
def test_frames_that_make_no_sense_are_refused(data: bytes, why: str) -> None:
    """With right checksums, too; a length over the limit is refused before it is read."""
    with pytest.raises(Damaged, match=why):
        read(data)


def test_a_state_that_is_not_whole_is_refused() -> None:
    """Even if the frames around it are."""
    part = next(iter(dump(STATE)))[:-1]
    with pytest.raises(Damaged, match="ends early, at byte"):
        read(HEAD + frame(PIECE_KIND, part) + footer(1, digest_of([part])))


def test_errors_call_it_by_its_name() -> None:
    """Whoever reads the log learns which snapshot it was."""
    with pytest.raises(Damaged, match="snapshot 7 from n2 is damaged at byte 0"):
        SnapshotReader("snapshot 7 from n2").finish()
