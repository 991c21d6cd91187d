"""The hello over TLS: who gets in, and how each attack ends."""

import random
from collections.abc import Awaitable, Callable

import pytest
import trio

from reachnode.peers.greeting import Speaker, greet_client, greet_server, secure
from reachnode.peers.hello import (
    HELLO_BYTES,
    MAGIC,
    PROOF_BYTES,
    Exchange,
    Hello,
    HelloRefused,
    Lane,
    Refusal,
    Role,
    pack,
)
from reachnode.world.tls import ThrowawayTls, TlsStream, make_throwaway_tls
from tests.fakes import MemoryStream, stream_pair

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
TLS, OTHER_TLS = make_throwaway_tls(), make_throwaway_tls()
dice = random.Random(3)


def speaker(node: str, *, cluster: str = "", keys: tuple[bytes, ...] = (KEY,)) -> Speaker:
    """Return what a node says, with a fresh nonce."""
    return Speaker(
        node=node, cluster=cluster, boot=f"boot of {node}", nonce=dice.randbytes(32), keys=keys
    )


async def serve(
    stream: MemoryStream, me: Speaker | None = None, tls: ThrowawayTls = TLS
) -> Hello | Refusal:
    """Greet a client as n2 would; return what became of it. Closes when refused."""
    try:
        server = await secure(stream, tls.server, is_server=True)
        return await greet_client(
            server, me or speaker("n2"), peers={"n1", "n3"}, certificate=tls.certificate
        )
    except HelloRefused as refused:
        await stream.aclose()
        return refused.refusal


async def dial(
    stream: MemoryStream, me: Speaker | None = None, peer: str = "n2"
) -> Hello | Refusal:
    """Greet a server as n1 would; return what became of it. Closes when refused."""
    try:
        client = await secure(stream, TLS.client, is_server=False)
        return await greet_server(client, me or speaker("n1"), peer=peer, lane=Lane.DATA)
    except HelloRefused as refused:
        await stream.aclose()
        return refused.refusal


async def both(*sides: Callable[[], Awaitable[Hello | Refusal]]) -> list[Hello | Refusal]:
    """Return the outcome of each side, run at once."""
    outcomes: dict[int, Hello | Refusal] = {}

    async def note(place: int, side: Callable[[], Awaitable[Hello | Refusal]]) -> None:
        outcomes[place] = await side()

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            for place, side in enumerate(sides):
                nursery.start_soon(note, place, side)
    return [outcomes[place] for place in range(len(sides))]


async def meet(
    client: Speaker | None = None, server: Speaker | None = None, peer: str = "n2"
) -> list[Hello | Refusal]:
    """Return the outcome of a client and a server that meet."""
    near, far = stream_pair()
    return await both(lambda: dial(near, client, peer), lambda: serve(far, server))


async def attack(script: Callable[[TlsStream], Awaitable[None]]) -> Hello | Refusal:
    """Return what a server makes of a client that follows a script, then hangs up."""
    near, far = stream_pair()

    async def client() -> Refusal:
        tls = TlsStream(near, TLS.client, is_server=False)
        await tls.handshake()
        await script(tls)
        await near.aclose()
        return Refusal.CLOSED

    return (await both(client, lambda: serve(far)))[1]


async def receive_exactly(stream: TlsStream, count: int) -> bytes:
    """Return `count` bytes."""
    data = b""
    while len(data) < count:
        more = await stream.receive(count - len(data))
        assert more, "the server hung up"
        data += more
    return data


async def test_two_peers_learn_of_each_other() -> None:
    """Both sides know who the other is, its boot and its cluster, and the lane."""
    server, client = await meet(speaker("n1", cluster="c"), speaker("n2", cluster=""))
    assert isinstance(server, Hello)
    assert isinstance(client, Hello)
    assert (server.node, server.boot, server.cluster, server.lane) == (
        ("n2", "boot of n2", "", Lane.DATA)
    )
    assert (client.node, client.boot, client.cluster, client.lane) == (
        ("n1", "boot of n1", "c", Lane.DATA)
    )


