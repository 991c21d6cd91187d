"""The spellings of a registration."""

import copy
from typing import Any

import pytest

from reachnode.errors import InvalidRequest
from reachnode.model.capabilities import Capability
from reachnode.wire.registrations import read_registration
from reachnode.wire.spellings import canonical

ENDPOINT = "http://10.0.0.7/x"

SPELLED: dict[str, tuple[dict[str, Any], tuple[Capability, ...]]] = {
    "skills of both kinds": (
        {
            "skills": ["market_data", {"name": "news", "description": "What happened"}],
            "endpoint": ENDPOINT,
        },
        (
            Capability(name="market_data", protocol="rest", endpoint=ENDPOINT),
            Capability(
                name="news", protocol="rest", endpoint=ENDPOINT, description="What happened"
            ),
        ),
    ),
    "one skill that is no list": (
        {"skills": "market_data", "endpoint": ENDPOINT},
        (Capability(name="market_data", protocol="rest", endpoint=ENDPOINT),),
    ),
    "a task type": (
        {"task_type": "intent.detect", "endpoint": ENDPOINT, "timeout_ms": 1500},
        (
            Capability(
                name="intent.detect", protocol="rest", endpoint=ENDPOINT, timeout_sla_ms=1500
            ),
        ),
    ),
    "several task types": (
        {"task_type": ["a", "b"], "endpoint": ENDPOINT},
        (
            Capability(name="a", protocol="rest", endpoint=ENDPOINT),
            Capability(name="b", protocol="rest", endpoint=ENDPOINT),
        ),
    ),
    "everything at the top": (
        {
            "skills": ["a"],
            "endpoint": ENDPOINT,
            "timeout_ms": 1500,
            "max_concurrency": 8,
            "permissions": ["orders.read"],
            "cost_model": {"per_call": 1},
        },
        (
            Capability(
                name="a",
                protocol="rest",
                endpoint=ENDPOINT,
                timeout_sla_ms=1500,
                max_concurrency=8,
                permissions=("orders.read",),
                cost='{"per_call":1}',
            ),
        ),
    ),
    "what a capability says itself holds": (
        {
            "capabilities": [
                {"name": "a", "timeout_sla_ms": 1, "endpoint": "http://10.0.0.8/a"},
                {"name": "b", "max_concurrency": None, "permissions": "p"},
            ],
            "endpoint": ENDPOINT,
            "timeout_ms": 1500,
            "max_concurrency": 8,
        },
        (
            Capability(
                name="a",
                protocol="rest",
                endpoint="http://10.0.0.8/a",
                timeout_sla_ms=1,
                max_concurrency=8,
            ),
            Capability(
                name="b",
                protocol="rest",
                endpoint=ENDPOINT,
                timeout_sla_ms=1500,
                max_concurrency=8,
                permissions=("p",),
            ),
        ),
    ),
    "reachability": (
        {
            "skills": ["a", {"name": "b", "reachability": {"timeout_ms": 7}}],
            "endpoint": ENDPOINT,
            "reachability": {"max_concurrency": 4, "timeout_ms": 900, "fallback_group": "g"},
        },
        (
            Capability(
                name="a",
                protocol="rest",
                endpoint=ENDPOINT,
                max_concurrency=4,
                timeout_sla_ms=900,
                fallback_group="g",
            ),
            Capability(
                name="b",
                protocol="rest",
                endpoint=ENDPOINT,
                max_concurrency=4,
                timeout_sla_ms=7,
                fallback_group="g",
            ),
        ),
    ),
    "words of a capability": (
        {
            "capabilities": [
                {"task_type": "a", "timeout_ms": 5, "cost_model": 1, "endpoint": ENDPOINT}
            ]
        },
        (Capability(name="a", protocol="rest", endpoint=ENDPOINT, timeout_sla_ms=5, cost="1"),),
    ),
    "an address and relative endpoints": (
        {
            "address": "10.0.0.7:9000",
            "capabilities": ["a", {"name": "b", "endpoint": "b"}],
            "endpoint": "/x",
        },
        (
            Capability(name="a", protocol="rest", endpoint="http://10.0.0.7:9000/x"),
            Capability(name="b", protocol="rest", endpoint="http://10.0.0.7:9000/b"),
        ),
    ),
    "an address of IPv6": (
        {"address": "2001:db8::1", "task_type": "a", "endpoint": "/x"},
        (Capability(name="a", protocol="rest", endpoint="http://[2001:db8::1]/x"),),
    ),
    "an address of IPv6 in brackets": (
        {"address": "[2001:db8::1]:90", "task_type": "a", "endpoint": "/x"},
        (Capability(name="a", protocol="rest", endpoint="http://[2001:db8::1]:90/x"),),
    ),
    "an address with a scheme": (
        {"address": "wss://h", "task_type": "a", "endpoint": "/x"},
        (Capability(name="a", protocol="websocket", endpoint="wss://h/x"),),
    ),
    "the protocol told from the endpoint": (
        {
            "capabilities": [
                {"name": "a", "endpoint": "grpc://h:1"},
                {"name": "b", "endpoint": "redis://h/q"},
                {"name": "c", "endpoint": "HTTPS://h/"},
            ]
        },
        (
            Capability(name="a", protocol="grpc", endpoint="grpc://h:1"),
            Capability(name="b", protocol="redis_stream", endpoint="redis://h/q"),
            Capability(name="c", protocol="rest", endpoint="https://h/"),
        ),
    ),
    "a short version": (
        {"skills": [{"name": "a", "version": "3.2"}], "endpoint": ENDPOINT},
        (Capability(name="a", protocol="rest", endpoint=ENDPOINT, version="3.2.0"),),
    ),
    "skills beside capabilities": (
        {"capabilities": [{"name": "a"}], "skills": ["b"], "task_type": "c", "endpoint": ENDPOINT},
        (
            Capability(name="a", protocol="rest", endpoint=ENDPOINT),
            Capability(name="b", protocol="rest", endpoint=ENDPOINT),
            Capability(name="c", protocol="rest", endpoint=ENDPOINT),
        ),
    ),
}


