"""The server side of HTTP/1.1 without a socket: bytes in, requests out, answers to bytes.

`HttpServer` owns one connection's bytes. It checks each head itself, strictly and before
any parser sees it: whatever two programs could frame differently is refused and the
connection closes. What is sound goes to a `Parser`, the small port behind which more than
one engine fits; `H11Parser` is the reference. Time limits belong to the caller.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import parse_qsl, unquote

import h11

from reachnode.errors import HeadersTooLarge, InvalidRequest, PayloadTooLarge, UriTooLong

HEAD_BYTES_MAX = 32 * 1024
TARGET_BYTES_MAX = 8 * 1024
BODY_BYTES_MAX = 1024 * 1024
METHOD_BYTES_MAX = 32
QUERY_FIELDS_MAX = 64

HEAD_END = b"\r\n\r\n"
UNSOUND = re.compile(rb"(?<!\r)\n|\r[^\n]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""A bare line feed, a bare carriage return, or another control character than tab."""
REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/1\.([01])")
HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
ONCE = (b"content-length", b"host", b"transfer-encoding")
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"

REASONS: Mapping[int, str] = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    508: "Loop Detected",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One whole request."""

    method: str
    target: str
    """As it was sent; `read_target` takes it apart."""
    headers: Mapping[str, str]
    """Values by lower-case name; what came several times is joined by commas."""
    body: bytes
    keeps_alive: bool
    """Whether the client will send another on the same connection."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    path: str
    """Still percent-encoded, beginning with a slash."""
    query: Mapping[str, str]
    """Decoded; a name stands once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a parser made of some bytes of a body."""

    data: bytes
    is_whole: bool
    rest: bytes
    """Bytes behind the end of the body: the next request's."""


class Parser(Protocol):
    """Reads one request whose head was found sound. Made anew for each."""

    def open(self, head: bytes) -> Request:
        """Return the request that a whole head announces, its body still empty.

        Raises:
            InvalidRequest: The parser is stricter than our own checks.
        """
        ...

    def take(self, data: bytes) -> Taken:
        """Return what the next bytes add to the body; no bytes asks whether it is whole.

        Raises:
            InvalidRequest: The body is framed wrongly.
        """
        ...


class H11Parser:
    """The reference engine, on h11."""

    def __init__(self) -> None:
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._is_chunked = False
        self._tail = b""

    def open(self, head: bytes) -> Request:
        """Return the request of a head."""
        self._connection.receive_data(head)
        event = self._next()
        if not isinstance(event, h11.Request):
            raise InvalidRequest("the head of the request is unreadable")
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self._is_chunked = "transfer-encoding" in headers
        tokens = {one.strip() for one in headers.get("connection", "").lower().split(",")}
        return Request(
            method=event.method.decode("ascii"),
            target=event.target.decode("ascii"),
            headers=headers,
            body=b"",
            keeps_alive=event.http_version == b"1.1" and "close" not in tokens,
        )

    def take(self, data: bytes) -> Taken:
        """Return what some bytes add to the body."""
        if data:
            self._connection.receive_data(data)
        pieces = []
        while True:
            event = self._next()
            if isinstance(event, h11.Data):
                pieces.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                rest = self._connection.trailing_data[0]
                self._check_end(event, data[: len(data) - len(rest)])
                return Taken(data=b"".join(pieces), is_whole=True, rest=rest)
            else:
                self._tail = (self._tail + data)[-len(HEAD_END) :]
                return Taken(data=b"".join(pieces), is_whole=False, rest=b"")

    def _next(self) -> object:
        """Return h11's next event."""
        try:
            return self._connection.next_event()
        except h11.RemoteProtocolError as error:
            raise InvalidRequest(f"the request is no HTTP: {error}") from None

    def _check_end(self, event: h11.EndOfMessage, last: bytes) -> None:
        """Refuse trailers, and a last chunk behind which a stricter program would read on."""
        if event.headers:
            raise InvalidRequest("trailers are not read here; send headers at the top")
        if self._is_chunked and not (self._tail + last).endswith(HEAD_END):
            raise InvalidRequest("the last chunk ends with a bare line feed")


