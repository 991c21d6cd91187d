"""What a handler promises: what it takes, what it gives, how it refuses.

The promise stands beside the handler. `/openapi.json` is made of it, and tests hold every
answer to it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reachnode.errors import (
    Busy,
    DeadlineExceeded,
    DiskFull,
    HeadersTooLarge,
    Internal,
    InvalidRequest,
    NoQuorum,
    PayloadTooLarge,
    ReachError,
    RequestExpired,
    RequestTimeout,
    ShuttingDown,
    TooStale,
    UnknownOutcome,
    UnsupportedMediaType,
    UriTooLong,
)
from reachnode.serve.answers import Answer
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry

Handler = Callable[[Front, Inquiry], Awaitable[Answer]]
Refusals = tuple[type[ReachError], ...]

ALWAYS: Refusals = (
    InvalidRequest,
    RequestTimeout,
    PayloadTooLarge,
    UriTooLong,
    HeadersTooLarge,
    Internal,
)
"""How any request may end, whatever it asks."""
READS: Refusals = (TooStale, NoQuorum)
CHANGES: Refusals = (
    NoQuorum,
    UnknownOutcome,
    DeadlineExceeded,
    DiskFull,
    RequestExpired,
    Busy,
    ShuttingDown,
)
BODIES: Refusals = (UnsupportedMediaType,)

IDEMPOTENCY_KEY = {"Idempotency-Key": "A name for this change: a repeat under it counts once."}
IF_MATCH = {"If-Match": "The revision that this change is meant to follow."}


class Events:
    """What an operation gives that answers with server-sent events."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One word of a query."""

    kind: Any
    """Its type, for the description; the handler reads it."""
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A handler and its promise."""

    handler: Handler
    gives: Mapping[int, Any]
    """By status, the type of the document; `str` for plain text, `Events` for a stream."""
    takes: Any = None
    """The type of the body, None for no body."""
    refuses: Refusals = ()
    """Its errors beside those of `ALWAYS`."""
    query: Mapping[str, Asked] | None = field(default_factory=dict)
    """What the query may say; None passes over everything."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers it heeds, and what they mean."""

    @property
    def summary(self) -> str:
        """What it does, one sentence."""
        return (self.handler.__doc__ or "").partition("\n")[0]

    @property
    def refusals(self) -> Refusals:
        """Every error it may end with."""
        return (*ALWAYS, *self.refuses)


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    """Segments in braces stand for anything."""
    operation: Operation


def operation(
    *,
    gives: Mapping[int, Any],
    takes: Any = None,
    refuses: Refusals = (),
    query: Mapping[str, Asked] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Callable[[Handler], Operation]:
    """Return what makes a handler an operation; see `Operation` for what it promises."""

    def make(handler: Handler) -> Operation:
        return Operation(
            handler=handler,
            gives=gives,
            takes=takes,
            refuses=refuses,
            query=query or {},
            headers=headers or {},
        )

    return make


def lenient(gives: Mapping[int, Any]) -> Callable[[Handler], Operation]:
    """Return what makes an operation that passes over every query: all kinds of probes ask it."""

    def make(handler: Handler) -> Operation:
        return Operation(handler=handler, gives=gives, query=None)

    return make
