"""TCP of the operating system behind our port."""

import errno
import socket

import pytest
import trio
import trio.testing

from reachnode.model.address import Address
from reachnode.world.network import (
    ACCEPT_PAUSE_SECONDS,
    STREAM_ERRORS,
    SystemNetwork,
    TcpListener,
    TcpStream,
)

LOOPBACK = Address("127.0.0.1", 0)


async def receive_all(stream: TcpStream) -> bytes:
    """Return everything up to the end."""
    data = b""
    while more := await stream.receive(65536):
        data += more
    return data


async def tcp_pair() -> tuple[TcpStream, TcpStream]:
    """Return both ends of a connection over loopback."""
    network = SystemNetwork()
    listener = await network.listen(LOOPBACK)
    near = await network.connect(listener.address, 5)
    far = await listener.accept()
    await listener.aclose()
    assert isinstance(near, TcpStream)
    assert isinstance(far, TcpStream)
    return near, far


async def test_bytes_cross_in_order_and_end() -> None:
    """What is sent arrives, all of it, and closing shows as the end."""
    near, far = await tcp_pair()
    sent = bytes(range(256)) * 8192
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            await near.send(sent)
            await near.aclose()

        nursery.start_soon(send)
        assert await receive_all(far) == sent
    await far.aclose()


async def test_receiving_takes_no_more_than_asked() -> None:
    """The rest stays for the next call."""
    near, far = await tcp_pair()
    await near.send(b"abc")
    assert await far.receive(1) == b"a"
    assert await far.receive(9) == b"bc"
    await near.aclose()
    await far.aclose()


async def test_small_messages_leave_at_once() -> None:
    """Nagle's delay is off on both ends."""
    for stream in (pair := await tcp_pair()):
        assert stream._stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    for stream in pair:
        await stream.aclose()


async def test_a_broken_connection_raises_one_of_the_stream_errors() -> None:
    """Sending to nobody and using a closed stream fail as the port says."""
    near, far = await tcp_pair()
    await far.aclose()
    with pytest.raises(STREAM_ERRORS):
        await near.send(b"x" * 64 * 1024 * 1024)
    await near.aclose()
    await near.aclose()
    with pytest.raises(STREAM_ERRORS):
        await near.receive(1)


async def test_port_zero_is_answered_with_the_real_port() -> None:
    """A listener knows where it is bound, and two of them differ."""
    network = SystemNetwork()
    one, two = await network.listen(LOOPBACK), await network.listen(LOOPBACK)
    assert one.address.host == "127.0.0.1"
    assert 0 < one.address.port != two.address.port > 0
    with pytest.raises(OSError, match="in use"):
        await network.listen(one.address)
    await one.aclose()
    await two.aclose()
    again = await network.listen(one.address)
    await again.aclose()


async def test_nobody_there_is_an_os_error() -> None:
    """A refused connection raises what the system says."""
    network = SystemNetwork()
    listener = await network.listen(LOOPBACK)
    await listener.aclose()
    with pytest.raises(OSError, match=str(listener.address.port)):
        await network.connect(listener.address, 5)


async def test_connecting_gives_up_in_time() -> None:
    """After the time allowed a TimeoutError, which is an OSError, ends the attempt."""
    with pytest.raises(TimeoutError, match="within 0 s"):
        await SystemNetwork().connect(Address("127.0.0.1", 9), 0)


async def test_an_impossible_host_name_is_an_os_error() -> None:
    """A name that can't be encoded fails like one that can't be found."""
    address = Address("x" * 64 + ".example", 1)
    with pytest.raises(OSError, match="no host name"):
        await SystemNetwork().connect(address, 5)
    with pytest.raises(OSError, match="no host name"):
        await SystemNetwork().listen(address)


async def test_closing_a_listener_ends_accepting() -> None:
    """Who waits for connections, or asks later, learns that it is closed."""
    listener = await SystemNetwork().listen(LOOPBACK)
    async with trio.open_nursery() as nursery:

        async def accept() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await listener.accept()

        nursery.start_soon(accept)
        await trio.testing.wait_all_tasks_blocked()
        await listener.aclose()
    await accept()


class ShortSocket:
    """A listening socket that fails as told before it accepts."""

    def __init__(self, *failures: int) -> None:
        self.failures = list(failures)
        self.ends: list[socket.socket] = []

    def getsockname(self) -> tuple[str, int]:
        """Return any address."""
        return ("127.0.0.1", 1)

    def fileno(self) -> int:
        """Return any descriptor of an open socket."""
        return 3

    async def accept(self) -> tuple[trio.socket.SocketType, None]:
        """Fail, or return a connection."""
        await trio.lowlevel.checkpoint()
        if self.failures:
            raise OSError(self.failures.pop(0), "as told")
        near, far = socket.socketpair()
        self.ends.append(far)
        return trio.socket.from_stdlib_socket(near), None


async def accept_after(*failures: int) -> tuple[float, int]:
    """Return how long accepting took, in seconds, and how many failures were counted."""
    fake = ShortSocket(*failures)
    listener = TcpListener(fake)  # type: ignore[arg-type]  # the part of a socket that it uses
    started_at = trio.current_time()
    stream = await listener.accept()
    await stream.aclose()
    fake.ends[0].close()
    return trio.current_time() - started_at, listener.accept_failures


async def test_a_shortage_is_waited_out(autojump_clock: trio.testing.MockClock) -> None:
    """Without descriptors or memory the listener pauses, counts, and goes on."""
    took_seconds, failures_count = await accept_after(errno.EMFILE, errno.ENFILE, errno.ENOBUFS)
    assert took_seconds == pytest.approx(3 * ACCEPT_PAUSE_SECONDS)
    assert failures_count == 3


async def test_one_aborted_connection_delays_no_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A connection that is gone before it is accepted is skipped at once."""
    assert await accept_after(errno.ECONNABORTED) == (0, 1)


async def test_a_socket_that_can_never_accept_raises() -> None:
    """Waiting is for what passes."""
    with pytest.raises(OSError, match="as told"):
        await accept_after(errno.EINVAL)
