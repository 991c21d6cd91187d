"""`reachnode agents`."""

import io
import json
import sys
from pathlib import Path

import pytest

from reachnode.cli.main import main
from tests.cli.conftest import LiveNode

ECHO = {
    "agent_id": "e:1",
    "colour": "red",
    "metadata": {"zone": "a"},
    "capabilities": [{"name": "demo.echo", "protocol": "rest", "endpoint": "http://h/"}],
}


@pytest.fixture(name="file")
def file_fixture(tmp_path: Path) -> str:
    """Give the file of a registration."""
    file = tmp_path / "echo.json"
    file.write_text(json.dumps(ECHO))
    return str(file)


def test_an_instance_comes_and_goes(
    node: LiveNode, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Register, list, show, deregister: each says what it did."""
    assert main(["agents", "register", file]) == 0
    assert capsys.readouterr().out == (
        "e:1 is registered at index 1, pending\nwarning: colour is unknown; it was ignored\n"
    )
    assert main(["agents"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["e:1", "e:1", "pending", "-", "-", "-", "demo.echo", "1"]
    assert lines[2] == "1 instances"
    assert main(["agents", "show", "e:1"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"] == {"zone": "a"}
    assert main(["agents", "deregister", "e:1"]) == 0
    assert capsys.readouterr().out == "e:1 is gone since index 2\n"
    assert main(["agents", "deregister", "e:1"]) == 1
    assert capsys.readouterr().err == "reachnode: unknown_agent: e:1 isn't registered\n"


def test_an_instance_is_drained_and_enabled(
    node: LiveNode, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last one of a capability goes only by force, and comes back when it is told to."""
    assert main(["agents", "register", file]) == 0
    capsys.readouterr()
    assert main(["agents", "drain", "e:1"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("reachnode: would_uncover: demo.echo would be left without an instance")
    assert main(["agents", "drain", "e:1", "--force"]) == 0
    assert capsys.readouterr().out == "e:1 is disabled since index 2\n"
    assert main(["agents", "list", "--state", "disabled"]) == 0
    assert capsys.readouterr().out.endswith("1 instances\n")
    assert main(["agents", "enable", "e:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "agent_id": "e:1",
        "index": 3,
        "state": "healthy",
    }
    assert main(["agents", "enable", "e:2"]) == 1
    assert "unknown_agent" in capsys.readouterr().err


def test_answers_for_programs(
    node: LiveNode, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command has a document."""
    assert main(["agents", "register", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["incarnation"] == 1
    assert main(["agents", "list", "--json", "--zone", "a"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 1
    assert main(["agents", "list", "--json", "--capability", "nothing"]) == 0
    assert json.loads(capsys.readouterr().out) == {"items": [], "next": None}
    assert main(["agents", "deregister", "e:1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"agent_id": "e:1", "index": 2}


def test_a_registration_may_come_from_the_input(
    node: LiveNode, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dash reads what is piped in."""
    piped = io.TextIOWrapper(io.BytesIO(b'{"agent_id": "a"}'))
    monkeypatch.setattr(sys, "stdin", piped)
    assert main(["agents", "register", "-"]) == 0
    assert capsys.readouterr().out.startswith("a is registered")


def test_all_pages_are_listed(
    node: LiveNode, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long list is fetched page by page."""
    monkeypatch.setattr("reachnode.serve.agents.ITEMS_MAX", 2)
    for number in range(5):
        document = io.TextIOWrapper(io.BytesIO(json.dumps({"agent_id": f"a{number}"}).encode()))
        monkeypatch.setattr(sys, "stdin", document)
        assert main(["agents", "register", "-"]) == 0
    capsys.readouterr()
    assert main(["agents", "list"]) == 0
    assert capsys.readouterr().out.endswith("5 instances\n")


@pytest.mark.parametrize("content", [None, "{"])
def test_an_unreadable_file_is_wrong_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    """Nothing is sent, and the status says that the command was used wrongly."""
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    assert main(["agents", "register", str(file)]) == 2
    assert str(file) in capsys.readouterr().err
