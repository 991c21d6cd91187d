"""The body of a request, by its length or in chunks, from bytes that come in pieces.

Chunks are read here and not by the engines, because the end of a body is where one request
ends and the next begins. What is taken is what RFC 9112 writes and no more: engines are kind
to white space behind a size, to sizes of any length, to trailers, each in its own way. Tests
hold that whatever passes here is read alike by h11 and by llhttp.
"""

import re
from typing import Protocol

from reachnode.errors import InvalidRequest, PayloadTooLarge
from reachnode.wire.http_heads import BODY_BYTES_MAX, TOKEN

CHUNK_LINE_BYTES_MAX = 256
CHUNKS_MAX = 10_000
CHUNK_LINE = re.compile(
    rb'([0-9A-Fa-f]{1,8})(?:;%b(?:=(?:%b|"[\t\x20\x21\x23-\x5b\x5d-\x7e]*"))?)*\r\n'
    % (TOKEN, TOKEN)
)
"""A chunk's size in hexadecimal digits, and extensions that are passed over."""
LINE_END = b"\r\n"


class Body(Protocol):
    """A body on its way in."""

    content: bytearray
    """What came so far."""

    def take(self, buffer: bytearray) -> bool:
        """Move what belongs to the body out of the buffer; return whether it is whole.

        Raises:
            InvalidRequest: It is framed wrongly.
            PayloadTooLarge: It is over 1 MiB.
        """
        ...


class SizedBody:
    """A body of a length that was announced."""

    def __init__(self, length: int) -> None:
        assert 0 <= length <= BODY_BYTES_MAX
        self.content = bytearray()
        self._length = length

    def take(self, buffer: bytearray) -> bool:
        """Take as many bytes as are missing."""
        missing = self._length - len(self.content)
        if missing and buffer:
            self.content += buffer[:missing]
            del buffer[:missing]
        return len(self.content) == self._length


class ChunkedBody:
    """A body in chunks.

    ```
    size ──> data ──> line end ──> size
      └── 0 ──> line end ──> whole
    ```
    """

    def __init__(self) -> None:
        self.content = bytearray()
        self._chunks_count = 0
        self._missing: int | None = None
        """Bytes that the chunk still lacks; None before its size."""
        self._is_last = False

    def take(self, buffer: bytearray) -> bool:
        """Take every chunk, and part of one, that is there."""
        at = 0
        while not self._is_last or self._missing is not None:
            step = self._step(buffer, at)
            if step is None:
                break
            at = step
        del buffer[:at]
        return self._is_last and self._missing is None

    def _step(self, buffer: bytearray, at: int) -> int | None:
        """Return where to go on after one step, None when bytes are missing for it."""
        if self._missing is None:
            return self._read_size(buffer, at)
        if self._missing:
            piece = buffer[at : at + self._missing]
            self.content += piece
            self._missing -= len(piece)
            return at + len(piece) if piece else None
        found = buffer[at : at + len(LINE_END)]
        if not LINE_END.startswith(found):
            raise InvalidRequest(
                "trailers are not read here; send headers at the top"
                if self._is_last
                else "a chunk is longer or shorter than it says"
            )
        if len(found) < len(LINE_END):
            return None
        self._missing = None
        return at + len(LINE_END)

    def _read_size(self, buffer: bytearray, at: int) -> int | None:
        """Read the line before a chunk."""
        end = buffer.find(b"\n", at, at + CHUNK_LINE_BYTES_MAX)
        if end < 0:
            if len(buffer) - at >= CHUNK_LINE_BYTES_MAX:
                raise InvalidRequest(f"a chunk's size is over {CHUNK_LINE_BYTES_MAX} bytes")
            return None
        line = CHUNK_LINE.fullmatch(buffer, at, end + 1)
        if line is None:
            raise InvalidRequest("a chunk's size is no hexadecimal number, alone on its line")
        self._chunks_count += 1
        if self._chunks_count > CHUNKS_MAX:
            raise InvalidRequest(f"the body comes in over {CHUNKS_MAX} chunks; send larger ones")
        self._missing = int(line[1], 16)
        self._is_last = self._missing == 0
        if len(self.content) + self._missing > BODY_BYTES_MAX:
            raise PayloadTooLarge(f"the body is over {BODY_BYTES_MAX} bytes")
        return end + 1
