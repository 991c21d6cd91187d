"""Looking whether an instance is there."""

import pytest
import trio
from trio.testing import MockClock

from reachnode.channels.probe import address_of, probe, target_of
from reachnode.model.address import Address
from reachnode.model.liveness import ProbeOrder
from tests.fakes import MemoryNetwork, MemoryStream

PLACE = Address("10.0.0.9", 9000)


def order(endpoint: str = "http://10.0.0.9:9000/health?deep=1", kind: str = "http") -> ProbeOrder:
    """Return a probe of an instance with two seconds to answer."""
    return ProbeOrder(
        agent_id="a1",
        incarnation=1,
        type=kind,  # type: ignore[arg-type]  # the test names a kind
        endpoint=endpoint,
        timeout_seconds=2.0,
    )


async def seen(answer: bytes | None, one: ProbeOrder | None = None) -> tuple[str, bytes]:
    """Return what a probe finds at an instance that says `answer`, and what it was asked.

    None: it takes the connection and says nothing.
    """
    network = MemoryNetwork()
    listener = await network.listen(PLACE)
    found: list[str] = []
    async with trio.open_nursery() as nursery:

        async def look() -> None:
            found.append(await probe(one or order(), network))
            nursery.cancel_scope.cancel()

        nursery.start_soon(look)
        stream: MemoryStream = await listener.accept()
        if answer is not None:
            await stream.send(answer)
            await stream.aclose()
        await trio.Event().wait()
    return found[0], bytes(network.pairs[0][0].outgoing.seen)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", ""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", ""),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "status_503"),
        (b"HTTP/1.1 302 Elsewhere\r\nLocation: /\r\n\r\n", "status_302"),
        (b"SSH-2.0-x\r\n", "broken"),
        (b"HTTP/1.1 200", "broken"),
        (b"", "broken"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 40_000, "broken"),
    ],
)
async def test_an_http_instance_answers_with_a_2xx(answer: bytes, fault: str) -> None:
    """Anything else is a word for what came instead."""
    assert (await seen(answer))[0] == fault


async def test_an_instance_is_asked_at_its_own_path() -> None:
    """With its host, and nothing left open behind."""
    _, asked = await seen(b"HTTP/1.1 200 OK\r\n\r\n")
    head = asked.decode().lower()
    assert head.startswith("get /health?deep=1 http/1.1\r\n")
    assert "host: 10.0.0.9:9000\r\n" in head
    assert "connection: close\r\n" in head


async def test_silence_is_a_timeout(autojump_clock: MockClock) -> None:
    """After the probe's own time, however the instance holds the connection."""
    began_at = trio.current_time()
    assert (await seen(None))[0] == "timeout"
    assert trio.current_time() - began_at == pytest.approx(2.0)
    _ = autojump_clock


async def test_no_way_there_is_told_apart_from_no_answer(autojump_clock: MockClock) -> None:
    """Refused at once, or nobody answering."""
    network = MemoryNetwork()
    assert await probe(order(), network) == "refused"
    network.is_mute = True
    assert await probe(order(), network) == "timeout"
    _ = autojump_clock


@pytest.mark.parametrize("kind", ["tcp", "grpc", "websocket"])
async def test_others_are_there_when_they_take_a_connection(kind: str) -> None:
    """Nothing is said to them."""
    assert await seen(b"", order(kind=kind)) == ("", b"")


async def test_an_endpoint_without_a_place_is_bad() -> None:
    """No connection is tried."""
    for endpoint in ("", "/relative", "http://", "http://h:99999/", "mystery://h/", "http://[::1"):
        assert await probe(order(endpoint), MemoryNetwork()) == "bad_endpoint"


async def test_a_connection_that_breaks_is_told() -> None:
    """As when the instance dies while it is asked."""
    network = MemoryNetwork()
    listener = await network.listen(PLACE)
    found: list[str] = []
    async with trio.open_nursery() as nursery:

        async def look() -> None:
            found.append(await probe(order(), network))

        nursery.start_soon(look)
        stream = await listener.accept()
        stream.reset()
    assert found == ["broken"]


def test_ports_and_paths_have_defaults() -> None:
    """As their schemes say."""
    assert address_of("https://h/x") == Address("h", 443)
    assert address_of("http://[::1]:8080") == Address("::1", 8080)
    assert target_of("http://h") == "/"
    assert target_of("http://h/a?b=c") == "/a?b=c"
