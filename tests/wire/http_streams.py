"""Streams of HTTP/1.1 as clients, careless ones and attackers send them, and what comes of them."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from reachnode.errors import CallerError, HttpError
from reachnode.wire.http import HttpServer
from reachnode.wire.http_engines import Engine, Request, chosen, read_with_h11

ENGINES: tuple[Engine, ...] = tuple(dict.fromkeys([read_with_h11, chosen()[1]]))
"""Every engine that is installed."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a server made of a stream."""

    requests: tuple[Request, ...]
    refusal: tuple[int, str] | None
    """Status and code of the fault that ended it."""
    is_open: bool


def outcome_of(pieces: Sequence[bytes], engine: Engine) -> Outcome:
    """Return what comes of a stream in pieces, each request answered at once."""
    server = HttpServer(engine)
    found: list[Request] = []
    for piece in pieces:
        server.receive(piece)
        try:
            while server.is_open and (request := server.next_request()) is not None:
                found.append(request)
                server.answer(200, {}, b"")
        except (CallerError, HttpError) as error:
            refusal = (error.status, error.code)
            return Outcome(requests=tuple(found), refusal=refusal, is_open=server.is_open)
        if not server.is_open:
            break
    return Outcome(requests=tuple(found), refusal=None, is_open=server.is_open)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Return a stream in pieces."""
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


cuts = st.lists(st.integers(0, 400), max_size=8)
"""Where the network cuts a stream."""

KNOWN_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
methods = st.sampled_from([*KNOWN_METHODS, "CONNECT", "PRI", "SOURCE", "ANNOUNCE", "get", "F-0!"])
ordinary_targets = st.sampled_from(
    ["/", "/a/b?c=d", "/%C3%A9", "http://n1:7400/a?b", "/" + "x" * 99]
)
targets = ordinary_targets | st.sampled_from(
    ["*", "n1:443", "a", '/"<>|\\^`{}', "//a", "http:/", "?"]
)
tokens = st.text("!#$%&'*+-.^_`|~09azAZ", min_size=1, max_size=9)
values = st.text("".join(map(chr, [9, *range(0x20, 0x7F), *range(0xA0, 0x100)])), max_size=20)
spaces = st.sampled_from(["", " ", "\t ", "  "])
telling = st.sampled_from(
    [
        "Content-Length: 3",
        "content-length: 003",
        "Content-Length: 0",
        "Content-Length: 3, 3",
        "Content-Length: +3",
        "Content-Length: 1048577",
        "Content-Length: 99999999999999999999",
        "Content-Length:",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding:\tCHUNKED \t",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Host: n2",
        "Connection: close",
        "Connection: x, Close",
        "Connection: keep-alive",
        "Connection: Upgrade",
        "Upgrade: h2c",
        "Expect: 100-continue",
        "Keep-Alive: timeout=5",
    ]
)
"""Headers by which somebody may decide where a request ends."""
broken = st.sampled_from(
    ["X: a\r\n b", " X: a", "X : a", "nothing", ": a", "X: a\nY: b", "X: \x00"]
)


@st.composite
def plain_lines(draw: st.DrawFn) -> str:
    """Return one sound header."""
    name, before, value, after = draw(st.tuples(tokens, spaces, values, spaces))
    return f"{name}:{before}{value}{after}"


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """Return a head, mostly a sound one."""
    version = draw(st.sampled_from(["1.1", "1.1", "1.1", "1.1", "1.0", "2.0"]))
    lines = draw(st.lists(plain_lines() | telling, max_size=5))
    if draw(st.integers(0, 9)):
        lines.insert(0, "Host: n1")
    if not draw(st.integers(0, 9)):
        lines.append(draw(broken))
    first = f"{draw(methods)} {draw(targets)} HTTP/{version}"
    return "\r\n".join([first, *lines, "", ""]).encode("latin-1")


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    """Return a body in chunks, mostly a sound one."""
    pieces = draw(st.lists(st.binary(min_size=1, max_size=20), max_size=4))
    sound = ["", "", ";a", ";a=b", ';a="b c";d']
    loose = [" ", "; a", ";", ";a = b", ";a\r", ";\x01"]
    extension = st.sampled_from([*sound, *(loose if not draw(st.integers(0, 4)) else ())])
    sizes = [(f"{len(one):x}{draw(extension)}\r\n".encode(), one + b"\r\n") for one in pieces]
    end = draw(st.sampled_from([b"0\r\n\r\n", b"0\r\n\r\n", b"00;x\r\n\r\n", b"0\r\nX: 1\r\n\r\n"]))
    return b"".join(size + piece for size, piece in sizes) + end


@st.composite
def sound_requests(draw: st.DrawFn, *, kept: bool = False) -> bytes:
    """Return a request whose framing is right.

    Args:
        draw: Hypothesis's.
        kept: Whether it is one that every other program reads too, and keeps the connection.
    """
    method = draw(st.sampled_from(KNOWN_METHODS) if kept else methods)
    target = draw(ordinary_targets if kept else targets)
    lines = ["Host: n1", *draw(st.lists(plain_lines(), max_size=3))]
    framing, body = draw(
        st.just((None, b""))
        | st.binary(max_size=30).map(lambda body: (f"Content-Length: {len(body)}", body))
        | chunked().map(lambda body: ("Transfer-Encoding: chunked", body))
    )
    if framing:
        lines.insert(draw(st.integers(0, len(lines))), framing)
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + body


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Return a sound request with some bytes changed, added or lost."""
    data = bytearray(draw(sound_requests()))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 2)))
        data[at:end] = draw(
            st.sampled_from([b"\r", b"\n", b"\r\n", b" ", b":", b"0", b"\x00", b""])
        )
    return bytes(data)


streams = st.lists(
    sound_requests() | mutated() | st.builds(lambda head, body: head + body, heads(), chunked()),
    min_size=1,
    max_size=3,
).map(b"".join)
"""Requests one behind the other: sound, ambiguous, broken."""
