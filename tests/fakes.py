"""Stand-ins for the outside: a network in memory that follows a virtual clock, seeded dice.

They keep the contracts of `reachnode.world`; faults happen when a test asks for them.
"""

import random
from collections import deque

import trio

from reachnode.model.address import Address


class SeededSources:
    """Trio's clock, dice with a seed, and ids that count up."""

    def __init__(self, seed: int = 0) -> None:
        self.draw: random.Random = random.Random(seed)
        self._ids_count = 0

    def now(self) -> float:
        """Return trio's clock."""
        return trio.current_time()

    def wall_ms(self) -> int:
        """Return trio's clock in milliseconds."""
        return int(trio.current_time() * 1000)

    def new_id(self) -> str:
        """Return the next id."""
        self._ids_count += 1
        return f"{self._ids_count:032x}"


class Pipe:
    """One direction of a connection: ordered bytes, bounded, that a test can hold back."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self.data = bytearray()
        self.seen = bytearray()
        """Everything that was ever sent: what somebody on the wire could read."""
        self.is_ended = False
        self.is_broken = False
        self.is_stalled = False
        self._changed = trio.Event()

    def change(self) -> None:
        """Wake whoever waits for this pipe."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait(self) -> None:
        """Wait for the next change."""
        await self._changed.wait()


class MemoryStream:
    """One end of a connection in memory."""

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.is_closed = False

    async def receive(self, max_bytes: int) -> bytes:
        """Return what came."""
        await trio.lowlevel.checkpoint()
        pipe = self.incoming
        while True:
            if self.is_closed:
                raise trio.ClosedResourceError("closed on this side")
            if pipe.is_broken:
                raise trio.BrokenResourceError("the connection broke")
            if not pipe.is_stalled and (pipe.data or pipe.is_ended):
                data = bytes(pipe.data[:max_bytes])
                del pipe.data[:max_bytes]
                pipe.change()
                return data
            await pipe.wait()

    async def send(self, data: bytes) -> None:
        """Send all of `data`, waiting for room."""
        await trio.lowlevel.checkpoint()
        pipe = self.outgoing
        at = 0
        while True:
            if self.is_closed:
                raise trio.ClosedResourceError("closed on this side")
            if pipe.is_broken:
                raise trio.BrokenResourceError("the other side is gone")
            taken = data[at : at + pipe.room_bytes - len(pipe.data)]
            at += len(taken)
            if taken:
                pipe.data += taken
                pipe.seen += taken
                pipe.change()
            if at == len(data):
                return
            await pipe.wait()

    async def aclose(self) -> None:
        """Close: the other side sees an end, and what it sends breaks."""
        self.is_closed = True
        self.outgoing.is_ended = True
        self.incoming.is_broken = True
        self.outgoing.change()
        self.incoming.change()
        await trio.lowlevel.checkpoint()

    def stall(self) -> None:
        """Deliver nothing more to this end, silently, as when a cable is cut."""
        self.incoming.is_stalled = True

    def reset(self) -> None:
        """Break the connection for both ends at once."""
        for pipe in (self.incoming, self.outgoing):
            pipe.is_broken = True
            pipe.change()


def stream_pair(room_bytes: int = 65536) -> tuple[MemoryStream, MemoryStream]:
    """Return the two ends of a connection."""
    there, back = Pipe(room_bytes), Pipe(room_bytes)
    return MemoryStream(back, there), MemoryStream(there, back)


class MemoryListener:
    """Where connections of a `MemoryNetwork` come in."""

    def __init__(self, network: "MemoryNetwork", address: Address) -> None:
        self.accept_failures = 0
        self._network = network
        self._address = address
        self._waiting: deque[MemoryStream] = deque()
        self._came = trio.Event()
        self._is_closed = False

    @property
    def address(self) -> Address:
        """Return the bound address."""
        return self._address

    def put(self, stream: MemoryStream) -> None:
        """Queue a connection."""
        self._waiting.append(stream)
        self._came.set()

    async def accept(self) -> MemoryStream:
        """Return the next connection."""
        await trio.lowlevel.checkpoint()
        while not self._waiting:
            if self._is_closed:
                raise trio.ClosedResourceError("the listener was closed")
            self._came = trio.Event()
            await self._came.wait()
        return self._waiting.popleft()

    async def aclose(self) -> None:
        """Stop listening."""
        self._is_closed = True
        self._network.forget(self._address)
        self._came.set()
        await trio.lowlevel.checkpoint()


class MemoryNetwork:
    """A network in memory. Addresses are whatever text is listened on."""

    def __init__(self, room_bytes: int = 65536) -> None:
        self.room_bytes = room_bytes
        self.pairs: list[tuple[MemoryStream, MemoryStream]] = []
        """Every connection ever made: the end that dialed, the end that accepted."""
        self.is_mute = False
        """Whether connecting is never answered, as behind a firewall that drops."""
        self._listeners: dict[Address, MemoryListener] = {}

    async def connect(self, address: Address, timeout_seconds: float) -> MemoryStream:
        """Return a connection to whoever listens there."""
        await trio.lowlevel.checkpoint()
        if self.is_mute:
            await trio.sleep(timeout_seconds)
            raise TimeoutError(f"no connection to {address}")
        if address not in self._listeners:
            raise ConnectionRefusedError(f"nobody listens on {address}")
        pair = stream_pair(self.room_bytes)
        self.pairs.append(pair)
        self._listeners[address].put(pair[1])
        return pair[0]

    async def listen(self, address: Address) -> MemoryListener:
        """Return a listener."""
        await trio.lowlevel.checkpoint()
        if address in self._listeners:
            raise OSError(f"{address} is taken")
        self._listeners[address] = MemoryListener(self, address)
        return self._listeners[address]

    def forget(self, address: Address) -> None:
        """Nobody listens there any more."""
        self._listeners.pop(address, None)
