import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.platter import CRUEL, GENTLE, Content, Cruelty, prefix

UNIT = 4
"""Bytes of a sector in these tests, so that small files have several."""

IN_ORDER = Cruelty(scattered_share=0.0, nothing_share=0.0, everything_share=0.0)
SCATTERED = Cruelty(scattered_share=1.0, sector_bytes=UNIT)

seeds = st.integers(0, 1 << 30)
calls = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 24), st.binary(min_size=1, max_size=12)),
    st.tuples(st.just("resize"), st.integers(0, 24), st.just(b"")),
)


def play(content: Content, history: list[tuple[str, int, bytes]]) -> list[bytes]:
    """Make the calls and return what the file held before them and after each."""
    states = [bytes(content.cache)]
    for call, number, data in history:
        if call == "put":
            content.put(number, data)
        else:
            content.resize(number)
        states.append(bytes(content.cache))
    return states


def expected(states: list[bytes], history: list[tuple[str, int, bytes]]) -> list[bytes]:
    """Return the same states, from the meaning of the calls alone."""
    made = [states[0]]
    for call, number, data in history:
        old = made[-1]
        if call == "put":
            new = old.ljust(number, b"\0")
            made.append(new[:number] + data + new[number + len(data) :])
        else:
            made.append(old[:number].ljust(number, b"\0"))
    return made


def old_and_new(start: bytes, history: list[tuple[str, int, bytes]]) -> tuple[Content, list[bytes]]:
    """Return a file with synced bytes and unsynced calls, and the states since the sync."""
    content = Content(start)
    return content, play(content, history)


@given(st.binary(max_size=20), st.lists(calls, max_size=8))
def test_a_reader_sees_every_change_and_the_platter_none(
    start: bytes, history: list[tuple[str, int, bytes]]
) -> None:
    """Writes, gaps, cuts and extensions mean what they mean on a real disk."""
    content, states = old_and_new(start, history)
    assert states == expected(states, history)
    assert content.durable() == start
    content.sync()
    assert content.durable() == states[-1]


@given(st.binary(max_size=20), st.lists(calls, max_size=8), seeds)
def test_in_order_loss_leaves_a_moment_of_the_past(
    start: bytes, history: list[tuple[str, int, bytes]], seed: int
) -> None:
    """Without tearing and scattering the file is as it was between two calls."""
    content, states = old_and_new(start, history)
    content.lose_power(random.Random(seed), replace(IN_ORDER, torn_share=0.0))
    assert bytes(content.cache) in states
    assert content.durable() == content.cache


@given(st.binary(max_size=20), st.lists(calls, min_size=1, max_size=8), seeds)
def test_a_torn_write_leaves_its_first_bytes(
    start: bytes, history: list[tuple[str, int, bytes]], seed: int
) -> None:
    """A torn file is one moment plus some first bytes of what came next."""
    content, states = old_and_new(start, history)
    content.lose_power(random.Random(seed), replace(IN_ORDER, torn_share=1.0))
    left = bytes(content.cache)
    torn = [
        after[:cut] + before[cut:]
        for before, after in pairwise(states)
        if len(after) >= len(before)
        for cut in range(len(after) + 1)
    ]
    assert left in states or left in torn


@given(st.binary(max_size=20), st.lists(calls, max_size=8), seeds)
def test_each_scattered_sector_has_an_age_of_its_own(
    start: bytes, history: list[tuple[str, int, bytes]], seed: int
) -> None:
    """Every sector is as at some moment since the sync, zero where the file did not reach."""
    content, states = old_and_new(start, history)
    content.lose_power(random.Random(seed), SCATTERED)
    left = bytes(content.cache)
    sizes = [len(one) for one in states]
    assert min(sizes) <= len(left) <= max(sizes)
    for offset in range(0, len(left), UNIT):
        piece = left[offset : offset + UNIT]
        ages = {one[offset : offset + UNIT].ljust(UNIT, b"\0") for one in states}
        assert piece in {age[: len(piece)] for age in ages}


