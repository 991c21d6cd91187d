"""Watching instances over HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from reachnode.model.liveness import Heartbeat
from reachnode.registry.commands import Deregister, Register, SetAgentState
from reachnode.serve.front import Front
from reachnode.serve.watch import KEEP_ALIVE_SECONDS, epoch_of
from tests.fakes import MemoryStream
from tests.registry.test_agents import parser
from tests.serve.client import Got, ask, read_answer, request_bytes
from tests.serve.local_replica import LocalReplica, front_of, sights_of, talk

PATH = "/api/v1/watch"


class Watching:
    """A client that watches, and what it was told."""

    def __init__(self, client: MemoryStream, head: Got, rest: bytes) -> None:
        self.client = client
        self.head = head
        self._data = bytearray(rest)
        self.kept_alive_at: list[str] = []
        """The id that each comment told."""
        self.last_id = ""

    async def event(self) -> tuple[str, Any]:
        """Return the kind and the document of the next event."""
        while True:
            block = await self._block()
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            self.last_id = fields.get("id", self.last_id)
            if block.startswith(":"):
                self.kept_alive_at.append(self.last_id)
            if "data" in fields:
                return fields["event"], json.loads(fields["data"])

    async def told(self) -> list[tuple[str, str]]:
        """Return kind and `agent_id` of each change in the next event."""
        kind, document = await self.event()
        assert kind == "change"
        return [(one["kind"], one["agent_id"]) for one in document["changes"]]

    async def ended(self) -> bool:
        """Return whether the stream ends with a proper end, once whatever is left is read."""
        while data := await self.client.receive(65536):
            self._data += data
        return self._data.endswith(b"0\r\n\r\n")

    async def _block(self) -> str:
        while True:
            text = unchunked(bytes(self._data))
            if b"\n\n" in text:
                block, _, _ = text.partition(b"\n\n")
                self._data = bytearray(chunked(text[len(block) + 2 :]))
                return block.decode()
            data = await self.client.receive(65536)
            assert data, "the stream ended"
            self._data += data


def unchunked(data: bytes) -> bytes:
    """Return the content of whole chunks."""
    found = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        assert data[length : length + 2] == b"\r\n", "a chunk is in one piece here"
        found, data = found + data[:length], data[length + 2 :]
    return found


def chunked(data: bytes) -> bytes:
    """Return content as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


@asynccontextmanager
async def running(front: Front) -> AsyncIterator[trio.Nursery]:
    """Let a front's herald run."""
    async with trio.open_nursery() as nursery:
        await nursery.start(front.herald.run)
        yield nursery
        nursery.cancel_scope.cancel()


async def watching(
    nursery: trio.Nursery, front: Front, query: str = "", **headers: str
) -> Watching:
    """Return a client that has begun to watch."""
    client = talk(nursery, front)
    await client.send(request_bytes("GET", PATH + query, **headers))
    data = b""
    while b"\n\n" not in data:
        data += await client.receive(65536)
    head, _, rest = data.partition(b"\r\n\r\n")
    return Watching(client, read_answer(head + b"\r\n\r\n"), rest)


async def register(replica: LocalReplica, agent_id: str, *names: str) -> None:
    """Register an instance."""
    await replica.propose(Register(instance=parser(agent_id, *names)), deadline=0)


async def test_a_watch_begins_with_everything(autojump_clock: MockClock) -> None:
    """Then come the changes, each as one event with an id."""
    replica = LocalReplica()
    front = front_of(replica)
    await register(replica, "a1")
    async with running(front) as nursery:
        there = await watching(nursery, front)
        assert there.head.status == 200
        assert there.head.headers["content-type"] == "text/event-stream"
        assert there.head.headers["connection"] == "close"
        kind, document = await there.event()
        assert (kind, document["index"]) == ("snapshot", 1)
        assert [one["agent_id"] for one in document["items"]] == ["a1"]
        epoch = epoch_of(replica.state)
        assert there.last_id == f"r-{epoch}-1-0"
        await register(replica, "a2")
        kind, document = await there.event()
        (change,) = document["changes"]
        assert (document["index"], change["kind"], change["agent_id"]) == (2, "put", "a2")
        assert change["instance"]["state"] == "pending"
        assert there.last_id == f"r-{epoch}-2-0"
        sights_of(front).heartbeat("a2", Heartbeat())
        assert await there.told() == [("state", "a2")]
        assert there.last_id == f"r-{epoch}-2-1"
        await replica.propose(SetAgentState(agent_id="a1", state="disabled"), deadline=0)
        assert await there.told() == [("state", "a1")]
        await replica.propose(Deregister(agent_id="a1"), deadline=0)
        assert await there.told() == [("delete", "a1")]
        assert trio.current_time() < 1, "nothing waited for the next keep-alive"
    _ = autojump_clock


