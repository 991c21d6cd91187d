"""What becomes of a command: applied or refused, a value that every node reaches alike."""

from typing import Any

import msgspec


class Applied(msgspec.Struct, frozen=True, tag="applied", omit_defaults=True):
    """The command took effect."""

    index: int
    """The log index at which it did."""
    value: dict[str, Any] | None = None
    """What it made, such as a revision: plain words and numbers, not to be changed."""


class Refused(msgspec.Struct, frozen=True, tag="refused", omit_defaults=True):
    """The command changed nothing, and repeating it would change nothing either."""

    code: str
    """One of `reachnode.errors`."""
    why: str
    """A sentence of ours: never a library's words, which differ between its versions."""
    details: dict[str, Any] | None = None


Outcome = Applied | Refused
