"""Known cases of the family input-limits, by their ids, against the real front."""

import gzip
import re
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import trio

from reachnode.serve.front import Front
from reachnode.wire.documents import DEPTH_MAX
from reachnode.wire.http_heads import BODY_BYTES_MAX
from tests.cases.raw import connected
from tests.serve.client import ask, request_bytes
from tests.serve.local_replica import LocalReplica, front_of

DEPTHS = (50, 200, 500, 900, 990, 1024, 1100, 2000, 20_000, 200_000)
ENTRIES: dict[str, tuple[str, str, bytes]] = {
    "register": ("POST", "/register", b'{"agent_id": "a", "x": %b}'),
    "metadata": ("POST", "/register", b'{"agent_id": "a", "metadata": {"x": %b}}'),
    "schema": (
        "POST",
        "/register",
        b'{"agent_id":"a","capabilities":[{"name":"c","protocol":"pull","input_schema":%b}]}',
    ),
    "state": ("POST", "/api/v1/agents/a/state", b'{"state": %b}'),
    "settings": ("PUT", "/api/v1/settings", b'{"probes": %b}'),
    "members": ("POST", "/api/v1/cluster/members", b'{"action": %b}'),
}
"""Every place of the API that takes a document, and a hole in it."""


def lists(depth: int) -> bytes:
    """Return lists within lists."""
    return b"[" * depth + b"]" * depth


def objects(depth: int) -> bytes:
    """Return objects within objects, at most as many as a body holds."""
    depth = min(depth, 170_000)
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("nest", [lists, objects])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
async def test_inp_01(
    entry: tuple[str, str, bytes], depth: int, nest: Callable[[int], bytes]
) -> None:
    """Nesting has one limit on every entry, a 400 beyond it, and nothing of it is proposed."""
    method, path, form = entry
    replica = LocalReplica()
    got = await ask(front_of(replica), method, path, form % nest(depth))
    if depth <= DEPTH_MAX and path == "/register":
        assert got.status == 201
        return
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert replica.proposed == []
    if depth > DEPTH_MAX:
        assert re.search("nests deeper|recursion depth", got.json["detail"])


@pytest.mark.parametrize("depth", [50, DEPTH_MAX - 3])
async def test_inp_01_what_is_within_survives(depth: int) -> None:
    """A schema nested as deep as may be is read back as it was."""
    front = front_of(LocalReplica())
    _, path, form = ENTRIES["schema"]
    assert (await ask(front, "POST", path, form % lists(depth))).status == 201
    shown = (await ask(front, "GET", "/api/v1/agents/a")).json
    nested = shown["capabilities"][0]["input_schema"]
    for _ in range(depth - 1):
        (nested,) = nested
    assert nested == []


@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"a\\udc8db"', b'"\\ud800\\u0041"', b'"\\udc00\\ud800"']
)
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/register", b'{"agent_id": "a", "name": %b}'),
        ("/register", b'{"agent_id": "a", "metadata": {"tags": {"t": %b}}}'),
        ("/register", b'{"agent_id": "a", "metadata": {"tags": {%b: "t"}}}'),
        ("/register", b'{"agent_id": "a", %b: 1}'),
        ("/register", b'{"agent_id": %b}'),
        ("/api/v1/agents/a/state", b'{"state": %b}'),
    ],
)
async def test_inp_03_a(path: str, form: bytes, text: bytes) -> None:
    """Half of a surrogate pair is no text: a 400, the same everywhere."""
    replica = LocalReplica()
    got = await ask(front_of(replica), "POST", path, form % text)
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert replica.proposed == []


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe\x00",
        '{"agent_id": "a"}'.encode("utf-16"),
        '{"agent_id": "a"}'.encode("utf-16-le"),
        '{"agent_id": "a"}'.encode("utf-8-sig"),
        b'{"agent_id": "a", "name": "\xe9"}',
        b'{"agent_id": "a", "name": "\xed\xa0\x80"}',
        b'{"agent_id": "a", "name": "\xc0\xaf"}',
    ],
)
async def test_inp_03_b(body: bytes) -> None:
    """What isn't UTF-8, or begins with a mark of its own, is a 400."""
    got = await ask(front_of(LocalReplica()), "POST", "/register", body)
    assert (got.status, got.json["code"]) == (400, "invalid_request")


async def test_inp_03_names_in_any_script() -> None:
    """Labels and capabilities in Chinese are kept, found and shown as they were."""
    front = front_of(LocalReplica())
    body = {
        "agent_id": "a",
        "agent": "意图识别",
        "metadata": {"zone": "北京", "tags": {"团队": "北京"}},
        "capabilities": [{"name": "意图.识别", "protocol": "rest", "endpoint": "http://h/"}],
    }
    assert (await ask(front, "POST", "/register", body)).status == 201
    query = "?capability=%E6%84%8F%E5%9B%BE.%E8%AF%86%E5%88%AB&zone=%E5%8C%97%E4%BA%AC"
    (shown,) = (await ask(front, "GET", f"/api/v1/agents{query}")).json["items"]
    assert shown["metadata"] == body["metadata"]
    got = await ask(front, "POST", "/register", {**body, "agent_id": "意图"})
    assert (got.status, got.json["details"]["problems"][0]["at"]) == (400, "agent_id")


@pytest.mark.parametrize(("name", "status"), [("caf\u00e9", 201), ("cafe\u0301", 400)])
async def test_inp_03_d(name: str, status: int) -> None:
    """The composed form is taken, the decomposed one that looks alike is refused."""
    body = {"agent_id": "a", "capabilities": [{"name": name, "protocol": "pull"}]}
    assert (await ask(front_of(LocalReplica()), "POST", "/register", body)).status == status