async def test_what_happens_at_once_is_told_at_once(autojump_clock: MockClock) -> None:
    """A flap of a hundred is one update; what came to nothing is none."""
    replica = LocalReplica()
    front = front_of(replica)
    async with running(front) as nursery:
        there = await watching(nursery, front)
        await there.event()
        for at in range(50):
            await register(replica, f"a{at:02}")
            await register(replica, "brief")
        await replica.propose(Deregister(agent_id="brief"), deadline=0)
        assert await there.told() == [("put", f"a{at:02}") for at in range(50)]
    _ = autojump_clock


async def test_only_what_was_asked_for_is_told(autojump_clock: MockClock) -> None:
    """An instance that no longer offers the capability is gone for this watcher."""
    replica = LocalReplica()
    front = front_of(replica)
    await register(replica, "a1", "x")
    await register(replica, "b1", "y")
    async with running(front) as nursery:
        there = await watching(nursery, front, "?capability=x")
        _, document = await there.event()
        assert [one["agent_id"] for one in document["items"]] == ["a1"]
        await register(replica, "b2", "y")
        await register(replica, "a1", "y")
        await register(replica, "b1", "x", "y")
        assert await there.told() == [("delete", "a1"), ("put", "b1")]
    _ = autojump_clock


@pytest.mark.parametrize("by", ["query", "header", "both"])
async def test_a_watch_goes_on_where_it_was(autojump_clock: MockClock, by: str) -> None:
    """By index, or by the id of the last event; a client that comes back by itself has both."""
    replica = LocalReplica()
    front = front_of(replica)
    for at in range(1, 4):
        await register(replica, f"a{at}")
    query = {"query": "?from_index=2", "both": "?from_index=0"}.get(by, "")
    last = {} if by == "query" else {"Last_Event_ID": f"r-{epoch_of(replica.state)}-2-7"}
    async with running(front) as nursery:
        there = await watching(nursery, front, query, **last)
        assert await there.told() == [("put", "a3")]
        await register(replica, "a4")
        assert await there.told() == [("put", "a4")]
    _ = autojump_clock


async def test_what_was_seen_meanwhile_is_told(autojump_clock: MockClock) -> None:
    """Though the log didn't move: a watcher that was away has the state of each instance."""
    replica = LocalReplica()
    front = front_of(replica)
    await register(replica, "a1")
    sights_of(front).heartbeat("a1", Heartbeat())
    async with running(front) as nursery:
        there = await watching(nursery, front, "?from_index=1")
        assert await there.told() == [("state", "a1")]
    _ = autojump_clock


async def test_an_index_to_come_is_waited_for(autojump_clock: MockClock) -> None:
    """A node that is a little behind catches up; one that never gets there says so in time."""
    replica = LocalReplica()
    front = front_of(replica)

    async def arrive() -> None:
        await trio.sleep(1)
        await register(replica, "a1")
        await register(replica, "a2")

    async with running(front) as nursery:
        nursery.start_soon(arrive)
        there = await watching(nursery, front, "?from_index=1")
        assert await there.told() == [("put", "a2")]
        begun = trio.current_time()
        got = await ask(front, "GET", f"{PATH}?from_index=1000000000")
        assert (got.status, got.json["code"]) == (503, "too_stale")
        assert trio.current_time() - begun <= 5.1
    _ = autojump_clock


@pytest.mark.parametrize("start", ["?from_index=40", "last"])
async def test_what_is_forgotten_is_said(autojump_clock: MockClock, start: str) -> None:
    """Whoever comes from before, or from another life of the cluster, starts over."""
    replica = LocalReplica()
    front = front_of(replica)
    replica.install(replica.state, 50)
    if start == "last":
        got = await ask(front, "GET", PATH, Last_Event_ID="r-7-1000000-0")
    else:
        got = await ask(front, "GET", PATH + start)
    assert (got.status, got.json["code"]) == (410, "index_expired")
    assert trio.current_time() == 0.0
    _ = autojump_clock


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("?capability=a%20b", {}),
        ("?from_index=-1", {}),
        ("?since=3", {}),
        ("", {"Last_Event_ID": "l-n1-7"}),
    ],
)
async def test_another_question_is_refused(query: str, headers: dict[str, str]) -> None:
    """Before a stream begins."""
    got = await ask(front_of(LocalReplica()), "GET", PATH + query, **headers)
    assert (got.status, got.json["code"]) == (400, "invalid_request")


