"""Every test states the promise it keeps."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.house import tree


def silent_tests(path: str) -> Iterator[str]:
    """Yield the test functions of a file that promise nothing."""
    for function in tree.functions(tree.syntax(path)):
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield f"{path} {function.lineno}: {function.name}"


def test_every_test_states_its_promise() -> None:
    """Whoever breaks a test reads at once what was promised."""
    silent = [
        one
        for path in tree.python_files("tests")
        if PurePosixPath(path).name.startswith("test_")
        for one in silent_tests(path)
    ]
    assert silent == []


def test_every_module_of_the_program_says_what_it_is() -> None:
    """A module opens with what is in it, in more than its own name."""
    unclear = [
        path
        for path in tree.python_files("reachnode", "sim")
        if len((ast.get_docstring(tree.syntax(path)) or "").split()) < 3
    ]
    assert unclear == []
