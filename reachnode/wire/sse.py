"""Server-sent events as bytes (WHATWG HTML, "Server-sent events")."""

import re

LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line of the stream; no other character does."""
UNFIT = re.compile(r"[\r\n\0]")


def write_event(event: str, data: str, *, event_id: str = "") -> bytes:
    """Return one event.

    Args:
        event: Its type, without a line end.
        data: Any text. Each of its lines becomes one line of the stream; a client joins them
            by line feeds, whichever ends they had.
        event_id: What a client names when it comes back; empty leaves the last one standing.
    """
    assert not UNFIT.search(event + event_id)
    lines = [f"event: {event}"]
    if event_id:
        lines.append(f"id: {event_id}")
    lines += [f"data: {line}" for line in LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode(errors="replace")


def write_retry(wait_ms: int) -> bytes:
    """Return the line that tells clients how long to wait before they come back."""
    assert wait_ms >= 0
    return f"retry: {wait_ms}\n\n".encode()
