"""Which command, and what all do alike."""

import os
import subprocess
import sys

import pytest

from reachnode.cli.main import main, parser
from reachnode.cli.reference import below

COMMANDS = [name for name, _ in below("", parser())]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` works everywhere and ends well."""
    with pytest.raises(SystemExit) as caught:
        main([*name.split(), "--help"])
    assert caught.value.code in (0, None)
    assert "usage: reachnode" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["frob"], ["status", "--frob"], ["agents", "show"]])
def test_wrong_use_is_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What can't be understood is told apart from what was refused."""
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2


def test_a_wrong_url_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """The URL is named."""
    assert main(["status", "--node", "https://h"]) == 2
    assert "'https://h' is no node's URL" in capsys.readouterr().err


def test_no_node_is_3(capsys: pytest.CaptureFixture[str]) -> None:
    """A script tells a dead cluster from a refusal."""
    assert main(["status", "--node", "http://127.0.0.1:1"]) == 3
    assert "no node answered: http://127.0.0.1:1" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_fault() -> None:
    """A closed pipe ends the command without a traceback, through `python -m` as well."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "reachnode", "version"],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
