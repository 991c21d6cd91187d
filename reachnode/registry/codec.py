"""The bytes of the state machine: commands and outcomes on the wire and in the log.

A batch is one entry of the log: a format byte, then a msgpack array of encoded envelopes.
What can't be read is never guessed at. The bytes of a whole state are `snapshot.py`'s,
whose names are here too.
"""

from collections.abc import Sequence

import msgspec

from reachnode.errors import BadSnapshot, UnknownCommand
from reachnode.registry.commands import LEVEL_MAX, Envelope, RaiseLevel
from reachnode.registry.outcomes import Outcome
from reachnode.registry.snapshot import Digester, Loader, digest_of, dump

__all__ = [
    "BadSnapshot",
    "Digester",
    "Loader",
    "UnknownCommand",
    "decode_batch",
    "decode_envelope",
    "decode_outcome",
    "digest_of",
    "dump",
    "encode_batch",
    "encode_envelope",
    "encode_outcome",
]

BATCH_FORMAT = 1

_ENCODER = msgspec.msgpack.Encoder()
_ENVELOPE = msgspec.msgpack.Decoder(Envelope)
_OUTCOME = msgspec.msgpack.Decoder(Outcome)
_BATCH = msgspec.msgpack.Decoder(tuple[bytes, ...])


def encode_envelope(envelope: Envelope) -> bytes:
    """Return the bytes of one envelope.

    A level this program doesn't know must not be proposed by it: every node that applied it
    would have to stop.
    """
    command = envelope.command
    assert type(command) is not RaiseLevel or command.level <= LEVEL_MAX
    return _ENCODER.encode(envelope)


def decode_envelope(encoded: bytes | memoryview) -> Envelope:
    """Return the envelope that was encoded.

    Raises:
        UnknownCommand: The bytes aren't an envelope this program knows. Whoever is about to
            propose may use it to check what it was given.
    """
    try:
        return _ENVELOPE.decode(encoded)
    except (msgspec.MsgspecError, ValueError) as fault:
        raise UnknownCommand(f"a command can't be read: {fault}") from fault


def encode_outcome(outcome: Outcome) -> bytes:
    """Return the bytes of one outcome."""
    return _ENCODER.encode(outcome)


def decode_outcome(encoded: bytes | memoryview) -> Outcome:
    """Return the outcome that was encoded.

    Raises:
        ValueError: The bytes aren't an outcome.
    """
    try:
        return _OUTCOME.decode(encoded)
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise ValueError(f"an outcome can't be read: {fault}") from fault


def encode_batch(envelopes: Sequence[bytes]) -> bytes:
    """Return one entry of the log from encoded envelopes, in the order they are applied."""
    return bytes((BATCH_FORMAT,)) + _ENCODER.encode(envelopes)


def decode_batch(batch: bytes) -> tuple[Envelope, ...]:
    """Return the envelopes of one entry of the log.

    Raises:
        UnknownCommand: The entry, or a command in it, isn't one this program knows.
    """
    if batch[:1] != bytes((BATCH_FORMAT,)):
        raise UnknownCommand(f"a batch of format {batch[:1].hex() or 'nothing'}")
    try:
        encoded = _BATCH.decode(memoryview(batch)[1:])
    except (msgspec.MsgspecError, ValueError) as fault:
        raise UnknownCommand(f"a batch can't be read: {fault}") from fault
    return tuple(map(decode_envelope, encoded))
