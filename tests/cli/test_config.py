"""`reachnode config`."""

import json
from pathlib import Path

import pytest

from reachnode.cli.main import main
from tests.cli.conftest import LiveNode


def test_a_good_file_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `serve` would warn of is said too."""
    secret = tmp_path / "secret"
    secret.write_text("s" * 40)
    file = tmp_path / "node.yaml"
    file.write_text(f"cluster: {{peers: {{n1: 'h:1', n2: 'h:2'}}, secret_file: '{secret}'}}\n")
    assert main(["config", "check", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("warning: cluster.peers: 2 voters")
    assert lines[1] == f"{file} is fine: node n1 of 2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("node:\n  idd: x", "line 2: node.idd: is unknown; did you mean node.id?"),
        ("cluster: {secret_file: /gone/secret}", "cluster.secret_file: the secret file"),
    ],
)
def test_a_wrong_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    """The line that is wrong is named, as `serve` would."""
    file = tmp_path / "node.yaml"
    file.write_text(text)
    assert main(["config", "check", str(file)]) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_shared_settings_are_shown(
    node: LiveNode, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    """Every default is spelled out, and the revision that a change has to follow."""
    assert main(["config", "show", *more]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["registry"]["heartbeat_interval_ms"] == 3000
    assert shown["revision"] == 0
