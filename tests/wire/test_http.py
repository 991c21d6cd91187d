"""HTTP/1.1 as a server reads and writes it."""

import contextlib
import itertools

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import (
    CallerError,
    HeadersTooLarge,
    HttpError,
    InvalidRequest,
    PayloadTooLarge,
    ReachError,
    UriTooLong,
)
from reachnode.wire.http import GO_ON, READ_HEAD, HttpServer
from reachnode.wire.http_engines import Engine, Request
from reachnode.wire.http_heads import BODY_BYTES_MAX, HEAD_BYTES_MAX, TARGET_BYTES_MAX
from tests.wire.http_streams import ENGINES

GET = b"GET /a?b=c HTTP/1.1\r\nHost: n1\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: n1\r\nContent-Length: 5\r\nX-A: 1\r\nx-a:\t2 \r\n\r\nhello"
CHUNKED = (
    b"POST /x HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\n\r\n"
)


def reads(*pieces: bytes, engine: Engine = READ_HEAD) -> list[Request]:
    """Return the requests in a stream that comes in pieces, each answered at once."""
    server = HttpServer(engine)
    found = []
    for piece in pieces:
        server.receive(piece)
        while server.is_open and (request := server.next_request()) is not None:
            found.append(request)
            server.answer(200, {}, b"")
    return found


def drip(server: HttpServer, data: bytes) -> None:
    """Feed a stream byte by byte."""
    for one in data:
        server.receive(bytes([one]))
        server.next_request()


def fault(data: bytes, engine: Engine = READ_HEAD) -> ReachError:
    """Return the error of a stream, which must be the same byte by byte."""
    with pytest.raises(ReachError) as caught:
        reads(data, engine=engine)
    server = HttpServer(engine)
    with pytest.raises(type(caught.value)):
        drip(server, data)
    assert not server.is_open
    return caught.value


@pytest.mark.parametrize("engine", ENGINES)
def test_a_request_is_read(engine: Engine) -> None:
    """Method, target, headers and body arrive; a header said twice is joined."""
    (request,) = reads(POST, engine=engine)
    assert (request.method, request.target, request.body) == ("POST", "/x", b"hello")
    assert request.headers == {"host": "n1", "content-length": "5", "x-a": "1, 2"}
    assert request.keeps_alive


@pytest.mark.parametrize("engine", ENGINES)
def test_requests_may_come_one_behind_the_other(engine: Engine) -> None:
    """Pipelined requests are answered in order, empty lines between them are skipped."""
    found = reads(GET + b"\r\n" + POST + CHUNKED + GET, engine=engine)
    assert [one.method for one in found] == ["GET", "POST", "POST", "GET"]
    assert [one.body for one in found] == [b"", b"hello", b"hello", b""]


@given(st.lists(st.integers(0, len(GET + POST + CHUNKED)), max_size=12))
def test_how_the_bytes_are_split_changes_nothing(cuts: list[int]) -> None:
    """The network may cut anywhere."""
    whole = GET + POST + CHUNKED
    edges = [0, *sorted(cuts), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(edges)]
    assert reads(*pieces) == reads(whole)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\nHost: n1\n\n", "byte 14 of the head is a bare"),
        (b"GET / HTTP/1.1\r\nHost: n1\nX: 1\r\n\r\n", "byte 24 of the head is a bare"),
        (b"GET / HTTP/1.1\r\nHost: n1\rX: 1\r\n\r\n", "byte 24 of the head is a bare"),
        (b"GET / HTTP/1.1\r\nHost: n\x001\r\n\r\n", "control"),
        (b"GET / HTTP/1.1\r\nHost: n1\r\nX: a\r\n b\r\n\r\n", "line 4 continues a header"),
        (b"GET / HTTP/1.1\r\nHost: n1\r\nX : a\r\n\r\n", "line 3 is no header"),
        (b"GET / HTTP/1.1\r\nHost: n1\r\nnothing\r\n\r\n", "line 3 is no header"),
        (b"GET / HTTP/1.1\r\nHost: n1\r\n: a\r\n\r\n", "line 3 is no header"),
        (b"GET / HTTP/1.1\r\n\r\n", "Host header is missing"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "host stands twice"),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "first line"),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "first line"),
        (b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "first line"),
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "first line"),
        (b"hello\r\n\r\n", "first line"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", "no decimal"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", "no decimal"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "no decimal"),
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "content-length stands twice",
        ),
        (
            POST.replace(b"X-A: 1", b"Transfer-Encoding: chunked"),
            "exclude each other",
        ),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "chunked"),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1"),
        (CHUNKED.replace(b"3\r\n", b"x\r\n", 1), "hexadecimal"),
        (CHUNKED.replace(b"hel\r\n", b"hel\n\n"), "longer or shorter"),
        (CHUNKED[:-2] + b"\n", "trailers"),
        (CHUNKED[:-2] + b"X-A: 1\r\n\r\n", "trailers"),
    ],
)
def test_what_two_programs_could_read_differently_is_refused(
    data: bytes, why: str, engine: Engine
) -> None:
    """Ambiguous framing is a 400, whatever the pieces it comes in."""
    error = fault(data, engine)
    assert isinstance(error, InvalidRequest)
    assert why in error.why


