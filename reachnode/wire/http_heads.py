"""What a head of HTTP/1.1 may be: our own checks, before any engine reads it.

Whatever two programs could frame differently is refused: a length said twice or beside a
transfer coding, bare line feeds, folded headers, a second host. So is what is too large. No
engine is asked about these, so that all give the same answers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reachnode.errors import HeadersTooLarge, InvalidRequest, PayloadTooLarge, UriTooLong

HEAD_BYTES_MAX = 32 * 1024
TARGET_BYTES_MAX = 8 * 1024
BODY_BYTES_MAX = 1024 * 1024
METHOD_BYTES_MAX = 32
FIRST_LINE_BYTES_MAX = TARGET_BYTES_MAX + METHOD_BYTES_MAX

HEAD_END = b"\r\n\r\n"
TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
VALUE = rb"[\t\x20-\x7e\x80-\xff]*"
UNSOUND = re.compile(rb"(?<!\r)\n|\r[^\n]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""A bare line feed, a bare carriage return, or another control character than tab."""
REQUEST_LINE = re.compile(rb"(%b) ([\x21-\x7e]+) HTTP/1\.([01])" % TOKEN)
HEADER_LINE = re.compile(rb"(%b):[ \t]*(%b?)[ \t]*" % (TOKEN, VALUE))
HEAD = re.compile(
    rb"%b ([\x21-\x7e]+) HTTP/1\.([01])\r\n(?:%b:%b\r\n)*\r\n" % (TOKEN, TOKEN, VALUE)
)
ONCE = re.compile(
    rb"\r\n(content-length|host|transfer-encoding):[ \t]*(%b?)[ \t]*(?=\r\n)" % VALUE,
    re.IGNORECASE,
)
"""The headers of which a second one makes a request ambiguous."""
LENGTH = re.compile(rb"[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """Where the body behind a head ends."""

    length: int | None
    """In bytes; None when it comes in chunks."""
    is_1_0: bool
    """Whether the client speaks HTTP/1.0, which knows no chunks and no `100 Continue`."""


class HeadReader:
    """Finds the end of a head in bytes that come in pieces, and refuses a hopeless one early."""

    def __init__(self) -> None:
        self._searched = 0
        """Up to here nothing was wrong and nothing ended."""

    def take(self, buffer: bytearray) -> bytes | None:
        """Return a whole head, its bytes removed from the buffer; None until it is there.

        Raises:
            InvalidRequest: It holds a bare or control character.
            UriTooLong: Its first line is over the limit, whole or not.
            HeadersTooLarge: It is over 32 KiB, whole or not.
        """
        while buffer.startswith(b"\r\n"):  # RFC 9112, 2.2: empty lines before are skipped.
            del buffer[:2]
            self._searched = 0
        end = buffer.find(HEAD_END, max(0, self._searched - len(HEAD_END)), HEAD_BYTES_MAX)
        size = len(buffer) if end < 0 else end + len(HEAD_END)
        if end < 0 or size > FIRST_LINE_BYTES_MAX:  # An ordinary whole one is checked as such.
            self._refuse_hopeless(buffer, size)
        if end < 0:
            self._searched = size
            return None
        head = bytes(buffer[:size])
        del buffer[:size]
        self._searched = 0
        return head

    def _refuse_hopeless(self, buffer: bytearray, size: int) -> None:
        """Raise for the first thing that is wrong, in the order in which bytes come."""
        has_long_line = size > FIRST_LINE_BYTES_MAX and (
            buffer.find(b"\r\n", 0, FIRST_LINE_BYTES_MAX) < 0
        )
        judged = min(size, FIRST_LINE_BYTES_MAX if has_long_line else HEAD_BYTES_MAX)
        unsound = UNSOUND.search(buffer, max(0, self._searched - 1), judged)
        if unsound:
            raise InvalidRequest(unsound_at(unsound))
        if has_long_line:
            raise UriTooLong(f"the target is over {TARGET_BYTES_MAX} bytes")
        if size > HEAD_BYTES_MAX:
            raise HeadersTooLarge(f"the head is over {HEAD_BYTES_MAX} bytes")


def check_head(head: bytes) -> Framing:
    """Return where the body ends, or raise where two programs could read a head differently.

    Raises:
        InvalidRequest: It is no head of HTTP/1.0 or 1.1, or ambiguous.
        UriTooLong: The target is over 8 KiB.
        PayloadTooLarge: The announced body is over 1 MiB.
    """
    plain = HEAD.fullmatch(head)
    if plain is None:
        raise InvalidRequest(next(faults(head)))
    if plain.end(1) - plain.start(1) > TARGET_BYTES_MAX:
        raise UriTooLong(f"the target is over {TARGET_BYTES_MAX} bytes")
    once: dict[bytes, bytes] = {}
    for found in ONCE.finditer(head):
        name = found[1].lower()
        if name in once:
            raise InvalidRequest(f"{name.decode()} stands twice")
        once[name] = found[2]
    return framing_of(once, is_1_0=plain[2] == b"0")


def unsound_at(found: re.Match[bytes]) -> str:
    """Return what is said of a character that no head may hold."""
    return f"byte {found.start()} of the head is a bare or control character"


def faults(head: bytes) -> Iterator[str]:
    """Yield what is wrong with a head, line by line."""
    yield from map(unsound_at, UNSOUND.finditer(head))
    first, *lines = head[: -len(HEAD_END)].split(b"\r\n")
    if not REQUEST_LINE.fullmatch(first):
        yield "the first line must be METHOD TARGET HTTP/1.1"
    for number, line in enumerate(lines, start=2):
        if line[:1] in (b" ", b"\t"):
            yield f"line {number} continues a header; write it on one line"
        elif not HEADER_LINE.fullmatch(line):
            yield f"line {number} is no header"


def framing_of(once: dict[bytes, bytes], *, is_1_0: bool) -> Framing:
    """Return where the body ends, by the headers that stand once.

    Raises:
        InvalidRequest: It isn't plain which host is meant, or where the body ends.
        PayloadTooLarge: The announced body is over 1 MiB.
    """
    length, coding = once.get(b"content-length"), once.get(b"transfer-encoding")
    if not is_1_0 and b"host" not in once:
        raise InvalidRequest("the Host header is missing")
    if coding is not None:
        if length is not None:
            raise InvalidRequest("Content-Length and Transfer-Encoding exclude each other")
        if is_1_0 or coding.lower() != b"chunked":
            raise InvalidRequest("Transfer-Encoding must be chunked, and HTTP/1.1")
        return Framing(length=None, is_1_0=is_1_0)
    if length is None:
        return Framing(length=0, is_1_0=is_1_0)
    if not LENGTH.fullmatch(length):
        raise InvalidRequest("Content-Length is no decimal number of bytes")
    if int(length) > BODY_BYTES_MAX:
        raise PayloadTooLarge(f"the body is over {BODY_BYTES_MAX} bytes")
    return Framing(length=int(length), is_1_0=is_1_0)
