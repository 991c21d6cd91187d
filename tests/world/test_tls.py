"""TLS with throw-away certificates over any stream."""

import ssl
import tempfile
from pathlib import Path

import pytest
import trio

from reachnode.world.tls import ThrowawayTls, TlsStream, make_throwaway_tls
from tests.fakes import MemoryStream, stream_pair


@pytest.fixture(name="tls", scope="module")
def tls_fixture() -> ThrowawayTls:
    """Give one pair of contexts."""
    return make_throwaway_tls()


async def secured(tls: ThrowawayTls) -> tuple[TlsStream, TlsStream, MemoryStream]:
    """Return client and server after the handshake, and the client's end below."""
    near, far = stream_pair()
    client = TlsStream(near, tls.client, is_server=False)
    server = TlsStream(far, tls.server, is_server=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.handshake)
        nursery.start_soon(server.handshake)
    return client, server, near


async def test_bytes_cross_and_nobody_reads_them(tls: ThrowawayTls) -> None:
    """Both directions carry what was sent, and the wire shows none of it."""
    client, server, below = await secured(tls)
    await client.send(b"from the client")
    assert await server.receive(5) == b"from "
    assert await server.receive(99) == b"the client"
    await server.send(b"from the server")
    assert await client.receive(99) == b"from the server"
    assert b"from" not in below.outgoing.seen + below.incoming.seen


async def test_the_client_sees_the_certificate_of_the_server(tls: ThrowawayTls) -> None:
    """Both sides know the same bytes to bind a proof to; the client itself shows none."""
    client, server, _ = await secured(tls)
    assert client.peer_certificate() == tls.certificate
    assert server.peer_certificate() == b""


async def test_every_start_has_a_certificate_of_its_own(tls: ThrowawayTls) -> None:
    """Two makers never show the same certificate."""
    assert make_throwaway_tls().certificate != tls.certificate


async def test_closing_is_an_end_for_the_other_side(tls: ThrowawayTls) -> None:
    """An end without farewell is an end, not an error; closing twice is fine."""
    client, server, below = await secured(tls)
    await client.aclose()
    await client.aclose()
    assert await server.receive(1) == b""
    client, server, below = await secured(tls)
    await below.aclose()
    assert await server.receive(1) == b""


async def test_closing_waits_for_nobody(tls: ThrowawayTls) -> None:
    """A stream that is full is closed at once, without a farewell."""
    client, _, below = await secured(tls)
    below.outgoing.room_bytes = 0
    with trio.fail_after(5):
        await client.aclose()
    assert below.is_closed


async def test_only_tls_1_3_is_spoken(tls: ThrowawayTls) -> None:
    """A client that knows no better than 1.2 is refused."""
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname = False
    old.verify_mode = ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ExceptionGroup) as raised:
        await secured(ThrowawayTls(server=tls.server, client=old, certificate=b""))
    assert raised.group_contains(trio.BrokenResourceError)


async def test_what_is_no_tls_is_refused(tls: ThrowawayTls) -> None:
    """Other bytes break the handshake."""
    near, far = stream_pair()
    await near.send(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(trio.BrokenResourceError):
        await TlsStream(far, tls.server, is_server=True).handshake()


def test_the_key_stays_on_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file the key has to pass through is gone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make_throwaway_tls()
    assert list(tmp_path.iterdir()) == []