def test_a_head_of_32_kib_is_the_limit() -> None:
    """Headers are bounded in sum, however they are split."""
    many = b"".join(b"X-%d: %s\r\n" % (one, b"a" * 1000) for one in range(31))
    fits = b"GET / HTTP/1.1\r\nHost: a\r\n" + many
    room = HEAD_BYTES_MAX - len(fits) - len(b"Y: \r\n\r\n")
    assert len(reads(fits + b"Y: " + b"a" * room + b"\r\n\r\n")) == 1
    with pytest.raises(HeadersTooLarge):
        reads(fits + b"Y: " + b"a" * (room + 1) + b"\r\n\r\n")
    with pytest.raises(HeadersTooLarge):
        reads(fits + b"Y: " + b"a" * (room + 5))


def test_a_target_of_8_kib_is_the_limit() -> None:
    """A longer target is refused, and so is one that never ends."""
    fits = b"/" + b"a" * (TARGET_BYTES_MAX - 1)
    assert len(reads(b"GET " + fits + b" HTTP/1.1\r\nHost: a\r\n\r\n")) == 1
    with pytest.raises(UriTooLong):
        reads(b"GET " + fits + b"a HTTP/1.1\r\nHost: a\r\n\r\n")
    with pytest.raises(UriTooLong):
        reads(b"GET " + fits + b"a" * 100)


def test_a_body_of_1_mib_is_the_limit() -> None:
    """An announced length is refused before the body comes, a chunked one as it grows."""
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    (request,) = reads(head % BODY_BYTES_MAX, bytes(BODY_BYTES_MAX))
    assert len(request.body) == BODY_BYTES_MAX
    with pytest.raises(PayloadTooLarge):
        reads(head % (BODY_BYTES_MAX + 1))
    chunk = b"%x\r\n%s\r\n" % (1 << 16, bytes(1 << 16))
    start = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with pytest.raises(PayloadTooLarge):
        reads(start, *[chunk] * 17)


def test_a_client_that_waits_is_told_to_go_on_once() -> None:
    """`Expect: 100-continue` is answered while the body is missing."""
    server = HttpServer()
    server.receive(POST[: -len("hello")].replace(b"X-A: 1", b"Expect: 100-continue"))
    assert server.next_request() is None
    assert server.take_go_on() == GO_ON
    assert server.take_go_on() == b""
    server.receive(b"hello")
    assert server.next_request() is not None
    for whole in (
        POST.replace(b"X-A: 1", b"Expect: 100-continue"),
        GET.replace(b"Host: n1", b"Host: n1\r\nExpect: 100-continue"),
    ):
        server = HttpServer()
        server.receive(whole)
        assert server.next_request() is not None
        assert server.take_go_on() == b""


@pytest.mark.parametrize("said", [b"Expect: 200-ok", b"X-A: 1"])
def test_who_does_not_wait_is_told_nothing(said: bytes) -> None:
    """Another expectation is ignored, and HTTP/1.0 doesn't know `100 Continue`."""
    server = HttpServer()
    server.receive(POST[:-5].replace(b"X-A: 1", said))
    assert server.next_request() is None
    assert server.take_go_on() == b""
    server = HttpServer()
    server.receive(
        POST[:-5].replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"X-A: 1", b"Expect: 100-continue")
    )
    assert server.next_request() is None
    assert server.take_go_on() == b""


def test_an_answer_is_framed() -> None:
    """Status line, headers, length and body; the connection stays open."""
    server = HttpServer()
    server.receive(GET)
    assert server.is_idle is False
    assert server.next_request()
    assert server.answer(200, {"X-A": "1"}, b"hi") == (
        b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nhi"
    )
    assert server.is_open
    assert server.is_idle


def test_the_answer_to_head_has_no_body() -> None:
    """HEAD is told the length alone."""
    server = HttpServer()
    server.receive(GET.replace(b"GET", b"HEAD"))
    assert server.next_request()
    assert server.answer(200, {}, b"hi").endswith(b"Content-Length: 2\r\n\r\n")


