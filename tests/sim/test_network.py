"""Connections are in order like TCP, and break like TCP."""

import random
from dataclasses import dataclass, field

from sim.clock import Timeline
from sim.network import BULK, CONSENSUS, DEAD_AFTER_SECONDS, Ends, SimNetwork


@dataclass
class Net:
    """Two members that are connected, and what they saw."""

    timeline: Timeline = field(default_factory=Timeline)
    heard: list[tuple[str, str, bytes]] = field(default_factory=list)
    downs: list[tuple[str, str]] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.network = SimNetwork(
            ["a", "b"],
            timeline=self.timeline,
            draw=random.Random(3),
            delay_seconds=(0.001, 0.1),
            ends=Ends(
                is_alive=lambda member: member not in self.dead,
                up=lambda _member, _peer: None,
                down=lambda member, peer: self.downs.append((member, peer)),
                deliver=lambda a, b, _lane, data: self.heard.append((a, b, data)),
            ),
        )
        self.network.connect("a", "b")

    def run(self, seconds: float) -> None:
        self.timeline.run_until(self.timeline.now + seconds)

    def said(self) -> list[bytes]:
        return [data for _, _, data in self.heard]


def test_messages_arrive_in_order() -> None:
    """However the delays fall, what was sent first arrives first."""
    net = Net()
    sent = [bytes([number]) for number in range(50)]
    for data in sent:
        assert net.network.send("a", "b", CONSENSUS, data)
    net.run(1.0)
    assert net.said() == sent


def test_a_cut_delays_and_keeps_the_order() -> None:
    """What is under way when a cut begins comes before what is sent during and after it."""
    net = Net()
    net.network.send("a", "b", CONSENSUS, b"1")
    net.network.cut([("a", "b")], 2.0)
    net.network.send("a", "b", CONSENSUS, b"2")
    net.run(1.0)
    assert net.said() == []
    net.network.send("b", "a", CONSENSUS, b"other way")
    net.run(1.5)
    net.network.send("a", "b", CONSENSUS, b"3")
    net.run(1.0)
    assert net.said() == [b"other way", b"1", b"2", b"3"]


def test_a_connection_that_is_cut_for_long_is_found_dead() -> None:
    """Both ends are told, what waited is lost, and they connect again when there is a way."""
    net = Net()
    net.network.cut([("a", "b")], DEAD_AFTER_SECONDS + 1)
    net.network.send("a", "b", CONSENSUS, b"lost")
    net.run(DEAD_AFTER_SECONDS + 0.1)
    assert sorted(net.downs) == [("a", "b"), ("b", "a")]
    assert not net.network.send("a", "b", CONSENSUS, b"no way")
    net.run(10.0)
    assert net.network.is_up("a", "b")
    assert net.said() == []


def test_a_reset_loses_both_lanes() -> None:
    """Lanes stand and fall together; nothing of the old connection arrives on the new one."""
    net = Net()
    net.network.send("a", "b", BULK, b"lost")
    net.network.break_off("a", "b")
    net.run(5.0)
    assert net.network.is_up("a", "b")
    assert net.said() == []


def test_the_dead_hear_nothing() -> None:
    """A message to a dead member is gone, and nobody connects to it."""
    net = Net()
    net.network.send("a", "b", CONSENSUS, b"lost")
    net.dead.add("b")
    net.network.break_off("a", "b")
    net.run(5.0)
    assert net.said() == []
    assert net.downs == [("a", "b")]
    assert not net.network.is_up("a", "b")


def test_healing_all_forgets_every_cut() -> None:
    """Cuts that overlap end at once, and stay ended when their time comes."""
    net = Net()
    net.network.isolate("a", 1.0)
    net.network.isolate("a", 2.0)
    net.network.heal_all()
    net.network.send("a", "b", CONSENSUS, b"1")
    net.run(5.0)
    assert net.said() == [b"1"]