class HttpServer:
    """One connection's requests, in order.

    ```
    head --whole and sound--> body --whole--> answering --answer()--> head
      any fault: the error is raised once, answer() may carry it, then closed
    ```

    Args:
        parser: Makes the engine of each request.
    """

    def __init__(self, parser: Callable[[], Parser] = H11Parser) -> None:
        self._make_parser = parser
        self._parser: Parser | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._request: Request | None = None
        self._body = bytearray()
        self._go_on = b""
        self._is_answering = False
        self.is_open = True
        """Whether the connection is good for a further request."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing of a further request came yet."""
        return not (self._buffer or self._request)

    @property
    def has_head(self) -> bool:
        """Whether the head of the next request is there and its body may not be."""
        return self._request is not None

    def receive(self, data: bytes) -> None:
        """Take bytes as they come from the network."""
        self._buffer += data

    def next_request(self) -> Request | None:
        """Return the next whole request, or None until more bytes came.

        Raises:
            InvalidRequest: The bytes are no HTTP, or are framed ambiguously.
            HeadersTooLarge: The head is over 32 KiB.
            UriTooLong: The target is over 8 KiB.
            PayloadTooLarge: The body is over 1 MiB.
        """
        assert self.is_open
        assert not self._is_answering
        try:
            return self._advance()
        except (InvalidRequest, HeadersTooLarge, UriTooLong, PayloadTooLarge):
            self.is_open = False
            raise

    def take_go_on(self) -> bytes:
        """Return what tells a waiting client to send its body, once; mostly nothing."""
        told, self._go_on = self._go_on, b""
        return told

    def answer(
        self, status: int, headers: Mapping[str, str], body: bytes, *, closes: bool = False
    ) -> bytes:
        """Return the bytes of an answer to the last request, or to a faulty one.

        Args:
            status: One of `REASONS`.
            headers: By name; framing and `Connection` are added here.
            body: Left out of the answer to a HEAD request, its length isn't.
            closes: Whether the connection ends with this answer in any case.
        """
        request, self._request = self._request, None
        is_whole, self._is_answering = self._is_answering, False
        self.is_open = (
            self.is_open and not closes and is_whole and request is not None and request.keeps_alive
        )
        lines = [f"HTTP/1.1 {status} {REASONS[status]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"Content-Length: {len(body)}")
        if not self.is_open:
            lines.append("Connection: close")
        assert not any("\r" in line or "\n" in line for line in lines)
        head = "\r\n".join(lines).encode("latin-1") + HEAD_END
        return head if request is not None and request.method == "HEAD" else head + body

    def _advance(self) -> Request | None:
        """Return the next request where its bytes are all there."""
        if self._request is None:
            head = self._take_head()
            if head is None:
                return None
            check_head(head)
            self._parser = self._make_parser()
            self._request = self._parser.open(head)
            self._body.clear()
            if self._request.headers.get("expect", "").lower() == "100-continue":
                self._go_on = GO_ON
        assert self._parser is not None
        taken = self._parser.take(bytes(self._buffer))
        self._buffer[:] = taken.rest
        self._body += taken.data
        if len(self._body) > BODY_BYTES_MAX:
            raise PayloadTooLarge(f"the body is over {BODY_BYTES_MAX} bytes")
        if not taken.is_whole:
            return None
        self._go_on = b""
        self._is_answering = True
        self._request = replace(self._request, body=bytes(self._body))
        return self._request

    def _take_head(self) -> bytes | None:
        """Return a whole head and forget its bytes, or None; refuse one that is hopeless."""
        while self._buffer.startswith(b"\r\n"):  # RFC 9112, 2.2: empty lines before are skipped.
            del self._buffer[:2]
            self._searched = 0
        end = self._buffer.find(HEAD_END, max(0, self._searched - len(HEAD_END)))
        size = len(self._buffer) if end < 0 else end + len(HEAD_END)
        unsound = UNSOUND.search(self._buffer, max(0, self._searched - 1), size)
        if unsound:
            raise InvalidRequest(
                f"byte {unsound.start()} of the head is a bare or control character"
            )
        line_end = self._buffer.find(b"\r\n", 0, TARGET_BYTES_MAX + METHOD_BYTES_MAX)
        if line_end < 0 and size > TARGET_BYTES_MAX + METHOD_BYTES_MAX:
            raise UriTooLong(f"the target is over {TARGET_BYTES_MAX} bytes")
        if size > HEAD_BYTES_MAX:
            raise HeadersTooLarge(f"the head is over {HEAD_BYTES_MAX} bytes")
        if end < 0:
            self._searched = size
            return None
        head = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._searched = 0
        return head


def check_head(head: bytes) -> None:
    """Raise where two programs could read a whole head differently.

    Raises:
        InvalidRequest: It is no head of HTTP/1.0 or 1.1, or ambiguous.
        UriTooLong: The target is over 8 KiB.
        PayloadTooLarge: The announced body is over 1 MiB.
    """
    first, *lines = head[: -len(HEAD_END)].split(b"\r\n")
    line = REQUEST_LINE.fullmatch(first)
    if line is None:
        raise InvalidRequest("the first line must be METHOD TARGET HTTP/1.1")
    if len(line[2]) > TARGET_BYTES_MAX:
        raise UriTooLong(f"the target is over {TARGET_BYTES_MAX} bytes")
    once: dict[bytes, bytes] = {}
    for number, text in enumerate(lines, start=2):
        if text[:1] in (b" ", b"\t"):
            raise InvalidRequest(f"line {number} continues a header; write it on one line")
        header = HEADER_LINE.fullmatch(text)
        if header is None:
            raise InvalidRequest(f"line {number} is no header")
        name = header[1].lower()
        if name in ONCE:
            if name in once:
                raise InvalidRequest(f"{name.decode()} stands twice")
            once[name] = header[2]
    check_framing(once, is_1_0=line[3] == b"0")


def check_framing(once: Mapping[bytes, bytes], *, is_1_0: bool) -> None:
    """Raise where it isn't plain which host is meant or where the body ends."""
    length, coding = once.get(b"content-length"), once.get(b"transfer-encoding")
    if not is_1_0 and b"host" not in once:
        raise InvalidRequest("the Host header is missing")
    if length is not None and coding is not None:
        raise InvalidRequest("Content-Length and Transfer-Encoding exclude each other")
    if coding is not None and (is_1_0 or coding.lower() != b"chunked"):
        raise InvalidRequest("Transfer-Encoding must be chunked, and HTTP/1.1")
    if length is not None:
        if not re.fullmatch(rb"[0-9]{1,18}", length):
            raise InvalidRequest("Content-Length is no decimal number of bytes")
        if int(length) > BODY_BYTES_MAX:
            raise PayloadTooLarge(f"the body is over {BODY_BYTES_MAX} bytes")


def read_target(target: str) -> Target:
    """Return path and query of a request's target, in origin or absolute form.

    Raises:
        InvalidRequest: It is neither, or its query is unreadable or names something twice.
    """
    if target.lower().startswith(("http://", "https://")):
        target = re.sub(r"^https?://[^/?#]*", "", target, flags=re.IGNORECASE)
        target = target if target.startswith("/") else f"/{target}"
    if not target.startswith("/") or "#" in target:
        raise InvalidRequest("the target must be a path")
    path, _, text = target.partition("?")
    query: dict[str, str] = {}
    try:
        fields = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX
        )
    except ValueError:
        raise InvalidRequest(
            f"the query must be UTF-8 and have at most {QUERY_FIELDS_MAX} fields"
        ) from None
    for name, value in fields:
        if name in query:
            raise InvalidRequest(f"{name} stands twice in the query")
        query[name] = value
    return Target(path, query)


def read_segment(text: str) -> str:
    """Return one decoded segment of a path.

    Raises:
        InvalidRequest: It isn't percent-encoded UTF-8.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest("the path must be percent-encoded UTF-8") from None
