"""Flags, environment and YAML file into one `NodeConfig`: text in, a noun out.

A flag beats the environment, which beats the file, which beats the default. What isn't
known is an error with the closest known key; what this version doesn't enforce yet is an
error too, so that no setting is read and ignored. Nothing is opened here.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import yaml
from immutables import Map

from reachnode.model.address import Address
from reachnode.model.config import ConfigError, NodeConfig, Setting, settings

PREFIX = "REACHNODE_"
LATER_SECTIONS = frozenset(
    {"registry", "probes", "defaults", "channels", "semantic", "policies", "reaches"}
)
LATER_KEYS = frozenset(
    {
        "node.observer",
        "security.tls",
        "observe.trace_success_percent",
        "observe.otlp_endpoint",
    }
)
LATER_VALUES = {"security.auth": frozenset({"required"})}
NOT_YET = "is not supported by this version yet; leave it out"

FIELDS: Mapping[str, tuple[str, Setting]] = {
    setting.key: (name, setting) for name, setting in settings().items()
}
"""Field name and setting by key."""
SECTIONS = frozenset(key.partition(".")[0] for key in FIELDS)
VARIABLES = {setting.variable: key for key, (_, setting) in FIELDS.items()}
KINDS: Mapping[str, Any] = get_type_hints(NodeConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One setting as it was written, and where."""

    key: str
    text: str | Mapping[str, str]
    place: str


def read_config(
    *,
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    file_text: str | None = None,
    file_name: str = "",
) -> NodeConfig:
    """Return the configuration that all sources together ask for.

    Args:
        flags: What the command line said, by key (`node.id`), unread.
        environment: All variables of the process; those without the prefix are ignored.
        file_text: The YAML file, None when there is none.
        file_name: What to call the file in errors.

    Raises:
        ConfigError: A key is unknown, a value can't be read, or settings contradict.
    """
    said: dict[str, Said] = {}
    if file_text is not None:
        said.update({one.key: one for one in from_file(file_text, file_name)})
    said.update({one.key: one for one in from_environment(environment)})
    said.update({one.key: one for one in from_flags(flags)})
    values: dict[str, Any] = {FIELDS[one.key][0]: value_of(one) for one in said.values()}
    try:
        return NodeConfig(**values)
    except ConfigError as error:
        place = said[error.key].place if error.key in said else ""
        raise ConfigError(key=error.key, why=error.why, place=place) from None


def from_flags(flags: Mapping[str, str]) -> Iterator[Said]:
    """Yield what the command line said."""
    for key, text in flags.items():
        refuse_unknown(key, place=f"--{key}")
        yield Said(key=key, text=text, place=FIELDS[key][1].flag or f"--{key}")


def from_environment(environment: Mapping[str, str]) -> Iterator[Said]:
    """Yield what the variables said; one with our prefix and a level must be known."""
    for name in sorted(environment):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        key = name.removeprefix(PREFIX).lower().replace("__", ".")
        refuse_unknown(key, place=name)
        yield Said(key=key, text=environment[name], place=name)


def from_file(text: str, name: str) -> Iterator[Said]:
    """Yield what a YAML file says; scalars stay text, so that `off` isn't a boolean."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise unreadable(error, name) from None
    if root is None:
        return
    for section, body, place in pairs(root, key="file", name=name):
        refuse_unknown(section, place=place, known=SECTIONS)
        if is_null(body):
            continue
        for leaf, node, leaf_place in pairs(body, key=section, name=name):
            key = f"{section}.{leaf}"
            refuse_unknown(key, place=leaf_place)
            if not is_null(node):
                yield Said(key=key, text=plain(node, key=key, name=name), place=leaf_place)


def pairs(node: yaml.Node, *, key: str, name: str) -> Iterator[tuple[str, yaml.Node, str]]:
    """Yield key, value and place of a mapping; a key said twice is an error."""
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(key=key, why="must be keys with values", place=place_of(node, name))
    seen: set[str] = set()
    for left, right in node.value:
        place = place_of(left, name)
        if not isinstance(left, yaml.ScalarNode):
            raise ConfigError(key=key, why="its keys must be plain words", place=place)
        word: str = left.value
        if word in seen:
            raise ConfigError(key=word, why="is said twice", place=place)
        seen.add(word)
        yield word, right, place


def plain(node: yaml.Node, *, key: str, name: str) -> str | Mapping[str, str]:
    """Return a scalar's text, or a flat mapping of texts."""
    if isinstance(node, yaml.ScalarNode):
        text: str = node.value
        return text
    found = {}
    for word, value, place in pairs(node, key=key, name=name):
        if not isinstance(value, yaml.ScalarNode):
            raise ConfigError(key=f"{key}.{word}", why="must be one value", place=place)
        found[word] = value.value
    return found


