"""Updates of a watch, and the ids by which it is resumed.

An id is `r-<epoch>-<index>-<n>`. It promises that everything up to the index was told, so
whoever comes back with it goes on after the index, on any node. `n` tells apart updates that
promise the same index. An update in several parts promises its index with the last one; those
before still promise what was promised before them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from reachnode.errors import InvalidRequest
from reachnode.model.discovery import Change, Seen
from reachnode.model.words import shown
from reachnode.wire.discovery import write_seen
from reachnode.wire.sse import write_event

EVENT_ID = re.compile(r"r-([0-9]{1,19})-([0-9]{1,19})-([0-9]{1,19})")
PART_CHANGES_MAX = 64
"""Instances told of in one event, or in one piece of a snapshot: about 2 ms of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventId:
    """Where a watch stands."""

    epoch: int
    """Which life of the cluster: a restored one has a new epoch."""
    index: int
    n: int

    def __str__(self) -> str:
        return f"r-{self.epoch}-{self.index}-{self.n}"

    def next(self, index: int) -> "EventId":
        """Return the id of the next event, which promises an index."""
        assert index >= self.index
        n = self.n + 1 if index == self.index else 0
        return EventId(epoch=self.epoch, index=index, n=n)


def read_event_id(text: str) -> EventId:
    """Return the id that a client came back with.

    Raises:
        InvalidRequest: It is none of a watch.
    """
    found = EVENT_ID.fullmatch(text)
    if found is None:
        raise InvalidRequest(f"{shown(text)} is no id of this stream, such as r-1-4711-0")
    epoch, index, n = map(int, found.groups())
    return EventId(epoch=epoch, index=index, n=n)


def write_update(
    changes: Sequence[Change], last: EventId, *, index: int, now: float
) -> Iterator[tuple[EventId, bytes]]:
    """Yield the events of one update, each with its id.

    Args:
        changes: What a watcher is told, one per instance.
        last: The id of the event before.
        index: Up to where everything is told once the update is through.
        now: This node's clock, on which ages are told.
    """
    for start in range(0, len(changes), PART_CHANGES_MAX):
        part = changes[start : start + PART_CHANGES_MAX]
        is_last = start + PART_CHANGES_MAX >= len(changes)
        last = last.next(index if is_last else last.index)
        document = {"index": last.index, "changes": [write_change(one, now=now) for one in part]}
        yield last, write_event("change", text_of(document), event_id=str(last))


def write_snapshot(seen: Iterable[Seen], at: EventId, *, now: float) -> Iterator[bytes]:
    """Yield the event that a watch begins with, in pieces: everything as it is at an index.

    Args:
        seen: The instances; they are taken as the pieces are.
        at: The id from which the changes go on.
        now: This node's clock, on which ages are told.
    """
    yield f'event: snapshot\nid: {at}\ndata: {{"index":{at.index},"items":['.encode()
    items = iter(seen)
    comma = b""
    while piece := list(islice(items, PART_CHANGES_MAX)):
        yield comma + b",".join(msgspec.json.encode(write_seen(one, now=now)) for one in piece)
        comma = b","
    yield b"]}\n\n"


def write_keep_alive(at: EventId) -> bytes:
    """Return what shows that the connection lives, and from where a client may come back.

    It is no event: a client keeps its id and tells nobody.
    """
    return f":\nid: {at}\n\n".encode()


def write_change(change: Change, *, now: float) -> dict[str, Any]:
    """Return what is told of one instance."""
    document: dict[str, Any] = {"kind": change.kind, "agent_id": change.agent_id}
    if change.seen is not None:
        document["instance"] = write_seen(change.seen, now=now)
    return document


def text_of(document: dict[str, Any]) -> str:
    """Return a document as JSON on one line."""
    return msgspec.json.encode(document).decode()
