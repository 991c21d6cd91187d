"""Heartbeats as agents write them."""

from typing import Any

import pytest

from reachnode.errors import InvalidRequest
from reachnode.model.agents import NUMBER_MAX
from reachnode.model.liveness import COUNTERS_MAX, Heartbeat
from reachnode.wire.heartbeats import read_heartbeat


@pytest.mark.parametrize(
    ("document", "heartbeat"),
    [
        ({}, Heartbeat()),
        ({"load": 0.25, "in_flight": 3}, Heartbeat(load=0.25, in_flight=3)),
        ({"load": 1, "self_check": True}, Heartbeat(load=1.0, self_check=True)),
        ({"load": None, "state": None}, Heartbeat()),
        ({"state": "updating", "incarnation": 7}, Heartbeat(state="updating", incarnation=7)),
        ({"counters": {"b": 2, "a": 1}}, Heartbeat(counters=(("a", 1), ("b", 2)))),
        ({"incarnation": NUMBER_MAX}, Heartbeat(incarnation=NUMBER_MAX)),
    ],
)
def test_a_heartbeat_is_read(document: dict[str, Any], heartbeat: Heartbeat) -> None:
    """What wasn't said stays unsaid."""
    beat = read_heartbeat(document, agent_id="a1")
    assert (beat.agent_id, beat.heartbeat, beat.warnings) == ("a1", heartbeat, ())


@pytest.mark.parametrize(("by_path", "by_body"), [("a1", "a1"), ("", "a1"), ("a1", None)])
def test_whose_it_is(by_path: str, by_body: str | None) -> None:
    """The path says it, or the document, or both alike."""
    assert read_heartbeat({"agent_id": by_body}, agent_id=by_path).agent_id == "a1"


@pytest.mark.parametrize(
    ("document", "at"),
    [
        ({}, "agent_id"),
        ({"agent_id": "a b"}, "agent_id"),
        ({"agent_id": 7}, "agent_id"),
        ({"agent_id": "a", "load": "high"}, "load"),
        ({"agent_id": "a", "in_flight": 1.5}, "in_flight"),
        ({"agent_id": "a", "state": "asleep"}, "state"),
        ({"agent_id": "a", "counters": {"calls": "many"}}, "counters[...]"),
        ({"agent_id": "a", "incarnation": -1}, "incarnation"),
        ({"agent_id": "a", "incarnation": NUMBER_MAX + 1}, "incarnation"),
    ],
)
def test_what_is_wrong_is_named(document: dict[str, Any], at: str) -> None:
    """A wrong type is the agent's mistake, with its place."""
    with pytest.raises(InvalidRequest) as refused:
        read_heartbeat(document)
    assert refused.value.details["problems"][0]["at"] == at


def test_two_names_contradict() -> None:
    """A heartbeat is of one instance."""
    with pytest.raises(InvalidRequest, match="the path names a1"):
        read_heartbeat({"agent_id": "a2"}, agent_id="a1")


def test_unknown_fields_are_passed_over() -> None:
    """A newer agent beats at an older node, and hears what wasn't heeded."""
    beat = read_heartbeat({"load": 0.5, "mood": "fine"}, agent_id="a1")
    assert beat.heartbeat == Heartbeat(load=0.5)
    assert beat.warnings == ("mood is unknown; it was ignored",)


def test_counts_are_bounded() -> None:
    """So many are kept, none with an endless name, and the agent hears of the others."""
    many = {f"c{at:03}": at for at in range(COUNTERS_MAX + 1)}
    beat = read_heartbeat({"counters": {**many, "x" * 200: 1}}, agent_id="a1")
    assert beat.heartbeat.counters == tuple(sorted(many.items())[:COUNTERS_MAX])
    long, more = beat.warnings
    assert "longer than 128 bytes; it was ignored" in long
    assert more == f"counters: the first {COUNTERS_MAX} by name are kept"
