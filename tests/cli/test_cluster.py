"""`reachnode cluster`."""

import json

import pytest

from reachnode.cli.main import main
from reachnode.peers.secrets import ClusterSecrets
from tests.cli.conftest import LiveNode
from tests.serve.local_replica import PAIR


@pytest.mark.parametrize("argv", [["cluster"], ["cluster", "members"]])
def test_members_are_listed(
    node: LiveNode, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """With and without the word; the answer, a count."""
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["n1", "h:1", "leader", "yes", "0", "0"]
    assert lines[2] == "1 of 1 are alive, as n1 sees it"


@pytest.mark.parametrize("argv", [["--json", "members"], ["members", "--json"], ["--json"]])
def test_options_may_stand_before_or_behind(
    node: LiveNode, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """An option of the group holds for the command below it."""
    assert main(["cluster", *argv]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["id"] == "n1"


def test_a_secret_can_be_used_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed is long enough, and never the same twice."""
    assert main(["cluster", "secret"]) == 0
    assert main(["cluster", "secret"]) == 0
    first, second = capsys.readouterr().out.split()
    assert first != second
    ClusterSecrets(first.encode(), second.encode())


def test_a_member_is_replaced(node: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """The index is said from which its new disk counts; a stranger is refused with 1."""
    assert main(["cluster", "replace", "n1"]) == 0
    assert capsys.readouterr().out == "n1 votes with its new disk from index 1 on\n"
    assert main(["cluster", "replace", "n1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": "n1", "index": 2}
    assert main(["cluster", "replace", "n9"]) == 1
    assert capsys.readouterr().err == "reachnode: unknown_member: n9 isn't a member\n"


def test_leadership_is_handed_over(node: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """The successor is named; without one the command fails."""
    assert main(["cluster", "transfer"]) == 1
    assert "no_quorum" in capsys.readouterr().err
    node.replica.now, node.replica.takes_over = PAIR, True
    assert main(["cluster", "transfer"]) == 0
    assert capsys.readouterr().out == "n1 leads no more; n2 takes over\n"


def test_leadership_for_programs(node: LiveNode, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` is the answer of the node."""
    node.replica.now, node.replica.takes_over = PAIR, True
    assert main(["cluster", "transfer", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"node": "n1", "leader": "n2"}
