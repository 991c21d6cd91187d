"""TLS over any stream, and certificates that live as long as the process.

A throw-away certificate proves nothing by itself: it gives encryption, and a hash to which
another proof can be bound. Who uses it must bring that proof (see `reachnode.peers.hello`).
"""

import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reachnode.world.network import Stream

RECEIVE_BYTES = 65536


class TlsStream:
    """A `Stream` whose bytes cross another one encrypted.

    Call `handshake` first, under a deadline of your own.
    """

    def __init__(self, stream: Stream, context: ssl.SSLContext, *, is_server: bool) -> None:
        # An end without close_notify counts as an end: what goes over the stream says itself
        # where a message stops, and closing need not wait for a peer that may be gone.
        self._tls = trio.SSLStream(
            _Transport(stream), context, server_side=is_server, https_compatible=True
        )

    async def handshake(self) -> None:
        """Agree on keys.

        Raises:
            trio.BrokenResourceError: The other side does not speak TLS as the context asks.
        """
        await self._tls.do_handshake()

    def peer_certificate(self) -> bytes:
        """Return the certificate the other side showed, as DER; empty when none."""
        return self._tls.getpeercert(binary_form=True) or b""

    async def receive(self, max_bytes: int) -> bytes:
        """Return what came, up to `max_bytes`."""
        return bytes(await self._tls.receive_some(max_bytes))

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""
        await self._tls.send_all(data)

    async def aclose(self) -> None:
        """Close the stream below."""
        await self._tls.aclose()


class _Transport(trio.abc.Stream):
    """Our stream in the shape trio's TLS asks for."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self._stream.receive(max_bytes or RECEIVE_BYTES)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send(bytes(data))

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await self._stream.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrowawayTls:
    """The two sides of TLS 1.3 with a certificate nobody vouches for."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    """Takes any certificate: whoever uses it checks the other side by other means."""
    certificate: bytes
    """What the server shows, as DER."""


def make_throwaway_tls() -> ThrowawayTls:
    """Return contexts with a fresh P-256 key that is kept in memory alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _self_signed(key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.minimum_version = ssl.TLSVersion.TLSv1_3
    server.num_tickets = 0  # Sessions are never resumed: each connection proves itself anew.
    _load(server, key, certificate)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    return ThrowawayTls(
        server=server,
        client=client,
        certificate=certificate.public_bytes(serialization.Encoding.DER),
    )


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "reachnode peer")])
    # Nobody reads the dates, so they don't depend on a clock that may be wrong at start.
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 12, 31, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )


def _load(
    context: ssl.SSLContext, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    # The ssl module reads keys from files alone. This one is private to us, and gone at once.
    with tempfile.TemporaryDirectory(prefix="reachnode-") as directory:
        path = Path(directory) / "peer.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context.load_cert_chain(path)
