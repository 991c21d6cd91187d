"""Whether an instance is what was asked for."""

from typing import Any

import pytest

from reachnode.errors import InvalidRequest
from reachnode.model.discovery import Question
from reachnode.routing.match import Demand, agrees, demand_of, hinted, misfit, preferences_met
from reachnode.routing.version_ranges import parse_range
from tests.routing.seen import record_of


def demand(version: str = "", **fields: Any) -> Demand:
    """Return a demand of `x` with nothing else but these."""
    versions = parse_range(version) if version else None
    return Demand(**{"capability": "x", "versions": versions, "tags": (), "require": (), **fields})


FULL = record_of(
    "a1",
    "x",
    zone="z1",
    env="staging",
    tags=(("arena", "blue"), ("gpu", "")),
).instance
BARE = record_of("a2", "x").instance


def why(instance: Any, wanted: Demand) -> tuple[str, str] | None:
    """Return why an instance misses a demand."""
    return misfit(instance, instance.capabilities[0], wanted)


def test_whoever_is_asked_nothing_fits() -> None:
    """The name alone excludes nobody."""
    assert why(FULL, demand()) is None
    assert why(BARE, demand()) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": (("gpu", ""),)},
        {"tags": (("arena", ""), ("gpu", ""))},
        {"tags": (("arena", "blue"),)},
        {"require": (("env", "staging"), ("zone", "z1"))},
        {"require": (("agent", "nlp"),)},
        {"require": (("arena", "blue"),)},
        {"require": (("env", ""),)},
        {"version": "*"},
    ],
)
def test_what_agrees_fits(fields: dict[str, Any]) -> None:
    """Tags, fields of the metadata, the group, and an empty value that wants any."""
    assert why(FULL, demand(**fields)) is None


@pytest.mark.parametrize(
    ("fields", "reason", "detail"),
    [
        ({"version": "^3"}, "version", "it has no version, asked is ^3"),
        ({"tags": (("arena", "red"),)}, "tags", "tag 'arena' is 'blue', asked is 'red'"),
        ({"tags": (("gpu", ""), ("tpu", ""))}, "tags", "tag 'tpu' is missing, asked is any"),
        ({"require": (("env", "prod"),)}, "hint", "env is 'staging', asked is 'prod'"),
        ({"require": (("team", "a"),)}, "hint", "team is missing, asked is 'a'"),
        ({"require": (("rack", "7"),)}, "hint", "rack is missing, asked is '7'"),
        ({"version": "1", "tags": (("q", ""),)}, "version", "it has no version, asked is 1"),
        (
            {"tags": (("q", ""),), "require": (("env", "q"),)},
            "tags",
            "tag 'q' is missing, asked is any",
        ),
    ],
)
def test_what_differs_is_named(fields: dict[str, Any], reason: str, detail: str) -> None:
    """The first difference in the order version, tags, hint, and both sides of it."""
    assert why(FULL, demand(**fields)) == (reason, detail)


def test_a_version_outside_the_range_is_named() -> None:
    """The instance's own version stands in the detail."""
    capability = type(FULL.capabilities[0])(
        name="x", protocol="rest", endpoint="http://h/", version="2.0.0"
    )
    assert misfit(FULL, capability, demand("^2")) is None
    assert misfit(FULL, capability, demand("^3")) == (
        "version",
        "it has version 2.0.0, asked is ^3",
    )


def test_an_environment_that_was_not_said_is_no_match() -> None:
    """A required word never spills to instances that don't say it."""
    assert why(BARE, demand(require=(("env", "staging"),))) is not None
    assert why(BARE, demand(require=(("env", ""),))) is not None


def test_preferences_are_counted() -> None:
    """Each that agrees counts one, and none excludes."""
    prefer = (("env", "staging"), ("gpu", ""), ("zone", "z2"))
    assert preferences_met(FULL, prefer) == 2
    assert preferences_met(BARE, prefer) == 0


def test_a_word_is_looked_for_where_it_belongs() -> None:
    """In the metadata, as the group, else among the tags."""
    assert hinted(FULL, "zone") == "z1"
    assert hinted(FULL, "agent") == "nlp"
    assert hinted(FULL, "gpu") == ""
    assert hinted(FULL, "tier") is None


def test_empty_wants_any() -> None:
    """Any value, an empty one too, but not none."""
    assert agrees("", "")
    assert agrees("", "a")
    assert agrees("a", "a")
    assert not agrees("a", "")
    assert not agrees("", None)


def test_a_leading_reach_is_taken_off() -> None:
    """`reach:x` and `x` are one capability."""
    question = Question(
        capability="reach:x", version="^3", tags=(("a", ""),), require=(("b", "c"),)
    )
    found = demand_of(question)
    assert (found.capability, found.tags, found.require) == ("x", (("a", ""),), (("b", "c"),))
    assert found.versions == parse_range("^3")
    assert demand_of(Question(capability="x")).versions is None


@pytest.mark.parametrize(
    ("question", "said", "details"),
    [
        (Question(text="which flights"), "needs an embedder", {"missing": "embedder"}),
        (Question(), "needs an embedder", {"missing": "capability"}),
        (Question(capability="reach:"), "by nothing", {"missing": "capability"}),
        (Question(capability="a b"), "^capability: 'a b' has", None),
        (Question(capability="x", version="new"), "^version: 'new' is no version range", None),
    ],
)
def test_a_question_that_names_nothing_readable_is_refused(
    question: Question, said: str, details: Any
) -> None:
    """The error says what is missing and what to do."""
    with pytest.raises(InvalidRequest, match=said) as caught:
        demand_of(question)
    if details is None:
        assert caught.value.details["problems"][0]["at"] in {"capability", "version"}
    else:
        assert caught.value.details == details
