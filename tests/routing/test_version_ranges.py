"""Ranges of versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.versions import full_version, version_key
from reachnode.routing.version_ranges import RANGE_CHARACTERS_MAX, parse_range

PLAIN = ("0.0.3", "0.2.0", "0.2.9", "1.0.0", "1.2.3", "1.2.4", "1.3.0", "2.0.0", "2.3.0", "3.2.0")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("1.2.3", "1.2.3"),
        ("=1.2.3", "1.2.3"),
        ("v1.2.3+build.7", "1.2.3"),
        ("3.2", "3.2.0"),
        ("3", ""),
        ("1.2.x", "1.2.3 1.2.4"),
        ("=1.2.*", "1.2.3 1.2.4"),
        ("1.X", "1.0.0 1.2.3 1.2.4 1.3.0"),
        ("1.x.3", "1.0.0 1.2.3 1.2.4 1.3.0"),
        ("*", " ".join(PLAIN)),
        (">=x", " ".join(PLAIN)),
        ("^*", " ".join(PLAIN)),
        ("^1.2.3", "1.2.3 1.2.4 1.3.0"),
        ("^1.2", "1.2.3 1.2.4 1.3.0"),
        ("^1", "1.0.0 1.2.3 1.2.4 1.3.0"),
        ("^0.2.0", "0.2.0 0.2.9"),
        ("^0.0.3", "0.0.3"),
        ("^0.0.0", ""),
        ("^0.0", "0.0.3"),
        ("^0", "0.0.3 0.2.0 0.2.9"),
        ("^0.x", "0.0.3 0.2.0 0.2.9"),
        ("~1.2.3", "1.2.3 1.2.4"),
        ("~1.2", "1.2.3 1.2.4"),
        ("~>1.2", "1.2.3 1.2.4"),
        ("~1", "1.0.0 1.2.3 1.2.4 1.3.0"),
        (">1.2.3", "1.2.4 1.3.0 2.0.0 2.3.0 3.2.0"),
        (">1.2", "1.2.3 1.2.4 1.3.0 2.0.0 2.3.0 3.2.0"),
        (">1.2.x", "1.3.0 2.0.0 2.3.0 3.2.0"),
        (">= 2.3", "2.3.0 3.2.0"),
        ("<1", "0.0.3 0.2.0 0.2.9"),
        ("<1.x", "0.0.3 0.2.0 0.2.9"),
        ("<=1", "0.0.3 0.2.0 0.2.9 1.0.0"),
        ("<=1.x", "0.0.3 0.2.0 0.2.9 1.0.0 1.2.3 1.2.4 1.3.0"),
        (">=1.2.3 <2", "1.2.3 1.2.4 1.3.0"),
        (">= 1.2.3 , < 2", "1.2.3 1.2.4 1.3.0"),
        (">2 <1", ""),
        ("1.2 - 2", "1.2.3 1.2.4 1.3.0 2.0.0"),
        ("1.3 - 2.x", "1.3.0 2.0.0 2.3.0"),
        ("^0.2 || ~2.3 || 3.2", "0.2.0 0.2.9 2.3.0 3.2.0"),
    ],
)
def test_a_range_takes_what_it_says(text: str, taken: str) -> None:
    """Worked by hand, of ten versions."""
    found = parse_range(f" {text} ")
    assert [one for one in PLAIN if found.takes(one)] == taken.split()


@pytest.mark.parametrize(
    ("text", "version", "is_taken"),
    [
        (">=3", "4.0.0-rc.1", False),
        ("*", "4.0.0-rc.1", False),
        ("^3", "4.0.0-rc.1", False),
        ("^3.2", "3.2.0-rc.1", False),
        ("3.2.0-rc.1", "3.2.0-rc.1", True),
        ("3.2-rc.1", "3.2.0-rc.1", True),
        ("3.2.0-rc.1", "3.2.0", False),
        (">=3.2.0-rc.1", "3.2.0-rc.2", True),
        (">=3.2.0-rc.2", "3.2.0-rc.1", False),
        (">=3.2.0-rc.1", "3.3.0-rc.1", False),
        (">=3.2.0-rc.1", "3.3.0", True),
        ("^3.2.0-rc.1", "3.2.0-rc.9", True),
        ("^3.2.0-rc.1", "3.9.0", True),
        ("<=3.2.0-rc.2", "3.2.0-rc.1", True),
        ("<3.2.0-rc.2", "3.2.0-rc.2", False),
        (">3.2.0-rc.2", "3.2.0-rc.10", True),
        (">=3.1 <3.2.0-rc.2", "3.2.0-rc.1", True),
    ],
)
def test_a_prerelease_is_taken_only_when_it_is_named(
    text: str, version: str, *, is_taken: bool
) -> None:
    """Nobody gets an unfinished version who didn't name one of the same three numbers."""
    assert parse_range(text).takes(version) is is_taken


