"""Where clients connect: a bounded number of conversations, and an orderly end."""

import trio

from reachnode.serve.conversation import Conversation, WaitingRoom
from reachnode.serve.front import Front
from reachnode.serve.herald import WATCHERS_MAX
from reachnode.world.network import Listener, Stream

CONNECTIONS_MAX = 1000


class ClientPort:
    """The client port of a node.

    Args:
        front: Who answers.
        listener: Bound already; closed here.
        drain_seconds: How long conversations may go on after `stop`.
        connections_max: At most so many are talked to at once. One newcomer more makes one go
            that has nothing to ask or is slow to; the others wait in the system's queue.
    """

    def __init__(
        self,
        front: Front,
        listener: Listener,
        *,
        drain_seconds: float,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._front = front
        self._listener = listener
        self._drain_seconds = drain_seconds
        self._free = trio.Semaphore(connections_max)
        self._waiting = WaitingRoom()
        self._accepting = trio.CancelScope()
        front.accept_failures = lambda: listener.accept_failures
        front.herald.watchers_max = min(WATCHERS_MAX, max(1, connections_max // 4))

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept until `stop`; return once every conversation ended or time is up."""
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._front.herald.run)
                task_status.started()
                with self._accepting:
                    await self._accept(nursery)
                await self._listener.aclose()
                self._waiting.let_idle_go()
                nursery.cancel_scope.deadline = trio.current_time() + self._drain_seconds
        finally:
            with trio.CancelScope(shield=True):
                await self._listener.aclose()

    def stop(self) -> None:
        """Accept nobody further, and end each conversation with its next answer."""
        self._front.drain()
        self._accepting.cancel()

    async def _accept(self, nursery: trio.Nursery) -> None:
        while True:
            stream = await self._listener.accept()
            try:
                await self._make_room()
            except trio.Cancelled:
                with trio.CancelScope(shield=True):
                    await stream.aclose()
                raise
            nursery.start_soon(self._serve, stream)

    async def _make_room(self) -> None:
        """Take a place for a newcomer, from whoever has no whole request if need be."""
        if self._free.value == 0:
            self._waiting.make_room()
        try:
            await self._free.acquire()
        finally:
            self._waiting.is_short = False

    def _must_close(self) -> bool:
        """Whether connections are wanted back."""
        return self._front.is_draining or self._waiting.is_short

    async def _serve(self, stream: Stream) -> None:
        self._front.connections_count += 1
        try:
            await Conversation(
                self._front, stream, must_close=self._must_close, waiting=self._waiting
            ).run()
        finally:
            self._front.connections_count -= 1
            self._free.release()
            with trio.CancelScope(shield=True):
                await stream.aclose()
