"""Connections: how a node reaches others and is reached.

The port is three verbs (`connect`, `listen`, `accept`) and a byte stream, so that the
simulator can replace the lot. `SystemNetwork` is TCP of the operating system; TLS, in
`reachnode.world.tls`, goes over any stream. No protocol lives here.
"""

import errno
from contextlib import ExitStack
from typing import Protocol

import trio

from reachnode.model.address import Address

BACKLOG_MAX = 1024
ACCEPT_PAUSE_SECONDS = 0.1

ABORTED_ERRNOS = frozenset({errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.EINTR})
"""Accepting failed for one connection alone: take the next at once."""

UNUSABLE_ERRNOS = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EOPNOTSUPP})
"""The listening socket itself is of no use; waiting would not help."""

STREAM_ERRORS = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
"""What a stream raises when its connection is gone, for whatever reason."""


class Stream(Protocol):
    """One connection: bytes both ways, in order. One task may receive while another sends.

    Every method but `aclose` raises `trio.BrokenResourceError` when the connection broke and
    `trio.ClosedResourceError` when it was closed on this side; see `STREAM_ERRORS`.
    """

    async def receive(self, max_bytes: int) -> bytes:
        """Return 1 to `max_bytes` bytes as they come; none when the other side ended."""
        ...

    async def send(self, data: bytes) -> None:
        """Hand all of `data` to the network, waiting while it is full."""
        ...

    async def aclose(self) -> None:
        """Close at once, without waiting for the other side. Closing twice is fine."""
        ...


class Listener(Protocol):
    """A place where connections come in."""

    accept_failures: int
    """How often accepting failed, as when descriptors ran out."""

    @property
    def address(self) -> Address:
        """Return the bound address, its port never 0."""
        ...

    async def accept(self) -> Stream:
        """Return the next connection, whatever goes wrong with others meanwhile.

        Raises:
            trio.ClosedResourceError: The listener was closed.
        """
        ...

    async def aclose(self) -> None:
        """Stop listening. Closing twice is fine."""
        ...


class Network(Protocol):
    """What opens connections, both ways."""

    async def connect(self, address: Address, timeout_seconds: float) -> Stream:
        """Return a connection to `address`.

        Raises:
            TimeoutError: Nobody answered in time. It is an `OSError` too.
            OSError: The name or the place can't be reached.
        """
        ...

    async def listen(self, address: Address) -> Listener:
        """Return a listener bound to `address`; connections queue from then on.

        A host name that has several addresses binds the first.

        Raises:
            OSError: The address is taken, not ours, or not allowed.
        """
        ...


class TcpStream:
    """A `Stream` over one socket, with Nagle's delay off."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream  # trio.SocketStream sets TCP_NODELAY itself.

    async def receive(self, max_bytes: int) -> bytes:
        """Return what came, up to `max_bytes`."""
        return bytes(await self._stream.receive_some(max_bytes))

    async def send(self, data: bytes) -> None:
        """Send all of `data`."""
        await self._stream.send_all(data)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._stream.aclose()


class TcpListener:
    """A `Listener` over one socket that outlives a shortage of descriptors or memory."""

    def __init__(self, socket: trio.socket.SocketType) -> None:
        self.accept_failures = 0
        self._socket = socket
        host, port = socket.getsockname()[:2]
        self._address = Address(host, port)

    @property
    def address(self) -> Address:
        """Return where the socket is bound."""
        return self._address

    async def accept(self) -> Stream:
        """Return the next connection.

        A shortage is waited out: the system keeps what queues up. Only a socket that can
        never accept again raises.
        """
        while True:
            try:
                socket, _ = await self._socket.accept()
                return TcpStream(trio.SocketStream(socket))
            except OSError as error:
                if self._socket.fileno() < 0:
                    raise trio.ClosedResourceError("the listener was closed") from None
                if error.errno in UNUSABLE_ERRNOS:
                    raise
                self.accept_failures += 1
                if error.errno not in ABORTED_ERRNOS:
                    await trio.sleep(ACCEPT_PAUSE_SECONDS)

    async def aclose(self) -> None:
        """Close the socket."""
        self._socket.close()
        await trio.lowlevel.checkpoint()


class SystemNetwork:
    """TCP of the operating system, driven by trio."""

    async def connect(self, address: Address, timeout_seconds: float) -> Stream:
        """Return a TCP connection; of several addresses of a name the first that answers."""
        with trio.move_on_after(timeout_seconds):
            try:
                return TcpStream(await trio.open_tcp_stream(address.host, address.port))
            except UnicodeError as error:
                raise OSError(errno.EINVAL, f"{address.host!r} is no host name") from error
        raise TimeoutError(f"no connection to {address} within {timeout_seconds} s")

    async def listen(self, address: Address) -> Listener:
        """Return a TCP listener."""
        try:
            found = await trio.socket.getaddrinfo(
                address.host,
                address.port,
                type=trio.socket.SOCK_STREAM,
                flags=trio.socket.AI_PASSIVE,
            )
        except UnicodeError as error:
            raise OSError(errno.EINVAL, f"{address.host!r} is no host name") from error
        family, kind, protocol, _, place = found[0]
        socket = trio.socket.socket(family, kind, protocol)
        with ExitStack() as on_failure:
            on_failure.callback(socket.close)
            # A restarted node binds although connections of the last one linger.
            socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_REUSEADDR, 1)
            await socket.bind(place)
            socket.listen(BACKLOG_MAX)
            listener = TcpListener(socket)
            on_failure.pop_all()
        return listener