@pytest.mark.parametrize(
    ("client_keys", "server_keys"),
    [
        ((KEY,), (KEY, OTHER_KEY)),
        ((KEY, OTHER_KEY), (OTHER_KEY, KEY)),
        ((OTHER_KEY, KEY), (OTHER_KEY,)),
    ],
)
async def test_a_secret_can_be_rotated(
    client_keys: tuple[bytes, ...], server_keys: tuple[bytes, ...]
) -> None:
    """At each step from one secret to the next, nodes before and after it still meet."""
    one, two = (speaker("n1", keys=client_keys), speaker("n2", keys=server_keys))
    assert all(isinstance(outcome, Hello) for outcome in await meet(one, two))
    one, two = (speaker("n1", keys=server_keys), speaker("n2", keys=client_keys))
    assert all(isinstance(outcome, Hello) for outcome in await meet(one, two))


async def test_a_wrong_secret_is_refused_by_both() -> None:
    """Neither side takes the other for a peer."""
    assert await meet(speaker("n1", keys=(OTHER_KEY,))) == [Refusal.WRONG_PROOF, Refusal.CLOSED]


async def test_a_client_with_a_wrong_secret_is_refused_by_the_server() -> None:
    """A client that ignores the server's proof doesn't get in by that."""

    async def script(tls: TlsStream) -> None:
        await tls.send(pack(speaker("n1").hello(Role.CLIENT, Lane.DATA)))
        await receive_exactly(tls, HELLO_BYTES + PROOF_BYTES)
        await tls.send(b"p" * PROOF_BYTES)

    assert await attack(script) is Refusal.WRONG_PROOF


async def test_two_clusters_never_meet_and_both_know_why() -> None:
    """A node that was moved to another cluster's addresses is refused by name."""
    outcomes = await meet(speaker("n1", cluster="a"), speaker("n2", cluster="b"))
    assert outcomes == [Refusal.OTHER_CLUSTER, Refusal.OTHER_CLUSTER]


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("n2", Refusal.OWN_ID),
        ("n3", Refusal.WRONG_DIRECTION),
        ("n9", Refusal.UNKNOWN_NODE),
    ],
)
async def test_only_peers_that_should_dial_are_greeted(node: str, why: Refusal) -> None:
    """Others get no answer at all, not even a hello."""
    assert await meet(speaker(node)) == [Refusal.CLOSED, why]


async def test_another_node_at_the_address_is_refused() -> None:
    """A client that dials n3 and reaches n2 hangs up, though n2 knows the secret."""
    assert await meet(peer="n3") == [Refusal.UNKNOWN_NODE, Refusal.CLOSED]


async def test_a_replayed_client_is_refused() -> None:
    """What a client said once is worth nothing on another connection."""
    near, far = stream_pair()
    said: list[bytes] = []

    class Recorded(TlsStream):
        async def send(self, data: bytes) -> None:
            said.append(data)
            await super().send(data)

    async def recorded() -> Hello | Refusal:
        tls = Recorded(near, TLS.client, is_server=False)
        await tls.handshake()
        return await greet_server(tls, speaker("n1"), peer="n2", lane=Lane.DATA)

    assert all(isinstance(one, Hello) for one in await both(recorded, lambda: serve(far)))
    assert list(map(len, said)) == [HELLO_BYTES, PROOF_BYTES]

    async def script(tls: TlsStream) -> None:
        await tls.send(b"".join(said))
        await receive_exactly(tls, HELLO_BYTES + PROOF_BYTES)

    assert await attack(script) is Refusal.WRONG_PROOF


async def test_a_reflected_proof_is_refused() -> None:
    """A client that sends the server's own proof back doesn't get in."""

    async def script(tls: TlsStream) -> None:
        await tls.send(pack(speaker("n1").hello(Role.CLIENT, Lane.DATA)))
        answer = await receive_exactly(tls, HELLO_BYTES + PROOF_BYTES)
        await tls.send(answer[HELLO_BYTES:])

    assert await attack(script) is Refusal.WRONG_PROOF


async def answer_as(script: Callable[[TlsStream, bytes], Awaitable[None]]) -> Hello | Refusal:
    """Return what a client makes of a server that follows a script, then hangs up."""
    near, far = stream_pair()

    async def server() -> Refusal:
        tls = TlsStream(far, TLS.server, is_server=True)
        await tls.handshake()
        await script(tls, await receive_exactly(tls, HELLO_BYTES))
        await far.aclose()
        return Refusal.CLOSED

    return (await both(lambda: dial(near), server))[0]


async def test_a_mirror_is_no_server() -> None:
    """A server that knows no secret and repeats what the client says is refused."""

    async def script(tls: TlsStream, hello: bytes) -> None:
        await tls.send(hello + b"p" * PROOF_BYTES)

    assert await answer_as(script) is Refusal.MALFORMED


