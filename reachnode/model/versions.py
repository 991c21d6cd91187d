"""Semantic versions: their full spelling, and the key by which they compare.

A version that says fewer than three numbers reads as if the rest were 0, everywhere.
"""

import re
from functools import lru_cache

from reachnode.model.words import shown

VERSION_CHARACTERS_MAX = 128
NUMBER = r"(?:0|[1-9][0-9]{0,14})"
IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
VERSION_FORM = re.compile(
    rf"(?P<core>{NUMBER}(?:\.{NUMBER}){{0,2}})(?:-(?P<pre>{IDENTIFIERS}))?(?:\+{IDENTIFIERS})?"
)

Identifier = tuple[int, int, str]
"""One part of a prerelease: numbers come before words, each among its like."""
VersionKey = tuple[int, int, int, int, tuple[Identifier, ...]]
"""Three numbers, then 1 for a release and 0 for a prerelease, then the prerelease's parts."""

BEFORE_ALL_PRERELEASES: tuple[int, tuple[Identifier, ...]] = (0, ())
"""The end of a key below every prerelease of its three numbers."""
RELEASE: tuple[int, tuple[Identifier, ...]] = (1, ())
"""The end of a release's key."""


def full_version(text: str) -> str:
    """Return a semantic version in full: `3.2` reads as `3.2.0`.

    Raises:
        ValueError: It is no semantic version; the message says what one looks like.
    """
    found = VERSION_FORM.fullmatch(text) if len(text) <= VERSION_CHARACTERS_MAX else None
    if found is None:
        raise ValueError(f"{shown(text)} is no semantic version such as 3.2 or 3.2.0-rc.1")
    core = found["core"]
    return core + ".0" * (2 - core.count(".")) + text[len(core) :]


@lru_cache(maxsize=4096)
def version_key(text: str) -> VersionKey:
    """Return what a version compares by; build metadata doesn't count.

    Raises:
        ValueError: It is no semantic version.
    """
    full = full_version(text)
    core, _, pre = full.partition("+")[0].partition("-")
    major, minor, patch = map(int, core.split("."))
    ending = prerelease_ending(pre) if pre else RELEASE
    return (major, minor, patch, *ending)


def prerelease_ending(text: str) -> tuple[int, tuple[Identifier, ...]]:
    """Return the end of the key of a prerelease such as `rc.1`."""
    parts: list[Identifier] = []
    for part in text.split("."):
        is_number = part.isdigit()
        parts.append((0, int(part), "") if is_number else (1, 0, part))
    return (0, tuple(parts))
