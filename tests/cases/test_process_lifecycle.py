"""Known cases of the family process-lifecycle, by their ids, that need no process of its own.

`tests/e2e/test_many_clients.py` has those that do.
"""

from typing import Any

import pytest
import trio

from reachnode.model.address import Address
from reachnode.serve.listener import ClientPort
from tests.cases.raw import RawClient, connected
from tests.fakes import MemoryNetwork, MemoryStream
from tests.serve.client import request_bytes
from tests.serve.local_replica import LocalReplica, front_of

HERE = Address("127.0.0.1", 7400)
GET = request_bytes("GET", "/health")


async def drip_head(client: MemoryStream) -> None:
    """Send a head that never ends, a byte a second."""
    await client.send(b"GET / HTTP/1.1\r\nX: ")
    while True:
        await client.send(b"a")
        await trio.sleep(1)


async def test_prc_02_a(autojump_clock: Any) -> None:
    """Of 200 dripped heads each is ended after 10 s, and a call meanwhile is answered."""
    network, replica = MemoryNetwork(), LocalReplica()
    front = front_of(replica)
    port = ClientPort(front, await network.listen(HERE), drain_seconds=0, connections_max=208)
    ended_at: list[float] = []

    async def drip() -> None:
        client = await network.connect(HERE, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drip_head, client)
            assert b"408 Request Timeout" in await client.receive(65536)
            ended_at.append(trio.current_time())
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(port.run)
        async with trio.open_nursery() as drips:
            for _ in range(200):
                drips.start_soon(drip)
            await trio.sleep(5)
            client = RawClient(await network.connect(HERE, 1), front, replica)
            await client.send(GET)
            assert (await client.answer()).status == 200
            assert trio.current_time() == 5.0
        assert ended_at == [10.0] * 200
        port.stop()


async def test_prc_02_c(autojump_clock: Any) -> None:
    """A dripped body is ended after 30 s, whatever still comes."""
    async with connected() as client, trio.open_nursery() as nursery:

        async def drip() -> None:
            await client.send(b"PUT / HTTP/1.1\r\nHost: n\r\nContent-Length: 10000\r\n\r\n")
            while True:
                await client.send(b" ")
                await trio.sleep(1)

        nursery.start_soon(drip)
        got = await client.answer()
        assert (got.status, got.json["code"]) == (408, "request_timeout")
        assert trio.current_time() == 30.0
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("step", [0, 99, 1000])
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (GET[:-2] + b"X: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (GET[:-2] + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1000) for n in range(200)), 431),
        (GET[:-2] + b"a:\r\n" * 20_000, 431),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET /?" + b"a=&" * 3_000 + b" HTTP/1.1\r\nHost: n\r\n\r\n", 414),
        (b"A" * 100_000, 414),
    ],
    ids=["one", "many", "crumbs", "target", "query", "noise"],
)
async def test_prc_02_d(autojump_clock: Any, data: bytes, status: int, step: int) -> None:
    """Heads and targets have a limit that no way of splitting them gets round."""
    async with connected() as client, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: client.send(data, step=step))
        assert (await client.answer()).status == status
        nursery.cancel_scope.cancel()


async def test_prc_02_an_idle_connection_ends(autojump_clock: Any) -> None:
    """Silence is closed after a minute, without a word."""
    async with connected() as client:
        await client.send(GET)
        assert (await client.answer()).status == 200
        assert await client.rest() == b""
        assert trio.current_time() == 60.0
