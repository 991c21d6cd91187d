"""One connection: order, limits, pings and silence, on a virtual clock."""

import dataclasses
from collections.abc import Callable

import pytest
import trio
import trio.testing

from reachnode.peers.frames import FRAME_BYTES_MAX, PING, LinkBroken, cut
from reachnode.peers.hello import Hello, Lane, Role
from reachnode.peers.link import MESSAGE_COST_BYTES, End, Link, LinkSettings
from tests.fakes import MemoryStream, stream_pair

SETTINGS = LinkSettings(message_bytes_max=100_000, unsent_bytes_max=200_000)
HELLO = Hello(role=Role.SERVER, lane=Lane.DATA, node="n2", cluster="", boot="b", nonce=b"n" * 32)


def ignore(message: bytes) -> None:
    """Take a message that doesn't matter."""
    del message


def link_pair(room_bytes: int = 65536) -> tuple[Link, Link, MemoryStream, MemoryStream]:
    """Return two links that talk to each other, and their streams."""
    near, far = stream_pair(room_bytes)
    return Link(near, HELLO, SETTINGS), Link(far, HELLO, SETTINGS), near, far


async def run_and_close(
    link: Link, stream: MemoryStream, deliver: Callable[[bytes], None] = ignore
) -> None:
    """Run a link, and close its stream as its owner does."""
    await link.run(deliver)
    with trio.CancelScope(shield=True):
        await stream.aclose()


async def test_messages_arrive_whole_and_in_order() -> None:
    """Small, empty and large messages come out as they went in, through narrow pipes too."""
    near_link, far_link, near, far = link_pair(room_bytes=1000)
    sent = [b"a" * 99_999, b"", *(bytes([n]) * n for n in range(200)), b"b" * 20_000]
    got: list[bytes] = []

    def take(message: bytes) -> None:
        got.append(message)
        if len(got) == len(sent):
            far_link.close(End.DISCONNECTED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, near_link, near)
        nursery.start_soon(run_and_close, far_link, far, take)
        assert all(near_link.send(message) for message in sent)
    assert got == sent
    assert far_link.end is End.DISCONNECTED
    assert near_link.end in {End.PEER_CLOSED, End.LOST}
    assert near_link._unsent_bytes == 0


async def test_small_messages_share_a_frame_size() -> None:
    """What is handed to the network at once is never over 16 KiB, and never half a frame."""
    near, far = stream_pair()
    handed: list[bytes] = []

    class Seen(MemoryStream):
        async def send(self, data: bytes) -> None:
            handed.append(data)
            await super().send(data)
            if len(b"".join(handed)) == len(wire):
                link.close(End.DISCONNECTED)

    messages = [b"m" * size for size in (10, 16_000, 400, 16_380, 16_381, 0, 5)]
    wire = b"".join(frame for message in messages for frame in cut(message))
    link = Link(Seen(near.incoming, near.outgoing), HELLO, SETTINGS)
    assert all(link.send(message) for message in messages)
    await link.run(ignore)
    assert b"".join(handed) == wire
    assert [len(one) for one in handed] == [16_018, 404, 16_384, 16_384, 5, 13]
    assert max(map(len, handed)) <= FRAME_BYTES_MAX
    await far.aclose()


async def test_a_quiet_link_stays_and_pings(autojump_clock: trio.testing.MockClock) -> None:
    """Pings keep an idle pair alive for as long as both sides run."""
    one, two, near, far = link_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, one, near)
        nursery.start_soon(run_and_close, two, far)
        await trio.sleep(60.5)
        assert (one.end, two.end) == (None, None)
        assert bytes(near.outgoing.seen) == bytes(far.outgoing.seen) == PING * 60
        one.close(End.DISCONNECTED)


async def test_a_link_that_sends_needs_no_ping(autojump_clock: trio.testing.MockClock) -> None:
    """A ping leaves only after a second without anything else."""
    one, two, near, far = link_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, one, near)
        nursery.start_soon(run_and_close, two, far)
        for _ in range(10):
            await trio.sleep(0.9)
            one.send(b"x")
        assert PING not in bytes(near.outgoing.seen)
        one.close(End.DISCONNECTED)


async def test_a_message_leaves_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """On a quiet link a message waits for nothing."""
    one, two, near, far = link_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, one, near)
        nursery.start_soon(run_and_close, two, far, lambda _: two.close(End.DISCONNECTED))
        await trio.sleep(0.5)
        one.send(b"x")
        await trio.sleep(0.1)
        assert two.end is End.DISCONNECTED


async def test_silence_ends_a_link_in_time(autojump_clock: trio.testing.MockClock) -> None:
    """A peer of which nothing comes, on a connection that doesn't break, is gone after 3.5 s."""
    one, two, near, far = link_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, two, far)
        nursery.start_soon(trio.sleep, 10)
        await trio.testing.wait_all_tasks_blocked()
        near.stall()
        started_at = trio.current_time()
        await run_and_close(one, near)
        assert trio.current_time() - started_at == pytest.approx(3.5)
    assert one.end is End.SILENT
    assert two.end in {End.PEER_CLOSED, End.LOST}


