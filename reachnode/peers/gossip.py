"""What nodes tell each other of instances: never logged, never waited for.

Every half second each node pushes to each peer what changed of its own evidence since it last
told that peer; after a new connection, everything. TCP keeps the order, so nothing is
acknowledged. Between the pushes a node may ask another for its opinion of one instance.

Messages travel on the consensus connection: they are small, and whether a node is alive must
not depend on how much data is under way to it.
"""

from collections.abc import Callable

import msgspec

from reachnode.liveness.outlook import Outlook
from reachnode.model.liveness import Delta, ProbeOrder
from reachnode.peers.frames import LinkBroken
from reachnode.peers.hello import Lane
from reachnode.peers.switchboard import Channel, Switchboard
from reachnode.world.sources import Sources

DELTAS_MAX = 8
"""Deltas to one peer in one push; what is left goes with the next."""


class Tell(msgspec.Struct, frozen=True, array_like=True, tag="tell"):
    """What changed of a node's evidence."""

    delta: Delta


class Here(msgspec.Struct, frozen=True, array_like=True, tag="here"):
    """Where a node's clients connect."""

    client_address: str


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """Can you reach this instance?"""

    agent_id: str
    incarnation: int


class Opinion(msgspec.Struct, frozen=True, array_like=True, tag="opinion"):
    """The answer, once it was tried."""

    agent_id: str
    incarnation: int
    is_reached: bool


Words = Tell | Here | Ask | Opinion
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Words)


class Gossip:
    """One node's side of it.

    Args:
        outlook: What this node makes of instances.
        switchboard: The mesh it shares.
        sources: The clock.
        on_asked: Called with a peer and the probe by which to form an opinion for it.
    """

    def __init__(
        self,
        outlook: Outlook,
        switchboard: Switchboard,
        sources: Sources,
        on_asked: Callable[[str, ProbeOrder], None],
    ) -> None:
        self._outlook = outlook
        self._sources = sources
        self._on_asked = on_asked
        self._port = switchboard.attach(Channel.GOSSIP, self)
        self._told: dict[str, int] = {}
        """Up to which sequence each connected peer was told."""
        self.client_address = ""
        """Where this node's clients connect; set before the mesh runs."""
        self.addresses: dict[str, str] = {}
        """Where the clients of each connected peer connect, as far as it said."""
        self.counters = {"deltas_sent": 0, "deltas_received": 0, "opinions_asked": 0}

    def push(self) -> None:
        """Tell every connected peer what changed; an empty delta says that this node lives."""
        for peer in sorted(self._told):
            for _ in range(DELTAS_MAX):
                delta = self._outlook.tell(self._told[peer], now=self._sources.now())
                if not self._say(peer, Tell(delta)):
                    break
                self.counters["deltas_sent"] += 1
                self._told[peer] = delta.sequence
                if delta.sequence >= self._outlook.told_up_to:
                    break

    def ask(self, peer: str, agent_id: str, incarnation: int) -> None:
        """Ask a peer whether it reaches an instance."""
        if self._say(peer, Ask(agent_id, incarnation)):
            self.counters["opinions_asked"] += 1

    def answer(self, peer: str, order: ProbeOrder, *, is_reached: bool) -> None:
        """Tell a peer the opinion that it asked for."""
        self._say(peer, Opinion(order.agent_id, order.incarnation, is_reached))

    # --- the mesh's events

    def up(self, peer: str, lane: Lane) -> None:
        """Begin to tell a peer, with everything."""
        if lane is Lane.CONSENSUS:
            self._told[peer] = 0
            if self.client_address:
                self._say(peer, Here(self.client_address))

    def down(self, peer: str, lane: Lane) -> None:
        """Stop telling a peer."""
        if lane is Lane.CONSENSUS:
            self._told.pop(peer, None)
            self.addresses.pop(peer, None)

    def message(self, peer: str, _lane: Lane, data: bytes) -> None:
        """Take what a peer says.

        Raises:
            LinkBroken: It makes no sense, or speaks for another node.
        """
        try:
            words = _DECODER.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise LinkBroken(f"{peer} gossips what can't be read: {error}") from error
        now = self._sources.now()
        match words:
            case Tell(delta):
                if delta.node != peer:
                    raise LinkBroken(f"{peer} speaks for {delta.node}")
                self.counters["deltas_received"] += 1
                self._outlook.take(delta, now=now)
            case Here(client_address):
                self.addresses[peer] = client_address
            case Ask(agent_id, incarnation):
                order = self._outlook.asked(agent_id, incarnation, now=now)
                if order is not None:
                    self._on_asked(peer, order)
            case Opinion(agent_id, incarnation, is_reached):
                self._outlook.opinion(agent_id, incarnation, is_reached=is_reached)

    def _say(self, peer: str, words: Words) -> bool:
        """Send to a peer; return whether there is a connection."""
        return self._port.send(peer, Lane.CONSENSUS, _ENCODER.encode(words))
