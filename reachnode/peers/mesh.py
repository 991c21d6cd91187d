"""The links of a node to all its peers: dialed, accepted, kept, replaced.

Of each pair the smaller id dials the greater, once per lane, and dials again when the
connection ends. The other side only listens. What a link proves is in `reachnode.peers.hello`;
any holder of the cluster secret may claim any configured id, so the secret is worth the cluster.

For each peer and lane events come in this order, and never from inside a call into the mesh:

    up  message*  down  up  message*  down  ...
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

import trio

from reachnode.model.address import Address
from reachnode.peers.greeting import Speaker, greet_client, greet_server, secure
from reachnode.peers.hello import NONCE_BYTES, PURPOSE, HelloRefused, Lane, Refusal, name_bytes
from reachnode.peers.link import End, Link, LinkSettings
from reachnode.peers.secrets import ClusterSecrets
from reachnode.world.network import Listener, Network, Stream
from reachnode.world.sources import Sources
from reachnode.world.tls import make_throwaway_tls

LOG_PAUSE_SECONDS = 60.0
DOUBLINGS_MAX = 20

WORTH_A_LINE: frozenset[Refusal | End] = frozenset(
    {
        Refusal.BUSY,
        Refusal.VERSION,
        Refusal.UNKNOWN_NODE,
        Refusal.OWN_ID,
        Refusal.WRONG_DIRECTION,
        Refusal.WRONG_PROOF,
        Refusal.OTHER_CLUSTER,
        End.BROKE_PROTOCOL,
        End.QUEUE_FULL,
        End.TOO_LARGE,
    }
)
"""What somebody can do something about. The rest is counted alone."""

logger = logging.getLogger(__name__)


class MeshEvents(Protocol):
    """What a mesh tells its owner. An exception other than those named stops the mesh."""

    def up(self, peer: str, lane: Lane) -> None:
        """Take note that messages can be sent to this peer on this lane."""
        ...

    def down(self, peer: str, lane: Lane) -> None:
        """Take note that the connection ended; what was not received yet never will be."""
        ...

    def message(self, peer: str, lane: Lane, data: bytes) -> None:
        """Take a message.

        Raises:
            LinkBroken: The peer must not say this: close the connection.
        """
        ...


class Mesh:
    """Authenticated links to every peer, two per pair.

    Args:
        me: Id of this node.
        peers: Id and peer address of every voter; this node's own entry is never dialed.
        listen: Where peers dial in.
        network: Opens connections.
        sources: Time, chance.
        secrets: What proves that a node belongs to the cluster.
        cluster_id: Returns this node's cluster id, empty while it has none.
        boot_id: Which start of this node this is.
        events: Told of links and messages.
        settings: Limits.

    Raises:
        ValueError: An id is empty, over 64 bytes, or holds a NUL.
    """

    def __init__(  # noqa: PLR0913 - wired once, in the node, by name
        self,
        *,
        me: str,
        peers: Mapping[str, Address],
        listen: Address,
        network: Network,
        sources: Sources,
        secrets: ClusterSecrets,
        cluster_id: Callable[[], str],
        boot_id: str,
        events: MeshEvents,
        settings: LinkSettings,
    ) -> None:
        for name in (me, *peers):
            if not name_bytes(name):
                raise ValueError("a node id is empty")
        name_bytes(boot_id)
        self._me = me
        self._peers = dict(peers)
        self._listen = listen
        self._network = network
        self._sources = sources
        self._keys = secrets.keys(PURPOSE)
        self._cluster_id = cluster_id
        self._boot_id = boot_id
        self._events = events
        self._settings = settings
        self._tls = make_throwaway_tls()
        self._links: dict[tuple[str, Lane], Link] = {}
        self._greetings_count = 0
        self._quiet_until: dict[str, float] = {}
        self.counters: dict[str, int] = dict.fromkeys(counter_names(), 0)
        """How often each thing happened since the start; the names never change."""

    async def run(
        self, *, task_status: trio.TaskStatus[Address] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Keep the links until cancelled; `start` returns the bound address.

        Raises:
            OSError: The listen address can't be bound.
        """
        listener = await self._network.listen(self._listen)
        async with _closing(listener), trio.open_nursery() as nursery:
            for peer in sorted(self._peers):
                if self._me < peer:
                    for lane in Lane:
                        nursery.start_soon(self._keep_dialing, peer, lane)
            task_status.started(listener.address)
            await self._accept(listener, nursery)

    def send(self, peer: str, lane: Lane, data: bytes) -> bool:
        """Queue a message; return False when there is no link, or it ends for this.

        Messages of one lane arrive in order and at most once. True means queued, not received.
        """
        link = self._links.get((peer, lane))
        return link is not None and link.send(data)

    def disconnect(self, peer: str) -> None:
        """Close both lanes to a peer; `down` follows. Whoever dials will dial again."""
        for lane in Lane:
            if link := self._links.get((peer, lane)):
                link.close(End.DISCONNECTED)

    def connected(self) -> frozenset[tuple[str, Lane]]:
        """Return the peers and lanes that messages can be sent on now."""
        return frozenset(key for key, link in self._links.items() if link.end is None)

    def boot_of(self, peer: str) -> str | None:
        """Return which start of the peer is connected, None when it isn't."""
        boots = (link.boot for (node, _), link in sorted(self._links.items()) if node == peer)
        return next(boots, None)

    async def _accept(self, listener: Listener, nursery: trio.Nursery) -> None:
        while True:
            stream = await listener.accept()
            self.counters["accepted"] += 1
            self.counters["accept_failures"] = listener.accept_failures
            if self._greetings_count < self._settings.greetings_max:
                self._greetings_count += 1
                nursery.start_soon(self._welcome, stream)
                continue
            refused = HelloRefused(Refusal.BUSY, "too many connections are being greeted")
            self._refuse("accept", refused)
            async with _closing(stream):
                pass

    async def _welcome(self, stream: Stream) -> None:
        """Serve a connection that came in, from its first byte to its last."""
        async with _closing(stream):
            try:
                deadline = trio.current_time() + self._settings.handshake_seconds
                link = await self._greet("accept", deadline, partial(self._greet_client, stream))
            finally:
                self._greetings_count -= 1
            if link:
                await self._serve(link)

    async def _keep_dialing(self, peer: str, lane: Lane) -> None:
        failures_count = 0
        while True:
            was_up = await self._dial(peer, lane)
            failures_count = 0 if was_up else failures_count + 1
            await trio.sleep(self._pause_seconds(failures_count))

    def _pause_seconds(self, failures_count: int) -> float:
        least, most = self._settings.redial_seconds_min, self._settings.redial_seconds_max
        doubled = least * 2.0 ** min(failures_count + 1, DOUBLINGS_MAX)
        return self._sources.draw.uniform(least, min(doubled, most))

    async def _dial(self, peer: str, lane: Lane) -> bool:
        """Dial once and serve the link while it lasts; return whether there was one."""
        self.counters["dialed"] += 1
        seconds = self._settings.handshake_seconds
        deadline = trio.current_time() + seconds
        try:
            stream = await self._network.connect(self._peers[peer], seconds)
        except OSError as error:
            is_late = isinstance(error, TimeoutError)
            refusal = Refusal.TIMEOUT if is_late else Refusal.UNREACHABLE
            self._refuse("dial", HelloRefused(refusal, f"{peer}: {error}"))
            return False
        async with _closing(stream):
            greet = partial(self._greet_server, stream, peer, lane)
            link = await self._greet("dial", deadline, greet)
            if link:
                await self._serve(link)
            return link is not None

    async def _greet(
        self, side: str, deadline: float, greet: Callable[[], Awaitable[Link]]
    ) -> Link | None:
        """Return the link a greeting leads to; None when it was refused or too late."""
        try:
            with trio.CancelScope(deadline=deadline):
                return await greet()
        except HelloRefused as refused:
            self._refuse(side, refused)
            return None
        self._refuse(side, HelloRefused(Refusal.TIMEOUT, "the hello took too long"))
        return None

    async def _greet_client(self, stream: Stream) -> Link:
        tls = await secure(stream, self._tls.server, is_server=True)
        hello = await greet_client(
            tls, self._speaker(), peers=self._peers, certificate=self._tls.certificate
        )
        return Link(tls, hello, self._settings)

    async def _greet_server(self, stream: Stream, peer: str, lane: Lane) -> Link:
        tls = await secure(stream, self._tls.client, is_server=False)
        hello = await greet_server(tls, self._speaker(), peer=peer, lane=lane)
        return Link(tls, hello, self._settings)

    def _speaker(self) -> Speaker:
        return Speaker(
            node=self._me,
            cluster=self._cluster_id(),
            boot=self._boot_id,
            nonce=self._sources.draw.randbytes(NONCE_BYTES),
            keys=self._keys,
        )

    async def _serve(self, link: Link) -> None:
        """Make this the link of its peer and lane, until it ends or is replaced."""
        key = (link.peer, link.lane)
        old = self._links.pop(key, None)
        if old:
            old.close(End.REPLACED)
            self._events.down(*key)
        self._links[key] = link
        try:
            self._events.up(*key)
            await link.run(partial(self._events.message, *key))
        finally:
            link.close(End.STOPPED)  # Counts only when nothing else ended it.
            self.counters[f"end_{link.end}"] += 1
            if link.end in WORTH_A_LINE:
                self._warn(f"end_{link.end}", f"closed the link to {link.peer}: {link.why}")
            if self._links.get(key) is link:
                del self._links[key]
                self._events.down(*key)

    def _refuse(self, side: str, refused: HelloRefused) -> None:
        """Count a refusal, and log it where that helps."""
        name = f"{side}_{refused.refusal}"
        self.counters[name] += 1
        if refused.refusal in WORTH_A_LINE:
            self._warn(name, f"refused a peer connection: {refused}")

    def _warn(self, name: str, text: str) -> None:
        """Log what a counter counts, once a minute at most: strangers can't fill the disk."""
        now = self._sources.now()
        if now >= self._quiet_until.get(name, now):
            self._quiet_until[name] = now + LOG_PAUSE_SECONDS
            logger.warning("%s (%s)", text, name)


def counter_names() -> list[str]:
    """Return the names of all counters of a mesh."""
    return [
        "accepted",
        "accept_failures",
        "dialed",
        *(f"{side}_{refusal}" for side in ("accept", "dial") for refusal in Refusal),
        *(f"end_{end}" for end in End),
    ]


class _Closable(Protocol):
    async def aclose(self) -> None: ...


@asynccontextmanager
async def _closing(what: _Closable) -> AsyncIterator[None]:
    try:
        yield
    finally:
        # Closing never waits for the other side, so it may be done whoever cancels us.
        with trio.CancelScope(shield=True):
            await what.aclose()
