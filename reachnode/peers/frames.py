"""Messages cut into frames, and put together again. No I/O.

    kind 1 | flags 1 | length 2 | payload, at most 16,380

A frame, its header included, is at most 16 KiB: one TLS record. A message is one or more
frames of kind MESSAGE in a row, all full but the last, which alone is flagged LAST; so each
message has one spelling. A PING stands anywhere between frames and is empty.

The connection beneath is authenticated and keeps the order. A violation is therefore a fault
of the other side's code, or not our protocol at all: the connection is of no use any more.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum

FRAME_BYTES_MAX = 16384
_HEADER = struct.Struct(">BBH")
HEADER_BYTES = _HEADER.size
PAYLOAD_BYTES_MAX = FRAME_BYTES_MAX - HEADER_BYTES
LAST = 1


class Kind(IntEnum):
    """What a frame is."""

    MESSAGE = 1
    PING = 2


class LinkBroken(Exception):
    """The other side broke the protocol: close the connection and start afresh.

    Whoever receives a link's messages may raise it too; then that connection is closed.
    """


PING = _HEADER.pack(Kind.PING, 0, 0)


def cut(message: bytes) -> Iterator[bytes]:
    """Return the frames of a message, in order; an empty message has one."""
    if len(message) <= PAYLOAD_BYTES_MAX:
        yield _HEADER.pack(Kind.MESSAGE, LAST, len(message)) + message
        return
    view = memoryview(message)
    last_at = (len(message) - 1) // PAYLOAD_BYTES_MAX * PAYLOAD_BYTES_MAX
    full = _HEADER.pack(Kind.MESSAGE, 0, PAYLOAD_BYTES_MAX)
    for at in range(0, last_at, PAYLOAD_BYTES_MAX):
        yield full + view[at : at + PAYLOAD_BYTES_MAX]
    yield _HEADER.pack(Kind.MESSAGE, LAST, len(message) - last_at) + view[last_at:]


class FrameDecoder:
    """Puts messages together from bytes that come in pieces of any size.

    It holds at most one unfinished message and one unfinished frame.

    Args:
        message_bytes_max: The longest message taken.
    """

    __slots__ = ("_held", "_is_broken", "_message_bytes_max", "_parts", "_parts_bytes")

    def __init__(self, message_bytes_max: int) -> None:
        assert message_bytes_max >= 0
        self._message_bytes_max = message_bytes_max
        self._held = b""
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._is_broken = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Return the messages that `data` completes, one at a time.

        Take them all before feeding more. The messages before a violation come out first.

        Raises:
            LinkBroken: The bytes are no frames, or a message is too long. The decoder then
                takes nothing more.
        """
        if self._is_broken:
            raise LinkBroken("the frames before were broken")
        held = self._held + data if self._held else data
        self._held = b""
        at = 0
        while len(held) - at >= HEADER_BYTES:
            end = at + HEADER_BYTES + self._check_header(held, at)
            if end > len(held):
                break
            payload = held[at + HEADER_BYTES : end]
            kind, is_last = held[at], held[at + 1] == LAST
            at = end
            if kind == Kind.PING:
                continue
            if is_last:
                yield self._finish(payload)
            else:
                self._parts.append(payload)
                self._parts_bytes += len(payload)
        self._held = held[at:]

    def _check_header(self, held: bytes, at: int) -> int:
        """Return the length of the payload that the header at `at` announces."""
        kind, flags, length = _HEADER.unpack_from(held, at)
        if kind == Kind.MESSAGE:
            is_last = flags == LAST
            fits = length <= PAYLOAD_BYTES_MAX if is_last else length == PAYLOAD_BYTES_MAX
            if flags > LAST or not fits:
                raise self._break(f"a message frame has flags {flags} and {length} bytes")
            # Refused by its header, before a byte of the payload is kept.
            if self._parts_bytes + length > self._message_bytes_max:
                raise self._break(f"a message is over {self._message_bytes_max} bytes")
        elif kind != Kind.PING or flags or length:
            raise self._break(f"a frame has kind {kind}, flags {flags} and {length} bytes")
        return int(length)

    def _finish(self, payload: bytes) -> bytes:
        if not self._parts:
            return payload
        self._parts.append(payload)
        message = b"".join(self._parts)
        self._parts = []
        self._parts_bytes = 0
        return message

    def _break(self, why: str) -> LinkBroken:
        self._is_broken = True
        self._parts = []
        return LinkBroken(why)
