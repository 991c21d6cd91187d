"""Reading and writing registrations."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import DuplicateCapability, InvalidRequest, RegistrationError
from reachnode.wire.registrations import read_registration, write_instance

FULL: dict[str, Any] = {
    "agent_id": "intent-1",
    "agent": "intent",
    "name": "Intent détection",
    "base_url": "http://10.0.0.9:9000/api/",
    "direct_fallback": True,
    "health": {"type": "http", "endpoint": "/ping"},
    "heartbeat": {"interval_ms": 3000},
    "metadata": {"zone": "a", "weight": 2, "tags": {"gpu": "", "env": "x"}},
    "capabilities": [
        {
            "name": "intent.detect",
            "version": "3.2",
            "protocol": "rest",
            "endpoint": "intent",
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "output_schema": "https://example.org/contract",
            "cost": {"tokens": 1},
            "dependencies": ["text.embed", {"resource": "store", "endpoint": "tcp://h:1"}],
        },
        {"name": "intent.pull", "protocol": "pull"},
    ],
}


def capability(**fields: Any) -> dict[str, Any]:
    """Return a registration of one capability with these fields."""
    return {
        "agent_id": "a",
        "capabilities": [{"name": "c", "protocol": "rest", "endpoint": "http://h/", **fields}],
    }


def test_a_full_registration_is_read() -> None:
    """Endpoints become absolute, versions full, and what was not said gets its default."""
    registration = read_registration(FULL)
    instance = registration.instance
    assert registration.warnings == ()
    assert (instance.agent_id, instance.agent) == ("intent-1", "intent")
    assert instance.metadata.tags == (("env", "x"), ("gpu", ""))
    first, second = instance.capabilities
    assert first.endpoint == "http://10.0.0.9:9000/api/intent"
    assert first.version == "3.2.0"
    assert first.input_schema == '{"type":"object","properties":{"text":{"type":"string"}}}'
    assert first.dependencies[0].capability == "text.embed"
    assert first.dependencies[1].resource == "store"
    assert second.endpoint == ""


def test_what_is_shown_registers_the_same() -> None:
    """An instance that is read back is a registration of itself."""
    instance = read_registration(FULL).instance
    shown = write_instance(instance)
    assert shown["metadata"]["tags"] == {"gpu": "", "env": "x"}
    assert shown["capabilities"][0]["cost"] == {"tokens": 1}
    assert read_registration(shown).instance == instance
    assert write_instance(read_registration({"agent_id": "a"}).instance) == {
        "agent_id": "a",
        "agent": "a",
        "metadata": {},
    }


def test_what_is_unknown_becomes_a_warning() -> None:
    """Newer and older sides mix: an unknown field is passed over, and said."""
    registration = read_registration({"agent_id": "a", "agnt": "x", "name": None})
    assert registration.warnings == ("agnt is unknown; did you mean agent?; it was ignored",)
    assert registration.instance.agent == "a"


def test_who_is_replaced_is_read_beside_the_instance() -> None:
    """`incarnation` and `replace` guard the registration and aren't kept."""
    registration = read_registration({"agent_id": "a", "incarnation": 7, "replace": True})
    assert (registration.incarnation, registration.replaces_any) == (7, True)
    assert registration.instance.incarnation == 0
    for wrong in ({"incarnation": "7"}, {"incarnation": True}, {"replace": 1}):
        with pytest.raises(InvalidRequest, match="incarnation must be"):
            read_registration({"agent_id": "a", **wrong})


def test_bare_tags_may_be_a_list() -> None:
    """A tag without a value needs none."""
    registration = read_registration({"agent_id": "a", "metadata": {"tags": ["gpu", "b"]}})
    assert registration.instance.metadata.tags == (("b", ""), ("gpu", ""))


@pytest.mark.parametrize(
    ("endpoints", "family"),
    [
        (["http://10.0.0.7/", "http://10.0.0.8/"], "ipv4"),
        (["http://[2001:db8::1]/"], "ipv6"),
        (["http://10.0.0.7/", "http://[2001:db8::1]/"], None),
        (["http://10.0.0.7/", "http://h/"], None),
        ([], None),
    ],
)
def test_the_address_family_is_told_from_the_endpoints(
    endpoints: list[str], family: str | None
) -> None:
    """Where all are addresses of one family; what the agent says itself holds."""
    document: dict[str, Any] = {
        "agent_id": "a",
        "capabilities": [
            {"name": f"c{at}", "protocol": "rest", "endpoint": endpoint}
            for at, endpoint in enumerate(endpoints)
        ],
    }
    document["capabilities"] += [
        {"name": "p", "protocol": "pull"},
        {"name": "s", "protocol": "redis_stream", "endpoint": "orders"},
    ]
    assert read_registration(document).instance.address_type == family
    said = read_registration({**document, "address_type": "dual"})
    assert said.instance.address_type == "dual"


