"""`reachnode version`."""

import json

import pytest

from reachnode import __version__
from reachnode.cli.main import main


def test_versions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """For people and for programs; the engine's is among them."""
    assert main(["version"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"reachnode {__version__}\n")
    assert "pysyncobj 0.3.17" in text
    assert main(["version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["libraries"]["pysyncobj"] == "0.3.17"
