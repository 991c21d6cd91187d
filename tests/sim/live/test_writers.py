"""Clients that insist: a change is confirmed, refused for good, or left open."""

import json
import random
from collections.abc import Callable

import trio

from sim.live.client import Place
from sim.live.writers import History, Writer

Say = Callable[[dict[str, object], str], tuple[int, dict[str, object]] | None]


async def serving(nursery: trio.Nursery, say: Say) -> Place:
    """Return where a server listens that says what a function makes of document and key."""

    async def talk(stream: trio.SocketStream) -> None:
        async with stream:
            while data := await stream.receive_some(65536):
                head, _, body = data.decode().partition("\r\n\r\n")
                key = next(line[17:] for line in head.split("\r\n") if "Idempotency-Key" in line)
                said = say(json.loads(body), key)
                if said is None:
                    return
                text = json.dumps(said[1])
                answer = f"HTTP/1.1 {said[0]} X\r\nContent-Length: {len(text)}\r\n\r\n{text}"
                await stream.send_all(answer.encode())

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, talk, listeners)
    return Place(host="127.0.0.1", port=listeners[0].socket.getsockname()[1])


async def test_a_change_is_repeated_under_its_key() -> None:
    """After a lost answer and a refusal that says to come again, at the other node too."""
    keys: list[str] = []

    def say(document: dict[str, object], key: str) -> tuple[int, dict[str, object]] | None:
        keys.append(key)
        if len(keys) == 1:
            return None
        if len(keys) == 2:
            return 503, {"code": "no_quorum"}
        return 201, {"index": 7, "incarnation": 3}

    history = History()
    async with trio.open_nursery() as nursery:
        places = [await serving(nursery, say), await serving(nursery, say)]
        writer = Writer("w", places, history, random.Random(1))
        until = trio.current_time() + 60
        confirmed = await writer.insist(writer.next_change(["a"]), until=until)
        writer.close()
        nursery.cancel_scope.cancel()
    assert confirmed is not None
    assert (confirmed.index, confirmed.incarnation) == (7, 3)
    assert keys == ["w-1"] * 3
    assert history.open == {}
    assert history.confirmed == [confirmed]


async def test_a_refusal_is_final() -> None:
    """What no repeat can mend is remembered with the reason."""
    history = History()
    async with trio.open_nursery() as nursery:
        place = await serving(nursery, lambda _document, _key: (400, {"code": "invalid_request"}))
        writer = Writer("w", [place], history, random.Random(1))
        until = trio.current_time() + 60
        assert await writer.insist(writer.next_change(["a"]), until=until) is None
        writer.close()
        nursery.cancel_scope.cancel()
    assert len(history.refused) == 1
    assert "invalid_request" in history.refused[0]


async def test_what_is_not_confirmed_in_time_is_left_open() -> None:
    """It may have happened."""
    history = History()
    async with trio.open_nursery() as nursery:
        place = await serving(nursery, lambda _document, _key: None)
        writer = Writer("w", [place], history, random.Random(1))
        change = writer.next_change(["a"])
        assert await writer.insist(change, until=trio.current_time() + 0.1) is None
        writer.close()
        nursery.cancel_scope.cancel()
    assert history.open == {change.key: change}


async def test_a_repeat_that_is_told_otherwise_is_a_contradiction() -> None:
    """Confirmed changes are asked for again now and then; the answer must not differ."""
    count = 0
    stop = trio.Event()

    def say(_document: dict[str, object], _key: str) -> tuple[int, dict[str, object]]:
        nonlocal count
        count += 1
        if history.repeats_count or count > 2_000:
            stop.set()
        return 201, {"index": count, "incarnation": count}

    history = History()
    async with trio.open_nursery() as nursery:
        place = await serving(nursery, say)
        writer = Writer("w", [place], history, random.Random(1))
        await writer.run(["a"], stop, until=trio.current_time() + 60)
        nursery.cancel_scope.cancel()
    assert history.repeats_count >= 1
    assert len(history.contradicted) == history.repeats_count
