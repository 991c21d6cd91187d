"""What nodes tell each other of instances."""

from dataclasses import dataclass, field

import msgspec
import pytest

from reachnode.liveness.outlook import Outlook
from reachnode.model.liveness import Delta, Heartbeat, ProbeOrder
from reachnode.peers.frames import LinkBroken
from reachnode.peers.gossip import Ask, Gossip, Tell
from reachnode.peers.hello import Lane
from reachnode.peers.switchboard import Channel, Switchboard
from reachnode.registry.state import State
from tests.fakes import SeededSources
from tests.liveness.crowds import registered


class Clock(SeededSources):
    """Sources whose clock the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 100.0

    def now(self) -> float:
        """Return the test's time."""
        return self.at


@dataclass(slots=True)
class Town:
    """Nodes whose words are carried at once, while their link is up."""

    nodes: dict[str, "Resident"] = field(default_factory=dict)


@dataclass(slots=True)
class Resident:
    """One node, with the wire that carries its words."""

    name: str
    town: Town
    state: State
    clock: Clock
    switchboard: Switchboard = field(default_factory=Switchboard)
    asked: list[tuple[str, ProbeOrder]] = field(default_factory=list)
    sent: list[tuple[str, Lane, bytes]] = field(default_factory=list)
    outlook: Outlook = field(init=False)
    gossip: Gossip = field(init=False)

    def __post_init__(self) -> None:
        self.outlook = Outlook(me=self.name, boot=1, state=self.state, now=self.clock.at)
        self.gossip = Gossip(
            self.outlook,
            self.switchboard,
            self.clock,
            lambda peer, order: self.asked.append((peer, order)),
        )
        self.switchboard.sender = self
        self.town.nodes[self.name] = self

    def send(self, peer: str, lane: Lane, data: bytes) -> bool:
        """Carry a message at once."""
        self.sent.append((peer, lane, data))
        if peer not in self.town.nodes:
            return False
        self.town.nodes[peer].switchboard.message(self.name, lane, data)
        return True

    def disconnect(self, _peer: str) -> None:
        """Nothing of gossip breaks a link by itself."""
        raise AssertionError


def town(*agents: str) -> tuple[Resident, Resident]:
    """Return two connected nodes that know the same instances."""
    place, clock, state = Town(), Clock(), registered(*agents)
    one, two = (Resident(name, place, state, clock) for name in ("n1", "n2"))
    for node, peer in ((one, "n2"), (two, "n1")):
        node.switchboard.up(peer, Lane.DATA)
        node.switchboard.up(peer, Lane.CONSENSUS)
    return one, two


def test_a_heartbeat_at_one_node_is_known_at_the_other() -> None:
    """After one push, with its home."""
    one, two = town("a1")
    one.outlook.heartbeat("a1", Heartbeat(load=0.5), now=one.clock.at)
    one.gossip.push()
    seen = two.outlook.of(two.state.agents["a1"])
    assert (seen.state, seen.home, seen.load) == ("healthy", "n1", 0.5)
    assert {lane for _, lane, _ in one.sent} == {Lane.CONSENSUS}


def test_only_what_changed_is_told_again() -> None:
    """And a push with nothing new still says that the node lives."""
    one, two = town("a1")
    one.outlook.heartbeat("a1", Heartbeat(), now=one.clock.at)
    one.gossip.push()
    first = len(one.sent[-1][2])
    one.gossip.push()
    assert len(one.sent[-1][2]) < first
    assert two.gossip.counters["deltas_received"] == 2
    assert "n1" in two.outlook.live


def test_after_a_new_connection_everything_is_told() -> None:
    """The peer may have started anew."""
    one, two = town("a1")
    one.outlook.heartbeat("a1", Heartbeat(), now=one.clock.at)
    one.gossip.push()
    one.switchboard.down("n2", Lane.CONSENSUS)
    one.switchboard.down("n2", Lane.DATA)
    one.gossip.push()
    assert two.gossip.counters["deltas_received"] == 1
    one.switchboard.up("n2", Lane.CONSENSUS)
    one.gossip.push()
    again = msgspec.msgpack.decode(one.sent[-1][2][1:])
    assert len(again[1]["reports"]) == 1


def test_a_peer_that_cannot_be_told_is_told_later() -> None:
    """Nothing counts as told that was not sent."""
    one, two = town("a1")
    one.outlook.heartbeat("a1", Heartbeat(), now=one.clock.at)
    del one.town.nodes["n2"]
    one.gossip.push()
    assert one.gossip.counters["deltas_sent"] == 0
    one.town.nodes["n2"] = two
    one.gossip.push()
    assert two.outlook.of(two.state.agents["a1"]).state == "healthy"


def test_a_peer_says_where_its_clients_connect() -> None:
    """With each new connection; a peer that is gone is no place to send clients to."""
    one, two = town()
    assert two.gossip.addresses == {}
    one.gossip.client_address = "h1:7400"
    one.switchboard.up("n2", Lane.CONSENSUS)
    assert two.gossip.addresses == {"n1": "h1:7400"}
    two.switchboard.down("n1", Lane.CONSENSUS)
    assert two.gossip.addresses == {}


def test_an_opinion_is_asked_for_and_given() -> None:
    """The asked node gets a probe to make; its answer reaches the one that asked."""
    one, two = town("a1")
    incarnation = one.state.agents["a1"].instance.incarnation
    one.gossip.ask("n2", "a1", incarnation)
    ((peer, order),) = two.asked
    assert (peer, order.agent_id) == ("n1", "a1")
    two.gossip.answer(peer, order, is_reached=True)
    assert one.outlook.proposals() == ()
    assert one.gossip.counters["opinions_asked"] == 1


def test_an_opinion_of_nobody_is_not_given() -> None:
    """An instance that this node doesn't know is no probe to make."""
    one, two = town("a1")
    one.gossip.ask("n2", "a9", 1)
    assert two.asked == []
    del one.town.nodes["n2"]
    one.gossip.ask("n2", "a1", 1)
    assert one.gossip.counters["opinions_asked"] == 1


@pytest.mark.parametrize(
    "words",
    [
        b"\xc1",
        b"",
        msgspec.msgpack.encode(["shout", 1]),
        msgspec.msgpack.encode(Ask("a1", "x")),  # type: ignore[arg-type]  # that is the point
        msgspec.msgpack.encode(Tell(Delta(node="n3", boot=1, sequence=0))),
    ],
)
def test_nonsense_and_speaking_for_others_break_the_connection(words: bytes) -> None:
    """A peer speaks for itself, in words that can be read."""
    one, _ = town("a1")
    with pytest.raises(LinkBroken):
        one.switchboard.message("n2", Lane.CONSENSUS, bytes((Channel.GOSSIP,)) + words)
