"""Which path goes where."""

import pytest

from reachnode.errors import InvalidRequest, MethodNotAllowed, NotFound
from reachnode.serve import agents
from reachnode.serve.paths import ROUTES, find


def test_a_path_finds_its_handler() -> None:
    """Braces stand for one segment, decoded."""
    route, parts = find("GET", "/api/v1/agents/a%3A1%2Fx")
    assert route.operation is agents.show
    assert parts == {"agent_id": "a:1/x"}
    assert find("POST", "/api/v1/agents/register")[0].operation is agents.register
    assert find("HEAD", "/api/v1/agents")[0].operation is agents.list_all


@pytest.mark.parametrize("path", ["/", "", "/api", "/api/v1/agents/", "/health/", "/a/b/c/d/e/f"])
def test_an_unknown_path_is_not_found(path: str) -> None:
    """Nothing is guessed, no slash is forgiven."""
    with pytest.raises(NotFound):
        find("GET", path)


def test_a_wrong_method_is_told_the_others() -> None:
    """All methods of the path are listed, HEAD beside GET."""
    with pytest.raises(MethodNotAllowed) as caught:
        find("PATCH", "/api/v1/agents/a")
    assert caught.value.details == {"allow": ["DELETE", "GET", "HEAD"]}


def test_a_path_must_be_utf_8() -> None:
    """A segment that isn't text names nothing."""
    with pytest.raises(InvalidRequest):
        find("GET", "/api/v1/agents/%ff")


def test_no_row_is_there_twice() -> None:
    """The table has one answer for each method of each path."""
    rows = [(route.method, route.path) for route in ROUTES]
    assert len(set(rows)) == len(rows)
