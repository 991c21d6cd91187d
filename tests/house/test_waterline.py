"""Below the waterline everything is still: same input, same output.

import-linter holds the imports, indirect ones included. What needs no import (a file opened,
the clock asked through `datetime`, a hash that differs between processes) is found here.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.house import tree

MOVING_CALLS = frozenset({"breakpoint", "hash", "id", "input", "open", "print"})
"""Builtins whose result or effect differs between two runs."""

MOVING_METHODS = frozenset({"now", "today", "utcnow"})
"""What asks the clock, on `date` and `datetime`."""


def still_files() -> list[str]:
    """Return the modules below the waterline, `errors.py` among them."""
    rooms = set(tree.still_rooms())
    return [
        path
        for path in tree.python_files("reachnode")
        if path.split("/")[1].removesuffix(".py") in rooms
    ]


def movements(module: ast.Module) -> Iterator[str]:
    """Yield what makes a module differ between two runs, with its line."""
    forbidden = set(tree.contract("waterline")["forbidden_modules"])
    for line, name in tree.imports(module):
        if name.partition(".")[0] in forbidden:
            yield f"line {line}: imports {name}"
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in MOVING_CALLS:
            yield f"line {node.lineno}: calls {called.id}()"
        elif (
            isinstance(called, ast.Attribute)
            and called.attr in MOVING_METHODS
            and ast.unparse(called.value).endswith(("date", "datetime"))
        ):
            yield f"line {node.lineno}: calls {ast.unparse(called)}()"


@pytest.mark.parametrize("path", still_files())
def test_the_module_is_still(path: str) -> None:
    """No clock, no dice, no input or output: time and chance come as arguments."""
    assert list(movements(tree.syntax(path))) == []


def test_the_contract_names_every_room_below() -> None:
    """The waterline contract covers each room below it that exists."""
    existing = {f"reachnode.{path.split('/')[1].removesuffix('.py')}" for path in still_files()}
    assert existing == set(tree.contract("waterline")["source_modules"])


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "def late():\n    from random import Random",
        "open('a')",
        "hash('a')",
        "import datetime\ndatetime.datetime.now()",
    ],
)
def test_what_moves_is_seen(source: str) -> None:
    """The rule sees what it forbids."""
    assert list(movements(ast.parse(source)))
