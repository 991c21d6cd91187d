"""JSON documents to nouns and back, with errors that name the place.

A noun's own decoder stops at the first unknown field; here unknown fields are found first,
so that one caller can refuse them with the closest known name and another can pass over
them with a warning.
"""

import difflib
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from reachnode.errors import InvalidRequest, ReachError, error_of
from reachnode.model.words import Problem, shown

T = TypeVar("T")
PLACE = re.compile(r"^(.*?)(?: - at `\$\.?(.*)`)?$", re.DOTALL)
DEPTH_MAX = 64
COLON = b":"
BRACKETS = bytes.maketrans(b"{}", b"[]")
BESIDE = bytes(set(range(256)) - set(b"{}[]:"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A field that a noun doesn't have."""

    at: str
    """Where it stands, as in `capabilities[0].colour`."""
    closest: str | None
    """The known name it most resembles."""

    def __str__(self) -> str:
        hint = f"; did you mean {self.closest}?" if self.closest else ""
        return f"{self.at} is unknown{hint}"


def read_json(body: bytes) -> Any:
    """Return the JSON document of a body.

    Raises:
        InvalidRequest: It is none, nests too deeply, or says a name twice in one object:
            programs differ in which of the two they take.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is no JSON in UTF-8: {error}") from None
    shape = shape_of(body)
    if depth_of(shape) > DEPTH_MAX:
        raise InvalidRequest(f"the body nests deeper than {DEPTH_MAX} levels")
    names_count = shape.count(COLON)
    if names_count and names_count != shape_of(msgspec.json.encode(document)).count(COLON):
        raise InvalidRequest(f"{shown(twice_said(body))} stands twice in one object")
    return document


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body.

    Raises:
        InvalidRequest: It is no object.
    """
    document = read_json(body)
    if not isinstance(document, dict):
        raise InvalidRequest("the body must be a JSON object")
    return document


def shape_of(text: bytes) -> bytes:
    """Return the brackets and colons of a JSON text outside its strings; braces are brackets.

    What is big is looked at by the few steps that cost nothing in Python.
    """
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(text.split(b'"')[::2]).translate(BRACKETS, BESIDE)


def depth_of(shape: bytes) -> int:
    """Return how many containers are inside one another; at most one more than the limit."""
    rest = shape.replace(COLON, b"")
    depth = 0
    while rest and depth <= DEPTH_MAX:
        rest = rest.replace(b"[]", b"")
        depth += 1
    return depth


def twice_said(body: bytes) -> str:
    """Return a name that stands twice in one object of a JSON text."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = Counter(name for name, _ in pairs)
        found.extend(name for name, count in names.items() if count > 1)

    json.loads(body, object_pairs_hook=look, parse_int=str, parse_float=str)
    return found[0]


def strays(document: object, kind: Any, *, at: str = "") -> Iterator[Stray]:
    """Yield every field that the noun `kind`, or a noun inside it, doesn't have."""
    noun, is_many = noun_of(kind)
    if noun is None:
        return
    if is_many:
        if isinstance(document, Sequence) and not isinstance(document, str):
            for number, one in enumerate(document):
                yield from strays(one, noun, at=f"{at}[{number}]")
        return
    if not isinstance(document, Mapping):
        return
    known = fields_of(noun)
    for name, value in document.items():
        place = f"{at}.{name}" if at else str(name)
        if name in known:
            yield from strays(value, known[name], at=place)
        else:
            close = difflib.get_close_matches(str(name), sorted(known), n=1)
            yield Stray(at=place, closest=close[0] if close else None)


@functools.cache
def noun_of(kind: Any) -> tuple[type[msgspec.Struct] | None, bool]:
    """Return the noun in a field's type, and whether the field holds many of it.

    Kept, for there are few types and each document asks for many of them.
    """
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind, False
    if get_origin(kind) in (UnionType, Union):
        found = (noun_of(one) for one in get_args(kind))
        return next((one for one in found if one[0] is not None), (None, False))
    if get_origin(kind) is tuple:
        return noun_of(get_args(kind)[0])[0], True
    return None, False


@functools.cache
def fields_of(noun: type[msgspec.Struct]) -> Mapping[str, Any]:
    """Return the type of each field of a noun, by the name it has in documents.

    Kept, because the annotations are evaluated each time they are asked for.
    """
    return {field.encode_name: field.type for field in msgspec.structs.fields(noun)}


def without(document: Any, kind: Any) -> Any:
    """Return a document without what `strays` finds in it, and without null fields."""
    noun, is_many = noun_of(kind)
    if is_many and isinstance(document, list):
        return [without(one, noun) for one in document]
    if noun is None or not isinstance(document, dict):
        return document
    known = fields_of(noun)
    return {
        name: without(value, known[name])
        for name, value in document.items()
        if name in known and value is not None
    }


def to_noun(document: Any, kind: type[T]) -> T:
    """Return the noun that a document says.

    Raises:
        InvalidRequest: A field is missing, unknown, or of another type; `details` say where.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        found = PLACE.fullmatch(str(error))
        why, at = (found[1], found[2] or "") if found else (str(error), "")
        raise InvalidRequest(
            f"{at}: {why}" if at else why, details={"problems": [{"at": at, "why": why}]}
        ) from None


def refuse_strays(document: object, kind: type[msgspec.Struct]) -> None:
    """Raise where a document has a field that the noun doesn't know.

    Raises:
        InvalidRequest: It has; the closest known name is suggested.
    """
    found = list(strays(document, kind))
    if found:
        problems = [{"at": one.at, "why": str(one)} for one in found]
        raise InvalidRequest(str(found[0]), details={"problems": problems})


def error_for(problems: Sequence[Problem]) -> ReachError:
    """Return the one error for all that is wrong with a document; the first names it."""
    first = problems[0]
    found = [{"at": one.at, "why": one.why} for one in problems]
    return error_of(first.code, f"{first.at}: {first.why}", details={"problems": found})


def plain(noun: Any) -> Any:
    """Return a noun as JSON containers, its defaults included; tuples become lists."""
    if isinstance(noun, msgspec.Struct):
        return {name: plain(getattr(noun, name)) for name in noun.__struct_fields__}
    if isinstance(noun, tuple | list):
        return [plain(one) for one in noun]
    if isinstance(noun, Mapping):
        return {name: plain(value) for name, value in noun.items()}
    return noun


def write_json(document: Any) -> bytes:
    """Return a document as JSON in UTF-8, ending with a line feed for terminals."""
    return msgspec.json.encode(document) + b"\n"
