"""Meshes for tests: whole nodes' worth of links, and notes of what they told."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial

import trio

from reachnode.model.address import Address
from reachnode.peers.hello import Lane
from reachnode.peers.link import LinkSettings
from reachnode.peers.mesh import Mesh
from reachnode.peers.secrets import ClusterSecrets
from reachnode.world.network import Network, SystemNetwork
from reachnode.world.tls import TlsStream, make_throwaway_tls
from tests.fakes import SeededSources

SECRETS = ClusterSecrets(b"s" * 32)
OTHER_SECRETS = ClusterSecrets(b"o" * 32)
PLACES = {node: Address(node, 7401) for node in ("n1", "n2", "n3")}
LOOPBACK = Address("127.0.0.1", 0)
BOTH_UP = [("up", Lane.CONSENSUS), ("up", Lane.DATA)]


class Recorder:
    """Takes notes, and lets a test wait for what it needs to see."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, Lane, bytes]] = []
        self.on_message: Callable[[str, Lane, bytes], None] | None = None
        self._changed = trio.Event()

    def up(self, peer: str, lane: Lane) -> None:
        """Note a link."""
        self._note("up", peer, lane)

    def down(self, peer: str, lane: Lane) -> None:
        """Note its end."""
        self._note("down", peer, lane)

    def message(self, peer: str, lane: Lane, data: bytes) -> None:
        """Note a message."""
        self._note("message", peer, lane, data)
        if self.on_message:
            self.on_message(peer, lane, data)

    def _note(self, what: str, peer: str, lane: Lane, data: bytes = b"") -> None:
        self.notes.append((what, peer, lane, data))
        self._changed.set()
        self._changed = trio.Event()

    def links(self, lane: Lane | None = None) -> list[tuple[str, Lane]]:
        """Return the ups and downs, sorted where both lanes are asked for."""
        notes = [(what, where) for what, _, where, _ in self.notes if what != "message"]
        return sorted(notes) if lane is None else [one for one in notes if one[1] is lane]

    def messages(self, lane: Lane = Lane.DATA) -> list[bytes]:
        """Return what came on a lane."""
        return [data for what, _, where, data in self.notes if (what, where) == ("message", lane)]

    async def until(self, is_seen: Callable[[], bool]) -> None:
        """Wait until the notes show something; 30 s at most."""
        with trio.fail_after(30):
            while not is_seen():
                await self._changed.wait()


class Node:
    """A mesh and its notes."""

    def __init__(
        self,
        me: str,
        network: Network,
        *,
        peers: Mapping[str, Address] = PLACES,
        listen: Address | None = None,
        secrets: ClusterSecrets = SECRETS,
        cluster: str = "c",
        settings: LinkSettings | None = None,
    ) -> None:
        self.notes = Recorder()
        self.mesh = Mesh(
            me=me,
            peers=peers,
            listen=listen or PLACES[me],
            network=network,
            sources=SeededSources(int(me[1:])),
            secrets=secrets,
            cluster_id=lambda: cluster,
            boot_id=f"boot of {me}",
            events=self.notes,
            settings=settings or LinkSettings(),
        )
        self._scope = trio.CancelScope()

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run until stopped."""
        with self._scope:
            await self.mesh.run(task_status=task_status)

    def stop(self) -> None:
        """Stop the mesh."""
        self._scope.cancel()

    def counted(self) -> dict[str, int]:
        """Return the refusals and ends that were counted."""
        names = ("accept_", "dial_", "end_")
        return {
            name: count
            for name, count in self.mesh.counters.items()
            if count and name.startswith(names)
        }


@asynccontextmanager
async def running(*nodes: Node) -> AsyncIterator[trio.Nursery]:
    """Run nodes while a test looks at them."""
    async with trio.open_nursery() as nursery:
        for node in nodes:
            await nursery.start(node.run)
        yield nursery
        nursery.cancel_scope.cancel()


def is_linked(node: Node, count: int) -> bool:
    """Say whether a node has so many links."""
    return len(node.mesh.connected()) == count


async def all_linked(nodes: Iterable[Node], *, count: int) -> None:
    """Wait until each of the nodes has so many links."""
    for node in nodes:
        await node.notes.until(partial(is_linked, node, count))


def pair_of(network: Network) -> tuple[Node, Node]:
    """Return n1 and n2, who know of each other alone."""
    peers = {node: PLACES[node] for node in ("n1", "n2")}
    return Node("n1", network, peers=peers), Node("n2", network, peers=peers)


async def start_on_loopback(
    nursery: trio.Nursery, *, settings: LinkSettings | None = None
) -> list[Node]:
    """Return three running nodes on loopback, the greatest id first."""
    places = dict.fromkeys(PLACES, LOOPBACK)
    nodes = []
    for me in sorted(places, reverse=True):
        network = SystemNetwork()
        node = Node(me, network, peers=dict(places), listen=LOOPBACK, settings=settings)
        places[me] = await nursery.start(node.run)
        nodes.append(node)
    return nodes


def place_of(node: Node, seen_by: Node) -> Address:
    """Return where a node listens, as another was told."""
    return seen_by.mesh._peers[node.mesh._me]


async def say(place: Address, data: bytes) -> None:
    """Say something to a listener as a stranger, and wait until it hangs up."""
    stream = await trio.open_tcp_stream(place.host, place.port)
    try:
        await stream.send_all(data)
        with trio.fail_after(10):
            while await stream.receive_some():
                pass
    except trio.BrokenResourceError:
        pass  # The listener hung up while we spoke.
    await stream.aclose()


async def say_inside_tls(place: Address, data: bytes) -> None:
    """Do the same inside TLS, which anybody can speak."""
    stream = await SystemNetwork().connect(place, 5)
    tls = TlsStream(stream, make_throwaway_tls().client, is_server=False)
    await tls.handshake()
    try:
        await tls.send(data)
        while await tls.receive(65536):
            pass
    except trio.BrokenResourceError:
        pass  # The listener hung up while we spoke.
    await tls.aclose()
