"""READ FIRST: one node, every service wired once, in one nursery.

start   signals are heeded, the replica takes part, the lookout and the timekeeper begin,
        the client port opens, it is said
run     until a signal comes or the replica stops for damage
drain   the client port closes, requests in flight end, leadership is handed over
"""

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import trio

from reachnode import __version__
from reachnode.model.address import Address
from reachnode.model.config import NodeConfig, is_loopback
from reachnode.node.lookout import Lookout
from reachnode.node.ports import RunningReplica
from reachnode.node.timekeeper import Timekeeper
from reachnode.serve.front import About, Front
from reachnode.serve.listener import CONNECTIONS_MAX, ClientPort
from reachnode.world.network import Listener, Network
from reachnode.world.sources import Sources

LOG = logging.getLogger(__name__)
HAND_OVER_SECONDS = 2.0


class StartError(Exception):
    """The node can't start as configured; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Whom a node tells of its life."""

    ready: Callable[[Address, Address], None]
    """Called with the bound client and peer addresses once both listen."""
    stopping: Callable[[], object]
    """Called at the first signal."""
    hurry: Callable[[], object]
    """Called at the second signal; a real process ends here."""


class Node:
    """One node.

    Args:
        config: What it was told.
        replica: Its part in the cluster.
        network: Where its clients come from.
        sources: Time and identifiers.
        told: Whom it tells of its life.
        connections_max: How many clients may be connected at once.
    """

    def __init__(
        self,
        *,
        config: NodeConfig,
        replica: RunningReplica,
        network: Network,
        sources: Sources,
        told: Told,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._config = config
        self._replica = replica
        self._network = network
        self._sources = sources
        self._told = told
        self._connections_max = connections_max
        self.lookout = Lookout(
            me=config.id,
            replica=replica,
            switchboard=replica.switchboard,
            network=network,
            sources=sources,
        )
        self._timekeeper = Timekeeper(replica, sources)

    async def run(self, signals: AsyncIterator[int]) -> None:
        """Run until the first signal, then drain.

        Args:
            signals: Each one asks the node to stop.

        Raises:
            StartError: An address can't be listened on.
            FailStop: The replica found damage; inside a group.
        """
        listener = await self._listen()
        try:
            await self._serve(listener, signals)
        finally:
            with trio.CancelScope(shield=True):
                await listener.aclose()

    async def _serve(self, listener: Listener, signals: AsyncIterator[int]) -> None:
        """Run on a listener until the first signal, then drain."""
        front = self._front(listener.address)
        self.lookout.gossip.client_address = front.about.client_address
        port = ClientPort(
            front,
            listener,
            drain_seconds=self._config.drain_seconds,
            connections_max=self._connections_max,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._heed, signals, port)
            peer_address: Address = await nursery.start(self._replica.run)
            await nursery.start(self.lookout.run)
            await nursery.start(self._timekeeper.run)
            async with trio.open_nursery() as clients:
                await clients.start(port.run)
                self._told.ready(listener.address, peer_address)
            if front.others_alive():
                with trio.move_on_after(HAND_OVER_SECONDS * self._config.time_scale):
                    await self._replica.transfer_leadership()
            nursery.cancel_scope.cancel()

    def _front(self, bound: Address) -> Front:
        about = About(
            node_id=self._config.id,
            client_address=str(self._config.advertise or bound),
            version=__version__,
            listens_on_loopback=is_loopback(bound) and is_loopback(self._config.peer_bind),
        )
        return Front(
            about=about,
            replica=self._replica,
            sights=self.lookout,
            sources=self._sources,
            link_counters=self._replica.link_counters,
        )

    async def _listen(self) -> Listener:
        try:
            return await self._network.listen(self._config.listen)
        except OSError as error:
            raise StartError(
                f"node.listen: {self._config.listen} can't be listened on ({error.strerror}); "
                "is another node running there?"
            ) from error

    async def _heed(self, signals: AsyncIterator[int], port: ClientPort) -> None:
        """Drain at the first signal, hurry at the second."""
        is_first = True
        async for signal in signals:
            if not is_first:
                LOG.warning("signal %s again: stopping at once", signal)
                self._told.hurry()
            is_first = False
            LOG.info("signal %s: draining for up to %g s", signal, self._config.drain_seconds)
            self._told.stopping()
            port.stop()
