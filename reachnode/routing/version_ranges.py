"""Ranges of semantic versions, as a caller writes them.

    3.2             exactly 3.2.0: what is missing is 0, as in a registration
    3.2.x  3.*  *   any that begins so; `*` takes an instance without a version too
    ^3.2            no change of the leftmost number that isn't 0: >=3.2.0 <4.0.0
    ~3.2            no change of the second number: >=3.2.0 <3.3.0
    >=3.1 <4        all of them; a comma may stand between
    1.2 - 2.3       >=1.2.0 <=2.3.0
    ^1.4 || ^2.1    any of them

A prerelease is taken only where a comparator names a prerelease of the same three numbers, so
that nobody gets 4.0.0-rc.1 for `>=3`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from reachnode.model.versions import (
    BEFORE_ALL_PRERELEASES,
    IDENTIFIERS,
    NUMBER,
    RELEASE,
    VersionKey,
    prerelease_ending,
    version_key,
)
from reachnode.model.words import shown

RANGE_CHARACTERS_MAX = 256
PART = rf"(?:{NUMBER}|[xX*])"
COMPARATOR = re.compile(
    rf"(?P<sign>\^|~>?|>=|<=|>|<|=|)v?(?P<core>{PART}(?:\.{PART}){{0,2}})"
    rf"(?:-(?P<pre>{IDENTIFIERS}))?(?:\+{IDENTIFIERS})?"
)
HYPHEN = re.compile(r"\s+-\s+")
BETWEEN = re.compile(r"\s*,\s*|\s+")
AFTER_SIGN = re.compile(r"(?<=[\^~<>=])\s+")

Three = tuple[int, int, int]

LOWEST: VersionKey = (0, 0, 0, *BEFORE_ALL_PRERELEASES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An interval of versions, its ends included or not."""

    low: VersionKey
    takes_low: bool = True
    high: VersionKey | None = None
    """None: no upper end."""
    takes_high: bool = False
    prerelease_of: Three | None = None
    """The numbers whose prereleases it names, None for none."""

    def holds(self, key: VersionKey) -> bool:
        """Return whether a version lies between the ends."""
        if key < self.low or (key == self.low and not self.takes_low):
            return False
        return self.high is None or key < self.high or (key == self.high and self.takes_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """Which versions are taken."""

    text: str
    alternatives: tuple[tuple[Span, ...], ...]
    """Any of these, of which all must hold; an empty one holds for everything."""

    def takes(self, version: str) -> bool:
        """Return whether a version in full is taken; an empty one is, where all are."""
        if not version:
            return () in self.alternatives
        key = version_key(version)
        return any(all_hold(spans, key) for spans in self.alternatives)


def all_hold(spans: tuple[Span, ...], key: VersionKey) -> bool:
    """Return whether a version lies in every span, and may be a prerelease if it is one."""
    is_release = key[3:] == RELEASE
    return all(span.holds(key) for span in spans) and (
        is_release or any(span.prerelease_of == key[:3] for span in spans)
    )


@lru_cache(maxsize=1024)
def parse_range(text: str) -> VersionRange:
    """Return the range that a text spells.

    Raises:
        ValueError: It is none; the message says which part.
    """
    if len(text) > RANGE_CHARACTERS_MAX:
        raise ValueError(f"a version range is at most {RANGE_CHARACTERS_MAX} characters long")
    parts = text.split("||")
    return VersionRange(text=text, alternatives=tuple(_alternative(part) for part in parts))


def _alternative(text: str) -> tuple[Span, ...]:
    """Return what one side of `||` demands."""
    text = AFTER_SIGN.sub("", text.strip())
    ends = HYPHEN.split(text)
    words = [f">={ends[0]}", f"<={ends[1]}"] if len(ends) == 2 else BETWEEN.split(text)
    return tuple(span for word in words if (span := _span(word)) is not None)


def _span(word: str) -> Span | None:
    """Return what one comparator demands, None where it takes everything."""
    found = COMPARATOR.fullmatch(word)
    if found is None:
        raise ValueError(f"{shown(word)} is no version range such as 3.2, 3.x, ^3.2 or >=3.1 <4")
    said = _numbers(found["core"])
    is_open = any(part in "xX*" for part in found["core"].split("."))
    if is_open and found["pre"]:
        raise ValueError(f"{shown(word)} names a prerelease of no single version")
    low = (*_padded(said), *(prerelease_ending(found["pre"]) if found["pre"] else RELEASE))
    named = low[:3] if found["pre"] else None
    sign = found["sign"]
    if is_open and sign in {">", "<"} and not said:
        raise ValueError(f"{shown(word)} takes no version at all")
    if is_open and not said:
        return None
    if sign in {"^", "~", "~>"} or (is_open and sign in {"", "="}):
        return Span(low=low, high=_above(said, sign), prerelease_of=named)
    return _compared(sign, low, above=_above(said, sign) if is_open else None, named=named)


def _compared(sign: str, low: VersionKey, *, above: VersionKey | None, named: Three | None) -> Span:
    """Return the span of a plain comparison.

    Args:
        sign: One of `>`, `>=`, `<`, `<=`, `=` and nothing.
        low: What is compared with; the lowest of them where several are meant, as by `3.x`.
        above: What lies just above all that are meant; None where one is.
        named: The numbers whose prereleases are named.
    """
    if sign == ">":
        return Span(low=above or low, takes_low=above is not None, prerelease_of=named)
    if sign == ">=":
        return Span(low=low, prerelease_of=named)
    if sign == "<":
        return Span(low=LOWEST, high=low, prerelease_of=named)
    if sign == "<=":
        return Span(low=LOWEST, high=above or low, takes_high=above is None, prerelease_of=named)
    return Span(low=low, high=low, takes_high=True, prerelease_of=named)


def _numbers(core: str) -> list[int]:
    """Return the numbers before the first `x`, at most three."""
    numbers = []
    for part in core.split("."):
        if part in "xX*":
            break
        numbers.append(int(part))
    return numbers


def _padded(numbers: list[int]) -> Three:
    """Return three numbers, the missing ones 0."""
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch


def _above(numbers: list[int], sign: str) -> VersionKey:
    """Return the key just above all that begin so, or that `^` or `~` allow."""
    last = len(numbers) - 1
    if sign == "^":
        last = next((at for at, number in enumerate(numbers) if number), last)
    elif sign.startswith("~"):
        last = min(last, 1)
    raised = [*numbers[:last], numbers[last] + 1]
    return (*_padded(raised), *BEFORE_ALL_PRERELEASES)