@given(st.binary(max_size=40), st.lists(st.binary(max_size=9), max_size=9), seeds)
def test_what_was_synced_before_appends_is_intact(
    start: bytes, pieces: list[bytes], seed: int
) -> None:
    """Whatever a power cut does to the tail of a log, its synced bytes stay as they were."""
    content = Content(start)
    for piece in pieces:
        content.put(len(content.cache), piece)
    content.lose_power(random.Random(seed), Cruelty(sector_bytes=UNIT))
    assert content.cache.startswith(start)


def outcomes(cruelty: Cruelty) -> set[bytes]:
    """Return all that 500 power cuts leave of a synced `A` and three appended sectors."""
    left = set()
    for seed in range(500):
        content = Content(b"A" * UNIT)
        for byte in (b"B", b"C", b"D"):
            content.put(len(content.cache), byte * UNIT)
        content.lose_power(random.Random(seed), cruelty)
        left.add(bytes(content.cache))
    return left


def test_later_bytes_may_be_there_while_earlier_are_zero() -> None:
    """A power cut can leave a hole of zeros before the last append, and any length."""
    left = outcomes(SCATTERED)
    assert b"AAAA\0\0\0\0CCCCDDDD" in left
    assert b"AAAABBBB\0\0\0\0DDDD" in left
    assert {len(one) for one in left} == set(range(4, 17))


def test_in_order_outcomes_reach_both_ends() -> None:
    """Nothing, everything, a torn write and each moment between are all drawn."""
    left = outcomes(Cruelty(scattered_share=0.0))
    assert left == {(b"AAAABBBBCCCCDDDD")[:size] for size in range(4, 17)}


def test_the_shares_of_nothing_and_everything_are_kept() -> None:
    """A caller can ask that a file loses all or nothing."""
    draw = random.Random(1)
    nothing = replace(CRUEL, nothing_share=1.0, everything_share=0.0)
    everything = replace(CRUEL, nothing_share=0.0, everything_share=1.0)
    assert {prefix(9, draw, nothing) for _ in range(50)} == {0}
    assert {prefix(9, draw, everything) for _ in range(50)} == {9}
    assert {prefix(3, draw, IN_ORDER) for _ in range(50)} == {0, 1, 2, 3}


def test_holes_can_be_left_out() -> None:
    """Softened, a log has no hole, while sectors that stood before still mix."""
    softened = replace(SCATTERED, has_holes=False)
    assert outcomes(softened) == {b"AAAABBBBCCCCDDDD"[:size] for size in range(4, 17)}
    left = set()
    for seed in range(100):
        content = Content(b"AAAABBBB")
        content.put(0, b"CCCCDDDD")
        content.lose_power(random.Random(seed), softened)
        left.add(bytes(content.cache))
    assert left == {b"AAAABBBB", b"AAAADDDD", b"CCCCBBBB", b"CCCCDDDD"}


def test_a_rewritten_tail_may_be_old_new_or_zero() -> None:
    """After a cut and an append any of the three can stand where the old tail was."""
    left = set()
    for seed in range(300):
        content = Content(b"AAAABBBBCCCC")
        content.resize(4)
        content.put(4, b"DDDDEEEE")
        content.lose_power(random.Random(seed), SCATTERED)
        left.add(bytes(content.cache))
    tails = (b"BBBB", b"DDDD", bytes(4)), (b"CCCC", b"EEEE", bytes(4))
    assert {b"AAAA" + one + two for one in tails[0] for two in tails[1]} <= left
    assert all(one.startswith(b"AAAA") for one in left)


def test_gentle_loses_nothing() -> None:
    """With every cruelty off, a power cut keeps what was written."""
    assert outcomes(GENTLE) == {b"AAAABBBBCCCCDDDD"}


