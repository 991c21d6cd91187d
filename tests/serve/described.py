"""Every answer of a test held to the description of the client port."""

from collections.abc import Mapping
from typing import Any

from reachnode.errors import ReachError
from reachnode.serve.operations import Route
from reachnode.serve.paths import description, find
from reachnode.wire.http_targets import read_target

PASSED_OVER = {"title", "description", "default"}
VALUES = {"$ref", "type", "enum", "anyOf"}
CONTAINERS = {"properties", "required", "additionalProperties", "items"}
PROBLEM = {"$ref": "#/components/schemas/Problem"}
TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
OPENAPI = description("0.0.1")


def hold_to_description(method: str, target: str, answer: Any) -> None:
    """Fail where an answer isn't one that its path promises.

    Args:
        method: Of the request.
        target: Of the request.
        answer: Its status, headers and document.
    """
    kind = answer.headers["content-type"].partition(";")[0]
    for name in OPENAPI["components"]["headers"]:
        assert name.lower() in answer.headers
    route = route_of(method, target)
    if route is None:
        assert kind == "application/problem+json"
        if method == "HEAD":
            return
        assert answer.json["code"] in ("not_found", "method_not_allowed", "invalid_request")
        hold(PROBLEM, answer.json)
        return
    responses = OPENAPI["paths"][route.path][route.method.lower()]["responses"]
    promised = responses[str(answer.status)]["content"]
    assert kind in promised, (kind, promised)
    if kind.startswith("text/") or method == "HEAD":
        return
    hold(promised[kind]["schema"], answer.json)
    if kind == "application/problem+json":
        codes = {error.code: error.status for error in route.operation.refusals}
        assert codes.get(answer.json["code"]) == answer.status, answer.json
        assert answer.json["status"] == answer.status


def route_of(method: str, target: str) -> Route | None:
    """Return who answers a request, None when nobody does."""
    try:
        return find(method, read_target(target).path)[0]
    except ReachError:
        return None


def hold(schema: Mapping[str, Any], document: Any, at: str = "$") -> None:
    """Fail where a document doesn't fit a schema. Words this doesn't know fail too."""
    assert set(schema) <= PASSED_OVER | CONTAINERS | VALUES, f"{at}: {schema} is not looked at"
    if "$ref" in schema:
        hold(OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, at)
    if "type" in schema:
        assert fits(schema["type"], document), f"{at}: {document!r} is no {schema['type']}"
    if "enum" in schema:
        assert document in schema["enum"], f"{at}: {document!r} is none of {schema['enum']}"
    if "anyOf" in schema:
        assert any(is_held(one, document) for one in schema["anyOf"]), f"{at}: {document!r}"
    if isinstance(document, dict):
        hold_object(schema, document, at)
    if isinstance(document, list):
        for number, one in enumerate(document):
            hold(schema.get("items", {}), one, f"{at}[{number}]")


def hold_object(schema: Mapping[str, Any], document: Mapping[str, Any], at: str) -> None:
    """Fail where the fields of an object aren't those of its schema."""
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    missing = set(schema.get("required", ())) - set(document)
    assert not missing, f"{at}: {missing} is missing"
    for name, value in document.items():
        assert name in known or more, f"{at}.{name} isn't described"
        hold(known.get(name, {} if more is True else more), value, f"{at}.{name}")


def fits(kind: str, document: Any) -> bool:
    """Return whether a document is of a type of JSON."""
    if isinstance(document, bool):
        return kind == "boolean"
    return isinstance(document, TYPES[kind])


def is_held(schema: Mapping[str, Any], document: Any) -> bool:
    """Return whether a document fits a schema."""
    try:
        hold(schema, document)
    except AssertionError:
        return False
    return True
