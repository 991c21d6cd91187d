"""The bytes of commands and outcomes."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reachnode.errors import UnknownCommand
from reachnode.registry.codec import (
    decode_batch,
    decode_envelope,
    decode_outcome,
    encode_batch,
    encode_envelope,
    encode_outcome,
)
from reachnode.registry.commands import Advance, Envelope, RaiseLevel
from reachnode.registry.outcomes import Applied, Outcome, Refused
from tests.strategies import envelopes, logs, words

STEP = Envelope(request_id="r1", since_index=7, command=Advance(by_ms=100))
values = st.none() | st.dictionaries(words, words | st.integers(-(2**63), 2**64 - 1) | st.none())
outcomes = st.builds(Applied, index=st.integers(0, 2**63), value=values) | st.builds(
    Refused, code=words, why=words, details=values
)


@given(envelopes)
def test_an_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    """Nothing is lost on the way to the log, and any buffer may hold it."""
    encoded = encode_envelope(envelope)
    assert decode_envelope(encoded) == envelope
    assert decode_envelope(memoryview(encoded)) == envelope


def test_the_bytes_of_a_command_stay() -> None:
    """A log that was written is read by every later version."""
    encoded = bytes.fromhex(
        "83aa726571756573745f6964a27231ab73696e63655f696e64657807a7636f6d6d616e6482"
        "a474797065a9616476616e63652e31a562795f6d7364"
    )
    assert encode_envelope(STEP) == encoded
    assert decode_envelope(encoded) == STEP


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("type", "advance.2", "advance.2"),
        ("by_ms", "long", "Expected `int`"),
        ("by_minutes", 5, "unknown field `by_minutes`"),
    ],
)
def test_an_unknown_command_is_not_guessed(key: str, value: object, says: str) -> None:
    """A newer version, another type, a new field: each stops the node with a reason."""
    command = {"type": "advance.1", "by_ms": 5} | {key: value}
    encoded = msgspec.msgpack.encode({"request_id": "r", "since_index": 0, "command": command})
    with pytest.raises(UnknownCommand, match=f"a command can't be read: .*{says}"):
        decode_envelope(encoded)


@given(st.binary(max_size=64))
@example(b"")
@example(b"\x91" * 100_000)
@example(b"\x83\xaarequest_id\xa1\xff")
def test_bytes_that_are_no_command_are_unknown(noise: bytes) -> None:
    """Whatever comes, it is an envelope or it is unknown; nothing else is raised."""
    for decode in (decode_envelope, decode_batch):
        try:
            decode(noise)
        except UnknownCommand as fault:
            assert str(fault)  # noqa: PT017 - either way is right


@given(outcomes)
def test_an_outcome_is_read_as_it_was_written(outcome: Outcome) -> None:
    """What became of a command reaches whoever asked, unchanged."""
    assert decode_outcome(encode_outcome(outcome)) == outcome


@given(st.binary(max_size=64))
@example(b"\x82\xa4type\xa7applied\xa5value" + b"\x81\xa1k" + b"\x91" * 100_000)
def test_bytes_that_are_no_outcome_are_refused(noise: bytes) -> None:
    """A peer's answer that can't be read is an error of one kind."""
    try:
        decode_outcome(noise)
    except ValueError as fault:
        assert str(fault).startswith("an outcome can't be read")  # noqa: PT017 - either is right


@given(logs)
def test_a_batch_is_read_as_it_was_written(log: list[Envelope]) -> None:
    """Every envelope, in its order, as one entry of the log."""
    batch = encode_batch([encode_envelope(envelope) for envelope in log])
    assert batch[0] == 1
    assert decode_batch(batch) == tuple(log)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (b"", "a batch of format nothing"),
        (b"\x02\x90", "a batch of format 02"),
        (b"\x01", "a batch can't be read"),
        (b"\x01\xc0", "a batch can't be read"),
        (b"\x01\x91\xa1x", "a batch can't be read"),
        (b"\x01\x91\xc4\x01\xc0", "a command can't be read"),
        (b"\x01\x90\x90", "a batch can't be read"),
    ],
)
def test_a_batch_that_can_t_be_read_says_why(batch: bytes, says: str) -> None:
    """Another format, a cut tail, something behind it: the node stops with a reason."""
    with pytest.raises(UnknownCommand, match=says):
        decode_batch(batch)


def test_what_we_don_t_know_we_don_t_propose() -> None:
    """A level beyond this program would stop every node that applied it."""
    rise = Envelope(request_id="r", since_index=0, command=RaiseLevel(level=2))
    with pytest.raises(AssertionError):
        encode_envelope(rise)
