"""Several services over one mesh."""

from dataclasses import dataclass, field

import pytest

from reachnode.peers.frames import LinkBroken
from reachnode.peers.hello import Lane
from reachnode.peers.switchboard import Channel, Switchboard


@dataclass(slots=True)
class Service:
    """Notes what it is told."""

    heard: list[tuple[object, ...]] = field(default_factory=list)

    def up(self, peer: str, lane: Lane) -> None:
        """Note a connection."""
        self.heard.append(("up", peer, lane))

    def down(self, peer: str, lane: Lane) -> None:
        """Note the end of a connection."""
        self.heard.append(("down", peer, lane))

    def message(self, peer: str, lane: Lane, data: bytes) -> None:
        """Note a message."""
        self.heard.append(("message", peer, lane, data))


@dataclass(slots=True)
class Wire:
    """Notes what is sent."""

    sent: list[tuple[str, Lane, bytes]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def send(self, peer: str, lane: Lane, data: bytes) -> bool:
        """Note a message; n9 isn't connected."""
        self.sent.append((peer, lane, data))
        return peer != "n9"

    def disconnect(self, peer: str) -> None:
        """Note whom to break off with."""
        self.broken.append(peer)


def test_a_message_reaches_its_own_service_alone() -> None:
    """What one port sends, the service on the same channel at the other end hears, unchanged."""
    here, there = Switchboard(), Switchboard()
    here.sender = wire = Wire()
    port = here.attach(Channel.GOSSIP, Service())
    consensus, gossip = Service(), Service()
    there.attach(Channel.CONSENSUS, consensus)
    there.attach(Channel.GOSSIP, gossip)
    assert port.send("n2", Lane.DATA, b"hello")
    there.message("n1", *wire.sent[0][1:])
    assert gossip.heard == [("message", "n1", Lane.DATA, b"hello")]
    assert consensus.heard == []


def test_every_service_hears_of_connections() -> None:
    """All of them, in the order in which they were attached."""
    board = Switchboard()
    first, second = Service(), Service()
    board.attach(Channel.CONSENSUS, first)
    board.attach(Channel.FORWARD, second)
    board.up("n2", Lane.CONSENSUS)
    board.down("n2", Lane.CONSENSUS)
    for service in (first, second):
        assert service.heard == [("up", "n2", Lane.CONSENSUS), ("down", "n2", Lane.CONSENSUS)]


def test_a_channel_of_a_newer_node_is_passed_over() -> None:
    """So that one node at a time can be upgraded."""
    board = Switchboard()
    service = Service()
    board.attach(Channel.CONSENSUS, service)
    board.message("n2", Lane.CONSENSUS, b"\xffnew")
    assert service.heard == []


def test_a_message_of_nothing_breaks_the_connection() -> None:
    """No node of ours sends one."""
    with pytest.raises(LinkBroken):
        Switchboard().message("n2", Lane.CONSENSUS, b"")


def test_a_port_sends_nothing_without_a_mesh() -> None:
    """Before the mesh is made, and to whom it isn't connected, the answer is no."""
    board = Switchboard()
    port = board.attach(Channel.CONSENSUS, Service())
    assert not port.send("n2", Lane.CONSENSUS, b"x")
    port.disconnect("n2")
    board.sender = wire = Wire()
    assert not port.send("n9", Lane.CONSENSUS, b"x")
    port.disconnect("n2")
    assert wire.broken == ["n2"]