async def test_a_reset_ends_both_sides() -> None:
    """A connection that breaks is noticed by who receives and by who sends."""
    one, two, near, far = link_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, one, near)
        nursery.start_soon(run_and_close, two, far)
        await trio.testing.wait_all_tasks_blocked()
        near.reset()
    assert (one.end, two.end) == (End.LOST, End.LOST)

    alone, _, near, far = link_pair()
    near.outgoing.is_broken = True
    alone.send(b"x")
    await run_and_close(alone, near)
    assert alone.end is End.LOST


async def test_a_peer_that_takes_nothing_is_cut_off() -> None:
    """A full queue closes the link: no message is dropped between two that arrive."""
    link, _, near, far = link_pair(room_bytes=5_000)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, link, near)
        sent_count = 0
        while link.send(b"x" * 1000):
            sent_count += 1
            await trio.lowlevel.checkpoint()
    assert link.end is End.QUEUE_FULL
    weight = 1000 + MESSAGE_COST_BYTES
    # Up to four fit the network, and have left the queue if they were sent one by one.
    assert 0 <= sent_count - SETTINGS.unsent_bytes_max // weight <= 4
    assert bytes(far.incoming.data).startswith(b"".join(cut(b"x" * 1000)) * 4)


async def test_empty_messages_fill_the_queue_too() -> None:
    """Whatever is queued weighs something."""
    link, *_ = link_pair()
    fitting_count = SETTINGS.unsent_bytes_max // MESSAGE_COST_BYTES
    assert all(link.send(b"") for _ in range(fitting_count))
    assert not link.send(b"")


async def test_a_message_over_the_limit_closes_the_link() -> None:
    """It can't be sent, and what follows must not arrive without it."""
    link, _, near, far = link_pair()
    assert link.send(b"x" * SETTINGS.message_bytes_max)
    assert not link.send(b"x" * (SETTINGS.message_bytes_max + 1))
    assert link.end is End.TOO_LARGE
    assert not link.send(b"next")
    await run_and_close(link, near)
    assert far.incoming.data == b""


@pytest.mark.parametrize("wire", [b"\xff" * 100, b"".join(cut(b"x" * 100_001))])
async def test_a_violation_ends_the_link(wire: bytes) -> None:
    """A peer that sends no frames, or too long a message, is hung up on; queues are given up."""
    link, _, near, far = link_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_and_close, link, near)
        with pytest.raises(trio.BrokenResourceError):
            await far.send(wire + b"\xff" * 200_000)
    assert link.end is End.BROKE_PROTOCOL


async def test_who_takes_messages_can_end_the_link() -> None:
    """A message that breaks the owner's protocol ends the link before the next is delivered."""
    link, _, near, far = link_pair()
    got: list[bytes] = []

    def take(message: bytes) -> None:
        got.append(message)
        if message == b"bad":
            raise LinkBroken("nobody says this")

    await far.send(b"".join(frame for one in (b"good", b"bad", b"more") for frame in cut(one)))
    await run_and_close(link, near, take)
    assert got == [b"good", b"bad"]
    assert (link.end, link.why) == (End.BROKE_PROTOCOL, "nobody says this")


async def test_a_closed_link_delivers_nothing_more() -> None:
    """After closing, even from inside a delivery, no message comes any more."""
    link, _, near, far = link_pair()
    got: list[bytes] = []

    def take(message: bytes) -> None:
        got.append(message)
        link.close(End.DISCONNECTED)

    await far.send(b"".join(frame for one in (b"one", b"two") for frame in cut(one)))
    await run_and_close(link, near, take)
    assert got == [b"one"]
    link.close(End.SILENT, "later")
    assert (link.end, link.why) == (End.DISCONNECTED, "")


async def test_an_error_of_our_own_goes_up() -> None:
    """An exception that isn't the peer's fault isn't hidden as one, an OSError neither."""

    def take(message: bytes) -> None:
        raise OSError(f"our disk failed at {message!r}")

    link, _, near, far = link_pair()
    await far.send(b"".join(cut(b"x")))
    with pytest.raises(ExceptionGroup) as raised:
        await link.run(take)
    assert raised.group_contains(OSError, match="our disk")
    await near.aclose()


@pytest.mark.parametrize(
    "wrong",
    [
        {"idle_seconds": 1.0},
        {"ping_seconds": 0.0},
        {"handshake_seconds": 0.0},
        {"greetings_max": 0},
        {"unsent_bytes_max": 8 * 1024 * 1024},
        {"redial_seconds_min": 2.0},
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, float]) -> None:
    """A link that would count as gone while it is quiet can't be configured."""
    with pytest.raises(AssertionError):
        dataclasses.replace(LinkSettings(), **wrong)  # type: ignore[arg-type]  # wrong on purpose
