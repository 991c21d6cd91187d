"""Heartbeats as agents write them, to nouns.

Fields beyond ours are passed over with a warning, so that newer and older sides mix.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reachnode.errors import InvalidRequest
from reachnode.model.agents import NUMBER_MAX
from reachnode.model.liveness import COUNTERS_MAX, AnnouncedState, Heartbeat
from reachnode.model.nouns import Noun
from reachnode.model.words import Problem, shown, why_not_agent_id, why_not_label
from reachnode.wire.documents import error_for, strays, to_noun, without


class Said(Noun, frozen=True, kw_only=True):
    """A heartbeat as it stands in the document."""

    agent_id: str | None = None
    incarnation: int | None = None
    load: float | None = None
    in_flight: int | None = None
    self_check: bool | None = None
    counters: dict[str, int] | None = None
    state: AnnouncedState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat and whose it is."""

    agent_id: str
    heartbeat: Heartbeat
    warnings: tuple[str, ...]
    """What was passed over, a sentence each."""


def read_heartbeat(document: dict[str, Any], *, agent_id: str = "") -> Beat:
    """Return the heartbeat that a JSON object says.

    Args:
        document: The object.
        agent_id: Whose it is by its address; empty when only the document says so.

    Raises:
        InvalidRequest: A field is of a wrong type, or nobody or two are named.
    """
    unknown = [f"{one}; it was ignored" for one in strays(document, Said)]
    said = to_noun(without(document, Said), Said)
    named = said.agent_id or agent_id
    why = why_not_agent_id(named)
    if not why and agent_id not in {"", named}:
        why = f"the path names {agent_id}"
    if why:
        raise wrong("agent_id", why)
    if said.incarnation is not None and not 0 <= said.incarnation <= NUMBER_MAX:
        raise wrong("incarnation", f"it isn't a whole number from 0 to {NUMBER_MAX}")
    counters, passed_over = kept(said.counters or {})
    heartbeat = Heartbeat(
        incarnation=said.incarnation,
        load=said.load,
        in_flight=said.in_flight,
        self_check=said.self_check,
        counters=counters,
        state=said.state,
    )
    return Beat(agent_id=named, heartbeat=heartbeat, warnings=(*unknown, *passed_over))


def kept(counters: Mapping[str, int]) -> tuple[tuple[tuple[str, int], ...], list[str]]:
    """Return the first counts that can be kept, sorted by name, and a warning for the others."""
    found: list[tuple[str, int]] = []
    warnings = []
    for name, count in sorted(counters.items()):
        why = why_not_label(name)
        if why is None and len(found) < COUNTERS_MAX:
            found.append((name, count))
        elif why is not None:
            warnings.append(f"counters.{shown(name)}: {why}; it was ignored")
    if len(found) + len(warnings) < len(counters):
        warnings.append(f"counters: the first {COUNTERS_MAX} by name are kept")
    return tuple(found), warnings


def wrong(at: str, why: str) -> InvalidRequest:
    """Return the error for one wrong place."""
    error = error_for([Problem(at=at, why=why)])
    assert isinstance(error, InvalidRequest)
    return error
