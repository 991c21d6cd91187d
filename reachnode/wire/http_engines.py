"""From a head that was found sound to a request: the engines, and which one is used.

An engine is a function. `read_with_h11` is the reference and always there; the one on
httptools (`reachnode.wire.http_fast`) is used where that library is installed. Both give the
same requests and the same refusals; what httptools refuses, the reference decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import h11

from reachnode.errors import InvalidRequest
from reachnode.wire.http_heads import HEAD_BYTES_MAX


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


Engine = Callable[[bytes], Request]
"""Returns the request that a sound head announces, its body still empty.

It raises `InvalidRequest` where it is stricter than our own checks.
"""


def read_with_h11(head: bytes) -> Request:
    """Return the request of a head, read by h11.

    Raises:
        InvalidRequest: h11 can't read it.
    """
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
    connection.receive_data(head)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError as error:
        raise InvalidRequest(f"the request is no HTTP: {error}") from None
    if not isinstance(event, h11.Request):
        raise InvalidRequest("the head of the request is unreadable")
    headers: dict[str, str] = {}
    for name, value in event.headers:
        add_header(headers, name, value)
    return made_request(
        method=event.method, target=event.target, version=event.http_version, headers=headers
    )


def add_header(headers: dict[str, str], raw_name: bytes, raw_value: bytes) -> None:
    """Put a header beside the others, in place; its name is in lower case."""
    name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
    headers[name] = f"{headers[name]}, {value}" if name in headers else value


def made_request(
    *, method: bytes, target: bytes, version: bytes, headers: Mapping[str, str]
) -> Request:
    """Return the request that an engine has read."""
    said = headers.get("connection")
    tokens = {one.strip() for one in said.lower().split(",")} if said else ()
    return Request(
        method=method.decode("ascii"),
        target=target.decode("ascii"),
        headers=headers,
        body=b"",
        keeps_alive=version == b"1.1" and "close" not in tokens,
    )


def chosen() -> tuple[str, Engine]:
    """Return the name and the function of the fastest engine that is installed."""
    try:
        from reachnode.wire.http_fast import read_with_httptools
    except ImportError:
        return "h11", read_with_h11
    return "httptools", read_with_httptools
