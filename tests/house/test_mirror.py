"""Every module has its test beside it, under the same name in the mirror tree."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from tests.house import tree

OWN_TREES = frozenset({"house", "sim", "e2e", "cases"})
"""Directories of tests that mirror nothing: rules, stories, whole programs, known cases."""

UNTESTED: Mapping[str, str] = {}
"""Path of each module without a test of its own, and why."""

UNMIRRORED: Mapping[str, str] = {
    "tests/test_requirements.py": "tests the tests' own way to say what they need",
}
"""Path of each test without a module of its own, and why."""


def has_behavior(module: ast.Module) -> bool:
    """Say whether any function in it does more than document or declare."""
    return any(
        not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for function in tree.functions(module)
        for statement in function.body
    )


def mirror_of(module: str) -> str:
    """Return the path of the test that belongs to a module."""
    path = PurePosixPath(module)
    return str(PurePosixPath("tests", *path.parts[1:-1], f"test_{path.name}"))


def untested() -> Iterator[str]:
    """Yield the modules that do something and have no test beside them."""
    for path in tree.python_files("reachnode"):
        if Path(path).name in {"__init__.py", "__main__.py"}:
            continue
        mirrored = mirror_of(path)
        if has_behavior(tree.syntax(path)) and not (tree.ROOT / mirrored).exists():
            yield f"{path}: no {mirrored}"


def unmirrored() -> Iterator[str]:
    """Yield the tests that stand beside no module."""
    for path in tree.python_files("tests"):
        parts = PurePosixPath(path).parts
        if parts[1] in OWN_TREES or not parts[-1].startswith("test_"):
            continue
        module = PurePosixPath("reachnode", *parts[1:-1], parts[-1].removeprefix("test_"))
        if not (tree.ROOT / module).exists():
            yield f"{path}: no {module}"


def test_every_module_has_its_test() -> None:
    """Whoever changes a module finds its test without searching."""
    tree.hold(untested(), UNTESTED, rule="Write the test beside its module.")


def test_every_test_has_its_module() -> None:
    """A test whose module moved away moves with it."""
    tree.hold(unmirrored(), UNMIRRORED, rule="Name the test after the module it tests.")


def test_declarations_need_no_test() -> None:
    """A module of nouns and protocols is exempt; one statement that acts ends that."""
    nouns = 'class Port:\n    def ask(self) -> int:\n        """Return it."""\n        ...\n'
    assert not has_behavior(ast.parse(nouns))
    assert has_behavior(ast.parse("def double(x):\n    return 2 * x\n"))
