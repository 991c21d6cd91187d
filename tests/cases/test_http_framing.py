"""Known cases of the family http-framing, by their ids, against the real front."""

from typing import Any

import pytest
import trio

from reachnode.wire.http import GO_ON
from tests.cases.raw import connected
from tests.serve.client import request_bytes

REGISTER = b"POST /api/v1/agents/register HTTP/1.1\r\nHost: n\r\n"
SMUGGLED = b"DELETE /api/v1/agents/a HTTP/1.1\r\nHost: n\r\n\r\n"
BODY = b'{"agent_id": "a"}'
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"

AMBIGUOUS = {
    "A-length-and-coding": REGISTER + b"Content-Length: 4\r\n" + CHUNKED + b"0\r\n\r\n" + SMUGGLED,
    "A-coding-and-length": REGISTER
    + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "B-two-lengths": REGISTER + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n1234" + SMUGGLED,
    "B-one-length-twice": REGISTER + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + SMUGGLED,
    "B-list-of-lengths": REGISTER + b"Content-Length: 2, 2\r\n\r\n{}" + SMUGGLED,
    "C-signed-length": REGISTER + b"Content-Length: +5\r\n\r\n12345" + SMUGGLED,
    "C-hexadecimal-length": REGISTER + b"Content-Length: 0x5\r\n\r\n12345" + SMUGGLED,
    "D-two-codings": REGISTER + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "D-another-coding": REGISTER + b"Transfer-Encoding: identity\r\n\r\n" + SMUGGLED,
    "E-space-before-colon": REGISTER
    + b"Transfer-Encoding : chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "E-hidden-by-a-control": REGISTER
    + b"Transfer-Encoding:\x0bchunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "F-two-hosts": b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + SMUGGLED,
    "F-no-host": b"GET /health HTTP/1.1\r\n\r\n" + SMUGGLED,
    "G-size-of-17-digits": REGISTER + CHUNKED + b"ffffffffffffffff1\r\nabc\r\n" + SMUGGLED,
    "G-negative-size": REGISTER + CHUNKED + b"-1\r\n" + SMUGGLED,
    "G-space-behind-a-size": REGISTER + CHUNKED + b"11 \r\n" + BODY + b"\r\n0\r\n\r\n" + SMUGGLED,
    "G-chunk-longer-than-said": REGISTER + CHUNKED + b"2\r\n{}x\r\n0\r\n\r\n" + SMUGGLED,
    "G-line-feed-behind-a-chunk": REGISTER + CHUNKED + b"2\r\n{}\n0\r\n\r\n" + SMUGGLED,
    "G-line-feed-in-an-extension": REGISTER + CHUNKED + b"2;a\n{}\r\n0\r\n\r\n" + SMUGGLED,
    "G-trailer": REGISTER + CHUNKED + b"0\r\nContent-Length: 9\r\n\r\n" + SMUGGLED,
    "folded-header": REGISTER + b"X: a\r\n Content-Length: 4\r\n\r\n" + SMUGGLED,
    "folded-coding": REGISTER + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "bare-line-feeds": b"GET /health HTTP/1.1\nHost: n\n\n" + SMUGGLED,
    "one-bare-line-feed": REGISTER + b"X: a\nContent-Length: 4\r\n\r\n1234" + SMUGGLED,
    "bare-carriage-return": REGISTER + b"X: a\rContent-Length: 4\r\n\r\n" + SMUGGLED,
    "nul-in-a-header": REGISTER + b"X: \x00\r\n\r\n" + SMUGGLED,
    "coding-in-http-1.0": b"POST / HTTP/1.0\r\n" + CHUNKED + b"0\r\n\r\n" + SMUGGLED,
    "http-2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED,
    "http-0.9": b"GET /health\r\n\r\n" + SMUGGLED,
    "space-in-the-target": b"GET /health x HTTP/1.1\r\nHost: n\r\n\r\n" + SMUGGLED,
    "tls-hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SMUGGLED,
}


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
async def test_frm_01(autojump_clock: Any, data: bytes, step: int) -> None:
    """What is framed ambiguously is a 400 that closes; nothing behind it is ever a request."""
    async with connected() as client:
        await client.send(data, step=step)
        got = await client.answer()
        assert (got.status, got.json["code"]) == (400, "invalid_request")
        assert got.headers["connection"] == "close"
        assert await client.rest() == b""
        assert dict(client.front.answers_count) == {400: 1}
        assert client.replica.proposed == []


SOUND = {
    "length": REGISTER + b"Content-Length: 17\r\n\r\n" + BODY,
    "padded-length": REGISTER + b"Content-Length:\t 017 \r\n\r\n" + BODY,
    "chunks": REGISTER + CHUNKED + b"5\r\n" + BODY[:5] + b"\r\nC\r\n" + BODY[5:] + b"\r\n0\r\n\r\n",
    "extensions": REGISTER + CHUNKED + b'11;a;b=c;d="e, f"\r\n' + BODY + b"\r\n000;x=y\r\n\r\n",
    "coding-in-capitals": REGISTER
    + b"TRANSFER-ENCODING: CHUNKED\r\n\r\n11\r\n"
    + BODY
    + b"\r\n0\r\n\r\n",
    "absolute-target": REGISTER.replace(b"/api", b"http://n:7400/api")
    + b"Content-Length: 17\r\n\r\n"
    + BODY,
    "empty-lines-before": b"\r\n\r\n" + REGISTER + b"Content-Length: 17\r\n\r\n" + BODY,
    "upgrade-wanted": REGISTER
    + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 17\r\n\r\n"
    + BODY,
}


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("data", SOUND.values(), ids=SOUND.keys())
async def test_frm_01_what_is_plain_is_served(data: bytes, step: int) -> None:
    """Strictness keeps nobody out who says one thing, and the next request is answered too."""
    async with connected() as client:
        await client.send(data + SMUGGLED, step=step)
        assert (await client.answer()).status == 201
        assert (await client.answer()).json == {"agent_id": "a", "index": 2}


