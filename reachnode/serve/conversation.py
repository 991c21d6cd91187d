"""One client connection: requests in, answers out, each step within its time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from reachnode.errors import ReachError, RequestTimeout
from reachnode.serve.answers import problem
from reachnode.serve.dispatch import answer, headers_of
from reachnode.serve.front import Front
from reachnode.wire.http import HttpServer
from reachnode.wire.http_engines import Request
from reachnode.world.network import STREAM_ERRORS, Stream

IDLE_SECONDS = 60.0
"""Between two requests."""
HEAD_SECONDS = 10.0
"""From the first byte of a request to the end of its head."""
BODY_SECONDS = 30.0
"""From the end of the head to the end of the body."""
SEND_SECONDS = 30.0
"""For an answer to be taken."""
LINGER_SECONDS = 1.0
"""For the rest of a refused request: closing on unread bytes would lose the answer."""
RECEIVE_BYTES_MAX = 64 * 1024


class WaitingRoom:
    """Conversations between two requests: nobody misses one that ends here."""

    def __init__(self) -> None:
        self.is_short = False
        """Whether a newcomer waits for a place: whoever comes in may have to go at once."""
        self._scopes: dict[trio.CancelScope, None] = {}

    def __len__(self) -> int:
        return len(self._scopes)

    def enter(self, scope: trio.CancelScope) -> None:
        """Take in a conversation, by the scope that ends it."""
        self._scopes[scope] = None
        if self.is_short:
            self.let_go(1)

    def leave(self, scope: trio.CancelScope) -> None:
        """Let a conversation go on."""
        self._scopes.pop(scope, None)

    def let_go(self, count: int | None = None) -> None:
        """End the conversations that have waited longest; all when None."""
        for scope in list(self._scopes)[:count]:
            scope.cancel()


class Conversation:
    """Requests and answers over one stream.

    Args:
        front: Who answers.
        stream: The connection; the caller closes it.
        must_close: Whether the connection ends with the next answer.
        waiting: Where it is between two requests.
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
            is_whole = False
        else:
            if request is None:
                return False
            given = await answer(front, request)
            is_whole = True
        front.answers_count[given.status] += 1
        data = self._http.answer(
            given.status, headers_of(front, given), given.body, closes=self._must_close()
        )
        with trio.move_on_after(SEND_SECONDS) as sending:
            await self._stream.send(data)
        if not is_whole and not sending.cancelled_caught:
            await self._linger()
        return is_whole and not sending.cancelled_caught

    async def _receive(self) -> Request | None:
        """Return the next request, None when the client left or had nothing more to ask.

        Raises:
            RequestTimeout: It began and didn't arrive whole in time.
            ReachError: It is none.
        """
        now = self._front.sources.now
        deadline = now() + (IDLE_SECONDS if self._http.is_idle else HEAD_SECONDS)
        is_body_due = False
        while (request := self._http.next_request()) is None:
            if self._http.has_head and not is_body_due:
                is_body_due, deadline = True, now() + BODY_SECONDS
            was_idle = self._http.is_idle
            with self._within(deadline, is_idle=was_idle) as scope:
                if go_on := self._http.take_go_on():
                    await self._stream.send(go_on)
                data = await self._stream.receive(RECEIVE_BYTES_MAX)
            if scope.cancelled_caught and not was_idle:
                raise RequestTimeout("the request didn't arrive whole in time")
            if scope.cancelled_caught or not data:
                return None
            if was_idle:
                deadline = now() + HEAD_SECONDS
            self._http.receive(data)
        return request

    @contextmanager
    def _within(self, deadline: float, *, is_idle: bool) -> Iterator[trio.CancelScope]:
        """Bound a wait; one between two requests may be cut short by others."""
        with trio.CancelScope(deadline=deadline) as scope:
            if is_idle:
                self._waiting.enter(scope)
            try:
                yield scope
            finally:
                self._waiting.leave(scope)

    async def _linger(self) -> None:
        """Pass over what a refused client still sends."""
        with trio.move_on_after(LINGER_SECONDS):
            while await self._stream.receive(RECEIVE_BYTES_MAX):
                pass
