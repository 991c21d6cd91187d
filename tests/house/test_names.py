"""Names that say something, imports that say where, exceptions that say why."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tests.house import tree

EMPTY_NAMES = frozenset({"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"})
"""Module names that say where somebody stopped thinking."""

ENGINE = "reachnode/peers/raft/engine.py"
ENGINE_PRIVATE = "_SyncObj" + "__"

SILENCER = re.compile(
    r"#\s*(?:noqa|type:\s*ignore)\b(?::\s*[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*|\[[^\]]*\])?"
)
REASON_CHARACTERS_MIN = 8

UNREASONED: Mapping[str, str] = {}
"""Path and line of each silenced finding without a reason, and why."""


def silenced_without_reason(path: str, source: str) -> Iterator[str]:
    """Yield the lines that silence a tool and do not say why, beside it or right above."""
    lines = source.splitlines()
    for number, line in enumerate(lines, start=1):
        silencer = SILENCER.search(line)
        if silencer is None or "re.compile" in line:
            continue
        beside = line[silencer.end() :].strip(" #()-:")
        above = lines[number - 2].strip() if number > 1 else ""
        if len(beside) < REASON_CHARACTERS_MIN and not above.startswith("#"):
            yield f"{path} {number}: {line.strip()}"


def test_module_names_say_something() -> None:
    """No module is a drawer for whatever fits nowhere else."""
    empty = [
        path
        for path in tree.python_files()
        if EMPTY_NAMES.intersection(PurePosixPath(path).with_suffix("").parts)
    ]
    assert empty == []


def test_every_room_is_a_package() -> None:
    """A directory without `__init__.py` would escape the import contracts."""
    directories = {PurePosixPath(path).parent for path in tree.python_files("reachnode", "sim")}
    assert [one for one in directories if not (tree.ROOT / one / "__init__.py").exists()] == []


def test_imports_are_absolute() -> None:
    """An import reads the same wherever it stands."""
    relative = [
        f"{path} {line}: {name}"
        for path in tree.python_files()
        for line, name in tree.imports(tree.syntax(path))
        if name.startswith(".")
    ]
    assert relative == []


def test_the_engine_is_opened_in_one_place() -> None:
    """Private attributes of PySyncObj are touched by the one module that checks its version."""
    opened = [
        path for path in tree.python_files() if path != ENGINE and ENGINE_PRIVATE in tree.text(path)
    ]
    assert opened == []


def test_what_is_silenced_says_why() -> None:
    """A finding is silenced only with its reason beside it."""
    found = [
        one
        for path in tree.python_files()
        for one in silenced_without_reason(path, tree.text(path))
    ]
    tree.hold(found, UNREASONED, rule="Say why, on the line or in a comment right above.")


def test_a_bare_silencer_is_seen() -> None:
    """The rule tells a silenced line with a reason from one without."""
    mark = "# " + "noqa: S311"
    assert list(silenced_without_reason("a.py", f"x = 1  {mark}\n"))
    assert not list(silenced_without_reason("a.py", f"x = 1  {mark} (dice of a game)\n"))
    assert not list(silenced_without_reason("a.py", f"# Dice of a game.\nx = 1  {mark}\n"))


def test_imports_inside_functions_are_seen() -> None:
    """A late import is an import to every rule."""
    module = ast.parse("def late():\n    from time import sleep\n    import os.path\n")
    assert [name for _, name in tree.imports(module)] == ["time", "os.path"]
