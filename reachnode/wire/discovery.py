"""Questions of discovery from JSON, and its answers to JSON."""

import re
from typing import Any

import msgspec

from reachnode.errors import InvalidRequest
from reachnode.model.agents import TAGS_MAX, Metadata
from reachnode.model.discovery import (
    HINTS_MAX,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    Candidate,
    Exclusion,
    Found,
    Gap,
    Pairs,
    Question,
    Seen,
)
from reachnode.model.liveness import Liveness
from reachnode.model.nouns import Noun
from reachnode.model.words import Problem, shown, why_not_label
from reachnode.wire.documents import error_for, refuse_strays, to_noun, without
from reachnode.wire.registrations import write_instance

TEXT_CHARACTERS_MAX = 10_000
SECRET = re.compile(
    r"token|passw|secret|credential|private|(^|[._-])(api)?[_-]?key$|apikey", re.IGNORECASE
)
"""Names of tags whose values aren't shown."""
MASK = "***"


class TaskSpec(Noun, frozen=True, kw_only=True):
    """A task, named or told in words."""

    task_type: str = ""
    text: str = ""
    params: Any = None


class Asked(Noun, frozen=True, kw_only=True):
    """A question as it stands in the document."""

    capability: str = ""
    text: str = ""
    task_spec: TaskSpec | None = None
    version: str = ""
    tags: dict[str, str] | list[str] | None = None
    routing_hint: dict[str, Any] | None = None
    limit: int | None = None
    explain: bool = False


def read_question(document: dict[str, Any]) -> Question:
    """Return the question that a JSON object asks.

    Raises:
        InvalidRequest: A field is unknown, wrong, or two contradict; `details` say where.
    """
    refuse_strays(document, Asked)
    asked = to_noun(without(document, Asked), Asked)
    spec = asked.task_spec or TaskSpec()
    if asked.capability and spec.task_type:
        raise wrong("task_spec.task_type", "capability names one already: leave one out")
    text = asked.text or spec.text
    if len(text) > TEXT_CHARACTERS_MAX:
        raise wrong("text", f"it is longer than {TEXT_CHARACTERS_MAX} characters")
    limit = LIMIT_DEFAULT if asked.limit is None else asked.limit
    if not 1 <= limit <= LIMIT_MAX:
        raise wrong("limit", f"{limit} isn't from 1 to {LIMIT_MAX}")
    hint = read_hint(asked.routing_hint or {})
    tags = pairs(asked.tags or {}, at="tags", most=TAGS_MAX)
    return Question(
        capability=asked.capability or spec.task_type,
        text=text,
        version=asked.version.strip(),
        tags=tags,
        require=hint[0],
        prefer=hint[1],
        limit=limit,
        explain=asked.explain,
    )


def read_hint(hint: dict[str, Any], *, at: str = "routing_hint") -> tuple[Pairs, Pairs]:
    """Return what a routing hint requires and what it prefers.

    Words at its top are required, as are those under `require` and the tags under `tags`.

    Raises:
        InvalidRequest: A value is no text, or a word is required to be two things.
    """
    inner = {"require", "prefer", "tags"}
    plainly = {name: value for name, value in hint.items() if name not in inner}
    required: dict[str, str] = {}
    for part, place in (
        (plainly, at),
        (hint.get("require"), f"{at}.require"),
        (hint.get("tags"), f"{at}.tags"),
    ):
        for name, value in pairs(part or {}, at=place, most=HINTS_MAX):
            if required.setdefault(name, value) != value:
                raise wrong(f"{place}.{name}", "it is required to be something else beside")
    if len(required) > HINTS_MAX:
        raise wrong(at, f"{len(required)} are more than the {HINTS_MAX} words allowed")
    prefer = pairs(hint.get("prefer") or {}, at=f"{at}.prefer", most=HINTS_MAX)
    return tuple(sorted(required.items())), prefer


