"""Where a request goes: its target taken apart, once, into path and query."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from reachnode.errors import InvalidRequest

QUERY_FIELDS_MAX = 64


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    path: str
    """Still percent-encoded, beginning with a slash."""
    query: Mapping[str, str]
    """Decoded; a name stands once."""


def read_target(target: str) -> Target:
    """Return path and query of a request's target, in origin or absolute form.

    Raises:
        InvalidRequest: It is neither, or its query is unreadable or names something twice.
    """
    if target.lower().startswith(("http://", "https://")):
        target = re.sub(r"^https?://[^/?#]*", "", target, flags=re.IGNORECASE)
        target = target if target.startswith("/") else f"/{target}"
    if not target.startswith("/") or "#" in target:
        raise InvalidRequest("the target must be a path")
    path, _, text = target.partition("?")
    query: dict[str, str] = {}
    try:
        fields = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS_MAX
        )
    except ValueError:
        raise InvalidRequest(
            f"the query must be UTF-8 and have at most {QUERY_FIELDS_MAX} fields"
        ) from None
    for name, value in fields:
        if name in query:
            raise InvalidRequest(f"{name} stands twice in the query")
        query[name] = value
    return Target(path, query)


def read_segment(text: str) -> str:
    """Return one decoded segment of a path.

    Raises:
        InvalidRequest: It isn't percent-encoded UTF-8.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidRequest("the path must be percent-encoded UTF-8") from None
