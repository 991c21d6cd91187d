"""Targets taken apart."""

import pytest

from reachnode.errors import InvalidRequest
from reachnode.wire.http_targets import read_segment, read_target


@pytest.mark.parametrize(
    ("text", "path", "query"),
    [
        ("/", "/", {}),
        ("/a/b%2Fc?d=%20e+f&g", "/a/b%2Fc", {"d": " e f", "g": ""}),
        ("http://n1:7400/a?b=1", "/a", {"b": "1"}),
        ("HTTPS://n1", "/", {}),
        ("http://n1?b=1", "/", {"b": "1"}),
    ],
)
def test_a_target_is_taken_apart(text: str, path: str, query: dict[str, str]) -> None:
    """Path and query come out of both forms a client may send."""
    target = read_target(text)
    assert (target.path, target.query) == (path, query)


@pytest.mark.parametrize("text", ["*", "n1:443", "/a#b", "/?a=1&a=2", "/?a=%ff", "/?" + "a&" * 99])
def test_an_unreadable_target_is_refused(text: str) -> None:
    """What isn't a path, or asks for one thing in two ways, is a 400."""
    with pytest.raises(InvalidRequest):
        read_target(text)


def test_a_segment_is_decoded_once() -> None:
    """Percent-encoding hides no slash from the table of paths, and must be UTF-8."""
    assert read_segment("a%2Fb%25") == "a/b%"
    with pytest.raises(InvalidRequest):
        read_segment("%ff")