def is_null(node: yaml.Node) -> bool:
    """Return whether nothing is said: an empty value or `null`."""
    return bool(node.tag == "tag:yaml.org,2002:null")


def place_of(node: yaml.Node, name: str) -> str:
    """Return file and line, counted from 1."""
    return f"{name} line {node.start_mark.line + 1}"


def unreadable(error: Exception, name: str) -> ConfigError:
    """Return the error for a file that isn't YAML."""
    place, why = name, "is no YAML"
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        place = f"{name} line {mark.line + 1}"
        why = f"is no YAML: {getattr(error, 'problem', None) or 'it cannot be read'}"
    return ConfigError(key="file", why=why, place=place)


def refuse_unknown(key: str, *, place: str, known: Iterable[str] = tuple(FIELDS)) -> None:
    """Raise where a key isn't one of ours, or is one that nothing enforces yet."""
    if key in known:
        return
    if key in LATER_KEYS or key.partition(".")[0] in LATER_SECTIONS:
        raise ConfigError(key=key, why=NOT_YET, place=place)
    close = difflib.get_close_matches(key, sorted(known), n=1)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"
    raise ConfigError(key=key, why=f"is unknown; {hint}", place=place)


def value_of(said: Said) -> object:
    """Return the value that a text means for its key."""
    if said.text in LATER_VALUES.get(said.key, ()):
        raise ConfigError(key=said.key, why=f"{said.text} {NOT_YET}", place=said.place)
    kind = KINDS[FIELDS[said.key][0]]
    try:
        if kind == Mapping[str, Address]:
            return peers_of(said.text)
        text = single(said.text)
        if get_origin(kind) is Literal:
            return choice_of(text, get_args(kind))
        return READERS[kind](text)
    except ValueError as error:
        raise ConfigError(key=said.key, why=str(error), place=said.place) from None


def peers_of(text: str | Mapping[str, str]) -> Map[str, Address]:
    """Return peers from `n1=HOST:PORT,n2=HOST:PORT`, or from a mapping of the same.

    Raises:
        ValueError: The form is another, or a node appears twice.
    """
    if not isinstance(text, str):
        return Map({peer: Address.parse(address) for peer, address in text.items()})
    found: dict[str, Address] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        peer, equals, address = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not ID=HOST:PORT")
        if peer in found:
            raise ValueError(f"{peer} appears twice")
        found[peer] = Address.parse(address)
    return Map(found)


def single(text: str | Mapping[str, str]) -> str:
    """Return the text where it is one value.

    Raises:
        ValueError: It is a mapping.
    """
    if isinstance(text, str):
        return text
    raise ValueError("must be one value, not keys with values")


def choice_of(text: str, choices: tuple[str, ...]) -> str:
    """Return `text` where it is one of the choices.

    Raises:
        ValueError: It is none of them.
    """
    if text not in choices:
        raise ValueError(f"{text!r} must be {' or '.join(choices)}")
    return text


def number_of(text: str) -> float:
    """Return a decimal number.

    Raises:
        ValueError: The text is none, or not finite.
    """
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if number - number != 0:
        raise ValueError(f"{text!r} is not a finite number")
    return number


def whole_of(text: str) -> int:
    """Return a whole number.

    Raises:
        ValueError: The text is none.
    """
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def truth_of(text: str) -> bool:
    """Return the boolean that YAML would read.

    Raises:
        ValueError: The text is none.
    """
    lowered = text.lower()
    if lowered in ("true", "yes", "on"):
        return True
    if lowered in ("false", "no", "off"):
        return False
    raise ValueError(f"{text!r} must be true or false")


def text_of(text: str) -> str:
    """Return a text that says something.

    Raises:
        ValueError: It is empty.
    """
    if not text:
        raise ValueError("must not be empty")
    return text


READERS: Mapping[Any, Callable[[str], object]] = {
    str: text_of,
    str | None: text_of,
    float: number_of,
    int: whole_of,
    bool: truth_of,
    Address: Address.parse,
    Address | None: Address.parse,
}
"""How a text is read, by the type of its field."""
