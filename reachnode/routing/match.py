"""Whether an instance is what was asked for, by its own declaration, whatever its health."""

from dataclasses import dataclass

from reachnode.errors import InvalidRequest
from reachnode.model.agents import Instance
from reachnode.model.capabilities import Capability
from reachnode.model.discovery import Pairs, Question, Reason
from reachnode.model.words import shown, why_not_capability
from reachnode.routing.version_ranges import VersionRange, parse_range

REACH_PREFIX = "reach:"
METADATA_WORDS = frozenset({"zone", "env", "team", "tier", "model"})
"""Hints that are read from fields of the metadata; `agent` is the group; others are tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What an instance must declare to fit."""

    capability: str
    versions: VersionRange | None
    """None takes any version."""
    tags: Pairs
    require: Pairs


def demand_of(question: Question) -> Demand:
    """Return what a question demands.

    Raises:
        InvalidRequest: It names no capability, or no readable version range.
    """
    name = question.capability.removeprefix(REACH_PREFIX)
    if not name:
        by = "text" if question.text else "nothing"
        raise InvalidRequest(
            f"the question names a capability by {by}, and finding by meaning needs an embedder, "
            "which is not at work here: give the exact name in capability",
            details={"missing": "embedder" if question.text else "capability"},
        )
    why = why_not_capability(name)
    if why is not None:
        raise InvalidRequest(
            f"capability: {why}", details={"problems": [{"at": "capability", "why": why}]}
        )
    versions = None
    if question.version:
        try:
            versions = parse_range(question.version)
        except ValueError as error:
            problem = {"at": "version", "why": str(error)}
            raise InvalidRequest(f"version: {error}", details={"problems": [problem]}) from None
    return Demand(capability=name, versions=versions, tags=question.tags, require=question.require)


def misfit(instance: Instance, capability: Capability, demand: Demand) -> tuple[Reason, str] | None:
    """Return why an instance isn't what was asked for, None if it is.

    Version, tags and hint are looked at in this order; the first that excludes is told.
    """
    if demand.versions is not None and not demand.versions.takes(capability.version):
        said = f"version {capability.version}" if capability.version else "no version"
        return "version", f"it has {said}, asked is {demand.versions.text}"
    for name, wanted in demand.tags:
        has = tag_of(instance, name)
        if not agrees(wanted, has):
            return "tags", f"tag {shown(name)} {_differs(wanted, has)}"
    for name, wanted in demand.require:
        has = hinted(instance, name)
        if not agrees(wanted, has):
            return "hint", f"{name} {_differs(wanted, has)}"
    return None


def preferences_met(instance: Instance, prefer: Pairs) -> int:
    """Return how many preferences an instance agrees with."""
    return sum(agrees(wanted, hinted(instance, name)) for name, wanted in prefer)


def hinted(instance: Instance, name: str) -> str | None:
    """Return what an instance says of a word that hints may use, None if nothing."""
    if name in METADATA_WORDS:
        return getattr(instance.metadata, name) or None
    if name == "agent":
        return instance.agent
    return tag_of(instance, name)


def tag_of(instance: Instance, name: str) -> str | None:
    """Return the value of an instance's tag, None if it hasn't got it."""
    for tag, value in instance.metadata.tags:
        if tag == name:
            return value
    return None


def agrees(wanted: str, has: str | None) -> bool:
    """Return whether what an instance says is what is wanted; empty wants any."""
    return has is not None and wanted in {"", has}


def _differs(wanted: str, has: str | None) -> str:
    """Return how two values differ, for people."""
    said = "is missing" if has is None else f"is {shown(has)}"
    return f"{said}, asked is {shown(wanted) if wanted else 'any'}"