async def test_frm_02_a_client_that_waits_is_told_to_go_on(autojump_clock: Any) -> None:
    """A: `100 Continue` comes at once, then the answer to the body."""
    body = BODY[:-1] + b" " * (100_000 - len(BODY)) + b"}"
    head = REGISTER + b"Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n"
    async with connected() as client:
        await client.send(head)
        assert await client.stream.receive(65536) == GO_ON
        assert trio.current_time() == 0.0
        await client.send(body)
        assert (await client.answer()).status == 201


async def test_frm_02_a_client_that_does_not_wait_is_told_nothing() -> None:
    """A: who sends the body at once gets one answer."""
    async with connected() as client:
        await client.send(REGISTER + b"Expect: 100-continue\r\nContent-Length: 17\r\n\r\n" + BODY)
        assert (await client.answer()).status == 201


async def test_frm_02_too_much_is_refused_before_it_is_sent(autojump_clock: Any) -> None:
    """C: a body over the limit is a 413 at once, without `100 Continue`."""
    async with connected() as client:
        await client.send(REGISTER + b"Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n")
        got = await client.answer()
        assert (got.status, got.json["code"]) == (413, "payload_too_large")
        assert trio.current_time() == 0.0
        assert await client.rest() == b""


@pytest.mark.parametrize("said", [b"something-else", b"", b"100-continue, x"])
async def test_frm_02_another_expectation_is_ignored(said: bytes) -> None:
    """D: the call works."""
    async with connected() as client:
        await client.send(REGISTER + b"Expect: %b\r\nContent-Length: 17\r\n\r\n" % said + BODY)
        assert (await client.answer()).status == 201


@pytest.mark.parametrize(
    "target", ["/health", "/api/v1/agents", "/metrics", "/nowhere", "/register"]
)
async def test_frm_04_head_has_no_body(target: str) -> None:
    """HEAD answers what GET would without its body, and the next call works."""
    async with connected() as client:
        await client.send(request_bytes("HEAD", target) + request_bytes("GET", target))
        head = await client.answer(is_head=True)
        got = await client.answer()
        assert (head.status, head.body) == (got.status, b"")
        assert head.headers["content-length"] == str(len(got.body)) or target == "/metrics"


async def test_pipelined_requests_are_answered_in_order() -> None:
    """However many come at once, each has its answer, and a faulty one ends the row."""
    async with connected() as client:
        targets = ["/health", "/nowhere", "/ready", "/api/v1/agents"] * 5
        row = b"".join(request_bytes("GET", target) for target in targets)
        await client.send(row + b"GET  /health HTTP/1.1\r\nHost: n\r\n\r\n" + row)
        statuses = [(await client.answer()).status for _ in targets]
        assert statuses == [200, 404, 200, 200] * 5
        assert (await client.answer()).status == 400
        await client.stream.aclose()


@pytest.mark.parametrize(
    ("data", "closes"),
    [
        (b"GET /health HTTP/1.1\r\nHost: n\r\n\r\n", False),
        (b"GET /health HTTP/1.1\r\nHost: n\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET /health HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n", True),
        (b"GET /health HTTP/1.1\r\nHost: n\r\nConnection: a, CLOSE ,b\r\n\r\n", True),
        (b"GET /health HTTP/1.0\r\n\r\n", True),
        (b"GET /health HTTP/1.0\r\nHost: n\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET /nowhere HTTP/1.1\r\nHost: n\r\n\r\n", False),
        (b"FROB /health HTTP/1.1\r\nHost: n\r\n\r\n", False),
    ],
)
async def test_connections_are_kept_or_closed_as_asked(data: bytes, *, closes: bool) -> None:
    """The answer says which, and an error of the call alone doesn't end the connection."""
    async with connected() as client:
        await client.send(data)
        got = await client.answer()
        assert (got.headers.get("connection") == "close") is closes
        if closes:
            assert await client.rest() == b""
        else:
            await client.send(request_bytes("GET", "/health"))
            assert (await client.answer()).status == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/api/v1/agents/%61", 404),
        ("/api/v1/agents/a%2Fb", 404),
        ("/api/v1%2Fagents", 404),
        ("/%61pi/v1/agents", 404),
        ("/api/v1/agents/%ff", 400),
        ("/api/v1/agents/%", 404),
        ("/api/v1/agents/%00", 404),
        ("/api/v1/agents/..", 404),
        ("/api/v1/agents/../../../etc/passwd", 404),
        ("//api/v1/agents", 404),
        ("/api/v1/agents/", 404),
        ("/api/v1/agents?zone=%ff", 400),
        ("/api/v1/agents?zone=a&zone=b", 400),
        ("/api/v1/agents?zone=a&%7Aone=b", 400),
        ("/api/v1/agents?zone=%E5%8C%97", 200),
        ("/api/v1/agents?" + "&".join(f"a{n}=1" for n in range(65)), 400),
        ("/api/v1/agents?agent=a;limit=1", 200),
        ("HTTP://n/api/v1/agents?limit=1", 200),
        ("http://n", 404),
        ("ftp://n/health", 400),
        ("*", 400),
        ("n:7400", 400),
        ("/health#fragment", 400),
    ],
)
async def test_targets_are_read_once(target: str, status: int) -> None:
    """Percent-encoding is undone once, in one place, and hides no path and no name."""
    async with connected() as client:
        await client.send(request_bytes("GET", target))
        assert (await client.answer()).status == status
