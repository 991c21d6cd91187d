"""A lean HTTP/1.1 client on trio, for load: one keep-alive connection, one request at a time.

It reads what reachnode and etcd send, answers with a `Content-Length`, and nothing else.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import trio

RECEIVE_BYTES_MAX = 1 << 16
ANSWER_BYTES_MAX = 64 << 20
LENGTH = b"\r\ncontent-length:"


class Lost(Exception):
    """The connection broke or never came about; what was asked may have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The same as a URL."""
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status and body of one answer."""

    status: int
    body: bytes

    def document(self) -> Any:
        """Return the JSON value of the body.

        Raises:
            Lost: It is none: whoever answered isn't one of ours.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            raise Lost(f"no JSON in an answer {self.status}") from None


def request_bytes(
    method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """Return a request as it goes over the wire."""
    body = b"" if document is None else json.dumps(document).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if document is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection:
    """One connection, made when it is needed and again after it broke."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._socket: trio.socket.SocketType | None = None

    async def ask(self, request: bytes) -> Answer:
        """Return the answer to a request.

        Raises:
            Lost: There was none.
        """
        is_whole = False
        try:
            if self._socket is None:
                self._socket = await self._connect()
            sent = 0
            while sent < len(request):
                sent += await self._socket.send(request[sent:])
            answer = await self._receive(self._socket)
            is_whole = True
            return answer
        except (OSError, ValueError) as error:
            raise Lost(str(error)) from None
        finally:
            if not is_whole:
                self.close()

    def close(self) -> None:
        """Let go of the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _connect(self) -> trio.socket.SocketType:
        """Return a connected socket."""
        made = trio.socket.socket()
        try:
            made.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY, 1)
            await made.connect((self.place.host, self.place.port))
        except BaseException:
            made.close()
            raise
        return made

    async def _receive(self, connected: trio.socket.SocketType) -> Answer:
        """Return one whole answer.

        Raises:
            Lost: The connection ended before.
            ValueError: It isn't HTTP as we read it.
        """
        data = bytearray()
        head_end = -1
        while head_end < 0:
            data += await self._some(connected)
            head_end = data.find(b"\r\n\r\n")
        head = bytes(data[:head_end]).lower()
        length_at = head.index(LENGTH) + len(LENGTH)
        length = int(head[length_at:].split(b"\r\n", 1)[0])
        if length > ANSWER_BYTES_MAX:
            raise ValueError("an answer is too large")
        while len(data) < head_end + 4 + length:
            data += await self._some(connected)
        body = bytes(data[head_end + 4 : head_end + 4 + length])
        return Answer(status=int(head[9:12]), body=body)

    async def _some(self, connected: trio.socket.SocketType) -> bytes:
        """Return the next bytes."""
        data = await connected.recv(RECEIVE_BYTES_MAX)
        if not data:
            raise Lost("the connection was closed")
        return data
