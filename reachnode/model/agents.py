"""An instance: what one running copy of an agent said of itself when it registered.

Only what all nodes must agree on is here. Load, age and what was seen of its health change
all the time and live elsewhere.
"""

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from reachnode.model.capabilities import Capability, Dependency
from reachnode.model.nouns import Noun
from reachnode.model.words import (
    Problem,
    shown,
    why_not_agent_id,
    why_not_capability,
    why_not_label,
)

AddressType = Literal["ipv4", "ipv6", "dual"]
HealthType = Literal["http", "tcp", "grpc", "websocket", "none"]
CAPABILITIES_MAX = 1_000
DEPENDENCIES_MAX = 100
PERMISSIONS_MAX = 100
TAGS_MAX = 100
NUMBER_MAX = 2**53
"""The largest whole number that every JSON reader keeps exactly."""


class Health(Noun, frozen=True, kw_only=True):
    """How an instance wants to be probed."""

    type: HealthType
    endpoint: str = ""
    interval_ms: int | None = None


class HeartbeatWish(Noun, frozen=True, kw_only=True):
    """How often an instance would like to beat; the node grants what the cluster bears."""

    interval_ms: int | None = None
    ttl_ms: int | None = None


class Metadata(Noun, frozen=True, kw_only=True):
    """What routing may go by; an empty text or None means that nothing was said."""

    zone: str = ""
    env: str = ""
    team: str = ""
    tier: str = ""
    model: str = ""
    semver: str = ""
    routing_policy: str = ""
    weight: float | None = None
    """A share of the work, 0 or more; None counts as 1."""
    max_qps: float | None = None
    max_concurrency: int | None = None
    tags: tuple[tuple[str, str], ...] = ()
    """Free tags, `(name, value)`, sorted by name; a bare tag has an empty value."""


class Instance(Noun, frozen=True, kw_only=True):
    """One running copy of an agent, as registered."""

    agent_id: str
    agent: str
    """The logical agent it belongs to; its own `agent_id` when it said none."""
    capabilities: tuple[Capability, ...] = ()
    """In the order they were declared; each name once."""
    name: str = ""
    base_url: str = ""
    address_type: AddressType | None = None
    metadata: Metadata = msgspec.field(default_factory=Metadata)
    health: Health | None = None
    """None: a TCP connect to the endpoint."""
    heartbeat: HeartbeatWish | None = None
    direct_fallback: bool = False
    """Whether callers may reach it directly when no node answers."""
    incarnation: int = 0
    """Given by the registry, larger each time it registers; 0 before that."""


def instance_problems(instance: Instance) -> tuple[Problem, ...]:
    """Return everything that keeps a registration from being proposed, in reading order."""
    return tuple(_instance_problems(instance))


def _instance_problems(instance: Instance) -> Iterator[Problem]:
    yield from _said("agent_id", why_not_agent_id(instance.agent_id))
    yield from _said("agent", why_not_label(instance.agent))
    yield from _optional_label("name", instance.name)
    yield from _metadata_problems(instance.metadata)
    if instance.health:
        yield from _whole("health.interval_ms", instance.health.interval_ms)
    if instance.heartbeat:
        yield from _whole("heartbeat.interval_ms", instance.heartbeat.interval_ms)
        yield from _whole("heartbeat.ttl_ms", instance.heartbeat.ttl_ms)
    yield from _too_many("capabilities", len(instance.capabilities), most=CAPABILITIES_MAX)
    seen: dict[str, int] = {}
    for at, capability in enumerate(instance.capabilities):
        place = f"capabilities[{at}]"
        if capability.name in seen:
            yield Problem(
                at=f"{place}.name",
                why=f"{shown(capability.name)} is also capabilities[{seen[capability.name]}]",
                code="duplicate_capability",
            )
        seen.setdefault(capability.name, at)
        yield from _capability_problems(place, capability)


def _capability_problems(place: str, capability: Capability) -> Iterator[Problem]:
    yield from _said(f"{place}.name", why_not_capability(capability.name))
    if not capability.endpoint and capability.protocol not in {"link", "pull"}:
        yield Problem(at=f"{place}.endpoint", why=f"{capability.protocol} needs an endpoint")
    yield from _whole(f"{place}.timeout_sla_ms", capability.timeout_sla_ms)
    yield from _whole(f"{place}.max_payload_bytes", capability.max_payload_bytes)
    yield from _whole(f"{place}.max_concurrency", capability.max_concurrency)
    yield from _json(f"{place}.input_schema", capability.input_schema)
    yield from _json(f"{place}.output_schema", capability.output_schema)
    yield from _json(f"{place}.cost", capability.cost)
    yield from _optional_label(f"{place}.fallback_group", capability.fallback_group)
    permissions = f"{place}.permissions"
    yield from _too_many(permissions, len(capability.permissions), most=PERMISSIONS_MAX)
    for at, permission in enumerate(capability.permissions):
        yield from _said(f"{permissions}[{at}]", why_not_label(permission))
    dependencies = f"{place}.dependencies"
    yield from _too_many(dependencies, len(capability.dependencies), most=DEPENDENCIES_MAX)
    for at, dependency in enumerate(capability.dependencies):
        yield from _dependency_problems(f"{dependencies}[{at}]", dependency)


def _dependency_problems(place: str, dependency: Dependency) -> Iterator[Problem]:
    if bool(dependency.capability) == bool(dependency.resource):
        yield Problem(at=place, why="name either a capability or a resource")
    elif dependency.capability:
        yield from _said(f"{place}.capability", why_not_capability(dependency.capability))
    elif not dependency.endpoint:
        yield Problem(at=f"{place}.endpoint", why="a resource needs an endpoint to be probed")


def _metadata_problems(metadata: Metadata) -> Iterator[Problem]:
    for word in ("zone", "env", "team", "tier", "model", "semver", "routing_policy"):
        yield from _optional_label(f"metadata.{word}", getattr(metadata, word))
    if metadata.weight is not None and not 0 <= metadata.weight < math.inf:
        yield Problem(at="metadata.weight", why=f"{metadata.weight} isn't a number from 0 up")
    if metadata.max_qps is not None and not 0 < metadata.max_qps < math.inf:
        yield Problem(at="metadata.max_qps", why=f"{metadata.max_qps} isn't a number above 0")
    yield from _whole("metadata.max_concurrency", metadata.max_concurrency)
    yield from _too_many("metadata.tags", len(metadata.tags), most=TAGS_MAX)
    for name, value in metadata.tags:
        yield from _said(f"metadata.tags.{shown(name)}", why_not_label(name))
        yield from _optional_label(f"metadata.tags.{shown(name)}", value)
    names = [name for name, _ in metadata.tags]
    if names != sorted(set(names)):
        yield Problem(at="metadata.tags", why="each tag stands once, sorted by name")


def _said(at: str, why: str | None) -> Iterator[Problem]:
    if why is not None:
        yield Problem(at=at, why=why)


def _optional_label(at: str, text: str) -> Iterator[Problem]:
    if text:
        yield from _said(at, why_not_label(text))


def _whole(at: str, number: int | None) -> Iterator[Problem]:
    if number is not None and not 1 <= number <= NUMBER_MAX:
        yield Problem(at=at, why=f"{number} isn't a whole number from 1 up")


def _too_many(at: str, count: int, *, most: int) -> Iterator[Problem]:
    if count > most:
        yield Problem(at=at, why=f"{count} are more than the {most} allowed")


def _json(at: str, text: str | None) -> Iterator[Problem]:
    if text is None:
        return
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        yield Problem(at=at, why="it isn't a JSON document")
