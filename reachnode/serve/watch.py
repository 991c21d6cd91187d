"""Changes as they come: server-sent events, resumable by index on any node.

    snapshot ──> change ──> change ──> …        without from_index
                 change ──> change ──> …        from_index, or Last-Event-ID: all since then

A watcher that doesn't take what it is told for too long is let go, and so is everyone when the
node stops; each comes back with the id of the last event it got.
"""

import zlib

import trio

from reachnode.errors import Busy, IndexExpired, InvalidRequest, ShuttingDown
from reachnode.model.discovery import Change
from reachnode.model.words import why_not_capability
from reachnode.registry.changes import changes_between, resumed_at
from reachnode.registry.queries import records
from reachnode.registry.seen import seen_as
from reachnode.registry.state import State
from reachnode.serve.answers import EVENTS, Answer, Send
from reachnode.serve.front import READ_SECONDS, Front
from reachnode.serve.herald import News, Place
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import READS, Asked, Events, operation
from reachnode.serve.reads import READ_QUERY, fresh_state, refuse_unloaded
from reachnode.wire.changes import (
    PART_CHANGES_MAX,
    EventId,
    read_event_id,
    write_keep_alive,
    write_snapshot,
    write_update,
)
from reachnode.wire.sse import write_retry

KEEP_ALIVE_SECONDS = 15.0
RETRY_MS = 1000
"""How long a client waits before it comes back."""
LAST_EVENT_ID = "last-event-id"


@operation(
    gives={200: Events},
    refuses=(*READS, IndexExpired, Busy, ShuttingDown),
    query={
        "capability": Asked(str, "Only instances that offer it, or did."),
        "from_index": Asked(int, "Everything after this index; without it a snapshot comes first."),
        **READ_QUERY,
    },
    headers={"Last-Event-ID": "The id of the last event that was received: go on from there."},
)
async def watch(front: Front, inquiry: Inquiry) -> Answer:
    """Answer with changes of instances as they come."""
    capability = inquiry.query.get("capability")
    why = None if capability is None else why_not_capability(capability)
    if why is not None:
        raise InvalidRequest(f"capability: {why}")
    refuse_unloaded(front)
    start = start_of(front, inquiry)
    if start is not None and start.epoch == epoch_of(front.replica.state):
        deadline = front.sources.now() + READ_SECONDS
        await front.replica.wait_applied(start.index, deadline=deadline)
    state = await fresh_state(front, inquiry)
    # No await from here on, not before the watcher runs: its place is the one that was looked at.
    if start is not None:
        resumed_at(
            start,
            front.sights.changes,
            epoch=epoch_of(state),
            applied_index=front.replica.applied_index,
        )
    front.herald.refuse_more()
    watcher = Watcher(front, capability=capability, start=start)
    return Answer(stream=watcher.run, content_type=EVENTS, headers={"Cache-Control": "no-store"})


def start_of(front: Front, inquiry: Inquiry) -> EventId | None:
    """Return where a watch goes on, None where it begins.

    A client that comes back by itself asks as it did at first and names its last event beside:
    that one holds.

    Raises:
        InvalidRequest: It says something else.
    """
    last = inquiry.request.headers.get(LAST_EVENT_ID)
    if last:
        return read_event_id(last)
    index = inquiry.whole_number("from_index")
    if index is None:
        return None
    return EventId(epoch=epoch_of(front.replica.state), index=index, n=0)


def epoch_of(state: State) -> int:
    """Return the life of the cluster that indexes count in, alike on all its nodes."""
    return zlib.crc32(state.cluster_id.encode())


class Watcher:
    """One client that watches.

    Args:
        front: The node it watches.
        capability: Only this one; None for all.
        start: What it was told up to; None for nothing yet.
    """

    def __init__(self, front: Front, *, capability: str | None, start: EventId | None) -> None:
        self._front = front
        self._capability = capability
        self._start = start
        self._place = Place(index=0, number=0)
        """Up to where it was told everything."""
        self._last = EventId(epoch=0, index=0, n=0)
        """The id of the last event."""

    async def run(self, send: Send) -> None:
        """Tell what happens until the node stops, or the watcher is too far behind."""
        herald = self._front.herald
        with herald.attended():
            if self._start is None:
                await self._tell_everything(send)
            else:
                self._place, self._last = herald.back_at(self._start.index), self._start
                await send(write_retry(RETRY_MS))
            while not herald.is_over:
                bell = herald.bell
                news = herald.since(self._place)
                if news is None:
                    herald.counters["expired"] += 1
                    return
                await self._tell(news, send)
                with trio.move_on_after(KEEP_ALIVE_SECONDS) as silence:
                    await bell.wait()
                if silence.cancelled_caught:
                    await self._keep_alive(send)

    async def _tell_everything(self, send: Send) -> None:
        """Begin with the table as it is at this moment."""
        front = self._front
        state, sights = front.replica.state, front.sights
        self._place = front.herald.here()
        self._last = EventId(epoch=epoch_of(state), index=self._place.index, n=0)
        seen = (seen_as(one, sights.of) for one in records(state, capability=self._capability))
        await send(write_retry(RETRY_MS))
        for piece in write_snapshot(seen, self._last, now=front.sources.now()):
            await send(piece)

    async def _tell(self, news: News, send: Send) -> None:
        """Tell what happened, if it concerns this watcher."""
        changes = await self._changes(news)
        index, now = news.place.index, self._front.sources.now()
        for event_id, event in write_update(changes, self._last, index=index, now=now):
            self._last = event_id
            await send(event)
        self._place = news.place

    async def _changes(self, news: News) -> list[Change]:
        """Return what a watcher is told of news, worked out in slices."""
        names = sorted({*news.changed, *news.stirred})
        found: list[Change] = []
        for at in range(0, len(names), PART_CHANGES_MAX):
            part = names[at : at + PART_CHANGES_MAX]
            found += changes_between(
                {name: news.changed[name] for name in part if name in news.changed},
                {name: news.stirred[name] for name in part if name in news.stirred},
                state=news.state,
                liveness_of=self._front.sights.of,
                capability=self._capability,
            )
            await trio.lowlevel.checkpoint()
        return found

    async def _keep_alive(self, send: Send) -> None:
        """Show that the connection lives; nothing up to its place concerned the watcher."""
        if self._place.index > self._last.index:
            self._last = self._last.next(self._place.index)
        await send(write_keep_alive(self._last))
