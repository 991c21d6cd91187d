"""Several services over one mesh: each message says by its first byte whose it is.

Consensus, gossip and forwarded calls share the two connections of a pair. A service is told
of every connection, hears its own messages only, and sends through a port of its own. Which
connection a message takes, its sender decides: what is large or can wait goes over the data
connection, so that it never delays consensus.
"""

from enum import IntEnum
from typing import Protocol

from reachnode.peers.frames import LinkBroken
from reachnode.peers.hello import Lane
from reachnode.peers.mesh import MeshEvents


class Channel(IntEnum):
    """Whose a message is. A number, once given, is never given to another."""

    CONSENSUS = 1
    GOSSIP = 2
    FORWARD = 3


class Sender(Protocol):
    """What a switchboard needs of a mesh."""

    def send(self, peer: str, lane: Lane, data: bytes) -> bool:
        """Send without waiting; return whether there is a connection."""
        ...

    def disconnect(self, peer: str) -> None:
        """Break the connections to a peer."""
        ...


class Port:
    """One service's way out."""

    def __init__(self, switchboard: "Switchboard", channel: Channel) -> None:
        self._switchboard = switchboard
        self._prefix = bytes((channel,))

    def send(self, peer: str, lane: Lane, data: bytes) -> bool:
        """Send without waiting; return whether there is a connection."""
        sender = self._switchboard.sender
        return sender is not None and sender.send(peer, lane, self._prefix + data)

    def disconnect(self, peer: str) -> None:
        """Break the connections to a peer; it may dial again."""
        if self._switchboard.sender is not None:
            self._switchboard.sender.disconnect(peer)


class Switchboard:
    """The one listener of a mesh, and its services.

    Services are attached before the mesh runs. They are told of connections in the order in
    which they were attached.
    """

    def __init__(self) -> None:
        self.sender: Sender | None = None
        """The mesh, once it is made."""
        self._services: dict[int, MeshEvents] = {}

    def attach(self, channel: Channel, service: MeshEvents) -> Port:
        """Give a service its channel, and return its way out."""
        assert channel not in self._services
        self._services[channel] = service
        return Port(self, channel)

    def up(self, peer: str, lane: Lane) -> None:
        """Tell every service of a connection."""
        for service in self._services.values():
            service.up(peer, lane)

    def down(self, peer: str, lane: Lane) -> None:
        """Tell every service that a connection ended."""
        for service in self._services.values():
            service.down(peer, lane)

    def message(self, peer: str, lane: Lane, data: bytes) -> None:
        """Give a message to its service; one of a channel that a newer node has is dropped.

        Raises:
            LinkBroken: It is empty, or its service can't make sense of it.
        """
        if not data:
            raise LinkBroken(f"{peer} sent a message of nothing")
        service = self._services.get(data[0])
        if service is not None:
            service.message(peer, lane, data[1:])