def test_without_a_version_only_everything_takes_it() -> None:
    """An instance that says no version fits `*` and no narrower range."""
    assert parse_range("*").takes("")
    assert parse_range("1.2 || x").takes("")
    assert not parse_range(">=0").takes("")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'' is no version range such as"),
        ("1 ||", "'' is no version range such as"),
        ("^", "'\\^' is no version range"),
        ("new", "'new' is no version range"),
        ("1.2.3.4", "is no version range"),
        ("01.2", "is no version range"),
        ("\uff11.2", "is no version range"),
        ("1 - 2 - 3", "'-' is no version range"),
        ("1.x-rc", "names a prerelease of no single version"),
        (">x", "takes no version at all"),
        ("<*", "takes no version at all"),
        ("1" * (RANGE_CHARACTERS_MAX + 1), "at most 256 characters"),
    ],
)
def test_what_is_no_range_is_refused(text: str, why: str) -> None:
    """The message names the part that can't be read."""
    with pytest.raises(ValueError, match=why):
        parse_range(text)


numbers = st.lists(st.integers(0, 4), min_size=1, max_size=3).map(
    lambda parts: ".".join(map(str, parts))
)
releases = st.lists(st.integers(0, 5), min_size=3, max_size=3).map(
    lambda parts: ".".join(map(str, parts))
)


@given(numbers, releases)
def test_signs_compare_as_keys_do(said: str, version: str) -> None:
    """Each plain sign says of two versions what their keys say."""
    key, bound = version_key(version), version_key(said)
    assert parse_range(f">{said}").takes(version) is (key > bound)
    assert parse_range(f">={said}").takes(version) is (key >= bound)
    assert parse_range(f"<{said}").takes(version) is (key < bound)
    assert parse_range(f"<={said}").takes(version) is (key <= bound)
    assert parse_range(said).takes(version) is (version == full_version(said))


@given(numbers, releases)
def test_a_caret_takes_what_a_tilde_takes_from_one_on(said: str, version: str) -> None:
    """From 1.0.0 on `^` is the wider one, and both take nothing below what was said."""
    wide, narrow = parse_range(f"^{said}"), parse_range(f"~{said}")
    if narrow.takes(version) and version_key(said) >= version_key("1"):
        assert wide.takes(version)
    if wide.takes(version) or narrow.takes(version):
        assert version_key(version) >= version_key(said)


@given(
    st.lists(numbers, min_size=1, max_size=3), st.lists(numbers, min_size=1, max_size=3), releases
)
def test_alternatives_join_and_comparators_meet(
    some: list[str], others: list[str], version: str
) -> None:
    """`||` takes what either side takes, a blank what both sides take."""
    one, other = (" ".join(f">={part}" for part in parts) for parts in (some, others))
    took = [parse_range(text).takes(version) for text in (one, other)]
    assert parse_range(f"{one}||{other}").takes(version) is any(took)
    assert parse_range(f"{one} {other}").takes(version) is all(took)


@given(st.text(st.sampled_from("0123.xX*^~<>=|-+ ,vrc"), max_size=20), releases)
def test_any_text_is_a_range_or_a_clear_error(text: str, version: str) -> None:
    """No text raises anything but ValueError."""
    try:
        found = parse_range(text)
    except ValueError:
        return
    assert found.takes(version) in {True, False}
