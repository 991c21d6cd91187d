"""Which words may name an instance, an agent or a capability, and why another may not.

These rules are for whoever proposes a change, before it is proposed. The replicated state
machine never asks them: what Unicode calls a letter differs between versions of Python, and
all nodes must come to the same answer.
"""

import re
import unicodedata
from dataclasses import dataclass

AGENT_ID_FORM = re.compile(r"[A-Za-z0-9._:-]{1,128}")
NAME_BYTES_MAX = 128
SHOWN_CHARACTERS_MAX = 40
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that nobody sees: controls, formats, lone surrogates, separators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a document."""

    at: str
    """Where, dotted: `capabilities[2].name`."""
    why: str
    """What is wrong and what to write instead, a sentence without its end."""
    code: str = "invalid_request"
    """The error it amounts to."""


def shown(text: str) -> str:
    """Return a word quoted and clipped, safe to print in a message."""
    clipped = text if len(text) <= SHOWN_CHARACTERS_MAX else text[:SHOWN_CHARACTERS_MAX] + "…"
    return ascii(clipped) if any(map(is_invisible, clipped)) else repr(clipped)


def is_invisible(character: str) -> bool:
    """Return whether a character leaves no mark: a control, a format, half a pair."""
    return unicodedata.category(character) in INVISIBLE


def why_not_agent_id(text: str) -> str | None:
    """Return what keeps a text from being an `agent_id`, or None if nothing does."""
    if AGENT_ID_FORM.fullmatch(text):
        return None
    return f"{shown(text)} isn't 1 to 128 of the characters A-Z a-z 0-9 . _ : -"


def why_not_capability(text: str) -> str | None:
    """Return what keeps a text from naming a capability, or None if nothing does.

    A name is compared by its code points, so two names that look alike must be one: only
    the compatibility-normal form (NFKC) is taken, which is also the composed form (NFC).
    """
    problem = why_not_label(text)
    if problem:
        return problem
    for character in text:
        if character.isspace() or character in "/*":
            return f"{shown(text)} has {shown(character)} in it: leave out white space, / and *"
    if unicodedata.normalize("NFKC", text) != text:
        normal = unicodedata.normalize("NFKC", text)
        return f"{shown(text)} isn't in normal form (NFC and NFKC): write {shown(normal)}"
    return None


def why_not_label(text: str) -> str | None:
    """Return what keeps a text from being a plain label (an agent, a zone), or None.

    Args:
        text: A label for people and hints: any visible text and spaces.
    """
    if not text:
        return "it is empty"
    if any(map(is_invisible, text)):
        return f"{shown(text)} has invisible characters in it: leave them out"
    if len(text.encode()) > NAME_BYTES_MAX:
        return f"{shown(text)} is longer than {NAME_BYTES_MAX} bytes"
    return None
