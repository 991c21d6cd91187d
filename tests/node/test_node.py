"""One node, from its start to its end."""

import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from reachnode.model.address import Address
from reachnode.model.config import NodeConfig
from reachnode.model.membership import ReplicaStatus
from reachnode.node.node import Node, StartError, Told
from reachnode.peers.raft.failstop import FailStop
from tests.fakes import MemoryNetwork, MemoryStream, SeededSources
from tests.node.running_replica import PEER_ADDRESS, RunningReplica
from tests.serve.client import Got, read_answer, request_bytes
from tests.serve.local_replica import ALONE, PAIR

LISTEN = NodeConfig().listen


class Life:
    """A node in memory, what it told, and the signals it is sent."""

    def __init__(self, config: NodeConfig | None = None) -> None:
        self.replica = RunningReplica(now=PAIR, takes_over=True)
        self.network = MemoryNetwork()
        self.told: list[object] = []
        self.is_ready = trio.Event()
        self.signals, self._signals = trio.open_memory_channel[int](2)
        self.node = Node(
            config=config or NodeConfig(),
            replica=self.replica,
            network=self.network,
            sources=SeededSources(),
            told=Told(
                ready=self._ready,
                stopping=lambda: self.told.append("stopping"),
                hurry=lambda: self.told.append("hurry"),
            ),
        )

    def _ready(self, listen: Address, peer_listen: Address) -> None:
        self.told.append((listen, peer_listen))
        self.is_ready.set()

    async def run(self) -> None:
        await self.node.run(aiter_of(self._signals))

    async def ask(self, client: MemoryStream, method: str, path: str, body: object = None) -> Got:
        await client.send(request_bytes(method, path, body))
        return read_answer(await client.receive(65536))


async def aiter_of(channel: trio.MemoryReceiveChannel[int]) -> AsyncIterator[int]:
    """Yield signals as they come."""
    async for one in channel:
        yield one


async def test_a_node_lives_and_drains(autojump_clock: Any) -> None:
    """It says where it listens, serves, and ends at the first signal, leadership handed over."""
    life = Life()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await life.is_ready.wait()
        client = await life.network.connect(LISTEN, 1)
        assert (await life.ask(client, "POST", "/register", {"agent_id": "a"})).status == 201
        metrics = await life.ask(client, "GET", "/metrics")
        assert "reachnode_link_accepted_total 3" in metrics.body.decode()
        await life.signals.send(signal.SIGTERM)
    assert life.told == [(LISTEN, PEER_ADDRESS), "stopping"]
    assert life.replica.transfers_count == 1
    with pytest.raises(OSError, match="nobody listens"):
        await life.network.connect(LISTEN, 1)


async def test_requests_in_flight_have_drain_seconds(autojump_clock: Any) -> None:
    """Whoever is still sending is waited for, but not for ever; then leadership goes."""
    life = Life(NodeConfig(drain_seconds=3))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await life.is_ready.wait()
        client = await life.network.connect(LISTEN, 1)
        await client.send(request_bytes("GET", "/ready")[:-1])
        await trio.testing.wait_all_tasks_blocked()
        await life.signals.send(signal.SIGTERM)
        await trio.sleep(1)
        assert life.replica.transfers_count == 0
        await client.send(b"\n")
        got = read_answer(await client.receive(65536))
        assert (got.status, got.json["reason"]) == (503, "shutting_down")
    assert trio.current_time() < 3


async def test_a_second_signal_is_not_waited_for(autojump_clock: Any) -> None:
    """Whoever asks twice means now."""
    life = Life()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await life.is_ready.wait()
        client = await life.network.connect(LISTEN, 1)
        await client.send(b"GET")
        await trio.testing.wait_all_tasks_blocked()
        await life.signals.send(signal.SIGTERM)
        await life.signals.send(signal.SIGINT)
        await trio.testing.wait_all_tasks_blocked()
        assert life.told[1:] == ["stopping", "hurry", "stopping"]


async def test_a_signal_before_it_is_ready_counts(autojump_clock: Any) -> None:
    """A node that is told to stop while it starts stops."""
    life = Life()
    await life.signals.send(signal.SIGTERM)
    await life.run()
    assert "stopping" in life.told


@pytest.mark.parametrize(("status", "seconds"), [(ALONE, 0.0), (PAIR, 2.0)])
async def test_handing_over_is_not_waited_for_long(
    autojump_clock: Any, status: ReplicaStatus, seconds: float
) -> None:
    """A node alone ends at once, one whose successor isn't ready after two seconds."""
    life = Life()
    life.replica.now, life.replica.takes_over = status, False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await life.is_ready.wait()
        await life.signals.send(signal.SIGTERM)
    assert trio.current_time() == seconds


async def test_damage_ends_the_node() -> None:
    """A fail-stop leaves the node at once, inside a group."""
    life = Life()
    life.replica.fault = FailStop(73, "digest_mismatch", "at index 7")
    with pytest.RaisesGroup(FailStop, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(life.run)
            await life.is_ready.wait()
            life.replica.breaks.set()


async def test_a_taken_address_is_said() -> None:
    """The error names the setting and the address."""
    life = Life()
    await life.network.listen(LISTEN)
    with pytest.raises(StartError, match=r"node.listen: 127.0.0.1:7400 can't be listened on"):
        await life.run()


@pytest.mark.parametrize(
    ("listen", "peer_listen", "status"),
    [
        ("127.0.0.1", "127.0.0.1", 201),
        ("10.0.0.1", "127.0.0.1", 422),
        ("127.0.0.1", "10.0.0.1", 422),
    ],
)
async def test_only_a_local_node_takes_local_agents(
    autojump_clock: Any, listen: str, peer_listen: str, status: int
) -> None:
    """Clients and peers on loopback, or an endpoint there means another place for each node."""
    place = Address(listen, 7400)
    peers = Address(peer_listen, 7401)
    life = Life(NodeConfig(listen=place, peer_listen=peers, insecure=True))
    capability = {"name": "demo.echo", "endpoint": "http://127.0.0.1:9/"}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        await life.is_ready.wait()
        client = await life.network.connect(place, 1)
        body = {"agent_id": "a", "capabilities": [capability]}
        assert (await life.ask(client, "POST", "/register", body)).status == status
        await life.signals.send(signal.SIGTERM)
    assert life.node.lookout.gossip.client_address == str(place)
