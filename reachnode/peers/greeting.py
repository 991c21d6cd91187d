"""Carrying out the hello of `reachnode.peers.hello` over a fresh connection.

Both sides raise `HelloRefused` for whatever goes wrong, broken connections included. Neither
has a deadline of its own: the caller sets one over the whole greeting.
"""

import ssl
from collections.abc import Collection
from dataclasses import dataclass

from reachnode.peers.hello import (
    ACCEPTED,
    HELLO_BYTES,
    PREFIX_BYTES,
    PROOF_BYTES,
    Exchange,
    Hello,
    HelloRefused,
    Lane,
    Refusal,
    Role,
    check_client,
    check_clusters,
    check_prefix,
    check_server,
    pack,
    unpack,
)
from reachnode.world.network import STREAM_ERRORS, Stream
from reachnode.world.tls import TlsStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """What this node says of itself in one hello."""

    node: str
    cluster: str
    boot: str
    nonce: bytes
    keys: tuple[bytes, ...]
    """The key to prove with, then others that are accepted. Never sent."""

    def hello(self, role: Role, lane: Lane) -> Hello:
        """Return the hello to send."""
        return Hello(
            role=role,
            lane=lane,
            node=self.node,
            cluster=self.cluster,
            boot=self.boot,
            nonce=self.nonce,
        )


async def secure(stream: Stream, context: ssl.SSLContext, *, is_server: bool) -> TlsStream:
    """Return the stream with TLS over it.

    Raises:
        HelloRefused: The other side doesn't speak TLS 1.3, or hung up.
    """
    tls = TlsStream(stream, context, is_server=is_server)
    try:
        await tls.handshake()
    except STREAM_ERRORS as error:
        cause = error.__cause__
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            raise HelloRefused(Refusal.NOT_TLS, "the other side doesn't speak TLS 1.3") from error
        raise _hung_up() from error
    return tls


async def greet_server(stream: TlsStream, me: Speaker, *, peer: str, lane: Lane) -> Hello:
    """Greet the server we dialed; return what it said once both sides are proven.

    Raises:
        HelloRefused: It is not `peer` of our cluster, or it refused us.
    """
    ours = pack(me.hello(Role.CLIENT, lane))
    await _send(stream, ours)
    theirs = await _receive_hello(stream)
    proof = await _receive_exactly(stream, PROOF_BYTES)
    hello = unpack(theirs, Role.SERVER)
    exchange = Exchange(
        client_hello=ours, server_hello=theirs, certificate=stream.peer_certificate()
    )
    exchange.check_proof(Role.SERVER, proof, me.keys, node=peer)
    check_server(hello, peer=peer, lane=lane)
    # Proven before the clusters are compared, so that the server can trust what it then logs.
    await _send(stream, exchange.prove(Role.CLIENT, me.keys[0]))
    check_clusters(me.cluster, hello)
    if await _receive_exactly(stream, len(ACCEPTED)) != ACCEPTED:
        raise HelloRefused(Refusal.MALFORMED, f"{peer} answered the proof with something else")
    return hello


async def greet_client(
    stream: Stream, me: Speaker, *, peers: Collection[str], certificate: bytes
) -> Hello:
    """Greet a client that came in; return what it said once both sides are proven.

    Args:
        stream: What the client opened.
        me: What we say.
        peers: Ids of the nodes that may come in.
        certificate: Ours, as DER, that the client was shown.

    Raises:
        HelloRefused: It is no peer of ours, or it left.
    """
    theirs = await _receive_hello(stream)
    hello = unpack(theirs, Role.CLIENT)
    check_client(hello, me=me.node, peers=peers)
    ours = pack(me.hello(Role.SERVER, hello.lane))
    exchange = Exchange(client_hello=theirs, server_hello=ours, certificate=certificate)
    await _send(stream, ours + exchange.prove(Role.SERVER, me.keys[0]))
    proof = await _receive_exactly(stream, PROOF_BYTES)
    exchange.check_proof(Role.CLIENT, proof, me.keys, node=hello.node)
    check_clusters(me.cluster, hello)
    await _send(stream, ACCEPTED)
    return hello


async def _receive_hello(stream: Stream) -> bytes:
    prefix = await _receive_exactly(stream, PREFIX_BYTES)
    # At once, before waiting for the rest: another version may be shorter.
    check_prefix(prefix)
    return prefix + await _receive_exactly(stream, HELLO_BYTES - PREFIX_BYTES)


async def _receive_exactly(stream: Stream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        try:
            more = await stream.receive(count - len(data))
        except STREAM_ERRORS as error:
            raise _hung_up() from error
        if not more:
            raise _hung_up()
        data += more
    return data


async def _send(stream: Stream, data: bytes) -> None:
    try:
        await stream.send(data)
    except STREAM_ERRORS as error:
        raise _hung_up() from error


def _hung_up() -> HelloRefused:
    return HelloRefused(Refusal.CLOSED, "the other side hung up before the hello was done")
