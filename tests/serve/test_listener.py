"""The client port: how many, and how it ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from reachnode.model.address import Address
from reachnode.registry.commands import Command
from reachnode.serve.front import Front
from reachnode.serve.listener import ClientPort
from reachnode.serve.ports import Fate
from tests.fakes import MemoryNetwork, MemoryStream
from tests.serve.client import read_answer, request_bytes
from tests.serve.local_replica import LocalReplica, front_of

HERE = Address("127.0.0.1", 7400)
GET = request_bytes("GET", "/health")


class SlowReplica(LocalReplica):
    """A replica whose changes take 3 s."""

    async def propose(
        self, command: Command, *, deadline: float, request_id: str | None = None
    ) -> Fate:
        await trio.sleep(3)
        return await super().propose(command, deadline=deadline, request_id=request_id)


class Place:
    """A client port in memory, and the way to it."""

    def __init__(self, front: Front, port: ClientPort, network: MemoryNetwork) -> None:
        self.front = front
        self.port = port
        self.network = network

    async def connect(self) -> MemoryStream:
        return await self.network.connect(HERE, 1.0)

    async def ask(self, client: MemoryStream, data: bytes = GET) -> int:
        await client.send(data)
        return read_answer(await client.receive(65536)).status


@asynccontextmanager
async def place(
    *, replica: LocalReplica | None = None, connections_max: int = 10
) -> AsyncIterator[Place]:
    """Give a running client port, and stop it at the end."""
    network = MemoryNetwork()
    front = front_of(replica or LocalReplica())
    port = ClientPort(
        front,
        await network.listen(HERE),
        drain_seconds=10.0,
        connections_max=connections_max,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(port.run)
        yield Place(front, port, network)
        port.stop()


async def test_many_are_served_at_once() -> None:
    """Conversations don't wait for one another, and each is counted while it lasts."""
    async with place() as there:
        clients = [await there.connect() for _ in range(5)]
        for client in reversed(clients):
            assert await there.ask(client) == 200
        assert there.front.connections_count == 5
        assert there.front.accept_failures() == 0
    assert there.front.connections_count == 0


async def test_who_waits_makes_room_for_who_comes(autojump_clock: Any) -> None:
    """Beyond the limit the connection that was idle longest is let go, and nobody else."""
    async with place(connections_max=2) as there:
        first, second = await there.connect(), await there.connect()
        assert await there.ask(first) == 200
        assert await there.ask(second) == 200
        await trio.testing.wait_all_tasks_blocked()
        third = await there.connect()
        assert await there.ask(third) == 200
        assert await first.receive(1) == b""
        assert await there.ask(second) == 200
        assert there.front.connections_count == 2
        assert trio.current_time() == 0.0, "nobody had to wait for an idle connection's end"


async def test_silent_clients_keep_nobody_out(autojump_clock: Any) -> None:
    """However many connections never ask anything, one that does is answered."""
    async with place(connections_max=3) as there:
        for _ in range(10):
            await there.connect()
        assert await there.ask(await there.connect()) == 200
        assert trio.current_time() == 0.0


async def test_slow_clients_keep_nobody_out(autojump_clock: Any) -> None:
    """Requests that never become whole fill every place, and one that is whole is answered."""
    async with place(connections_max=3) as there:
        for sent in (GET[:5], GET[:30], request_bytes("PUT", "/", {"a": 1})[:-1]) * 2:
            await (await there.connect()).send(sent)
            await trio.testing.wait_all_tasks_blocked()
        client = await there.connect()
        assert await there.ask(client) == 200
        assert await there.ask(client) == 200
        assert trio.current_time() == 0.0


async def test_a_busy_place_is_given_back_with_its_answer(autojump_clock: Any) -> None:
    """While a newcomer waits, whoever is answered has to connect anew."""
    async with place(replica=SlowReplica(), connections_max=1) as there:
        busy = await there.connect()
        await busy.send(request_bytes("PUT", "/api/v1/settings", {}))
        await trio.testing.wait_all_tasks_blocked()
        newcomer = await there.connect()
        await newcomer.send(GET)
        got = read_answer(await busy.receive(65536))
        assert (got.status, got.headers["connection"]) == (200, "close")
        assert read_answer(await newcomer.receive(65536)).status == 200
        assert trio.current_time() == 3.0


async def test_a_newcomer_without_a_place_is_let_go_at_the_end(autojump_clock: Any) -> None:
    """Stopping closes what was accepted and never served."""
    async with place(replica=SlowReplica(), connections_max=1) as there:
        busy = await there.connect()
        await busy.send(request_bytes("PUT", "/api/v1/settings", {}))
        await trio.testing.wait_all_tasks_blocked()
        newcomer = await there.connect()
        await trio.testing.wait_all_tasks_blocked()
        there.port.stop()
        assert await newcomer.receive(1) == b""
        assert trio.current_time() == 0.0


async def test_stopping_lets_work_in_flight_end(autojump_clock: Any) -> None:
    """Nobody new comes in, whoever only waits is let go, work is answered."""
    change = request_bytes("PUT", "/api/v1/settings", {})
    async with place(replica=SlowReplica()) as there:
        idle, busy = await there.connect(), await there.connect()
        assert await there.ask(idle) == 200
        await busy.send(change)
        await trio.testing.wait_all_tasks_blocked()
        there.port.stop()
        assert await idle.receive(1) == b""
        with pytest.raises(OSError, match="nobody listens"):
            await there.connect()
        got = read_answer(await busy.receive(65536))
        assert (got.status, got.headers["connection"]) == (200, "close")
        assert await busy.receive(1) == b""
    assert trio.current_time() == 3.0


async def test_stopping_does_not_wait_for_ever(autojump_clock: Any) -> None:
    """A request that never becomes whole is cut off when the drain is over."""
    async with place() as there:
        client = await there.connect()
        await client.send(request_bytes("PUT", "/", {"a": 1})[:-2])
        await trio.testing.wait_all_tasks_blocked()
    assert trio.current_time() == 10.0


async def test_cancelling_closes_everything() -> None:
    """A second signal waits for nobody."""
    network = MemoryNetwork()
    front = front_of(LocalReplica())
    port = ClientPort(front, await network.listen(HERE), drain_seconds=10.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(port.run)
        client = await network.connect(HERE, 1.0)
        await client.send(GET[:5])
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert front.connections_count == 0
    with pytest.raises(OSError, match="nobody listens"):
        await network.connect(HERE, 1.0)


async def test_watchers_leave_room_for_others(autojump_clock: Any) -> None:
    """A quarter of the connections at most; and a port that stops waits for none of them."""
    async with place(connections_max=8) as there:
        watchers = [await there.connect() for _ in range(3)]
        statuses = [
            await there.ask(watcher, request_bytes("GET", "/api/v1/watch")) for watcher in watchers
        ]
        assert statuses == [200, 200, 503]
        assert there.front.herald.watchers_count == 2
    assert trio.current_time() < 1
    assert there.front.connections_count == 0
