"""A registration as a client writes it, to an `Instance` and back.

The document is JSON, in any of its spellings (`reachnode.wire.spellings`). Fields it has
beyond ours are passed over with a warning, so that newer and older sides mix. What the
registry keeps as text (schemas, costs) or as sorted pairs (tags) is a plain document outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from reachnode.errors import InvalidRequest
from reachnode.model.agents import AddressType, Instance, instance_problems
from reachnode.model.versions import full_version
from reachnode.model.words import Problem
from reachnode.wire.documents import error_for, strays, to_noun, without
from reachnode.wire.endpoints import Kind, absolute, family_of, place_of
from reachnode.wire.spellings import canonical

TEXTS = ("input_schema", "output_schema", "cost")
"""Fields of a capability that are any JSON document."""
BESIDE = frozenset({"incarnation", "replace"})
"""Fields of a registration that aren't kept."""
KINDS: Mapping[str, Kind] = MappingProxyType(
    {"rest": "rest", "grpc": "grpc", "websocket": "websocket", "redis_stream": "redis_stream"}
)
"""What an endpoint is for, by protocol; in others the agent comes to the node."""
PROBES: Mapping[str, Kind] = MappingProxyType(
    {"http": "http", "tcp": "tcp", "grpc": "grpc", "websocket": "websocket"}
)
"""What an endpoint is for, by the way to probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a client asked to register."""

    instance: Instance
    incarnation: int | None
    """The incarnation it says it replaces."""
    replaces_any: bool
    """Whether it replaces whatever stands under its id."""
    warnings: tuple[str, ...]
    """What was passed over, a sentence each."""


def read_registration(document: dict[str, Any]) -> Registration:
    """Return the registration that a JSON object says.

    Raises:
        InvalidRequest: A field is missing or wrong; `details` list every place.
        DuplicateCapability: A capability stands twice.
    """
    incarnation, replaces_any = document.get("incarnation"), document.get("replace", False)
    if type(incarnation) not in (int, type(None)) or not isinstance(replaces_any, bool):
        raise InvalidRequest("incarnation must be a whole number, and replace true or false")
    said = {name: value for name, value in document.items() if name not in BESIDE}
    said, passed_over = canonical(said)
    unknown = tuple(f"{one}; it was ignored" for one in strays(said, Instance))
    body = without(said, Instance)
    if "agent_id" in body:
        body.setdefault("agent", body["agent_id"])
    read_metadata(body.get("metadata"))
    base_url = read_base_url(body)
    capabilities = body.get("capabilities")
    for number, capability in enumerate(capabilities if isinstance(capabilities, list) else []):
        read_capability(capability, base_url=base_url, at=f"capabilities[{number}]")
    read_health(body, base_url=base_url)
    instance = to_noun(body, Instance)
    problems = instance_problems(instance)
    if problems:
        raise error_for(problems)
    if instance.address_type is None:
        instance = msgspec.structs.replace(instance, address_type=address_type_of(instance))
    return Registration(
        instance=instance,
        incarnation=incarnation,
        replaces_any=replaces_any,
        warnings=(*passed_over, *unknown),
    )


