"""The server side of HTTP/1.1 without a socket: bytes in, requests out, answers to bytes.

`HttpServer` owns one connection's bytes. Each head is checked by ourselves, strictly and
before any engine sees it (`http_heads`); what is sound goes to an engine (`http_engines`);
the body is read by its framing (`http_bodies`). Time limits belong to the caller.
"""

from collections.abc import Mapping
from dataclasses import replace

from reachnode.errors import HeadersTooLarge, InvalidRequest, PayloadTooLarge, UriTooLong
from reachnode.wire.http_bodies import Body, ChunkedBody, SizedBody
from reachnode.wire.http_engines import Engine, Request, chosen
from reachnode.wire.http_heads import HEAD_END, HeadReader, check_head

ENGINE_NAME, READ_HEAD = chosen()
"""The engine in use: chosen here, once."""
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"

NO_CONTENT = 204
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


class HttpServer:
    """One connection's requests, in order.

    ```
    head --whole and sound--> body --whole--> answering --answer()--> head
      any fault: the error is raised once, answer() may carry it, then closed
    ```

    Args:
        engine: Reads heads that were found sound.
    """

    def __init__(self, engine: Engine = READ_HEAD) -> None:
        self._read_head = engine
        self._buffer = bytearray()
        self._heads = HeadReader()
        self._request: Request | None = None
        self._body: Body = SizedBody(0)
        self._go_on = b""
        self._is_answering = False
        self._is_1_1 = True
        """Whether the last request takes chunks."""
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
            body: Left out of the answer to a HEAD request, its length isn't. A 204 has none.
            closes: Whether the connection ends with this answer in any case.
        """
        request, self._request = self._request, None
        is_whole, self._is_answering = self._is_answering, False
        self.is_open = (
            self.is_open and not closes and is_whole and request is not None and request.keeps_alive
        )
        assert status != NO_CONTENT or not body
        # RFC 9110, 8.6: a 204 says no length.
        framing = {} if status == NO_CONTENT else {"Content-Length": str(len(body))}
        head = head_bytes(status, {**headers, **framing}, closes=not self.is_open)
        return head if request is not None and request.method == "HEAD" else head + body

    def begin_stream(self, status: int, headers: Mapping[str, str]) -> bytes:
        """Return the head of an answer that comes in pieces; the connection ends with it.

        It is chunked, so that a client tells its end from a lost connection. To HTTP/1.0 it
        goes as it is.
        """
        assert self._request is not None
        assert self._is_answering
        self._request, self._is_answering, self.is_open = None, False, False
        framing = {"Transfer-Encoding": "chunked"} if self._is_1_1 else {}
        return head_bytes(status, {**headers, **framing}, closes=True)

    def piece(self, data: bytes) -> bytes:
        """Return the bytes of one piece of such an answer, which isn't empty."""
        assert data
        return b"%x\r\n%b\r\n" % (len(data), data) if self._is_1_1 else data

    def end_stream(self) -> bytes:
        """Return what says that such an answer is whole."""
        return b"0\r\n\r\n" if self._is_1_1 else b""

    def _advance(self) -> Request | None:
        """Return the next request where its bytes are all there."""
        if self._request is None:
            head = self._heads.take(self._buffer)
            if head is None:
                return None
            self._begin(head)
        assert self._request is not None
        if not self._body.take(self._buffer):
            return None
        self._go_on = b""
        self._is_answering = True
        if self._body.content:
            self._request = replace(self._request, body=bytes(self._body.content))
        return self._request

    def _begin(self, head: bytes) -> None:
        """Begin the request that a whole head announces."""
        framing = check_head(head)
        self._is_1_1 = not framing.is_1_0
        self._request = request = self._read_head(head)
        self._body = ChunkedBody() if framing.length is None else SizedBody(framing.length)
        if not framing.is_1_0 and request.headers.get("expect", "").lower() == "100-continue":
            self._go_on = GO_ON


def head_bytes(status: int, headers: Mapping[str, str], *, closes: bool) -> bytes:
    """Return the head of an answer."""
    lines = [f"HTTP/1.1 {status} {REASONS[status]}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if closes:
        lines.append("Connection: close")
    assert not any("\r" in line or "\n" in line for line in lines)
    return "\r\n".join(lines).encode("latin-1") + HEAD_END
