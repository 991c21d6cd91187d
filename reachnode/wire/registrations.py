"""A registration as a client writes it, to an `Instance` and back.

The document is JSON in the canonical spelling. Fields it has beyond ours are passed over
with a warning, so that newer and older sides mix. What the registry keeps as text (schemas,
costs) or as sorted pairs (tags) is a plain document outside.
"""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import msgspec

from reachnode.errors import InvalidRequest
from reachnode.model.agents import Instance, instance_problems
from reachnode.model.words import Problem, shown
from reachnode.wire.documents import error_for, strays, to_noun, without

SEMVER = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){0,2}([-+][0-9A-Za-z.+-]+)?")
TEXTS = ("input_schema", "output_schema", "cost")
"""Fields of a capability that are any JSON document."""
BESIDE = frozenset({"incarnation", "replace"})
"""Fields of a registration that aren't kept."""


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
    warnings = tuple(f"{one}; it was ignored" for one in strays(said, Instance))
    body = without(said, Instance)
    if "agent_id" in body:
        body.setdefault("agent", body["agent_id"])
    read_metadata(body.get("metadata"))
    capabilities = body.get("capabilities")
    for number, capability in enumerate(capabilities if isinstance(capabilities, list) else []):
        read_capability(capability, base_url=body.get("base_url"), at=f"capabilities[{number}]")
    instance = to_noun(body, Instance)
    problems = instance_problems(instance)
    if problems:
        raise error_for(problems)
    return Registration(
        instance=instance, incarnation=incarnation, replaces_any=replaces_any, warnings=warnings
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
    if "dependencies" in capability and isinstance(capability["dependencies"], list):
        capability["dependencies"] = [
            {"capability": one} if isinstance(one, str) else one
            for one in capability["dependencies"]
        ]
    if isinstance(capability.get("version"), str):
        capability["version"] = full_version(capability["version"], at=f"{at}.version")
    endpoint = capability.setdefault("endpoint", "")
    if endpoint and isinstance(endpoint, str) and isinstance(base_url, str) and base_url:
        capability["endpoint"] = resolve(base_url, endpoint, at=f"{at}.endpoint")


def full_version(text: str, *, at: str) -> str:
    """Return a semantic version in full: `3.2` reads as `3.2.0`.

    Raises:
        InvalidRequest: It is no semantic version.
    """
    if not text:
        return text
    if not SEMVER.fullmatch(text):
        raise wrong(at, f"{shown(text)} is no semantic version such as 3.2 or 3.2.0-rc.1")
    core = re.split(r"[-+]", text, maxsplit=1)[0]
    return core + ".0" * (2 - core.count(".")) + text[len(core) :]


def resolve(base_url: str, endpoint: str, *, at: str) -> str:
    """Return an endpoint as it is reached, resolved against the base where it is relative.

    Raises:
        InvalidRequest: One of the two can't be read as a URL.
    """
    try:
        return urljoin(base_url, endpoint)
    except ValueError:
        raise wrong(at, f"{shown(endpoint)} can't be resolved against base_url") from None


def wrong(at: str, why: str) -> InvalidRequest:
    """Return the error for one wrong place."""
    error = error_for([Problem(at=at, why=why)])
    assert isinstance(error, InvalidRequest)
    return error