@pytest.mark.parametrize("name", SPELLED)
def test_a_spelling_is_read(name: str) -> None:
    """Each spelling becomes the canonical one, without a warning."""
    document, capabilities = SPELLED[name]
    before = copy.deepcopy(document)
    registration = read_registration({"agent_id": "a1", **document})
    assert registration.instance.capabilities == capabilities
    assert registration.warnings == ()
    assert document == before


@pytest.mark.parametrize(
    ("document", "metadata"),
    [
        ({"labels": {"gpu": "a100", "zone": "z1"}}, {"tags": {"gpu": "a100"}, "zone": "z1"}),
        ({"labels": ["gpu", "zone"]}, {"tags": {"gpu": ""}, "zone": ""}),
        (
            {"labels": {"gpu": ""}, "metadata": {"tags": ["fast"], "team": "t"}},
            {"tags": {"fast": "", "gpu": ""}, "team": "t"},
        ),
        ({"labels": {"a": "1"}, "metadata": {"tags": {"a": "1"}}}, {"tags": {"a": "1"}}),
        ({"labels": None, "metadata": {"zone": "z"}}, {"zone": "z"}),
    ],
)
def test_labels_are_metadata(document: dict[str, Any], metadata: dict[str, Any]) -> None:
    """A label that names a field of the metadata is that field, so that hints find it."""
    body, warnings = canonical(document)
    assert body["metadata"] == metadata
    assert warnings == ()


@pytest.mark.parametrize(
    ("document", "warning"),
    [
        (
            {"labels": {"zone": "a"}, "metadata": {"zone": "b"}},
            "labels.zone is said in metadata too, and differently; it was ignored",
        ),
        (
            {"address": "h:1", "base_url": "http://h:2"},
            "address says base_url again, and differently; it was ignored",
        ),
        (
            {"skills": [{"name": "a", "task_type": "b"}], "endpoint": ENDPOINT},
            "capabilities[0].task_type says name again, and differently; it was ignored",
        ),
        (
            {"skills": ["a"], "endpoint": ENDPOINT, "timeout_sla_ms": 2, "timeout_ms": 1},
            "timeout_ms says timeout_sla_ms again, and differently; it was ignored",
        ),
        (
            {"skills": ["a"], "endpoint": ENDPOINT, "reachability": {"colour": 1}},
            "reachability.colour is unknown; it was ignored",
        ),
        (
            {"skills": [], "timeout_ms": 1},
            "timeout_sla_ms belong to capabilities, and there is none",
        ),
        (
            {"skills": [{"name": "a", "colour": 1}], "endpoint": ENDPOINT},
            "capabilities[0].colour is unknown; it was ignored",
        ),
    ],
)
def test_what_is_passed_over_is_said(document: dict[str, Any], warning: str) -> None:
    """The canonical spelling holds, and what doesn't count becomes a warning, not an error."""
    registration = read_registration({"agent_id": "a1", **document})
    assert registration.warnings == (warning,)


def test_the_same_said_twice_is_no_contradiction() -> None:
    """Two spellings that agree need no warning."""
    document = {
        "agent_id": "a1",
        "address": "h",
        "base_url": "http://h",
        "skills": [{"name": "a", "timeout_ms": 1, "timeout_sla_ms": 1}],
        "endpoint": "/",
    }
    assert read_registration(document).warnings == ()


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"skills": [7]}, r"capabilities\[\d*\.*\]"),
        ({"skills": ["a"]}, "rest needs an endpoint"),
        ({"capabilities": "a"}, "^capabilities: Expected `array`"),
        ({"capabilities": "a", "skills": ["b"]}, "^capabilities: Expected `array`"),
        (
            {"skills": ["a"], "endpoint": ENDPOINT, "permissions": 7},
            "permissions: Expected `array`",
        ),
        (
            {"skills": ["a"], "endpoint": ENDPOINT, "permissions": [""]},
            r"permissions\[0\]: it is empty",
        ),
        ({"skills": ["a"], "endpoint": 7}, "endpoint: Expected `str`"),
        ({"skills": ["a"], "endpoint": ENDPOINT, "reachability": 7}, None),
        ({"labels": 7}, "^metadata.tags: tags are"),
        ({"labels": {"a": 1}}, "^metadata.tags: tags are"),
        ({"labels": {"a": ""}, "metadata": {"tags": 7}}, "^metadata.tags: tags are"),
        ({"labels": {"a": ""}, "metadata": 7}, "^metadata: Expected `object`"),
        ({"address": 7}, "^base_url: Expected `str`"),
        ({"address": ""}, None),
        ({"skills": ["a"], "endpoint": "9001"}, r"^capabilities\[0\].endpoint: '9001' is no whole"),
    ],
)
def test_a_wrong_type_names_the_place(document: dict[str, Any], why: str | None) -> None:
    """Whatever the spelling; what may be passed over is."""
    if why is None:
        assert read_registration({"agent_id": "a1", **document}).instance.agent_id == "a1"
        return
    with pytest.raises(InvalidRequest, match=why):
        read_registration({"agent_id": "a1", **document})
