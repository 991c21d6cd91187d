"""Links between whole meshes: on a virtual network, and on loopback sockets with strangers."""

import logging
import random
import socket

import pytest
import trio
import trio.testing

from reachnode.peers.frames import LinkBroken
from reachnode.peers.hello import HELLO_BYTES, MAGIC, PROOF_BYTES, Hello, Lane, Role, pack
from reachnode.peers.link import LinkSettings
from reachnode.peers.mesh import counter_names
from reachnode.peers.secrets import ClusterSecrets
from tests.fakes import MemoryNetwork, MemoryStream
from tests.peers.meshes import (
    BOTH_UP,
    LOOPBACK,
    OTHER_SECRETS,
    PLACES,
    Node,
    all_linked,
    pair_of,
    place_of,
    running,
    say,
    say_inside_tls,
    start_on_loopback,
)


async def test_a_pair_has_one_link_for_each_lane(autojump_clock: trio.testing.MockClock) -> None:
    """Both sides see both lanes come up, once, and say who is connected."""
    one, two = pair_of(MemoryNetwork())
    async with running(two, one):
        await one.notes.until(lambda: one.notes.links() == BOTH_UP)
        await two.notes.until(lambda: two.notes.links() == BOTH_UP)
        assert one.mesh.connected() == {("n2", Lane.CONSENSUS), ("n2", Lane.DATA)}
        assert two.mesh.connected() == {("n1", Lane.CONSENSUS), ("n1", Lane.DATA)}
        assert (one.mesh.boot_of("n2"), one.mesh.boot_of("n9")) == ("boot of n2", None)
        await trio.sleep(60)
        assert one.notes.links() == two.notes.links() == BOTH_UP
        assert one.mesh.counters["dialed"] == two.mesh.counters["accepted"] == 2
    assert one.notes.links() == [("down", lane) for lane in Lane] + BOTH_UP
    assert one.mesh.connected() == frozenset()
    assert one.counted() == {"end_stopped": 2}


async def test_messages_keep_their_order_and_lane(autojump_clock: trio.testing.MockClock) -> None:
    """What is sent arrives once, in order, on its lane, also when sent from inside an event."""
    one, two = pair_of(MemoryNetwork())

    def double(peer: str, lane: Lane, data: bytes) -> None:
        assert two.mesh.send(peer, lane, data * 2)

    two.notes.on_message = double
    async with running(two, one):
        await one.notes.until(lambda: len(one.mesh.connected()) == 2)
        sent = {lane: [bytes([lane, n]) for n in range(100)] for lane in Lane}
        for lane in Lane:
            assert all(one.mesh.send("n2", lane, data) for data in sent[lane])
        await one.notes.until(lambda: sum(len(one.notes.messages(lane)) for lane in Lane) == 200)
        for lane in Lane:
            assert two.notes.messages(lane) == sent[lane]
            assert one.notes.messages(lane) == [data * 2 for data in sent[lane]]