async def test_a_replayed_server_is_refused() -> None:
    """An answer given to an earlier client hello is worth nothing."""
    ours = pack(speaker("n2").hello(Role.SERVER, Lane.DATA))
    earlier = Exchange(
        client_hello=pack(speaker("n1").hello(Role.CLIENT, Lane.DATA)),
        server_hello=ours,
        certificate=TLS.certificate,
    )

    async def script(tls: TlsStream, hello: bytes) -> None:
        del hello
        await tls.send(ours + earlier.prove(Role.SERVER, KEY))

    assert await answer_as(script) is Refusal.WRONG_PROOF


async def test_the_client_waits_to_be_accepted() -> None:
    """A proven server that answers the client's proof with nonsense is refused."""

    async def script(tls: TlsStream, hello: bytes) -> None:
        ours = pack(speaker("n2").hello(Role.SERVER, Lane.DATA))
        exchange = Exchange(client_hello=hello, server_hello=ours, certificate=TLS.certificate)
        await tls.send(ours + exchange.prove(Role.SERVER, KEY))
        await receive_exactly(tls, PROOF_BYTES)
        await tls.send(b"\x00")

    assert await answer_as(script) is Refusal.MALFORMED


async def test_nobody_stands_in_the_middle() -> None:
    """Whoever passes every byte on between two peers has to show another certificate."""
    client_end, near = stream_pair()
    far, server_end = stream_pair()

    async def middle() -> Refusal:
        inner = TlsStream(near, OTHER_TLS.server, is_server=True)
        outer = TlsStream(far, OTHER_TLS.client, is_server=False)
        await inner.handshake()
        await outer.handshake()
        await outer.send(await receive_exactly(inner, HELLO_BYTES))
        await inner.send(await receive_exactly(outer, HELLO_BYTES + PROOF_BYTES))
        assert await inner.receive(1) == b""
        await outer.aclose()
        return Refusal.CLOSED

    outcomes = await both(lambda: dial(client_end), middle, lambda: serve(server_end))
    assert outcomes == [Refusal.WRONG_PROOF, Refusal.CLOSED, Refusal.CLOSED]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", Refusal.CLOSED),
        (MAGIC, Refusal.CLOSED),
        (MAGIC + b"\x01", Refusal.CLOSED),
        (MAGIC + b"\x02", Refusal.VERSION),
        (b"GET /", Refusal.MALFORMED),
        (b"\x93\x01\x02\x03\x04", Refusal.MALFORMED),
        (pack(speaker("n1").hello(Role.SERVER, Lane.DATA)), Refusal.MALFORMED),
    ],
)
async def test_anything_but_a_hello_is_refused_at_once(said: bytes, why: Refusal) -> None:
    """The first bytes decide; the server doesn't wait for more."""

    async def script(tls: TlsStream) -> None:
        await tls.send(said)
        if why is not Refusal.CLOSED:
            assert await tls.receive(1) == b""

    assert await attack(script) is why


async def test_other_protocols_are_told_from_hanging_up() -> None:
    """Bytes that are no TLS, and an end before TLS is up, are counted apart."""
    near, far = stream_pair()
    await near.send(b"GET / HTTP/1.1\r\n\r\n")
    assert await serve(far) is Refusal.NOT_TLS
    near, far = stream_pair()
    await near.aclose()
    assert await serve(far) is Refusal.CLOSED


async def test_a_reset_counts_as_hanging_up() -> None:
    """A connection that breaks while a hello is read or sent is an expected refusal."""
    for break_at in ("receive", "send"):
        near, far = stream_pair()
        client, server = await both_secured(near, far)
        if break_at == "send":
            await client.send(pack(speaker("n1").hello(Role.CLIENT, Lane.DATA)))
            far.outgoing.is_broken = True
        else:
            far.reset()
        with pytest.raises(HelloRefused) as raised:
            await greet_client(server, speaker("n2"), peers={"n1"}, certificate=TLS.certificate)
        assert raised.value.refusal is Refusal.CLOSED


async def both_secured(near: MemoryStream, far: MemoryStream) -> tuple[TlsStream, TlsStream]:
    """Return client and server after the handshake."""
    client = TlsStream(near, TLS.client, is_server=False)
    server = TlsStream(far, TLS.server, is_server=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.handshake)
        nursery.start_soon(server.handshake)
    return client, server
