"""Questions of discovery from JSON, and its answers."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import InvalidRequest
from reachnode.model.agents import Metadata
from reachnode.model.discovery import (
    HINTS_MAX,
    LIMIT_DEFAULT,
    Candidate,
    Exclusion,
    Found,
    Gap,
    Question,
    Seen,
)
from reachnode.wire.discovery import (
    TEXT_CHARACTERS_MAX,
    read_hint,
    read_question,
    write_found,
    write_seen,
)
from reachnode.wire.registrations import read_registration
from tests.registry.test_agents import parser
from tests.routing.seen import liveness


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ({"capability": "x"}, Question(capability="x")),
        ({"task_spec": {"task_type": "x", "params": {"a": 1}}}, Question(capability="x")),
        ({"text": "which flights"}, Question(text="which flights")),
        ({"task_spec": {"text": "which flights"}}, Question(text="which flights")),
        ({"capability": "x", "version": " ^3.2 "}, Question(capability="x", version="^3.2")),
        ({"capability": "x", "version": None, "limit": None}, Question(capability="x")),
        (
            {"capability": "x", "tags": {"gpu": "a100", "eu": ""}, "limit": 5, "explain": True},
            Question(capability="x", tags=(("eu", ""), ("gpu", "a100")), limit=5, explain=True),
        ),
        ({"limit": 1}, Question(limit=1)),
        ({"limit": 1000}, Question(limit=1000)),
        ({"tags": ["gpu", "eu"]}, Question(tags=(("eu", ""), ("gpu", "")))),
        (
            {"routing_hint": {"zone": "z1", "env": "staging"}},
            Question(require=(("env", "staging"), ("zone", "z1"))),
        ),
        (
            {
                "routing_hint": {
                    "env": "staging",
                    "team": None,
                    "require": {"env": "staging", "tier": "1"},
                    "prefer": {"zone": "z1"},
                    "tags": ["gpu"],
                }
            },
            Question(
                require=(("env", "staging"), ("gpu", ""), ("tier", "1")),
                prefer=(("zone", "z1"),),
            ),
        ),
    ],
)
def test_a_question_is_read(document: dict[str, Any], question: Question) -> None:
    """What isn't said has its default, and null says nothing."""
    assert read_question(document) == question


def test_the_default_limit_is_stated() -> None:
    """An answer isn't endless when nobody says how long it may be."""
    assert read_question({}).limit == LIMIT_DEFAULT


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"capabilty": "x"}, "capabilty is unknown; did you mean capability"),
        ({"task_spec": {"tasktype": "x"}}, "did you mean task_type"),
        ({"capability": 7}, "^capability: Expected `str`"),
        ({"capability": "x", "task_spec": {"task_type": "y"}}, "^task_spec.task_type: capability"),
        ({"text": "a" * (TEXT_CHARACTERS_MAX + 1)}, "^text: it is longer"),
        ({"limit": 0}, "^limit: 0 isn't from 1 to 1000"),
        ({"limit": 1001}, "^limit: 1001 isn't"),
        ({"limit": "7"}, "^limit: Expected `int"),
        ({"tags": {"gpu": 1}}, "^tags"),
        ({"tags": {"": "x"}}, "^tags.'': it is empty"),
        ({"tags": {"a": "\u200b"}}, "^tags.'a': .* has invisible"),
        ({"tags": [f"t{n}" for n in range(101)]}, "^tags: 101 are more than the 100"),
        ({"routing_hint": {"zone": 7}}, "^routing_hint.'zone': the value must be a text"),
        ({"routing_hint": {"prefer": "z1"}}, "^routing_hint.prefer: write an object of texts"),
        ({"routing_hint": {"require": [7]}}, "^routing_hint.require: write an object"),
        (
            {"routing_hint": {"env": "a", "require": {"env": "b"}}},
            "^routing_hint.require.env: it is required to be something else",
        ),
        (
            {"routing_hint": {f"w{n}": "x" for n in range(HINTS_MAX + 1)}},
            "^routing_hint: 11 are more than the 10 allowed",
        ),
        (
            {"routing_hint": {"tags": ["t"], **{f"w{n}": "x" for n in range(HINTS_MAX)}}},
            "^routing_hint: 11 are more than the 10 words",
        ),
    ],
)
def test_a_wrong_question_names_the_place(document: dict[str, Any], why: str) -> None:
    """What is wrong and where it stands is in the error."""
    with pytest.raises(InvalidRequest, match=why):
        read_question(document)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["env", "prefer", "require", "tags"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["env", "prefer", "require", "tags"]), VALUES))