async def test_sending_without_a_link_is_false(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing is kept for later, and nothing raises, whoever is named."""
    one, _ = pair_of(MemoryNetwork())
    assert not one.mesh.send("n2", Lane.DATA, b"x")
    async with running(one):
        assert not any(one.mesh.send(peer, Lane.DATA, b"x") for peer in ("n1", "n2", "n9", ""))
        one.mesh.disconnect("n2")
        one.mesh.disconnect("n9")


async def test_a_peer_that_comes_late_is_found(autojump_clock: trio.testing.MockClock) -> None:
    """Dialing goes on with pauses that grow to a second, and starts afresh after a link."""
    one, two = pair_of(MemoryNetwork())
    async with running(one) as nursery:
        await trio.sleep(60)
        dialed_count = one.mesh.counters["dialed"]
        assert 2 * 60 <= dialed_count <= 2 * 130
        assert one.counted() == {"dial_unreachable": dialed_count}
        await nursery.start(two.run)
        came_at = trio.current_time()
        await one.notes.until(lambda: one.notes.links() == BOTH_UP)
        assert trio.current_time() - came_at <= 1.0
        left_at = trio.current_time()
        one.mesh.disconnect("n2")
        assert one.mesh.connected() == frozenset()
        assert not one.mesh.send("n2", Lane.DATA, b"x")
        await one.notes.until(lambda: len(one.notes.links()) == 6)
        assert 0.1 <= trio.current_time() - left_at <= 0.2


async def test_a_place_that_never_answers_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A connection that is neither made nor refused ends with the deadline."""
    network = MemoryNetwork()
    network.is_mute = True
    one, _ = pair_of(network)
    async with running(one):
        await trio.sleep(2.05)
        assert one.counted() == {"dial_timeout": 2}


async def test_a_server_that_says_nothing_is_given_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The whole hello has one deadline, for who dials and for who listens."""
    network = MemoryNetwork()
    one, two = pair_of(network)
    silent = await network.listen(PLACES["n2"])
    async with running(one):
        await trio.sleep(2.05)
        assert one.counted() == {"dial_timeout": 2}
    await silent.aclose()
    async with running(two):
        stranger = await network.connect(PLACES["n2"], 1)
        started_at = trio.current_time()
        assert await stranger.receive(1) == b""
        assert trio.current_time() - started_at == pytest.approx(2.0)
        assert two.counted() == {"accept_timeout": 1}


async def test_a_connection_that_breaks_is_made_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Ups and downs alternate on both sides, whatever breaks, and messages flow again."""
    network = MemoryNetwork()
    one, two = pair_of(network)
    async with running(two, one):
        for round_number in range(1, 6):
            ups = [("up", Lane.DATA), ("down", Lane.DATA)] * round_number
            await all_linked((one, two), count=2)
            assert one.notes.links(Lane.DATA) == two.notes.links(Lane.DATA) == ups[:-1]
            for near, _ in network.pairs[-2:]:
                near.reset()
            await one.notes.until(lambda: one.mesh.connected() == frozenset())
    assert one.counted() == {"end_lost": 10}


async def test_a_silent_cut_is_noticed_by_both(autojump_clock: trio.testing.MockClock) -> None:
    """When nothing passes any more, both sides see the links go within 3.5 s."""
    network = MemoryNetwork()
    one, two = pair_of(network)
    async with running(two, one):
        await all_linked((one, two), count=2)
        network.is_mute = True
        for near, far in network.pairs:
            near.stall()
            far.stall()
        await trio.sleep(3.6)
        assert one.mesh.connected() == two.mesh.connected() == frozenset()
        assert one.notes.links() == [("down", lane) for lane in Lane] + BOTH_UP
        assert two.notes.links() == one.notes.links()


async def test_a_new_connection_replaces_the_old_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Where one side alone lost a connection, the other hears down, then up, then new messages."""
    network = MemoryNetwork()
    one, two = pair_of(network)
    async with running(two, one):
        await all_linked((one, two), count=2)
        # n1 loses its end; nothing of that reaches n2, and neither does the last message yet.
        held: list[MemoryStream] = [far for _, far in network.pairs]
        for near, far in network.pairs[:2]:
            far.stall()
            near.incoming.is_broken = True
            near.incoming.change()
        one.mesh.send("n2", Lane.DATA, b"old")
        await two.notes.until(lambda: len(two.notes.links()) == 6)
        for far in held:
            far.incoming.is_stalled = False
            far.incoming.change()
        await one.notes.until(lambda: one.mesh.send("n2", Lane.DATA, b"new"))
        await two.notes.until(lambda: bool(two.notes.messages()))
        assert two.notes.messages() == [b"new"]
        for lane in Lane:
            assert two.notes.links(lane) == [("up", lane), ("down", lane), ("up", lane)]
        assert two.counted() == {"end_replaced": 2}


async def test_who_takes_messages_can_break_a_connection(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """LinkBroken out of `message` ends that link alone; both sides see it, and it comes back."""

    def refuse(peer: str, lane: Lane, data: bytes) -> None:
        raise LinkBroken("nobody says this")

    one, two = pair_of(MemoryNetwork())
    two.notes.on_message = refuse
    async with running(two, one):
        await one.notes.until(lambda: len(one.mesh.connected()) == 2)
        one.mesh.send("n2", Lane.DATA, b"x")
        await two.notes.until(lambda: len(two.notes.links(Lane.DATA)) == 3)
        assert two.notes.links(Lane.CONSENSUS) == [("up", Lane.CONSENSUS)]
        assert two.counted() == {"end_broke_protocol": 1}
    assert "closed the link to n1: nobody says this" in caplog.text


async def test_an_error_of_our_own_stops_the_mesh(autojump_clock: trio.testing.MockClock) -> None:
    """Any other exception out of an event is ours to see, and every link has its down."""

    def fail(peer: str, lane: Lane, data: bytes) -> None:
        raise KeyError("a fault of ours")

    one, two = pair_of(MemoryNetwork())
    two.notes.on_message = fail

    async def provoke() -> None:
        async with running(two, one):
            await all_linked((one, two), count=2)
            one.mesh.send("n2", Lane.DATA, b"x")
            await trio.sleep(1)

    with pytest.raises(ExceptionGroup) as raised:
        await provoke()
    assert raised.group_contains(KeyError)
    assert two.notes.links() == [("down", lane) for lane in Lane] + BOTH_UP


async def test_nodes_that_do_not_belong_together_stay_apart(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong secret and another cluster each have a counter, and a line a minute in the log."""
    caplog.set_level(logging.WARNING)
    network = MemoryNetwork()
    nodes = [
        Node("n1", network, secrets=OTHER_SECRETS),
        Node("n2", network, cluster="other"),
        Node("n3", network),
    ]
    async with running(*reversed(nodes)):
        await trio.sleep(119)
    assert all(node.notes.notes == [] for node in nodes)
    one, two, three = (node.counted() for node in nodes)
    assert set(one) == {"dial_wrong_proof"}
    assert set(two) == {"accept_closed", "dial_other_cluster"}
    assert set(three) == {"accept_closed", "accept_other_cluster"}
    assert min(one["dial_wrong_proof"], three["accept_other_cluster"]) > 100
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2 * 3
    assert sum("n2 belongs to cluster other, this node to c" in line for line in lines) == 2
    assert sum("doesn't prove that it knows the cluster secret" in line for line in lines) == 2


async def test_one_node_found_a_cluster_before_the_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A node that has no cluster yet may link to one that has."""
    network = MemoryNetwork()
    one, two = Node("n1", network, cluster=""), Node("n2", network)
    async with running(two, one):
        await one.notes.until(lambda: one.notes.links() == BOTH_UP)


async def test_two_secrets_meet_in_a_rotation(autojump_clock: trio.testing.MockClock) -> None:
    """A node that already uses the new secret links to one that still uses the old."""
    network = MemoryNetwork()
    one = Node("n1", network, secrets=ClusterSecrets(b"n" * 32, b"s" * 32))
    two = Node("n2", network, secrets=ClusterSecrets(b"s" * 32, b"n" * 32))
    async with running(two, one):
        await one.notes.until(lambda: one.notes.links() == BOTH_UP)


async def test_a_slow_data_lane_leaves_consensus_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While megabytes wait on the data lane, a small message passes on the other at once."""
    network = MemoryNetwork(room_bytes=4096)
    one, two = pair_of(network)
    async with running(two, one):
        await all_linked((one, two), count=2)
        for _ in range(3):
            assert one.mesh.send("n2", Lane.DATA, bytes(1024 * 1024))
        assert one.mesh.send("n2", Lane.CONSENSUS, b"vote")
        await two.notes.until(lambda: len(two.notes.messages()) == 3)
        order = [data[:4] for what, *_, data in two.notes.notes if what == "message"]
        assert order == [b"vote", bytes(4), bytes(4), bytes(4)]


@pytest.mark.parametrize("name", ["", "x" * 65, "a\0"])
def test_ids_that_can_not_be_sent_are_refused(name: str) -> None:
    """A mesh that could never say its hello isn't made."""
    with pytest.raises(ValueError, match=r"empty|64 bytes"):
        Node("n1", MemoryNetwork(), peers={name: LOOPBACK, "n1": LOOPBACK})


# --- real sockets ---------------------------------------------------------------------------


async def test_three_nodes_on_loopback() -> None:
    """Over real sockets every node links to every other, and large messages pass."""
    async with trio.open_nursery() as nursery:
        nodes = await start_on_loopback(nursery)
        await all_linked(nodes, count=4)
        big = random.Random(1).randbytes(LinkSettings().message_bytes_max)
        assert nodes[0].mesh.send("n1", Lane.DATA, big)
        await nodes[2].notes.until(lambda: bool(nodes[2].notes.messages()))
        assert nodes[2].notes.messages() == [big]
        nodes[1].stop()
        await all_linked((nodes[0], nodes[2]), count=2)
        nursery.cancel_scope.cancel()


async def test_strangers_get_nothing_and_nothing_grows() -> None:
    """Thousands of connections of noise, and a million bytes in one, leave counters alone."""
    dice = random.Random(11)
    async with trio.open_nursery() as nursery:
        three, two, one = await start_on_loopback(nursery)
        await all_linked((one, two, three), count=4)
        place = place_of(three, seen_by=one)
        await say(place, dice.randbytes(1_000_000))
        for _ in range(2000 // 50):
            async with trio.open_nursery() as strangers:
                for _ in range(50):
                    strangers.start_soon(say, place, dice.randbytes(dice.randint(6, 600)))
        counted = three.counted()
        refused_count = sum(counted.values())
        assert refused_count == 2001
        assert set(counted) <= {"accept_not_tls", "accept_closed", "accept_timeout"}
        assert counted["accept_not_tls"] > 1900
        assert sorted(three.mesh.counters) == sorted(counter_names())
        assert three.mesh._greetings_count == 0
        assert len(three.mesh.connected()) == 4
        assert all(len(node.notes.notes) == 4 for node in (one, two, three))
        nursery.cancel_scope.cancel()


async def test_strangers_that_speak_tls_get_no_further() -> None:
    """Noise, half a hello, and a hello without proof inside TLS are refused as well."""
    dice = random.Random(12)
    hello = pack(
        Hello(
            role=Role.CLIENT,
            lane=Lane.DATA,
            node="n1",
            cluster="c",
            boot="b",
            nonce=dice.randbytes(32),
        )
    )
    async with trio.open_nursery() as nursery:
        three, *_ = nodes = await start_on_loopback(nursery)
        place = place_of(three, seen_by=nodes[2])
        await all_linked(nodes, count=4)
        for _ in range(20):
            await say_inside_tls(place, dice.randbytes(1000))
        await say_inside_tls(place, dice.randbytes(1_000_000))
        await say_inside_tls(place, MAGIC + b"\x07")
        await say_inside_tls(place, hello + dice.randbytes(PROOF_BYTES))
        await say_inside_tls(place, hello.replace(b"n1", b"n7") + dice.randbytes(PROOF_BYTES))
        assert three.counted() == {
            "accept_malformed": 21,
            "accept_version": 1,
            "accept_wrong_proof": 1,
            "accept_unknown_node": 1,
        }
        assert len(hello) == HELLO_BYTES
        assert len(three.mesh.connected()) == 4
        nursery.cancel_scope.cancel()


async def test_a_flood_of_connections_is_shut_out() -> None:
    """Over the limit connections are closed at once; links that stand are not touched."""
    settings = LinkSettings(greetings_max=8)
    async with trio.open_nursery() as nursery:
        three, two, one = await start_on_loopback(nursery, settings=settings)
        await all_linked((one, two, three), count=4)
        place = place_of(three, seen_by=one)
        silent = [socket.create_connection((place.host, place.port)) for _ in range(8)]
        for _ in range(100):
            await say(place, b"")
        assert three.mesh.counters["accept_busy"] == 100
        assert one.mesh.send("n3", Lane.CONSENSUS, b"still here")
        await three.notes.until(lambda: bool(three.notes.messages(Lane.CONSENSUS)))
        for one_silent in silent:
            one_silent.close()
        await trio.testing.wait_all_tasks_blocked()
        assert three.mesh.counters["accept_closed"] == 8
        await say(place, b"room again for a stranger")
        assert three.mesh.counters["accept_not_tls"] == 1
        nursery.cancel_scope.cancel()
