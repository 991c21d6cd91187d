"""Strangers at the peer port of a real node: closed, counted, and nothing grows."""

import contextlib
import http.client
import random
import re
import signal
import socket
from pathlib import Path

import trio

from reachnode.model.address import Address
from reachnode.peers.greeting import Speaker, greet_server
from reachnode.peers.hello import (
    HELLO_BYTES,
    NONCE_BYTES,
    PROOF_BYTES,
    PURPOSE,
    Exchange,
    Lane,
    Role,
    pack,
)
from reachnode.peers.secrets import ClusterSecrets
from reachnode.world.network import SystemNetwork
from reachnode.world.tls import TlsStream, make_throwaway_tls
from tests.e2e.processes import SECONDS_MAX, NodeProcess, cluster_of, running
from tests.e2e.test_three_nodes import leader_of

NOISE_BYTES = 1_000_000
GROWTH_KIB_MAX = 4096


def place_of(node: NodeProcess) -> Address:
    """Return where a node's peers connect."""
    listed = node.arguments[node.arguments.index("--peers") + 1]
    peers = dict(peer.split("=") for peer in listed.split(","))
    return Address.parse(peers[node.node_id])


def noise(node: NodeProcess, dice: random.Random) -> None:
    """Send a million random bytes, in one connection and in many."""
    place = place_of(node)
    sizes = [NOISE_BYTES, *(dice.randint(1, 20_000) for _ in range(100))]
    for size in sizes:
        stranger = socket.create_connection((place.host, place.port))
        with stranger, contextlib.suppress(OSError):  # It hangs up on us, and rightly so.
            stranger.sendall(dice.randbytes(size))
            stranger.shutdown(socket.SHUT_WR)
            while stranger.recv(65536):
                pass


def resident_kib(node: NodeProcess) -> int:
    """Return how much memory a node's process has, in KiB."""
    assert node.process is not None
    text = Path(f"/proc/{node.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    assert found
    return int(found[1])


def counted(node: NodeProcess, name: str) -> int:
    """Return one counter of a node's peer links."""
    connection = http.client.HTTPConnection(*node.place, timeout=SECONDS_MAX)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    found = re.search(rf"^reachnode_link_{name}_total (\d+)$", metrics, re.MULTILINE)
    assert found, metrics
    return int(found[1])


def term_of(node: NodeProcess) -> int:
    """Return the term a node is in: it grows with every election."""
    return int(node.ask("GET", "/api/v1/cluster")[1]["term"])


def test_noise_leaves_nothing_behind(tmp_path: Path) -> None:
    """Closed every time; a counter rises, the memory doesn't, and the leader stays."""
    nodes = cluster_of(3, tmp_path)
    dice = random.Random(1)
    with running(*nodes):
        leader = leader_of(nodes)
        noise(leader, dice)  # The first strangers warm it up.
        before, term = resident_kib(leader), term_of(leader)
        refused = counted(leader, "accept_not_tls") + counted(leader, "accept_closed")
        for _ in range(3):
            noise(leader, dice)
        since = counted(leader, "accept_not_tls") + counted(leader, "accept_closed") - refused
        assert since >= 3 * 101
        assert resident_kib(leader) - before < GROWTH_KIB_MAX
        leader.insist("POST", "/register", {"agent_id": "a"}, key="k1")
        assert (leader_of(nodes), term_of(leader)) == (leader, term)


def test_a_wrong_secret_and_a_replay_stay_outside(tmp_path: Path) -> None:
    """Who knows another secret, or what a member once said, is closed and counted."""
    nodes = cluster_of(3, tmp_path)
    with running(*nodes):
        first, second, third = nodes
        first.insist("POST", "/register", {"agent_id": "a"}, key="k1")
        while leader_of(nodes) is first:
            first.ask("POST", "/api/v1/cluster/transfer")
        # Only a member may say what is replayed, so one of them leaves its place to the test.
        first.stop(signal.SIGKILL)
        cluster_id = second.ask("GET", "/api/v1/cluster")[1]["cluster_id"]
        term = term_of(third)
        secrets = ClusterSecrets.read(tmp_path / "secret")
        said = trio.run(greet, place_of(second), secrets, cluster_id)
        assert [len(one) for one in said] == [HELLO_BYTES, PROOF_BYTES]
        trio.run(repeat, place_of(second), said)
        assert counted(second, "accept_wrong_proof") == 1
        trio.run(pretend, place_of(second), ClusterSecrets(b"o" * 43), cluster_id)
        assert counted(second, "accept_wrong_proof") == 2
        second.insist("POST", "/register", {"agent_id": "b"}, key="k2")
        assert term_of(third) == term


class Recorded(TlsStream):
    """A stream that remembers what was sent over it."""

    said: tuple[bytes, ...] = ()

    async def send(self, data: bytes) -> None:
        """Send and remember."""
        self.said += (data,)
        await super().send(data)


def speaker(secrets: ClusterSecrets, cluster_id: str) -> Speaker:
    """Return what n1 says of itself, proven with a secret."""
    return Speaker(
        node="n1",
        cluster=cluster_id,
        boot="b" * 32,
        nonce=random.Random(2).randbytes(NONCE_BYTES),
        keys=secrets.keys(PURPOSE),
    )


async def opened(place: Address) -> Recorded:
    """Return a connection that speaks TLS."""
    stream = await SystemNetwork().connect(place, SECONDS_MAX)
    tls = Recorded(stream, make_throwaway_tls().client, is_server=False)
    await tls.handshake()
    return tls


async def greet(place: Address, secrets: ClusterSecrets, cluster_id: str) -> tuple[bytes, ...]:
    """Be let in as n1, and return everything that was said for it."""
    tls = await opened(place)
    await greet_server(tls, speaker(secrets, cluster_id), peer="n2", lane=Lane.DATA)
    await tls.aclose()
    return tls.said


async def repeat(place: Address, said: tuple[bytes, ...]) -> None:
    """Say what somebody said before."""
    tls = await opened(place)
    await tls.send(b"".join(said))
    await hear_no_more_than_a_hello(tls)


async def pretend(place: Address, secrets: ClusterSecrets, cluster_id: str) -> None:
    """Prove as well as somebody can who knows another secret."""
    tls = await opened(place)
    ours = pack(speaker(secrets, cluster_id).hello(Role.CLIENT, Lane.DATA))
    await tls.send(ours)
    theirs = b""
    while len(theirs) < HELLO_BYTES:
        theirs += await tls.receive(HELLO_BYTES - len(theirs))
    exchange = Exchange(client_hello=ours, server_hello=theirs, certificate=tls.peer_certificate())
    await tls.send(exchange.prove(Role.CLIENT, secrets.keys(PURPOSE)[0]))
    await hear_no_more_than_a_hello(tls)


async def hear_no_more_than_a_hello(tls: TlsStream) -> None:
    """Take what the node still says before it hangs up: its own hello, no word of welcome."""
    heard = b""
    with contextlib.suppress(trio.BrokenResourceError), trio.fail_after(SECONDS_MAX):
        while data := await tls.receive(65536):
            heard += data
    assert len(heard) <= HELLO_BYTES + PROOF_BYTES
    await tls.aclose()
