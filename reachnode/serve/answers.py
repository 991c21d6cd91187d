"""What a handler answers: a status and a document, or the problem in its place."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reachnode.errors import ReachError
from reachnode.wire.documents import write_json
from reachnode.wire.http import REASONS

Send = Callable[[bytes], Awaitable[None]]
"""Hands some bytes to the client, and waits until they are on their way."""
Streamer = Callable[[Send], Awaitable[None]]
"""Says an answer piece by piece. It is cancelled when the client leaves or is too slow."""

JSON = "application/json"
EVENTS = "text/event-stream"
PROBLEM = "application/problem+json"
RETRY_AFTER_MS = 1000
"""When to come back where an error doesn't say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status, headers and body; what stands on every answer is added later."""

    status: int = 200
    body: bytes = b""
    stream: Streamer | None = None
    """Says the body piece by piece, in place of `body`; then the connection ends."""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def document(
    content: Mapping[str, Any] | msgspec.Struct,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return an answer whose body is a JSON object."""
    return Answer(status=status, body=write_json(content), headers=headers or {})


def problem(error: ReachError, *, request_id: str) -> Answer:
    """Return problem details (RFC 9457) for an error.

    Source:
        M. Nottingham et al., "Problem Details for HTTP APIs", RFC 9457, 2023.
    """
    content: dict[str, Any] = {
        "title": REASONS[error.status],
        "status": error.status,
        "detail": error.why,
        "code": error.code,
        "can_retry": error.can_retry,
        "request_id": request_id,
    }
    headers = {}
    if error.status in (429, 503):
        retry_after_ms = error.retry_after_ms or RETRY_AFTER_MS
        content["retry_after_ms"] = retry_after_ms
        headers["Retry-After"] = str(-(-retry_after_ms // 1000))
    if error.details:
        content["details"] = dict(error.details)
    if "allow" in error.details:
        headers["Allow"] = ", ".join(error.details["allow"])
    return Answer(
        status=error.status, body=write_json(content), content_type=PROBLEM, headers=headers
    )
