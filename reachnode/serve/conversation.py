"""One client connection: requests in, answers out, each step within its time.

An answer that comes in pieces waits for its client with each of them, and is the last one of
its connection.
"""

import logging
from collections.abc import Callable

import trio

from reachnode.errors import ReachError, RequestTimeout
from reachnode.serve.answers import Answer, Streamer, problem
from reachnode.serve.dispatch import answer, headers_of
from reachnode.serve.front import Front
from reachnode.wire.http import HttpServer
from reachnode.wire.http_engines import Request
from reachnode.world.network import STREAM_ERRORS, Stream

LOG = logging.getLogger(__name__)
IDLE_SECONDS = 60.0
"""Between two requests."""
HEAD_SECONDS = 10.0
"""From the first byte of a request to the end of its head."""
BODY_SECONDS = 30.0
"""From the end of the head to the end of the body."""
PHASE_SECONDS = {"idle": IDLE_SECONDS, "head": HEAD_SECONDS, "body": BODY_SECONDS}
SEND_SECONDS = 30.0
"""For an answer to be taken."""
LINGER_SECONDS = 1.0
"""For the rest of a refused request: closing on unread bytes would lose the answer."""
RECEIVE_BYTES_MAX = 64 * 1024


class WaitingRoom:
    """Conversations that lack a whole request: whoever ends one takes no answer from anybody."""

    def __init__(self) -> None:
        self.is_short = False
        """Whether a newcomer waits for a place and nobody could be let go for it yet."""
        self._idle: dict[trio.CancelScope, None] = {}
        self._begun: dict[trio.CancelScope, None] = {}
        """Those of which a part of a request came."""

    def __len__(self) -> int:
        return len(self._idle) + len(self._begun)

    def enter(self, scope: trio.CancelScope, *, is_idle: bool) -> None:
        """Take in a conversation, by the scope that ends it, or note that it got further."""
        self.leave(scope)
        room = self._idle if is_idle else self._begun
        room[scope] = None
        if self.is_short:
            self.make_room()

    def leave(self, scope: trio.CancelScope) -> None:
        """Let a conversation go on."""
        self._idle.pop(scope, None)
        self._begun.pop(scope, None)

    def make_room(self) -> None:
        """End one conversation for a newcomer: one that is idle, else one that is slow.

        The one that has waited longest goes. With nobody there, whoever comes next does.
        """
        for scope in (*self._idle, *self._begun):
            if not scope.cancel_called:
                scope.cancel()
                self.is_short = False
                return
        self.is_short = True

    def let_idle_go(self) -> None:
        """End every conversation that asks nothing."""
        for scope in list(self._idle):
            scope.cancel()


class Conversation:
    """Requests and answers over one stream.

    Args:
        front: Who answers.
        stream: The connection; the caller closes it.
        must_close: Whether the connection ends with the next answer.
        waiting: Where it is until its request is whole.
    """

    def __init__(
        self,
        front: Front,
        stream: Stream,
        *,
        must_close: Callable[[], bool],
        waiting: WaitingRoom,
    ) -> None:
        self._front = front
        self._stream = stream
        self._must_close = must_close
        self._waiting = waiting
        self._http = HttpServer()

    async def run(self) -> None:
        """Talk until either side ends it."""
        try:
            while self._http.is_open:
                if not await self._exchange():
                    return
        except STREAM_ERRORS:
            return

    async def _exchange(self) -> bool:
        """Answer one request; return whether there may be another."""
        front = self._front
        try:
            request = await self._receive()
        except ReachError as error:
            given = problem(error, request_id=front.sources.new_id())
            request, is_whole = None, False
        else:
            if request is None:
                return False
            given = await answer(front, request)
            is_whole = True
        front.answers_count[given.status] += 1
        if given.stream is not None:
            assert request is not None
            await self._pour(request, given, given.stream)
            return False
        data = self._http.answer(
            given.status, headers_of(front, given), given.body, closes=self._must_close()
        )
        with trio.move_on_after(SEND_SECONDS) as sending:
            await self._stream.send(data)
        if not is_whole and not sending.cancelled_caught:
            await self._linger()
        return is_whole and not sending.cancelled_caught

    async def _pour(self, request: Request, given: Answer, stream: Streamer) -> None:
        """Answer piece by piece until there is no more, the client left, or is too slow."""
        http, front = self._http, self._front
        head = http.begin_stream(given.status, headers_of(front, given))
        if request.method == "HEAD":
            await self._hand_over(head)
            return
        async with trio.open_nursery() as nursery:

            async def send(data: bytes) -> None:
                nonlocal head
                if not await self._hand_over(head + http.piece(data)):
                    nursery.cancel_scope.cancel()
                    await trio.lowlevel.checkpoint()
                head = b""

            nursery.start_soon(self._until_left, nursery.cancel_scope)
            try:
                await stream(send)
            except Exception:
                LOG.exception("the stream of %s ended before its end", request.target[:200])
            else:
                await self._hand_over(head + http.end_stream())
            nursery.cancel_scope.cancel()

    async def _hand_over(self, data: bytes) -> bool:
        """Send bytes; return whether the client took them."""
        try:
            with trio.move_on_after(SEND_SECONDS) as sending:
                await self._stream.send(data)
        except STREAM_ERRORS:
            return False
        self._front.streams_slow_count += sending.cancelled_caught
        return not sending.cancelled_caught

    async def _until_left(self, scope: trio.CancelScope) -> None:
        """End a stream when its client goes; whatever it says meanwhile is passed over."""
        try:
            while await self._stream.receive(RECEIVE_BYTES_MAX):
                pass
        except STREAM_ERRORS:
            pass
        scope.cancel()

    async def _receive(self) -> Request | None:
        """Return the next request, None when the client left or had nothing more to ask.

        Raises:
            RequestTimeout: It began and didn't arrive whole in time.
            ReachError: It is none.
        """
        phase = ""
        with trio.CancelScope() as scope:
            try:
                while (request := self._http.next_request()) is None:
                    if phase != (phase := self._phase()):
                        scope.deadline = self._front.sources.now() + PHASE_SECONDS[phase]
                        self._waiting.enter(scope, is_idle=phase == "idle")
                    if go_on := self._http.take_go_on():
                        await self._stream.send(go_on)
                    data = await self._stream.receive(RECEIVE_BYTES_MAX)
                    if not data:
                        return None
                    self._http.receive(data)
            finally:
                self._waiting.leave(scope)
            if scope.cancel_called:  # It was let go too late: somebody else has to.
                self._waiting.is_short = True
            return request
        is_late = self._front.sources.now() >= scope.deadline
        if phase != "idle" and is_late:
            raise RequestTimeout("the request didn't arrive whole in time")
        return None

    def _phase(self) -> str:
        """Return how far the next request has come."""
        if self._http.has_head:
            return "body"
        return "idle" if self._http.is_idle else "head"

    async def _linger(self) -> None:
        """Pass over what a refused client still sends."""
        with trio.move_on_after(LINGER_SECONDS) as scope:
            self._waiting.enter(scope, is_idle=True)
            try:
                while await self._stream.receive(RECEIVE_BYTES_MAX):
                    pass
            finally:
                self._waiting.leave(scope)
