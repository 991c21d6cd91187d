"""The client that loads real nodes: whole answers, or the news that there is none."""

from collections.abc import Sequence

import pytest
import trio

from sim.live.client import Answer, Connection, Lost, Place, request_bytes


class Server:
    """Sends prepared pieces for each request, and closes when there are no more."""

    def __init__(self, *answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections_count = 0

    async def talk(self, stream: trio.SocketStream) -> None:
        """Answer one connection."""
        self.connections_count += 1
        while self.answers:
            request = await stream.receive_some(65536)
            if not request:
                break
            self.requests.append(request)
            for piece in self.answers.pop(0):
                await stream.send_all(piece)
                await trio.lowlevel.checkpoint()
        await stream.aclose()


async def connected(server: Server, nursery: trio.Nursery) -> Connection:
    """Return a connection to a server that runs in a nursery."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, server.talk, listeners)
    port = listeners[0].socket.getsockname()[1]
    return Connection(Place(host="127.0.0.1", port=port))


async def test_answers_come_whole_over_one_connection() -> None:
    """However they are cut up, and whatever the case of their headers."""
    server = Server(
        [b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 8\r\n\r\n", b'{"a":', b" 1}"],
        [b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\nX: y\r\n\r\n{}"],
    )
    async with trio.open_nursery() as nursery:
        connection = await connected(server, nursery)
        first = await connection.ask(request_bytes("POST", "/a", {"b": 2}, {"K": "v"}))
        assert (first.status, first.document()) == (200, {"a": 1})
        second = await connection.ask(request_bytes("GET", "/b"))
        assert (second.status, second.document()) == (503, {})
        connection.close()
        nursery.cancel_scope.cancel()
    assert server.connections_count == 1
    assert server.requests[0].startswith(b"POST /a HTTP/1.1\r\n")
    assert b"Content-Length: 8\r\nK: v\r\n\r\n" in server.requests[0]
    assert server.requests[1].endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"],
        [b"HTTP/1.1 200 OK\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n"],
    ],
)
async def test_half_an_answer_is_none(pieces: Sequence[bytes]) -> None:
    """What was asked may have happened, and the connection is made anew the next time."""
    server = Server(pieces)
    async with trio.open_nursery() as nursery:
        connection = await connected(server, nursery)
        with pytest.raises(Lost):
            await connection.ask(request_bytes("GET", "/"))
        server.answers.append([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"])
        assert (await connection.ask(request_bytes("GET", "/"))).status == 200
        connection.close()
        nursery.cancel_scope.cancel()
    assert server.connections_count == 2


async def test_nobody_there_is_a_loss() -> None:
    """A refused connection raises no more than a broken one."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    with pytest.raises(Lost):
        await Connection(Place(host="127.0.0.1", port=port)).ask(b"")


def test_an_answer_that_is_no_json_is_a_loss() -> None:
    """Whoever answered isn't one of ours."""
    with pytest.raises(Lost):
        Answer(status=200, body=b"<html>").document()
