"""The spellings in which a registration may come, brought into the canonical one.

    skills, task_type              capabilities; a bare text is a capability of that name
    timeout_ms, cost_model         timeout_sla_ms, cost
    reachability: {...}            max_concurrency, timeout_ms, fallback_group of a capability
    labels                         metadata, where it names a field of it, else tags
    address                        base_url
    no protocol                    what the scheme of the endpoint speaks of, else rest

At the top of the document, what belongs to a capability applies to each that doesn't say its
own. Where two spellings of one thing stand side by side the canonical one holds, with a
warning. Wrong types are left as they are: whoever reads the result says what is wrong.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from reachnode.wire.endpoints import PROTOCOL_OF, SCHEME

Document = dict[str, Any]

OTHER_WORDS: Mapping[str, str] = MappingProxyType(
    {"task_type": "name", "timeout_ms": "timeout_sla_ms", "cost_model": "cost"}
)
"""Other words for fields of a capability."""
SHARED = (
    "endpoint",
    "protocol",
    "envelope",
    "timeout_sla_ms",
    "max_concurrency",
    "permissions",
    "cost",
    "fallback_group",
    "trust_level",
)
"""What may stand at the top for each capability."""
REACHABILITY = ("max_concurrency", "timeout_ms", "timeout_sla_ms", "fallback_group")
METADATA_LABELS = frozenset({"zone", "env", "team", "tier", "model"})
"""Labels that are fields of the metadata."""


def canonical(document: Document) -> tuple[Document, tuple[str, ...]]:
    """Return a registration in canonical spelling, and a warning for each word passed over.

    The document given stays as it is.
    """
    warnings: list[str] = []
    body = dict(document)
    capabilities = _take_capabilities(body)
    shared = _take_shared(body, warnings)
    _read_address(body, warnings)
    _read_labels(body, warnings)
    if isinstance(capabilities, list):
        capabilities = [
            _capability(one, f"capabilities[{number}]", warnings)
            for number, one in enumerate(capabilities)
        ]
        for capability in capabilities:
            if isinstance(capability, dict):
                _fill(capability, shared, base_url=body.get("base_url"))
        if shared and not capabilities:
            words = ", ".join(sorted(shared))
            warnings.append(f"{words} belong to capabilities, and there is none")
    if capabilities is not None:
        body["capabilities"] = capabilities
    return body, tuple(warnings)


def _take_capabilities(body: Document) -> Any:
    """Remove all that names capabilities, and return the list of them; None for nothing."""
    said = body.pop("capabilities", None)
    if said is not None and not isinstance(said, list):
        return said
    found = list(said) if said is not None else None
    for word in ("skills", "task_type"):
        more = body.pop(word, None)
        if more is not None:
            found = [*(found or []), *(more if isinstance(more, list) else [more])]
    return found


def _take_shared(body: Document, warnings: list[str]) -> Document:
    """Remove what stands at the top for each capability, and return it."""
    said = {
        word: body.pop(word) for word in (*SHARED, *OTHER_WORDS, "reachability") if word in body
    }
    return _spelled(said, "", warnings)


def _capability(said: Any, at: str, warnings: list[str]) -> Any:
    """Return one capability in canonical spelling."""
    if isinstance(said, str):
        return {"name": said}
    return _spelled(said, f"{at}.", warnings) if isinstance(said, dict) else said


def _spelled(said: Document, at: str, warnings: list[str]) -> Document:
    """Return fields of a capability in canonical spelling; null says nothing."""
    found: Document = {}
    for word, value in _flattened(said, at, warnings):
        name = OTHER_WORDS.get(word, word)
        if value is None:
            continue
        if name not in found:
            found[name] = value
        elif found[name] != value:
            warnings.append(f"{at}{word} says {name} again, and differently; it was ignored")
    return found


def _flattened(said: Document, at: str, warnings: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield fields and values: first the canonical ones, then other words, then the rest."""
    inner = said.get("reachability")
    is_nested = isinstance(inner, dict)
    for word, value in said.items():
        if word not in OTHER_WORDS and not (is_nested and word == "reachability"):
            yield word, value
    for word in OTHER_WORDS:
        if word in said:
            yield word, said[word]
    for word, value in inner.items() if isinstance(inner, dict) else ():
        if word in REACHABILITY:
            yield word, value
        else:
            warnings.append(f"{at}reachability.{word} is unknown; it was ignored")


def _fill(capability: Document, shared: Document, *, base_url: Any) -> None:
    """Give a capability what it doesn't say itself, in place."""
    for word, value in shared.items():
        capability.setdefault(word, value)
    if "protocol" not in capability:
        capability["protocol"] = _spoken(capability.get("endpoint")) or _spoken(base_url) or "rest"
    if isinstance(capability.get("permissions"), str):
        capability["permissions"] = [capability["permissions"]]


def _spoken(url: Any) -> str | None:
    """Return the protocol that the scheme of a URL speaks of, None where it has none."""
    scheme = SCHEME.match(url) if isinstance(url, str) else None
    return PROTOCOL_OF.get(scheme[1].lower()) if scheme else None


def _read_address(body: Document, warnings: list[str]) -> None:
    """Turn `address` into `base_url`, in place."""
    address = body.pop("address", None)
    if address is None:
        return
    if isinstance(address, str) and address and not SCHEME.match(address):
        is_bare_ipv6 = address.count(":") > 1 and not address.startswith("[")
        address = f"http://[{address}]" if is_bare_ipv6 else f"http://{address}"
    if body.get("base_url") is None:
        body["base_url"] = address
    elif body["base_url"] != address:
        warnings.append("address says base_url again, and differently; it was ignored")


def _read_labels(body: Document, warnings: list[str]) -> None:
    """Turn `labels` into fields and tags of the metadata, in place."""
    labels = _named(body.pop("labels", None))
    metadata = body.get("metadata")
    metadata = {} if metadata is None else metadata
    if labels is None or not isinstance(metadata, dict):
        return
    tags = _named(metadata.get("tags"))
    tags = {} if tags is None else tags
    if not isinstance(labels, dict) or not isinstance(tags, dict):
        wrong = labels if isinstance(tags, dict) else tags
        body["metadata"] = {**metadata, "tags": wrong}
        return
    metadata, tags = dict(metadata), dict(tags)
    for name, value in labels.items():
        place = metadata if name in METADATA_LABELS else tags
        if place.get(name) is None:
            place[name] = value
        elif place[name] != value:
            warnings.append(
                f"labels.{name} is said in metadata too, and differently; it was ignored"
            )
    body["metadata"] = {**metadata, "tags": tags}


def _named(said: Any) -> Any:
    """Return a list of bare tags as an object of empty texts, anything else as it is."""
    if isinstance(said, list) and all(isinstance(one, str) for one in said):
        return dict.fromkeys(said, "")
    return said
