"""The checkout as the house rules see it: files, their syntax, the settings of the tools."""

import ast
import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("reachnode", "sim", "tests")
UNTRACKED = frozenset({"__pycache__", "build", "dist", "reachnode-data"})
HIDDEN_OURS = frozenset({".ci", ".dockerignore", ".editorconfig", ".gitattributes", ".gitignore"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*tops: str) -> list[str]:
    """Return the paths of Python files below the tops (all three by default), sorted."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for top in tops or TOPS
        for path in (ROOT / top).rglob("*.py")
    )


def every_file() -> Iterator[str]:
    """Yield the paths of the files that belong to the project; caches and venvs don't."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        is_hidden = parts[0].startswith(".") and parts[0] not in HIDDEN_OURS
        if path.is_file() and not is_hidden and UNTRACKED.isdisjoint(parts):
            yield path.relative_to(ROOT).as_posix()


def text(path: str) -> str:
    """Return the content of a file."""
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def syntax(path: str) -> ast.Module:
    """Return the parsed module."""
    return ast.parse(text(path), filename=path)


def functions(module: ast.AST) -> Iterator[Function]:
    """Yield every function and method, nested ones included."""
    for node in ast.walk(module):
        if isinstance(node, Function):
            yield node


def imports(module: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import, wherever in the module it stands."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


@functools.cache
def settings() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads(text("pyproject.toml"))


def contract(name: str) -> dict[str, Any]:
    """Return one contract of import-linter, by its id."""
    contracts: list[dict[str, Any]] = settings()["tool"]["importlinter"]["contracts"]
    return next(one for one in contracts if one["id"] == name)


def rooms() -> list[str]:
    """Return every room that is placed, the uppermost first."""
    return [
        room.strip().strip("()")
        for layer in contract("rooms")["layers"]
        for room in layer.split("|")
    ]


def still_rooms() -> list[str]:
    """Return the rooms below the waterline."""
    placed = rooms()
    return placed[placed.index("world") + 1 :]


def hold(found: Iterable[str], allowed: Mapping[str, str], *, rule: str) -> None:
    """Fail for what breaks a rule, and for exceptions that are no longer needed.

    Args:
        found: What breaks the rule; what comes before a colon names it.
        allowed: Name of each exception, and its reason. The list can only shrink.
        rule: What to do instead, in a sentence.
    """
    broken = {one.partition(":")[0]: one for one in found}
    news = sorted(broken[name] for name in broken.keys() - allowed.keys())
    spent = sorted(allowed.keys() - broken.keys())
    assert not news, "\n".join([rule, *news])
    assert not spent, "\n".join(["These exceptions are no longer needed; remove them.", *spent])
