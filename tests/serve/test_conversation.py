"""One connection, from its first byte to its last."""

import contextlib
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given

from reachnode.serve.answers import Answer
from reachnode.serve.conversation import Conversation, WaitingRoom
from reachnode.wire.http import GO_ON
from tests.fakes import MemoryStream, stream_pair
from tests.serve.client import read_answer, request_bytes
from tests.serve.local_replica import LocalReplica, front_of, talk
from tests.wire.http_streams import cut, cuts, streams

GET = request_bytes("GET", "/health")


async def read_all(client: MemoryStream) -> bytes:
    """Return everything the server sends until it closes."""
    data = b""
    while piece := await client.receive(65536):
        data += piece
    return data


async def test_requests_are_answered_in_order() -> None:
    """One connection carries several, however their bytes arrive."""
    front = front_of(LocalReplica())
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front)
        await client.send(GET + GET[:20])
        assert read_answer(await client.receive(65536)).json == {"status": "UP"}
        last = request_bytes("GET", "/nowhere", Connection="close")
        await client.send(GET[20:] + last)
        answers = await read_all(client)
    assert answers.count(b"HTTP/1.1 200 OK") == 1
    assert answers.count(b"HTTP/1.1 404 Not Found") == 1
    assert dict(front.answers_count) == {200: 2, 404: 1}


async def test_a_faulty_request_is_answered_and_closed(autojump_clock: Any) -> None:
    """Ambiguous bytes get a problem, who answers is said, the rest is passed over."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + GET)
        got = read_answer(await read_all(client))
    assert (got.status, got.json["code"]) == (400, "invalid_request")
    assert got.headers["connection"] == "close"
    assert got.headers["x-reach-node"] == "n1"


async def test_a_large_body_is_refused_while_it_comes(autojump_clock: Any) -> None:
    """The client that still sends reads the answer: its bytes are passed over, not cut off."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n")
        await client.send(bytes(200_000))
        got = read_answer(await client.receive(65536))
        await client.aclose()
    assert (got.status, got.json["code"]) == (413, "payload_too_large")


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [(GET[:10], 10.0), (request_bytes("PUT", "/", {"a": 1})[:-2], 30.0), (GET + GET[:10], 10.0)],
)
async def test_a_slow_request_runs_out_of_time(
    autojump_clock: Any, sent: bytes, seconds: float
) -> None:
    """A head has 10 s, a body 30 s; then the client is told and closed."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        await client.send(sent)
        answers = await read_all(client)
        assert seconds <= trio.current_time() <= seconds + 1.1
    assert b"HTTP/1.1 408 Request Timeout" in answers


async def test_dripping_bytes_buy_no_time(autojump_clock: Any) -> None:
    """The time of a head counts from its first byte, however often another comes."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        for one in GET[:11]:
            await client.send(bytes([one]))
            await trio.sleep(0.99)
        assert b"408" in await client.receive(65536)
        assert trio.current_time() < 11
        await client.aclose()


async def test_silence_is_closed_without_a_word(autojump_clock: Any) -> None:
    """A connection that asks nothing is closed after a minute."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        assert await read_all(client) == b""
        assert trio.current_time() == 60.0


@given(streams, cuts)
def test_no_bytes_are_a_fault_of_ours(stream: bytes, places: list[int]) -> None:
    """Whatever bytes come and however they are cut, nothing breaks and no answer is a 500."""

    async def session() -> None:
        front = front_of(LocalReplica())
        async with trio.open_nursery() as nursery:
            client = talk(nursery, front)
            nursery.start_soon(read_all, client)
            for piece in cut(stream, places):
                with contextlib.suppress(trio.BrokenResourceError):
                    await client.send(piece)
            await trio.sleep(100)
            await client.aclose()
            nursery.cancel_scope.cancel()
        assert 500 not in front.answers_count

    trio.run(session, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_client_that_leaves_is_let_go() -> None:
    """Closing between requests or inside one ends the conversation quietly."""
    for sent in (b"", GET[:10]):
        async with trio.open_nursery() as nursery:
            client = talk(nursery, front_of(LocalReplica()))
            await client.send(sent)
            await client.aclose()


async def test_a_broken_connection_is_let_go() -> None:
    """A reset is nobody's fault."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        await client.send(GET[:10])
        client.reset()


async def test_a_client_that_does_not_read_is_let_go(autojump_clock: Any) -> None:
    """An answer that nobody takes ends the connection after 30 s."""
    front = front_of(LocalReplica())
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front, room_bytes=100)
        await client.send(GET[:60])
        await client.send(GET[60:])
        await trio.sleep(29)
        assert front.answers_count[200] == 1
    assert trio.current_time() == 30.0


async def test_a_waiting_client_is_told_to_go_on() -> None:
    """`Expect: 100-continue` is answered before the body is read."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        whole = request_bytes("PUT", "/api/v1/settings", {}, Expect="100-continue")
        await client.send(whole[:-2])
        assert await client.receive(65536) == GO_ON
        await client.send(whole[-2:])
        assert read_answer(await client.receive(65536)).status == 200
        await client.aclose()


async def test_one_that_only_waits_can_be_let_go() -> None:
    """Between requests a conversation is ended when the node stops; within one it isn't."""
    waiting = WaitingRoom()
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()), waiting)
        await client.send(GET)
        assert read_answer(await client.receive(65536)).status == 200
        await trio.testing.wait_all_tasks_blocked()
        assert len(waiting) == 1
        waiting.let_idle_go()
        assert await read_all(client) == b""
    assert len(waiting) == 0
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()), waiting)
        await client.send(GET[:10])
        await trio.testing.wait_all_tasks_blocked()
        waiting.let_idle_go()
        await client.send(GET[10:])
        assert read_answer(await client.receive(65536)).status == 200
        await client.aclose()


