"""Every path, its method and who answers: one table, and the description made of it."""

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from reachnode.errors import MethodNotAllowed, NotFound
from reachnode.serve import (
    agents,
    cluster,
    discovery,
    health,
    heartbeats,
    metrics,
    settings,
    watch,
)
from reachnode.serve.answers import Answer, document
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.openapi import describe
from reachnode.serve.operations import Route, operation
from reachnode.wire.http_targets import read_segment


@functools.cache
def description(version: str) -> Mapping[str, Any]:
    """Return the OpenAPI document of this table."""
    return describe(ROUTES, version=version)


@operation(gives={200: dict[str, Any]})
async def show_description(front: Front, _inquiry: Inquiry) -> Answer:
    """Answer what every path takes, gives and refuses, as OpenAPI."""
    return document(description(front.about.version))


ROUTES = (
    Route("GET", "/health", health.show_health),
    Route("GET", "/healthz", health.show_health),
    Route("GET", "/livez", health.show_health),
    Route("GET", "/ready", health.show_ready),
    Route("GET", "/readyz", health.show_ready),
    Route("GET", "/metrics", metrics.show_metrics),
    Route("GET", "/openapi.json", show_description),
    Route("POST", "/register", agents.register),
    Route("POST", "/api/v1/agents/register", agents.register),
    Route("GET", "/api/v1/agents", agents.list_all),
    Route("GET", "/api/v1/agents/{agent_id}", agents.show),
    Route("DELETE", "/api/v1/agents/{agent_id}", agents.deregister),
    Route("POST", "/api/v1/agents/{agent_id}/state", agents.announce),
    Route("POST", "/heartbeat", heartbeats.beat),
    Route("POST", "/api/v1/agents/{agent_id}/heartbeat", heartbeats.beat),
    Route("POST", "/query", discovery.find_candidates),
    Route("POST", "/api/v1/discover", discovery.find_candidates),
    Route("GET", "/api/v1/watch", watch.watch),
    Route("GET", "/api/v1/settings", settings.show_settings),
    Route("PUT", "/api/v1/settings", settings.put_settings),
    Route("GET", "/api/v1/cluster", cluster.show_cluster),
    Route("POST", "/api/v1/cluster/members", cluster.change_members),
    Route("POST", "/api/v1/cluster/transfer", cluster.transfer),
)


def find(
    method: str, path: str, routes: Iterable[Route] = ROUTES
) -> tuple[Route, Mapping[str, str]]:
    """Return who answers, and what the braces of the path stand for.

    The first row that fits wins. HEAD goes where GET goes.

    Raises:
        NotFound: There is no such path.
        MethodNotAllowed: There is, for other methods; `details` list them.
        InvalidRequest: A segment isn't percent-encoded UTF-8.
    """
    segments = path.split("/")
    allowed: set[str] = set()
    wanted = "GET" if method == "HEAD" else method
    for route in routes:
        parts = match(route.path.split("/"), segments)
        if parts is None:
            continue
        if route.method == wanted:
            return route, parts
        allowed |= {route.method, "HEAD"} if route.method == "GET" else {route.method}
    if not allowed:
        raise NotFound(f"there is nothing at {path}")
    listed = sorted(allowed)
    raise MethodNotAllowed(f"{path} takes {', '.join(listed)}", details={"allow": listed})


def match(pattern: list[str], segments: list[str]) -> Mapping[str, str] | None:
    """Return what the braces stand for where a path fits, None where it doesn't."""
    if len(pattern) != len(segments):
        return None
    parts = {}
    for wanted, segment in zip(pattern, segments, strict=True):
        if wanted.startswith("{"):
            if not segment:
                return None
            parts[wanted[1:-1]] = read_segment(segment)
        elif wanted != segment:
            return None
    return MappingProxyType(parts)