def test_nothing_has_no_length() -> None:
    """A 204 says no length (RFC 9110), and whoever gave it a body made a mistake."""
    server = HttpServer()
    server.receive(GET)
    assert server.next_request()
    assert server.answer(204, {}, b"") == b"HTTP/1.1 204 No Content\r\n\r\n"
    server.receive(GET)
    assert server.next_request()
    with pytest.raises(AssertionError):
        server.answer(204, {}, b"x")


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
    ],
)
def test_a_client_that_asks_for_it_is_closed(data: bytes) -> None:
    """HTTP/1.0 and `Connection: close` end the connection."""
    server = HttpServer()
    server.receive(data)
    assert server.next_request()
    assert b"\r\nConnection: close\r\n" in server.answer(200, {}, b"")
    assert not server.is_open


def test_the_server_may_close() -> None:
    """A node that drains says so with its last answer."""
    server = HttpServer()
    server.receive(GET)
    assert server.next_request()
    assert b"\r\nConnection: close\r\n" in server.answer(200, {}, b"", closes=True)
    assert not server.is_open


@pytest.mark.parametrize("data", [b"", b"GET", POST[:-1], b"what\r\n\r\n"])
def test_an_answer_before_the_request_is_whole_closes(data: bytes) -> None:
    """Time ran out or the bytes are wrong: what may still come is not read."""
    server = HttpServer()
    server.receive(data)
    try:
        assert server.next_request() is None
    except InvalidRequest:
        assert not server.is_open
    assert b"Connection: close" in server.answer(408, {}, b"")
    assert not server.is_open


def test_no_header_of_an_answer_can_begin_another() -> None:
    """A line break in a value is a mistake of ours that never reaches the wire."""
    with pytest.raises(AssertionError):
        HttpServer().answer(200, {"X": "a\r\nY: b"}, b"")


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_give_requests_or_an_error_of_ours(data: bytes, is_late: bool) -> None:
    """Nothing a client sends raises anything else, in the head or behind it."""
    with contextlib.suppress(CallerError, HttpError):
        reads(CHUNKED[:70] + data if is_late else data)


@given(
    st.sampled_from([200, 201, 400, 404, 503]),
    st.dictionaries(st.from_regex(r"X-[A-Za-z]{1,9}", fullmatch=True), st.just("v w"), max_size=3),
    st.binary(max_size=50),
)
def test_a_client_understands_our_answers(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    """Another program reads back what we wrote."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    client.send(h11.EndOfMessage())
    server = HttpServer()
    server.receive(GET)
    assert server.next_request()
    client.receive_data(server.answer(status, headers, body))
    response = client.next_event()
    assert isinstance(response, h11.Response)
    assert response.status_code == status
    assert {name.lower() for name in headers} <= {name.decode() for name, _ in response.headers}
    if body:
        data = client.next_event()
        assert isinstance(data, h11.Data)
        assert data.data == body
    assert isinstance(client.next_event(), h11.EndOfMessage)


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5))
def test_a_client_understands_our_streams(pieces: list[bytes]) -> None:
    """Piece by piece, with an end that a client tells from a lost connection."""
    server = HttpServer()
    server.receive(GET)
    assert server.next_request() is not None
    data = server.begin_stream(200, {"Content-Type": "text/event-stream"})
    data += b"".join(map(server.piece, pieces))
    assert not server.is_open
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "n1")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    assert isinstance(client.next_event(), h11.Response)
    told = b""
    while isinstance(event := client.next_event(), h11.Data):
        told += event.data
    assert event is h11.NEED_DATA
    assert told == b"".join(pieces)
    client.receive_data(server.end_stream())
    assert isinstance(client.next_event(), h11.EndOfMessage)
    assert client.our_state is h11.MUST_CLOSE


def test_an_old_client_takes_a_stream_as_it_is() -> None:
    """HTTP/1.0 knows no chunks: the connection's end is the answer's."""
    server = HttpServer()
    server.receive(b"GET / HTTP/1.0\r\n\r\n")
    assert server.next_request() is not None
    head = server.begin_stream(200, {})
    assert head == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    assert (server.piece(b"a"), server.end_stream()) == (b"a", b"")


def test_an_empty_piece_would_be_the_end() -> None:
    """So there is none."""
    server = HttpServer()
    server.receive(GET)
    assert server.next_request() is not None
    server.begin_stream(200, {})
    with pytest.raises(AssertionError):
        server.piece(b"")
