"""Versions: their full spelling and their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.versions import full_version, version_key

identifiers = st.lists(
    st.sampled_from(["rc", "1", "2", "10", "beta-2", "x"]), min_size=1, max_size=3
).map(".".join)
versions = st.builds(
    lambda numbers, pre, build: (
        ".".join(map(str, numbers)) + (f"-{pre}" if pre else "") + (f"+{build}" if build else "")
    ),
    st.lists(st.integers(0, 12), min_size=1, max_size=3),
    st.just("") | identifiers,
    st.just("") | identifiers,
)


@pytest.mark.parametrize(
    ("said", "full"),
    [
        ("3", "3.0.0"),
        ("3.2", "3.2.0"),
        ("3.2.1", "3.2.1"),
        ("3.2-rc.1", "3.2.0-rc.1"),
        ("1.0.0+b.7", "1.0.0+b.7"),
        ("1-x+y", "1.0.0-x+y"),
    ],
)
def test_a_version_is_kept_in_full(said: str, full: str) -> None:
    """What isn't said of the three numbers is 0."""
    assert full_version(said) == full


@pytest.mark.parametrize(
    "said",
    [
        "",
        "new",
        "v3",
        "3.",
        "03.2",
        "1.2.3.4",
        "3.2-",
        "3.2+",
        "3.2-a..b",
        "3.2 ",
        "\uff13.2",
        "9" * 16,
        "1.0.0-" + "a" * 128,
    ],
)
def test_what_is_no_version_is_refused(said: str) -> None:
    """The message says what a version looks like."""
    with pytest.raises(ValueError, match="is no semantic version such as"):
        full_version(said)


def test_versions_stand_in_the_order_of_the_standard() -> None:
    """The example of semver.org, section 11, and numbers that compare as numbers."""
    ordered = [
        "0.9.12",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.9.0",
        "1.10.0",
    ]
    keys = [version_key(one) for one in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@given(versions)
def test_a_version_in_full_stays_as_it_is(said: str) -> None:
    """Full is full, and says the same as before; build metadata compares as nothing."""
    full = full_version(said)
    assert full_version(full) == full
    assert version_key(full) == version_key(said) == version_key(said.partition("+")[0])
