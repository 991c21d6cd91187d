"""`reachnode version`."""

import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from reachnode import __version__
from reachnode.cli.main import main
from reachnode.cli.version import commit_of_checkout, commit_of_install, version_of
from reachnode.wire.http import ENGINE_NAME

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_versions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """For people and for programs; the engines of consensus and HTTP are among them."""
    assert main(["version"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"reachnode {__version__}\n")
    assert "pysyncobj 0.3.17" in text
    assert f"http engine {ENGINE_NAME}\n" in text
    assert main(["version", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["libraries"]["pysyncobj"] == "0.3.17"
    assert shown["http_engine"] == ENGINE_NAME


def test_a_missing_library_is_no_error() -> None:
    """What is optional may be missing."""
    assert version_of("no-such-library") is None


def test_the_commit_of_a_checkout_is_known(tmp_path: Path) -> None:
    """On a branch, loose or packed, or on none; what is no checkout has none."""
    git = tmp_path / ".git"
    assert commit_of_checkout(tmp_path) is None
    git.mkdir()
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert commit_of_checkout(tmp_path) == COMMIT
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert commit_of_checkout(tmp_path) is None
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert commit_of_checkout(tmp_path) == COMMIT
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/main").write_text("f" * 40 + "\n")
    assert commit_of_checkout(tmp_path) == "f" * 40


@pytest.mark.parametrize(
    ("said", "commit"),
    [
        (None, None),
        ('{"url": "file:///x", "dir_info": {}}', None),
        (f'{{"url": "git+x", "vcs_info": {{"vcs": "git", "commit_id": "{COMMIT}"}}}}', COMMIT),
        ("not json", None),
    ],
)
def test_the_commit_of_an_install_is_known(
    tmp_path: Path, said: str | None, commit: str | None
) -> None:
    """Pip writes it down when it installs from a repository."""
    if said is not None:
        (tmp_path / "direct_url.json").write_text(said)
    assert commit_of_install(Distribution.at(tmp_path)) == commit
