"""A client for tests: one request through the whole front, its answer taken apart."""

import json
from dataclasses import dataclass
from typing import Any

from reachnode.serve.dispatch import answer, headers_of
from reachnode.serve.front import Front
from reachnode.wire.http import HttpServer
from tests.serve.described import hold_to_description


@dataclass(frozen=True)
class Got:
    """An answer as a client reads it."""

    status: int
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a document."""
        return json.loads(self.body)


def read_answer(data: bytes) -> Got:
    """Return the answer in some bytes."""
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in lines)
    return Got(int(first.split()[1]), {name.lower(): value for name, value in pairs}, body)


def request_bytes(method: str, target: str, body: object = None, **headers: str) -> bytes:
    """Return the bytes of a request; underscores in header names are dashes."""
    content = (
        b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    lines = [f"{method} {target} HTTP/1.1", "Host: n1"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


async def ask(front: Front, method: str, target: str, body: object = None, **headers: str) -> Got:
    """Return what a front answers to one request; it is what the description promises."""
    http = HttpServer()
    http.receive(request_bytes(method, target, body, **headers))
    request = http.next_request()
    assert request is not None
    given = await answer(front, request)
    got = read_answer(http.answer(given.status, headers_of(front, given), given.body))
    hold_to_description(method, target, got)
    return got