async def test_inp_05_a(autojump_clock: Any) -> None:
    """An announced body over the limit is a 413 before a byte of it comes."""
    async with connected() as client:
        head = b"POST /register HTTP/1.1\r\nHost: n\r\nContent-Length: %d\r\n\r\n"
        await client.send(head % (BODY_BYTES_MAX + 1))
        assert (await client.answer()).status == 413
        assert trio.current_time() == 0.0
        assert await client.rest() == b""


async def test_inp_05_b(autojump_clock: Any) -> None:
    """A chunked body is a 413 once it passes the limit, and no more than that is kept."""
    chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    sent = 0
    async with connected() as client, trio.open_nursery() as nursery:

        async def pour() -> None:
            nonlocal sent
            await client.send(b"POST /register HTTP/1.1\r\nHost: n\r\n")
            await client.send(b"Transfer-Encoding: chunked\r\n\r\n")
            while True:
                await client.send(chunk)
                sent += len(chunk)

        nursery.start_soon(pour)
        assert (await client.answer()).status == 413
        assert BODY_BYTES_MAX <= sent < BODY_BYTES_MAX + 4 * len(chunk)
        assert client.replica.proposed == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b" " * 200_000 + b"{}")),
        ("deflate", zlib.compress(b"{}")),
        ("br", b"{}"),
        ("zstd", b"{}"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"{}"))),
        ("unheard-of", b"{}"),
    ],
)
async def test_inp_05_c_and_d(coding: str, body: bytes) -> None:
    """Compressed bodies are not taken, so none can grow."""
    replica = LocalReplica()
    got = await ask(front_of(replica), "POST", "/register", body, Content_Encoding=coding)
    assert (got.status, got.json["code"]) == (415, "unsupported_media_type")
    assert replica.proposed == []


@pytest.mark.parametrize(
    "number",
    [
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1e999",
        b"-1e999",
        b"9" * 5000,
        b"01",
        b"0x1",
        b"1_0",
        b"+1",
    ],
)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
async def test_numbers_that_are_none(entry: tuple[str, str, bytes], number: bytes) -> None:
    """What JSON doesn't know as a number, or no reader can hold, is a 400."""
    method, path, form = entry
    replica = LocalReplica()
    got = await ask(front_of(replica), method, path, form % number)
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert replica.proposed == []


@pytest.mark.parametrize(
    "number", [b"9" * 30, b"-" + b"9" * 30, b"1e300", b"-1", b"1.5", b"18446744073709551616"]
)
@pytest.mark.parametrize(
    ("method", "path", "form"),
    [
        ("POST", "/register", b'{"agent_id": "a", "incarnation": %b}'),
        ("POST", "/register", b'{"agent_id": "a", "heartbeat": {"interval_ms": %b}}'),
        ("POST", "/register", b'{"agent_id": "a", "metadata": {"max_concurrency": %b}}'),
        ("POST", "/api/v1/agents/a/state", b'{"state": "updating", "incarnation": %b}'),
        ("PUT", "/api/v1/settings", b'{"probes": {"failures": %b}}'),
        ("PUT", "/api/v1/settings", b'{"revision": %b}'),
    ],
)
async def test_numbers_out_of_range(method: str, path: str, form: bytes, number: bytes) -> None:
    """A whole number that nothing can have is a 400, and no log is asked to hold it."""
    replica = LocalReplica()
    got = await ask(front_of(replica), method, path, form % number)
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert replica.proposed == []


async def test_huge_numbers_that_are_only_passed_on_survive() -> None:
    """A schema is kept as its text: no digit of it is lost."""
    front = front_of(LocalReplica())
    _, path, form = ENTRIES["schema"]
    number = 123456789012345678901234567890
    assert (await ask(front, "POST", path, form % b'{"maximum": %d}' % number)).status == 201
    shown = (await ask(front, "GET", "/api/v1/agents/a")).json
    assert shown["capabilities"][0]["input_schema"] == {"maximum": number}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/register", b'{"agent_id": "a", "agent_id": "b"}'),
        ("POST", "/register", b'{"agent_id": "a", "agent\\u005fid": "b"}'),
        ("POST", "/register", b'{"agent_id": "a", "metadata": {"tags": {"x": "1", "x": "2"}}}'),
        ("POST", "/api/v1/agents/a/state", b'{"state": "healthy", "state": "disabled"}'),
        ("PUT", "/api/v1/settings", b'{"probes": {}, "probes": {"failures": 9}}'),
    ],
)
async def test_names_said_twice(method: str, path: str, body: bytes) -> None:
    """Which of the two is meant nobody knows: a 400, and nothing is proposed."""
    replica = LocalReplica()
    got = await ask(front_of(replica), method, path, body)
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert "stands twice" in got.json["detail"]
    assert replica.proposed == []


async def refused(front: Front, body: bytes) -> int:
    """Return the status of a registration."""
    return (await ask(front, "POST", "/register", body)).status


@pytest.mark.parametrize(
    "body", [b"", b" ", b"null", b"[]", b'"a"', b"{}x", b"{} {}", b"{", b"{'a': 1}"]
)
async def test_bodies_that_are_no_object(body: bytes) -> None:
    """A document is one JSON object and nothing beside it."""
    assert await refused(front_of(LocalReplica()), body) == 400


async def test_a_body_nobody_asked_for_is_passed_over() -> None:
    """GET with a body is answered as without, and the next request is found behind it."""
    async with connected() as client:
        await client.send(request_bytes("GET", "/health", b"x" * 1000) * 2)
        assert [(await client.answer()).status for _ in range(2)] == [200, 200]
