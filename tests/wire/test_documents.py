"""Reading JSON documents into nouns."""

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import DuplicateCapability, InvalidRequest
from reachnode.model.agents import Instance
from reachnode.model.settings import Settings
from reachnode.model.words import Problem
from reachnode.wire.documents import (
    DEPTH_MAX,
    depth_of,
    error_for,
    plain,
    read_json,
    read_object,
    refuse_strays,
    shape_of,
    strays,
    to_noun,
    without,
    write_json,
)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{}x",
        b'"\xff"',
        b'"\\ud800"',
        b"[NaN]",
        b"1e999",
        b"[" * 5000,
        b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1),
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    """Every unreadable body is the caller's fault, however it is broken."""
    with pytest.raises(InvalidRequest):
        read_json(body)


@pytest.mark.parametrize("pair", [b"[]", b'{"a":', b'[{"":[', b'["]",'])
def test_a_document_may_nest_sixty_four_levels(pair: bytes) -> None:
    """The limit itself is allowed, one level more is not."""
    opened = pair.removesuffix(b"]")
    level = opened.replace(b'"]"', b"").count(b"[") + opened.count(b"{")
    closed = b"".join(b"]" if one == ord("[") else b"}" for one in opened[::-1] if one in b"[{")
    for times, fits in ((DEPTH_MAX // level, True), (DEPTH_MAX // level + 1, False)):
        body = opened * times + b"1" + closed * times
        with contextlib.nullcontext() if fits else pytest.raises(InvalidRequest, match="deeper"):
            read_json(body)


texts = st.text(st.sampled_from('"\\[]{}:,a é'), max_size=6)
json_documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(texts, inside, max_size=4),
    max_leaves=20,
)


def nested(document: Any) -> int:
    """Return how many containers are inside one another, counted plainly."""
    if isinstance(document, dict):
        document = list(document.values())
    return 1 + max(map(nested, document), default=0) if isinstance(document, list) else 0


@given(document=json_documents, is_ascii=st.booleans())
def test_the_depth_is_read_off_the_brackets(document: Any, *, is_ascii: bool) -> None:
    """Whatever stands in strings, the shape tells depth and names."""
    body = json.dumps(document, ensure_ascii=is_ascii).encode()
    assert depth_of(shape_of(body)) == nested(document)
    assert read_json(body) == document


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"a": 1, "a": 1}', "'a'"),
        (b'{"a": 1, "\\u0061": 2}', "'a'"),
        (b'[{"b": {"c": 1, "d": [], "c": {}}}]', "'c'"),
        (b'{"": 1, "x": "\\":", "": 1e5}', "''"),
        (b'{"a":%b, "a":2}' % (b"9" * 4000), "'a'"),
    ],
)
def test_a_name_said_twice_is_refused(body: bytes, name: str) -> None:
    """Which of the two is meant nobody knows, however the name is spelled."""
    with pytest.raises(InvalidRequest) as caught:
        read_json(body)
    assert caught.value.why == f"{name} stands twice in one object"


def test_an_object_is_demanded() -> None:
    """A list is JSON, but no document of ours."""
    assert read_object(b'{"a": 1}') == {"a": 1}
    with pytest.raises(InvalidRequest, match="JSON object"):
        read_object(b"[]")


def test_unknown_fields_are_found_at_any_depth() -> None:
    """Each is named with its place and the closest known name."""
    document = {
        "agent_idd": "a",
        "capabilities": [
            {"nam": "x", "dependencies": ["y", {"resorce": "z"}]},
            "not an object",
        ],
        "metadata": 7,
        "health": {"xyzzy": 1},
        "name": {"any": "thing"},
    }
    found = [str(one) for one in strays(document, Instance)]
    assert found == [
        "agent_idd is unknown; did you mean agent_id?",
        "capabilities[0].nam is unknown; did you mean name?",
        "capabilities[0].dependencies[1].resorce is unknown; did you mean resource?",
        "health.xyzzy is unknown",
    ]
    assert list(strays({"capabilities": "text"}, Instance)) == []


def test_strays_and_nulls_are_left_out() -> None:
    """A null says nothing, as an absent field does."""
    document = {"agent_id": "a", "x": 1, "name": None, "capabilities": [{"name": "n", "y": 1}, 3]}
    assert without(document, Instance) == {
        "agent_id": "a",
        "capabilities": [{"name": "n"}, 3],
    }


def test_unknown_fields_can_be_refused() -> None:
    """Settings take nothing that nobody enforces."""
    refuse_strays({"registry": {}}, Settings)
    with pytest.raises(InvalidRequest, match="did you mean registry") as caught:
        refuse_strays({"registri": {}, "probes": {"failure": 1}}, Settings)
    assert [one["at"] for one in caught.value.details["problems"]] == ["registri", "probes.failure"]


def test_a_wrong_type_names_its_place() -> None:
    """The error says where and what was expected."""
    with pytest.raises(InvalidRequest, match=r"^probes.failures: Expected `int`") as caught:
        to_noun({"probes": {"failures": "x"}}, Settings)
    assert caught.value.details["problems"][0]["at"] == "probes.failures"
    with pytest.raises(InvalidRequest, match=r"^Expected `object`"):
        to_noun([], Settings)


def test_all_problems_travel_with_the_first() -> None:
    """One error says all that is wrong, under the first one's code."""
    error = error_for(
        [Problem(at="a", why="is bad", code="duplicate_capability"), Problem(at="b", why="too")]
    )
    assert isinstance(error, DuplicateCapability)
    assert error.why == "a: is bad"
    assert [one["at"] for one in error.details["problems"]] == ["a", "b"]


def test_a_noun_is_shown_with_its_defaults() -> None:
    """What holds is visible, whether it was said or not."""
    document = plain(Settings())
    assert document["probes"] == {"interval_ms": 5000, "timeout_ms": 2000, "failures": 3}
    assert plain(
        Settings(),
    ) == plain(to_noun(document, Settings))
    assert plain({"a": (1, [2])}) == {"a": [1, [2]]}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["registry", "probes", "failures", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(VALUES)
def test_any_document_gives_settings_or_an_error_of_ours(document: Any) -> None:
    """Nothing else is raised, and what is accepted can be written again."""
    try:
        refuse_strays(document, Settings)
        settings = to_noun(without(document, Settings), Settings)
    except InvalidRequest:
        return
    assert msgspec.json.decode(write_json(plain(settings))) is not None
