"""`reachnode serve`, as far as it needs no process of its own; the rest is in `tests/e2e`."""

from pathlib import Path

import pytest

from reachnode.cli.main import main

pytestmark = pytest.mark.usefixtures("kept_logs")


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--observer"], "node.observer: is not supported by this version yet"),
        (["--listen", "here"], "--listen: node.listen: the address 'here' has no port"),
        (["--listen", "[::]:7400"], "is beyond loopback and callers aren't authenticated"),
        (["--peers", "n1=h:1,n2=h:2"], "cluster.secret_file: more than one peer needs"),
        (["--config", "/gone/file"], "/gone/file: file: can't be read"),
    ],
)
def test_a_wrong_configuration_starts_nothing(
    argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what is wrong and where it was said."""
    assert main(["serve", *argv]) == 1
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


def test_a_data_directory_must_be_usable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A node that can't keep what it is told doesn't start."""
    (tmp_path / "file").write_text("")
    argv = ["--data-dir", str(tmp_path / "file"), "--listen", "127.0.0.1:0"]
    assert main(["serve", *argv]) == 1
    assert "node.data_dir" in capsys.readouterr().err