async def test_silence_is_kept_alive(autojump_clock: MockClock) -> None:
    """Every 15 s, and with it the place of a watcher that nothing concerned."""
    replica = LocalReplica()
    front = front_of(replica)
    async with running(front) as nursery:
        there = await watching(nursery, front, "?capability=x")
        await there.event()
        await register(replica, "b1", "y")
        await trio.sleep(3.5 * KEEP_ALIVE_SECONDS)
        await register(replica, "a1", "x")
        assert await there.told() == [("put", "a1")]
        epoch = epoch_of(replica.state)
        assert there.kept_alive_at == [f"r-{epoch}-1-0"] * 3
        await trio.sleep(1.5 * KEEP_ALIVE_SECONDS)
        await replica.propose(Deregister(agent_id="a1"), deadline=0)
        assert await there.told() == [("delete", "a1")]
    _ = autojump_clock


async def test_the_place_of_a_quiet_watcher_moves_on(autojump_clock: MockClock) -> None:
    """So that it doesn't come back from an index that nobody remembers."""
    replica = LocalReplica()
    front = front_of(replica)
    async with running(front) as nursery:
        there = await watching(nursery, front, "?capability=x")
        await there.event()
        for at in range(5):
            await register(replica, f"b{at}", "y")
        await trio.sleep(KEEP_ALIVE_SECONDS + 1)
        await register(replica, "b0", "x")
        kind, document = await there.event()
        assert (kind, document["index"]) == ("change", 6)
        assert there.kept_alive_at == [f"r-{epoch_of(replica.state)}-5-0"]
    _ = autojump_clock


async def test_a_watcher_that_does_not_read_is_let_go(autojump_clock: MockClock) -> None:
    """Nothing is kept for it; it ends with the exact state when it comes back."""
    replica = LocalReplica()
    front = front_of(replica)
    for at in range(200):
        await register(replica, f"a{at}")
    async with running(front) as nursery:
        client = talk(nursery, front, room_bytes=1000)
        await client.send(request_bytes("GET", PATH))
        await trio.sleep(29)
        assert front.herald.watchers_count == 1
        await trio.sleep(2)
        assert front.herald.watchers_count == 0
    assert front.streams_slow_count == 1
    _ = autojump_clock


async def test_a_watcher_too_far_behind_starts_over(autojump_clock: MockClock) -> None:
    """It is let go with a proper end, and counted."""
    replica = LocalReplica()
    front = front_of(replica)
    await register(replica, "a1")
    async with running(front) as nursery:
        there = await watching(nursery, front)
        await there.event()
        replica.install(LocalReplica().state, 50)
        assert await there.ended()
    assert front.herald.counters["expired"] == 1
    _ = autojump_clock


async def test_a_client_that_leaves_is_no_watcher(autojump_clock: MockClock) -> None:
    """At once, though there is nothing to tell it."""
    front = front_of(LocalReplica())
    async with running(front) as nursery:
        there = await watching(nursery, front)
        assert front.herald.watchers_count == 1
        await there.client.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert front.herald.watchers_count == 0
    _ = autojump_clock


async def test_a_node_that_stops_lets_its_watchers_go(autojump_clock: MockClock) -> None:
    """With a proper end: they go on elsewhere."""
    front = front_of(LocalReplica())
    async with running(front) as nursery:
        there = await watching(nursery, front)
        front.drain()
        assert await there.ended()
        got = await ask(front, "GET", PATH)
        assert (got.status, got.json["code"]) == (503, "shutting_down")
    assert trio.current_time() < 1
    _ = autojump_clock


async def test_watchers_are_bounded(autojump_clock: MockClock) -> None:
    """One more is told to go elsewhere."""
    front = front_of(LocalReplica())
    front.herald.watchers_max = 2
    async with running(front) as nursery:
        for _ in range(2):
            await watching(nursery, front)
        got = await ask(front, "GET", PATH)
        assert (got.status, got.json["code"]) == (503, "busy")
        metrics = (await ask(front, "GET", "/metrics")).body.decode()
        assert "reachnode_watchers 2\n" in metrics
        assert "reachnode_watches_refused_total 1\n" in metrics
    _ = autojump_clock


async def test_only_the_head_may_be_asked_for(autojump_clock: MockClock) -> None:
    """HEAD begins no watch."""
    front = front_of(LocalReplica())
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front)
        await client.send(request_bytes("HEAD", PATH))
        data = b""
        while piece := await client.receive(65536):
            data += piece
    got = read_answer(data)
    assert (got.status, got.body) == (200, b"")
    assert front.herald.watchers_count == 0
    _ = autojump_clock
