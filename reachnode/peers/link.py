"""One authenticated connection: messages out by a bounded queue, messages in one by one.

                 run()               close(end)
    made ----------------> open ----------------> closed
                                  other side ended, silence,
                                  broken protocol, full queue

A message is handed to the network whole and in order, or the connection ends: nothing is
dropped in the middle. What was queued when it ends is lost, as with any connection.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import trio

from reachnode.peers.frames import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    PING,
    FrameDecoder,
    LinkBroken,
    cut,
)
from reachnode.peers.hello import Hello
from reachnode.world.network import STREAM_ERRORS, Stream

RECEIVE_BYTES_MAX = 65536
MESSAGE_COST_BYTES = 128
"""What a queued message weighs besides its bytes, so that empty ones are bounded too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """Every limit of the peer link."""

    handshake_seconds: float = 2.0
    """How long connecting, TLS and the hello may take together."""
    greetings_max: int = 64
    """Connections that came in and are not proven yet; more are closed at once."""
    message_bytes_max: int = 8 * 1024 * 1024
    unsent_bytes_max: int = 32 * 1024 * 1024
    """What may wait in one connection's queue; a peer that falls further behind is cut off."""
    ping_seconds: float = 1.0
    """After sending nothing for so long a ping is sent."""
    idle_seconds: float = 3.5
    """After receiving nothing for so long the other side counts as gone."""
    redial_seconds_min: float = 0.1
    redial_seconds_max: float = 1.0
    """Pauses between attempts grow from the one to the other, and are drawn below that."""

    def __post_init__(self) -> None:
        assert self.handshake_seconds > 0
        assert self.greetings_max >= 1
        assert 1 <= self.message_bytes_max <= self.unsent_bytes_max - MESSAGE_COST_BYTES
        assert 0 < self.ping_seconds < self.idle_seconds, "a quiet link must not count as gone"
        assert 0 < self.redial_seconds_min <= self.redial_seconds_max


class End(StrEnum):
    """Why a link is closed. Each has a counter."""

    PEER_CLOSED = "peer_closed"
    """The other side ended it."""
    LOST = "lost"
    """The network or the other side broke it."""
    SILENT = "silent"
    """Nothing came for too long, not even a ping."""
    BROKE_PROTOCOL = "broke_protocol"
    """The other side sent what it must not."""
    QUEUE_FULL = "queue_full"
    """The other side takes too little of what we send."""
    TOO_LARGE = "too_large"
    """A message to send was over the limit: a fault of this node."""
    REPLACED = "replaced"
    """The same peer opened the same lane anew."""
    DISCONNECTED = "disconnected"
    """This node asked for it."""
    STOPPED = "stopped"
    """The mesh stops."""


class Link:
    """A connection to a proven peer, on one lane.

    Args:
        stream: Ours to send and receive on until `run` returns. Who opened it closes it.
        hello: What the peer said of itself.
        settings: Limits.
    """

    def __init__(self, stream: Stream, hello: Hello, settings: LinkSettings) -> None:
        self.peer = hello.node
        self.lane = hello.lane
        self.boot = hello.boot
        self.end: End | None = None
        self.why = ""
        self._stream = stream
        self._settings = settings
        self._queue: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._wake = trio.Event()
        self._scope = trio.CancelScope()

    def send(self, message: bytes) -> bool:
        """Queue a message; return False when the link is closed, or closes because of it."""
        if self.end is not None:
            return False
        if len(message) > self._settings.message_bytes_max:
            self.close(End.TOO_LARGE, f"a message to send has {len(message)} bytes")
            return False
        cost = len(message) + MESSAGE_COST_BYTES
        if self._unsent_bytes + cost > self._settings.unsent_bytes_max:
            self.close(End.QUEUE_FULL, f"{self._unsent_bytes} bytes wait to be sent")
            return False
        self._queue.append(message)
        self._unsent_bytes += cost
        self._wake.set()
        return True

    def close(self, end: End, why: str = "") -> None:
        """Close the link: from now on nothing is queued or delivered. The first reason counts."""
        if self.end is None:
            self.end = end
            self.why = why
            self._scope.cancel()

    async def run(self, deliver: Callable[[bytes], None]) -> None:
        """Send and receive until the link is closed, by whatever side.

        Args:
            deliver: Takes each message. It may raise `LinkBroken` to close the link; any other
                exception is a fault of this node and goes up.
        """
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._read, deliver)
        if self.end is None:  # pragma: no cover - both tasks end by closing or raising
            raise AssertionError("a link ended without a reason")

    async def _read(self, deliver: Callable[[bytes], None]) -> None:
        decoder = FrameDecoder(self._settings.message_bytes_max)
        while data := await self._receive():
            try:
                for message in decoder.feed(data):
                    if self.end is not None:
                        return
                    deliver(message)
            except LinkBroken as broken:
                self.close(End.BROKE_PROTOCOL, str(broken))

    async def _receive(self) -> bytes:
        """Return what came; nothing once the link is closed."""
        try:
            with trio.move_on_after(self._settings.idle_seconds):
                data = await self._stream.receive(RECEIVE_BYTES_MAX)
                if not data:
                    self.close(End.PEER_CLOSED)
                return data
        except STREAM_ERRORS as error:
            self.close(End.LOST, str(error))
            return b""
        self.close(End.SILENT, f"nothing came for {self._settings.idle_seconds} s")
        return b""

    async def _write(self) -> None:
        try:
            while True:
                if self._queue:
                    await self._send_next()
                    continue
                self._wake = trio.Event()
                with trio.move_on_after(self._settings.ping_seconds):
                    await self._wake.wait()
                if not self._queue:
                    await self._stream.send(PING)
        except STREAM_ERRORS as error:
            self.close(End.LOST, str(error))

    async def _send_next(self) -> None:
        """Send the next message frame by frame, or as many small ones as fit one frame."""
        first = self._queue.popleft()
        taken_bytes = len(first) + MESSAGE_COST_BYTES
        if len(first) > PAYLOAD_BYTES_MAX:
            for frame in cut(first):
                await self._stream.send(frame)
        else:
            frames = list(cut(first))
            room_bytes = FRAME_BYTES_MAX - len(frames[0])
            while self._queue and len(self._queue[0]) + HEADER_BYTES <= room_bytes:
                message = self._queue.popleft()
                taken_bytes += len(message) + MESSAGE_COST_BYTES
                room_bytes -= len(message) + HEADER_BYTES
                frames += cut(message)
            await self._stream.send(b"".join(frames))
        self._unsent_bytes -= taken_bytes