def test_any_hint_is_read_or_refused(hint: dict[str, Any]) -> None:
    """No hint raises anything but an error of ours; what is read is sorted and bounded."""
    try:
        for found in read_hint(hint):
            assert list(found) == sorted(set(found))
            assert len(found) <= HINTS_MAX
    except InvalidRequest:
        return


SEEN = Seen(
    instance=parser("a1", "x"),
    index=3,
    state="suspect",
    liveness=liveness(
        "a1", "suspect", heard_at=5.0, load=0.5, in_flight=2, home="n2", unreachable_from=("n3",)
    ),
)


def test_a_candidate_can_be_called_as_it_stands() -> None:
    """It has what the contract names and how it is; null is what nobody said."""
    candidate = Candidate(
        seen=SEEN, capability=SEEN.instance.capabilities[0], score=0.5, parts={"state": 1.0}
    )
    found = Found(candidates=(candidate,), excluded=(), gap=None)
    answer = write_found(found, index=7, now=6.5)
    assert set(answer) == {"candidates", "gap", "index"}
    assert (answer["gap"], answer["index"]) == (None, 7)
    (shown,) = answer["candidates"]
    assert shown == {
        "agent_id": "a1",
        "agent": "nlp",
        "capability": "x",
        "version": None,
        "protocol": "rest",
        "endpoint": "http://10.0.0.7/x",
        "envelope": None,
        "state": "suspect",
        "score": 0.5,
        "parts": {"state": 1.0},
        "home": "n2",
        "age_ms": 1500,
        "load": 0.5,
        "in_flight": 2,
        "unreachable_from": ["n3"],
        "why": "a test says so",
        "basis": "own",
        "timeout_sla_ms": None,
        "idempotent": False,
        "direct_fallback": False,
        "incarnation": 0,
        "index": 3,
        "metadata": {},
    }
    assert msgspec.json.decode(msgspec.json.encode(answer)) == answer


def test_a_gap_is_told_whole() -> None:
    """What is missing, who is excluded and why, and which names read alike."""
    exclusion = Exclusion(agent_id="a1", agent="nlp", reason="state", detail="it is down")
    gap = Gap(
        code="no_reachable_agent",
        capability="x",
        missing="all are down",
        excluded=(exclusion,),
        reasons={"state": 1},
        close_names=("y",),
    )
    answer = write_found(Found(candidates=(), excluded=(exclusion,), gap=gap), index=7, now=0.0)
    told = {"agent_id": "a1", "agent": "nlp", "reason": "state", "detail": "it is down"}
    assert answer == {
        "candidates": [],
        "excluded": [told],
        "gap": {
            "code": "no_reachable_agent",
            "capability": "x",
            "missing": "all are down",
            "reasons": {"state": 1},
            "excluded": [told],
            "close_names": ["y"],
        },
        "index": 7,
    }


def test_an_instance_is_its_registration_and_how_it_is() -> None:
    """What is shown registers the same again."""
    shown = write_seen(SEEN, now=6.5)
    assert (shown["state"], shown["index"], shown["incarnation"]) == ("suspect", 3, 0)
    assert (shown["age_ms"], shown["load"], shown["in_flight"]) == (1500, 0.5, 2)
    assert (shown["home"], shown["unreachable_from"]) == ("n2", ["n3"])
    assert read_registration(shown).instance.capabilities == SEEN.instance.capabilities


def test_tags_that_name_a_secret_are_masked() -> None:
    """Whoever may see the table sees no credential that somebody put in it."""
    names = ("api_key", "apikey", "db.password", "key", "monkey", "Secret", "token", "zone-key")
    tags = tuple((name, "CANARY") for name in sorted(names))
    instance = msgspec.structs.replace(SEEN.instance, metadata=Metadata(tags=(*tags, ("~t", ""))))
    seen = Seen(instance=instance, index=1, state="healthy", liveness=SEEN.liveness)
    shown = write_seen(seen, now=0.0)["metadata"]["tags"]
    assert {name for name, value in shown.items() if value == "CANARY"} == {"monkey"}
    assert shown["~t"] == ""