def write_instance(instance: Instance) -> dict[str, Any]:
    """Return an instance as the JSON object that would register it; defaults left out."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(instance))
    metadata = document.get("metadata", {})
    if "tags" in metadata:
        metadata["tags"] = dict(metadata["tags"])
    for capability in document.get("capabilities", ()):
        for name in TEXTS:
            if name in capability:
                capability[name] = msgspec.json.decode(capability[name])
    return document


def read_metadata(metadata: Any) -> None:
    """Turn the tags of a metadata object into sorted pairs, in place.

    Raises:
        InvalidRequest: They are neither an object of texts nor a list of bare tags.
    """
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    if tags is None:
        return
    if isinstance(tags, list) and all(isinstance(one, str) for one in tags):
        tags = dict.fromkeys(tags, "")
    if not isinstance(tags, dict) or not all(isinstance(one, str) for one in tags.values()):
        raise wrong("metadata.tags", "tags are an object of texts, or a list of bare tags")
    metadata["tags"] = sorted(tags.items())


def read_capability(capability: Any, *, base_url: Any, at: str) -> None:
    """Bring one capability into the form that is kept, in place.

    Args:
        capability: Whatever stood in the list.
        base_url: What a relative endpoint is resolved against.
        at: Where it stands, for errors.

    Raises:
        InvalidRequest: A version or an endpoint can't be read.
    """
    if not isinstance(capability, dict):
        return
    for name in TEXTS:
        if name in capability:
            capability[name] = msgspec.json.encode(capability[name]).decode()
    read_dependencies(capability, at=at)
    version = capability.get("version")
    if version and isinstance(version, str):
        try:
            capability["version"] = full_version(version)
        except ValueError as error:
            raise wrong(f"{at}.version", str(error)) from None
    endpoint = capability.setdefault("endpoint", "")
    protocol = capability.get("protocol")
    kind = KINDS.get(protocol) if isinstance(protocol, str) else None
    if kind and endpoint and isinstance(endpoint, str):
        capability["endpoint"] = whole(endpoint, base_url=base_url, kind=kind, at=f"{at}.endpoint")


def read_dependencies(capability: dict[str, Any], *, at: str) -> None:
    """Bring what a capability depends on into the form that is kept, in place.

    Raises:
        InvalidRequest: An endpoint can't be read.
    """
    said = capability.get("dependencies")
    if not isinstance(said, list):
        return
    capability["dependencies"] = [
        {"capability": one} if isinstance(one, str) else one for one in said
    ]
    for number, one in enumerate(capability["dependencies"]):
        endpoint = one.get("endpoint") if isinstance(one, dict) else None
        if endpoint and isinstance(endpoint, str):
            place = f"{at}.dependencies[{number}].endpoint"
            one["endpoint"] = whole(endpoint, base_url="", kind="resource", at=place)


def read_base_url(body: dict[str, Any]) -> str:
    """Return what relative endpoints are resolved against, empty where nothing was said.

    Raises:
        InvalidRequest: It is no whole URL.
    """
    base_url = body.get("base_url")
    if not base_url or not isinstance(base_url, str):
        return ""
    try:
        place_of(base_url)
    except ValueError as error:
        raise wrong("base_url", str(error)) from None
    return base_url


def read_health(body: dict[str, Any], *, base_url: str) -> None:
    """Make the endpoint that is probed whole, in place.

    Without a base URL a relative one is resolved against the first capability's endpoint.

    Raises:
        InvalidRequest: It can't be read.
    """
    health = body.get("health")
    said = health.get("endpoint") if isinstance(health, dict) else None
    type_said = health.get("type") if isinstance(health, dict) else None
    kind = PROBES.get(type_said) if isinstance(type_said, str) else None
    if kind and said and isinstance(said, str):
        assert isinstance(health, dict)
        capabilities = body.get("capabilities")
        first = capabilities[0] if isinstance(capabilities, list) and capabilities else None
        near = first.get("endpoint") if isinstance(first, dict) else None
        base = base_url or (near if isinstance(near, str) else "")
        health["endpoint"] = whole(said, base_url=base, kind=kind, at="health.endpoint")


def whole(endpoint: str, *, base_url: str, kind: Kind, at: str) -> str:
    """Return an endpoint as it is kept.

    Raises:
        InvalidRequest: It is none of this kind.
    """
    try:
        return absolute(endpoint, base_url=base_url, kind=kind)
    except ValueError as error:
        raise wrong(at, str(error)) from None


def address_type_of(instance: Instance) -> AddressType | None:
    """Return the address family that all endpoints of an instance are of, None for no one."""
    families = {
        family_of(place_of(one.endpoint).host)
        for one in instance.capabilities
        if "://" in one.endpoint and one.protocol in KINDS
    }
    return families.pop() if len(families) == 1 else None


def wrong(at: str, why: str) -> InvalidRequest:
    """Return the error for one wrong place."""
    error = error_for([Problem(at=at, why=why)])
    assert isinstance(error, InvalidRequest)
    return error
