"""Looking whether an instance is there, once: a TCP connection, or an HTTP GET that is a 2xx.

A probe ends within its timeout with a word for why it failed, empty when it didn't. It
follows no redirect and reads no more than the head of an answer.
"""

from urllib.parse import urlsplit

import h11
import trio

from reachnode.model.address import Address
from reachnode.model.liveness import ProbeOrder
from reachnode.world.network import STREAM_ERRORS, Network, Stream

HEAD_BYTES_MAX = 16 * 1024
PORTS = {"http": 80, "https": 443, "grpc": 80, "ws": 80, "wss": 443}


async def probe(order: ProbeOrder, network: Network) -> str:
    """Return why an instance doesn't answer a probe; "" when it does.

    `bad_endpoint`, `timeout`, `refused` (nobody listens, or no way there), `broken` (the
    connection was lost or no HTTP came back), or `status_503` and the like.
    """
    place = address_of(order.endpoint)
    if place is None:
        return "bad_endpoint"
    with trio.move_on_after(order.timeout_seconds):
        try:
            stream = await network.connect(place, order.timeout_seconds)
        except TimeoutError:
            return "timeout"
        except OSError:
            return "refused"
        try:
            return await _look(order, stream, place)
        except STREAM_ERRORS:
            return "broken"
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()
    return "timeout"


async def _look(order: ProbeOrder, stream: Stream, place: Address) -> str:
    """Return why a connected instance doesn't answer."""
    # What isn't HTTP is there when it takes a connection; its own ways of asking come with
    # its channel.
    if order.type != "http" or urlsplit(order.endpoint).scheme != "http":
        return ""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)
    headers = [("Host", str(place)), ("User-Agent", "reachnode-probe"), ("Connection", "close")]
    request = h11.Request(method="GET", target=target_of(order.endpoint), headers=headers)
    head = connection.send(request)
    tail = connection.send(h11.EndOfMessage())
    assert head is not None
    assert tail is not None
    await stream.send(head + tail)
    try:
        return await _status(connection, stream)
    except h11.RemoteProtocolError:
        return "broken"


async def _status(connection: h11.Connection, stream: Stream) -> str:
    """Return why an answer is no good one; its body is left unread."""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive(HEAD_BYTES_MAX))
        elif isinstance(event, h11.Response):
            return "" if 200 <= event.status_code < 300 else f"status_{event.status_code}"
        elif not isinstance(event, h11.InformationalResponse):
            return "broken"


def address_of(endpoint: str) -> Address | None:
    """Return where an endpoint listens, None if it doesn't say."""
    try:
        parts = urlsplit(endpoint)
        port = parts.port if parts.port is not None else PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or not port:
        return None
    return Address(parts.hostname, port)


def target_of(endpoint: str) -> str:
    """Return what to ask an HTTP endpoint for."""
    parts = urlsplit(endpoint)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
