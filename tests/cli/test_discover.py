"""`reachnode discover`."""

import json
from typing import Any

import pytest

from reachnode.cli.discover import lines
from reachnode.cli.main import main
from tests.cli.conftest import LiveNode


@pytest.fixture(name="echo")
def echo_fixture(node: LiveNode, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> LiveNode:
    """Give a node at which two agents echo, one of them disabled."""
    for agent_id in ("e1", "e2"):
        file = tmp_path / f"{agent_id}.json"
        capability = {"name": "demo.echo", "version": "1.2.0", "endpoint": "http://h/"}
        tags = {"gpu": "a100"}
        registration = {
            "agent_id": agent_id,
            "metadata": {"tags": tags},
            "capabilities": [capability],
        }
        file.write_text(json.dumps(registration))
        assert main(["agents", "register", str(file)]) == 0
    assert main(["agents", "drain", "e2"]) == 0
    capsys.readouterr()
    return node


@pytest.mark.parametrize(
    "options", [[], ["--tag", "gpu=a100"], ["--tag", "gpu"], ["--version", "^1.0"]]
)
def test_candidates_are_shown(
    echo: LiveNode, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One row each, and as of when."""
    assert main(["discover", "demo.echo", *options, "--node", echo.url]) == 0
    head, row, last = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["agent_id", "agent", "version", "state"]
    assert row.split()[:4] == ["e1", "e1", "1.2.0", "pending"]
    assert last == "1 candidates at index 3"


def test_everything_is_explained(echo: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """Why each candidate is where it is, and who isn't one."""
    assert main(["discover", "demo.echo", "--explain", "--node", echo.url]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[2].startswith("e1: nothing was heard of it yet (state 0, preferred 1")
    assert out[3] == "not to be called:"
    assert out[5].split() == ["e2", "e2", "state", "it", "is", "disabled"]


def test_a_gap_is_a_no(echo: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """With what is missing, and what comes close."""
    assert main(["discover", "demo.ecko", "--node", echo.url]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "unknown_capability: no registered instance declares demo.ecko",
        "did you mean demo.echo?",
    ]
    assert main(["discover", "demo.echo", "--tag", "gpu=h100", "--node", echo.url]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("no_matching_agent: ")
    assert out[2].split()[:3] == ["e1", "e1", "tags"]
    assert main(["discover", "demo.echo", "--json", "--version", "2", "--node", echo.url]) == 1
    assert json.loads(capsys.readouterr().out)["gap"]["code"] == "no_matching_agent"


def test_what_is_asked_for_in_words_is_said_to_be_missing(
    node: LiveNode, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blanks make a text of it."""
    assert main(["discover", "who echoes", "--node", node.url]) == 1
    assert "needs an embedder" in capsys.readouterr().err


@pytest.mark.parametrize("tags", [["--tag", "=x"], ["--tag", "a=1", "--tag", "a=2"]])
def test_a_tag_has_a_name_and_one_value(
    tags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Else it is wrong use."""
    assert main(["discover", "x", *tags]) == 2
    assert "write each NAME=VALUE once" in capsys.readouterr().err


def test_nobody_excluded_is_nobody_told() -> None:
    """An answer without exclusions has no list of them."""
    found: dict[str, Any] = {"candidates": [], "gap": None, "index": 7}
    assert lines(found, is_explained=True)[-1] == "0 candidates at index 7"
