"""The description of the client port (OpenAPI 3.1), made of its table of paths.

Source:
    "OpenAPI Specification", version 3.1.0, OpenAPI Initiative, 2021.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from reachnode.serve.answers import EVENTS, JSON, PROBLEM
from reachnode.serve.operations import Asked, Events, Operation, Route
from reachnode.serve.shapes import Problem
from reachnode.wire.http import REASONS

VERSION = "3.1.0"
TEMPLATE = "#/components/schemas/{name}"
TEXTS: Mapping[Any, str] = {str: "text/plain", Events: EVENTS}
"""What isn't JSON, by its type."""
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
HEADERS: Mapping[str, tuple[str, str]] = {
    "X-Reach-Node": ("string", "Who answered."),
    "X-Reach-Index": ("integer", "The log index it has applied."),
    "X-Reach-Stale-Ms": ("integer", "Since its last contact with a leader."),
}
"""What stands on every answer: its type and its meaning."""

Document = dict[str, Any]


def describe(routes: Iterable[Route], *, version: str) -> Document:
    """Return the whole description."""
    routes = list(routes)
    kinds = {id(kind): kind for route in routes for kind in kinds_of(route.operation)}
    found, components = msgspec.json.schema_components(kinds.values(), ref_template=TEMPLATE)
    schemas = dict(zip(kinds, found, strict=True))
    paths: defaultdict[str, Document] = defaultdict(dict)
    for route in routes:
        paths[route.path][route.method.lower()] = described(route, schemas)
    return {
        "openapi": VERSION,
        "info": {
            "title": "reachnode",
            "version": version,
            "description": "A node as its clients see it. HEAD goes wherever GET goes.",
        },
        "paths": dict(paths),
        "components": {
            "schemas": components,
            "headers": {name: header(*said) for name, said in HEADERS.items()},
        },
    }


def kinds_of(operation: Operation) -> Iterable[Any]:
    """Yield the types of every document of an operation."""
    yield Problem
    yield from (kind for kind in operation.gives.values() if kind not in TEXTS)
    yield from (asked.kind for asked in (operation.query or {}).values())
    if operation.takes is not None:
        yield operation.takes


def described(route: Route, schemas: Mapping[int, Any]) -> Document:
    """Return one method of one path."""
    operation = route.operation
    words = re.sub(r"[^a-z0-9]+", "_", f"{route.method}{route.path}".lower()).strip("_")
    found: Document = {
        "operationId": words,
        "summary": operation.summary,
        "parameters": [
            *(parameter("path", name, {"type": "string"}) for name in placeholders(route.path)),
            *(asked_for(name, asked, schemas) for name, asked in (operation.query or {}).items()),
            *(
                parameter("header", name, {"type": "string"}, meaning)
                for name, meaning in operation.headers.items()
            ),
        ],
        "responses": answers(operation, schemas),
    }
    if operation.takes is not None:
        content = {JSON: {"schema": schemas[id(operation.takes)]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def placeholders(path: str) -> list[str]:
    """Return the names in the braces of a path."""
    return PLACEHOLDER.findall(path)


def asked_for(name: str, asked: Asked, schemas: Mapping[int, Any]) -> Document:
    """Return one word of a query."""
    return parameter("query", name, schemas[id(asked.kind)], asked.meaning)


def parameter(place: str, name: str, schema: Any, meaning: str = "") -> Document:
    """Return one word that a request says."""
    found: Document = {"name": name, "in": place, "required": place == "path", "schema": schema}
    return {**found, "description": meaning} if meaning else found


def answers(operation: Operation, schemas: Mapping[int, Any]) -> Document:
    """Return every answer of an operation, by status, the good ones first.

    Problems name their codes. Where a document of the operation's own has the same status,
    either may come.
    """
    found: Document = {}
    for status, kind in operation.gives.items():
        is_text = kind in TEXTS
        schema = {"type": "string"} if is_text else schemas[id(kind)]
        content = {TEXTS[kind] if is_text else JSON: {"schema": schema}}
        found[str(status)] = answered(REASONS[status], content)
    for status in sorted({error.status for error in operation.refusals}):
        own = found.get(str(status), {"content": {}})
        codes = " ".join(
            f"`{error.code}`: {error.meaning()}"
            for error in dict.fromkeys(operation.refusals)
            if error.status == status
        )
        content = {**own["content"], PROBLEM: {"schema": schemas[id(Problem)]}}
        found[str(status)] = answered(codes, content)
    return found


def answered(meaning: str, content: Document) -> Document:
    """Return one answer, with the headers of every answer."""
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
    return {"description": meaning, "headers": headers, "content": content}


def header(kind: str, meaning: str) -> Document:
    """Return a header of answers."""
    return {"description": meaning, "schema": {"type": kind}}