def pairs(said: Any, *, at: str, most: int) -> Pairs:
    """Return an object of texts, or a list of bare words, as sorted pairs; null says nothing.

    Raises:
        InvalidRequest: It is something else, or too long.
    """
    if isinstance(said, list) and all(isinstance(one, str) for one in said):
        said = dict.fromkeys(said, "")
    if not isinstance(said, dict):
        raise wrong(at, "write an object of texts, or a list of bare words")
    found = {name: value for name, value in said.items() if value is not None}
    if len(found) > most:
        raise wrong(at, f"{len(found)} are more than the {most} allowed")
    for name, value in found.items():
        place = f"{at}.{shown(name)}"
        if not isinstance(value, str):
            raise wrong(place, "the value must be a text")
        why = why_not_label(name) or (why_not_label(value) if value else None)
        if why is not None:
            raise wrong(place, why)
    return tuple(sorted(found.items()))


def wrong(at: str, why: str) -> InvalidRequest:
    """Return the error for one wrong place."""
    error = error_for([Problem(at=at, why=why)])
    assert isinstance(error, InvalidRequest)
    return error


def write_found(found: Found, *, index: int, now: float) -> dict[str, Any]:
    """Return the answer of discovery at a log index.

    Args:
        found: The answer.
        index: The log index it holds at.
        now: This node's clock, on which ages are told.
    """
    document: dict[str, Any] = {
        "candidates": [write_candidate(one, now=now) for one in found.candidates],
        "gap": None if found.gap is None else write_gap(found.gap),
        "index": index,
    }
    if found.excluded:
        document["excluded"] = [write_exclusion(one) for one in found.excluded]
    return document


def write_candidate(candidate: Candidate, *, now: float) -> dict[str, Any]:
    """Return one candidate, ready to be called."""
    seen, capability = candidate.seen, candidate.capability
    instance = seen.instance
    return {
        "agent_id": instance.agent_id,
        "agent": instance.agent,
        "capability": capability.name,
        "version": capability.version or None,
        "protocol": capability.protocol,
        "endpoint": capability.endpoint or None,
        "envelope": capability.envelope,
        "state": seen.state,
        "score": candidate.score,
        "parts": dict(candidate.parts),
        **write_liveness(seen.liveness, now=now),
        "timeout_sla_ms": capability.timeout_sla_ms,
        "idempotent": capability.idempotent,
        "direct_fallback": instance.direct_fallback,
        "incarnation": instance.incarnation,
        "index": seen.index,
        "metadata": write_metadata(instance.metadata),
    }


def write_gap(gap: Gap) -> dict[str, Any]:
    """Return why nobody can be asked."""
    return {
        "code": gap.code,
        "capability": gap.capability,
        "missing": gap.missing,
        "reasons": dict(gap.reasons),
        "excluded": [write_exclusion(one) for one in gap.excluded],
        "close_names": list(gap.close_names),
    }


def write_exclusion(exclusion: Exclusion) -> dict[str, Any]:
    """Return why one instance can't be asked."""
    return {
        "agent_id": exclusion.agent_id,
        "agent": exclusion.agent,
        "reason": exclusion.reason,
        "detail": exclusion.detail,
    }


def write_seen(seen: Seen, *, now: float) -> dict[str, Any]:
    """Return an instance as clients see it: its registration, and how it is."""
    return {
        **write_instance(seen.instance),
        "metadata": write_metadata(seen.instance.metadata),
        "state": seen.state,
        "incarnation": seen.instance.incarnation,
        **write_liveness(seen.liveness, now=now),
        "index": seen.index,
    }


def write_liveness(liveness: Liveness, *, now: float) -> dict[str, Any]:
    """Return what is known of an instance beside its state; null is what nobody knows."""
    return {
        "home": liveness.home,
        "age_ms": liveness.age_ms(now),
        "load": liveness.load,
        "in_flight": liveness.in_flight,
        "unreachable_from": list(liveness.unreachable_from),
        "why": liveness.why,
        "basis": liveness.basis,
    }


def write_metadata(metadata: Metadata) -> dict[str, Any]:
    """Return metadata, the values of tags that name a secret masked."""
    document: dict[str, Any] = msgspec.to_builtins(metadata)
    if metadata.tags:
        document["tags"] = {
            name: MASK if value and SECRET.search(name) else value for name, value in metadata.tags
        }
    return document