@pytest.mark.parametrize("sent", [b"", GET[:10], request_bytes("PUT", "/", {"a": 1})[:-2]])
async def test_one_that_is_slow_makes_room(autojump_clock: Any, sent: bytes) -> None:
    """For a newcomer a request that isn't whole is given up, closed without a word."""
    waiting = WaitingRoom()
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()), waiting)
        await client.send(sent)
        await trio.testing.wait_all_tasks_blocked()
        waiting.make_room()
        assert await read_all(client) == b""
    assert trio.current_time() == 0.0


async def test_one_that_lingers_makes_room(autojump_clock: Any) -> None:
    """A refused client keeps nobody out while its bytes are passed over."""
    waiting = WaitingRoom()
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()), waiting)
        await client.send(b"what\r\n\r\n")
        assert read_answer(await client.receive(65536)).status == 400
        await trio.testing.wait_all_tasks_blocked()
        waiting.make_room()
        assert await read_all(client) == b""
    assert trio.current_time() == 0.0


async def test_one_that_was_let_go_too_late_is_answered() -> None:
    """A request that became whole meanwhile is served, and somebody else has to go."""
    waiting = WaitingRoom()
    async with trio.open_nursery() as nursery:
        client, server = stream_pair()
        room = RoomMaker(server, waiting)
        conversation = Conversation(
            front_of(LocalReplica()), room, must_close=lambda: waiting.is_short, waiting=waiting
        )
        nursery.start_soon(conversation.run)
        await client.send(GET)
        got = read_answer(await client.receive(65536))
        assert (got.status, got.headers["connection"]) == (200, "close")


class RoomMaker:
    """A stream on which a request arrives in the very moment somebody is let go."""

    def __init__(self, stream: MemoryStream, waiting: WaitingRoom) -> None:
        self._stream = stream
        self._waiting = waiting
        self.send = stream.send
        self.aclose = stream.aclose

    async def receive(self, max_bytes: int) -> bytes:
        data = await self._stream.receive(max_bytes)
        self._waiting.make_room()
        return data


async def test_the_last_answer_says_so() -> None:
    """Who wants connections back says `Connection: close`."""
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()), closes=True)
        await client.send(GET)
        assert read_answer(await read_all(client)).headers["connection"] == "close"


async def test_who_goes_first() -> None:
    """The idle before the slow, and of each the one that has waited longest."""
    room = WaitingRoom()
    slow, first, second, late = (trio.CancelScope() for _ in range(4))
    room.enter(first, is_idle=True)
    room.enter(slow, is_idle=True)
    room.enter(slow, is_idle=False)
    room.enter(second, is_idle=True)
    seen = []
    for _ in range(4):
        room.make_room()
        seen.append([one.cancel_called for one in (first, second, slow)] + [room.is_short])
    assert seen == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, True, True, True],
    ]
    room.enter(late, is_idle=False)
    assert late.cancel_called
    assert not room.is_short
    room.leave(late)
    room.leave(late)
    assert len(room) == 3


async def test_a_stream_that_fails_has_no_proper_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client sees that something is missing, the log says what went wrong."""

    async def broken(send: Any) -> None:
        await send(b"a")
        raise ValueError("a fault of ours")

    async def streamed(_front: Any, _request: Any) -> Answer:
        await trio.lowlevel.checkpoint()
        return Answer(stream=broken)

    monkeypatch.setattr("reachnode.serve.conversation.answer", streamed)
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        await client.send(GET)
        assert (await read_all(client)).endswith(b"1\r\na\r\n")
    assert "the stream of /health ended before its end" in caplog.text


@pytest.mark.parametrize("how", ["aclose", "reset"])
async def test_a_stream_ends_when_its_client_goes(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """However it goes, and though nothing is said; what it asks meanwhile is passed over."""
    ended: list[bool] = []

    async def silent(send: Any) -> None:
        await send(b"a")
        try:
            await trio.sleep_forever()
        finally:
            ended.append(True)

    async def streamed(_front: Any, _request: Any) -> Answer:
        await trio.lowlevel.checkpoint()
        return Answer(stream=silent)

    monkeypatch.setattr("reachnode.serve.conversation.answer", streamed)
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()))
        await client.send(GET + GET)
        await client.receive(65536)
        await client.send(GET)
        if how == "reset":
            client.reset()
        else:
            await client.aclose()
    assert ended == [True]


async def test_a_stream_that_is_said_to_nobody_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next piece finds out."""
    said: list[int] = []

    async def endless(send: Any) -> None:
        while True:
            said.append(1)
            await send(bytes(1000))

    async def streamed(_front: Any, _request: Any) -> Answer:
        await trio.lowlevel.checkpoint()
        return Answer(stream=endless)

    monkeypatch.setattr("reachnode.serve.conversation.answer", streamed)
    async with trio.open_nursery() as nursery:
        client = talk(nursery, front_of(LocalReplica()), room_bytes=5000)
        await client.send(GET)
        await client.receive(10)
        await trio.testing.wait_all_tasks_blocked()
        waits_at = len(said)
        client.reset()
    assert waits_at <= 6
    assert len(said) <= waits_at + 1