def test_shares_above_one_are_a_bug() -> None:
    """Chances that cannot all be true are refused at once."""
    with pytest.raises(AssertionError):
        Cruelty(nothing_share=0.6, everything_share=0.6)


def test_after_a_failed_sync_the_bytes_read_well_but_are_not_durable() -> None:
    """Repeating a failed sync makes nothing durable that the failed one should have."""
    content = Content(b"old")
    content.put(3, b"lost")
    content.fail_sync()
    content.sync()
    assert content.cache == b"oldlost"
    assert content.durable() == b"old"
    content.lose_power(random.Random(1), GENTLE)
    assert content.cache == b"old"


def test_writes_after_a_failed_sync_leave_a_hole_before_them() -> None:
    """What is written and synced later is durable; what the failed sync lost reads as zeros."""
    content = Content(b"old")
    content.put(3, b"lost")
    content.fail_sync()
    content.put(7, b"new")
    assert content.durable() == b"old"
    content.sync()
    assert content.cache == b"oldlostnew"
    assert content.durable() == b"old\0\0\0\0new"


def test_writing_the_same_bytes_again_heals_a_failed_sync() -> None:
    """The remedy works: written again and synced, the bytes are durable for good."""
    content = Content(b"old")
    content.put(3, b"lost")
    content.fail_sync()
    content.put(3, b"lost")
    content.sync()
    assert content.durable() == b"oldlost"
    assert content.platter is None


def test_a_cut_heals_a_failed_sync() -> None:
    """Cutting away what the failed sync lost makes the rest as durable as before."""
    content = Content(b"old")
    content.put(3, b"lost")
    content.fail_sync()
    content.resize(3)
    content.sync()
    assert content.durable() == b"old"
    assert content.platter is None


@given(st.binary(max_size=20), st.lists(calls, max_size=5), st.lists(calls, max_size=5), seeds)
def test_power_loss_after_a_failed_sync_loses_the_failed_part(
    start: bytes,
    lost: list[tuple[str, int, bytes]],
    later: list[tuple[str, int, bytes]],
    seed: int,
) -> None:
    """After a failed sync a gentle power cut keeps only what was written since, over the old."""
    content = Content(start)
    play(content, lost)
    content.fail_sync()
    states = play(content, later)
    image = start
    for (call, number, data), (before, after) in zip(later, pairwise(states), strict=True):
        if call == "put" or len(before) != len(after):
            image = image[: len(after)].ljust(len(after), b"\0")
            begin = min(number, len(before))
            end = number + len(data)
            image = image[:begin] + after[begin:end] + image[end:]
    content.lose_power(random.Random(seed), GENTLE)
    assert content.cache == image
    assert content.durable() == image


@given(
    st.binary(min_size=1, max_size=20), st.lists(calls, max_size=6), st.integers(0, 7), st.data()
)
def test_a_flipped_bit_is_flipped_in_every_copy(
    start: bytes, history: list[tuple[str, int, bytes]], bit: int, data: st.DataObject
) -> None:
    """Damage on the platter is seen before and after a power cut alike."""
    content, _ = old_and_new(start, history)
    before, durable = bytes(content.cache), bytes(content.durable())
    place = data.draw(st.integers(0, max(len(before), len(durable)) - 1))
    content.flip(place, bit)
    for old, new in ((before, content.cache), (durable, content.durable())):
        assert len(old) == len(new)
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            assert other == one ^ (1 << bit if at == place else 0)


def test_a_bit_flipped_after_a_failed_sync_is_flipped_on_the_platter() -> None:
    """The durable copy of a file with a failed sync is damaged too."""
    content = Content(b"\0")
    content.put(1, b"\0")
    content.fail_sync()
    content.flip(0, 3)
    assert content.durable() == b"\x08"
    assert content.cache == b"\x08\0"
    content.flip(1, 3)
    assert content.durable() == b"\x08"
