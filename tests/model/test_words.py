"""Words that may name something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.words import (
    NAME_BYTES_MAX,
    shown,
    why_not_agent_id,
    why_not_capability,
    why_not_label,
)


@pytest.mark.parametrize("text", ["a", "a1", "Agent_7.b:c-d", "x" * 128])
def test_an_agent_id_of_the_contract_is_taken(text: str) -> None:
    """Letters, digits and four marks, up to 128 of them."""
    assert why_not_agent_id(text) is None


@pytest.mark.parametrize("text", ["", "a b", "a/b", "é", "x" * 129, "a\n", "\uff41"])
def test_any_other_agent_id_is_not(text: str) -> None:
    """What isn't in the contract's alphabet is refused, a trailing line feed too."""
    why = why_not_agent_id(text)
    assert why is not None
    assert "1 to 128" in why


@pytest.mark.parametrize("text", ["intent.detect", "意图.识别", "Größe.messen", "x" * 128, "a+b:c"])
def test_a_capability_is_named_in_any_script(text: str) -> None:
    """A name may be of any language."""
    assert why_not_capability(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("a b", "white space"),
        ("a\u3000b", "white space"),
        ("a/b", "white space, / and *"),
        ("order.*", "white space, / and *"),
        ("a\tb", "invisible"),
        ("a\u200bb", "invisible"),
        ("a\u202eb", "invisible"),
        ("a\ud800", "invisible"),
        ("é" * 65, "longer than 128 bytes"),
        ("\uff49ntent", "write 'intent'"),
        ("ﬁnd", "write 'find'"),
        ("e\u0301", "write 'é'"),
    ],
)
def test_a_capability_that_could_be_mistaken_is_not(text: str, says: str) -> None:
    """Two names that look alike can't both exist, and the message says what to write."""
    assert says in (why_not_capability(text) or "")


@given(st.text(max_size=200))
def test_a_refusal_can_be_printed(text: str) -> None:
    """Whatever the word is, the message about it is short, visible text."""
    for why in (why_not_agent_id(text), why_not_capability(text), why_not_label(text)):
        assert why is None or (why.isprintable() and why.encode() and len(why) < 1_000)


@given(st.text())
def test_a_capability_fits_its_bytes(text: str) -> None:
    """A name that is taken is never longer than its limit."""
    assert why_not_capability(text) or 1 <= len(text.encode()) <= NAME_BYTES_MAX


def test_a_label_may_have_spaces() -> None:
    """Labels are for people."""
    assert why_not_label("Group A") is None
    assert why_not_label("") == "it is empty"


def test_a_long_word_is_clipped() -> None:
    """A message doesn't repeat a flood."""
    assert shown("x" * 41) == repr("x" * 40 + "…")
