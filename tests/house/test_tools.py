"""The tools that read the code, run as part of the tests."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.house import tree

TOOL_SECONDS_MAX = 600


def run(*words: str, cwd: Path = tree.ROOT) -> subprocess.CompletedProcess[str]:
    """Return the finished run of a Python program; its output is merged."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TOOL_SECONDS_MAX,
    )


def lint_imports(cwd: Path = tree.ROOT) -> subprocess.CompletedProcess[str]:
    """Return the finished run of import-linter in a checkout."""
    program = Path(sys.executable).parent / "lint-imports"
    return run(str(program), "--no-logo", "--no-cache", cwd=cwd)


def test_ruff_finds_nothing() -> None:
    """The rules listed in pyproject.toml hold everywhere."""
    done = run("-m", "ruff", "check", "--output-format", "concise")
    assert done.returncode == 0, done.stdout


def test_every_file_is_formatted() -> None:
    """Formatting is never a matter of taste or review."""
    done = run("-m", "ruff", "format", "--check")
    assert done.returncode == 0, done.stdout


def test_types_hold() -> None:
    """Everything is typed strictly, the tests included."""
    done = run("-m", "mypy")
    assert done.returncode == 0, done.stdout


def test_imports_point_down() -> None:
    """The contracts of import-linter hold."""
    done = lint_imports()
    assert done.returncode == 0, done.stdout


def test_a_new_room_has_to_be_placed(tmp_path: Path) -> None:
    """A room that no layer names fails the build until somebody says where it stands."""
    shutil.copy(tree.ROOT / "pyproject.toml", tmp_path)
    for module in ["reachnode", "sim", *map(as_path, tree.contract("waterline")["source_modules"])]:
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").touch()
    assert (done := lint_imports(tmp_path)).returncode == 0, done.stdout
    (tmp_path / "reachnode" / "parlor.py").touch()
    done = lint_imports(tmp_path)
    assert done.returncode != 0
    assert "parlor" in done.stdout


def as_path(module: str) -> str:
    """Return the directory of a package."""
    return module.replace(".", "/")
