"""The description of the client port, held to the code."""

from collections.abc import Iterator
from typing import Any

import pytest

from reachnode.errors import BY_CODE, NoQuorum
from reachnode.model.agents import Instance, Metadata
from reachnode.model.capabilities import Capability
from reachnode.model.nouns import Noun
from reachnode.model.settings import Settings
from reachnode.serve import shapes
from reachnode.serve.openapi import describe
from reachnode.serve.operations import Asked, Operation, Route
from reachnode.serve.paths import ROUTES
from reachnode.wire.documents import fields_of
from tests.serve.client import ask
from tests.serve.described import OPENAPI, hold, is_held
from tests.serve.local_replica import LocalReplica, front_of


async def test_the_description_is_served() -> None:
    """Whoever asks gets the description of the version that answers."""
    got = await ask(front_of(LocalReplica()), "GET", "/openapi.json")
    assert got.json == OPENAPI
    assert got.json["openapi"] == "3.1.0"
    assert got.json["info"]["version"] == "0.0.1"


def test_every_path_is_described_and_no_other() -> None:
    """The description and the table have the same methods of the same paths."""
    described = {
        (method.upper(), path) for path, methods in OPENAPI["paths"].items() for method in methods
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    names = [one["operationId"] for one in operations()]
    assert len(set(names)) == len(names)
    assert all(one["summary"].endswith(".") for one in operations())


def operations() -> Iterator[dict[str, Any]]:
    """Yield every operation of the description."""
    for methods in OPENAPI["paths"].values():
        yield from methods.values()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_an_operation_says_all_that_its_handler_heeds(route: Route) -> None:
    """Path, query, headers, body, answers and errors are those of the promise."""
    one = OPENAPI["paths"][route.path][route.method.lower()]
    promise = route.operation
    said = {(parameter["in"], parameter["name"]) for parameter in one["parameters"]}
    placed = {part[1:-1] for part in route.path.split("/") if part.startswith("{")}
    assert said == {
        *(("path", name) for name in placed),
        *(("query", name) for name in promise.query or {}),
        *(("header", name) for name in promise.headers),
    }
    assert ("requestBody" in one) is (promise.takes is not None)
    assert (promise.takes is not None) is (route.method in ("POST", "PUT")) or (
        route.path == "/api/v1/cluster/transfer"
    )
    assert set(map(str, promise.gives)) <= set(one["responses"])
    for error in promise.refusals:
        assert f"`{error.code}`" in one["responses"][str(error.status)]["description"]


def test_every_reference_leads_somewhere() -> None:
    """Nothing is described by a name that isn't there."""

    def references(place: Any) -> Iterator[str]:
        if isinstance(place, dict):
            if isinstance(place.get("$ref"), str):
                yield place["$ref"]
            for inside in place.values():
                yield from references(inside)
        elif isinstance(place, list):
            for inside in place:
                yield from references(inside)

    for reference in set(references(OPENAPI)):
        found = OPENAPI
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]


@pytest.mark.parametrize(
    ("noun", "shape"),
    [
        (Instance, shapes.InstanceShown),
        (Instance, shapes.RegistrationShown),
        (Capability, shapes.CapabilityShown),
        (Metadata, shapes.MetadataShown),
        (Settings, shapes.SettingsShown),
        (Settings, shapes.SettingsPut),
    ],
)
def test_no_field_of_the_model_is_missing(noun: type[Noun], shape: type[shapes.Shape]) -> None:
    """A field that is added to a noun is described too."""
    assert set(fields_of(noun)) <= set(fields_of(shape))


def test_every_code_is_known() -> None:
    """Operations refuse with errors of the one table."""
    codes = {error.code for route in ROUTES for error in route.operation.refusals}
    assert codes <= set(BY_CODE)


def test_a_status_with_two_meanings_tells_both() -> None:
    """Where an operation's own document and a refusal share a status, either may come."""

    async def handler(_front: Any, _inquiry: Any) -> Any:
        """Do something."""

    promise = Operation(
        handler=handler,
        gives={200: str, 503: shapes.Readiness},
        refuses=(NoQuorum,),
        query={"a": Asked(int, "A number.")},
    )
    one = describe([Route("GET", "/x/{y}", promise)], version="1")["paths"]["/x/{y}"]["get"]
    assert set(one["responses"]["503"]["content"]) == {
        "application/json",
        "application/problem+json",
    }
    assert "`no_quorum`" in one["responses"]["503"]["description"]
    assert set(one["responses"]["200"]["content"]) == {"text/plain"}
    assert one["parameters"][1] == {
        "name": "a",
        "in": "query",
        "required": False,
        "schema": {"type": "integer"},
        "description": "A number.",
    }


def test_what_does_not_fit_is_seen() -> None:
    """The check of answers finds what is missing, extra, or of another type."""
    good = {"agent_id": "a", "index": 1}
    schema = {"$ref": "#/components/schemas/Deregistered"}
    hold(schema, good)
    wrong: list[Any] = [{"agent_id": "a"}, {**good, "index": "1"}, {**good, "index": True}, []]
    for bad in wrong:
        assert not is_held(schema, bad)
    assert not is_held({"$ref": "#/components/schemas/StateWish"}, {"state": "gone"})
    assert not is_held({"$ref": "#/components/schemas/StateWish"}, {"state": "healthy", "x": 1})
    assert not is_held({"oneOf": []}, 1)