def test_the_endpoint_that_is_probed_is_whole() -> None:
    """Resolved against the base, else against where the first capability is."""
    health = {"type": "http", "endpoint": "/ping"}
    near = read_registration({**capability(endpoint="http://h:1/x"), "health": health}).instance
    assert near.health is not None
    assert near.health.endpoint == "http://h:1/ping"
    based = read_registration({**capability(), "base_url": "http://b/", "health": health}).instance
    assert based.health is not None
    assert based.health.endpoint == "http://b/ping"
    bare = read_registration({**capability(), "health": {"type": "tcp", "endpoint": "h:9"}})
    assert bare.instance.health is not None
    assert bare.instance.health.endpoint == "tcp://h:9"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "missing required field `agent_id`"),
        ({"agent_id": "a b"}, "^agent_id: 'a b' isn't"),
        ({"agent_id": 7}, "agent: Expected `str`|agent_id: Expected `str`"),
        ({"agent_id": "a", "metadata": {"tags": {"x": 1}}}, "^metadata.tags: tags are"),
        ({"agent_id": "a", "metadata": {"tags": [1]}}, "^metadata.tags: tags are"),
        ({"agent_id": "a", "metadata": {"tags": "x"}}, "^metadata.tags: tags are"),
        ({"agent_id": "a", "metadata": []}, "^metadata: Expected `object`"),
        ({"agent_id": "a", "capabilities": {}}, "^capabilities: Expected `array`"),
        ({"agent_id": "a", "capabilities": [1]}, r"^capabilities\[\d*\.*\]: Expected `object`"),
        (capability(endpoint=""), "rest needs an endpoint"),
        (capability(endpoint=1), "Expected `str`"),
        (capability(protocol="smoke"), "Invalid enum value 'smoke'"),
        (capability(version="new"), "no semantic version"),
        (capability(version=3.2), "Expected `str`"),
        (capability(dependencies=[{}]), "either a capability or a resource"),
        (capability(dependencies=7), "Expected `array`"),
        ({"agent_id": "a", "base_url": "h:80"}, "^base_url: 'h:80' is no whole URL"),
        ({"agent_id": "a", "base_url": 7}, "^base_url: Expected `str`"),
        (capability(endpoint="ftp://h/x"), "must begin with http or https"),
        (capability(endpoint="http://h:99999/"), "Port out of range"),
        (
            capability(dependencies=[{"resource": "r", "endpoint": "x"}]),
            r"^capabilities\[0\].dependencies\[0\].endpoint: 'x' is no whole URL",
        ),
        (
            {
                "agent_id": "a",
                "capabilities": [],
                "health": {"type": "http", "endpoint": "/ping"},
            },
            "^health.endpoint: '/ping' is no whole URL",
        ),
        ({**capability(endpoint="http://[/"), "base_url": "http://h"}, "can't be read"),
    ],
)
def test_a_wrong_registration_names_the_place(document: dict[str, Any], why: str) -> None:
    """What is wrong and where it stands is in the error."""
    with pytest.raises(InvalidRequest, match=why):
        read_registration(document)


def test_a_capability_stands_once() -> None:
    """Naming it twice has a code of its own."""
    document = capability()
    document["capabilities"] *= 2
    with pytest.raises(DuplicateCapability):
        read_registration(document)


SPELLINGS = ["skills", "task_type", "endpoint", "timeout_ms", "permissions", "cost_model"]
SPELLINGS += ["reachability", "labels", "address", "max_concurrency"]
FIELDS = [*FULL, *FULL["capabilities"][0], *SPELLINGS, "tags", "type", "x"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6))
def test_any_object_is_an_instance_or_an_error_of_ours(document: dict[str, Any]) -> None:
    """No document a client can send raises anything else."""
    try:
        instance = read_registration(document).instance
    except (InvalidRequest, RegistrationError):
        return
    assert read_registration(write_instance(instance)).instance == instance
