"""A function fits a screen, a module one sitting."""

from collections.abc import Iterator, Mapping

from tests.house import tree

FUNCTION_LINES_MAX = 50
MODULE_LINES_MAX = 400

LONG_FUNCTIONS: Mapping[str, str] = {}
"""`path name` of each function that is longer, and why."""

LONG_MODULES: Mapping[str, str] = {}
"""Path of each module that is longer, and why."""


def long_functions() -> Iterator[str]:
    """Yield the functions that do not fit a screen."""
    for path in tree.python_files():
        for function in tree.functions(tree.syntax(path)):
            assert function.end_lineno is not None
            lines_count = function.end_lineno - function.lineno + 1
            if lines_count > FUNCTION_LINES_MAX:
                yield f"{path} {function.name}: {lines_count} lines"


def long_modules() -> Iterator[str]:
    """Yield the modules that take more than one sitting."""
    for path in tree.python_files():
        lines_count = tree.text(path).count("\n")
        if lines_count > MODULE_LINES_MAX:
            yield f"{path}: {lines_count} lines"


def test_a_function_fits_a_screen() -> None:
    """No function is longer than fifty lines, its docstring included."""
    tree.hold(long_functions(), LONG_FUNCTIONS, rule="Split it: a function has at most 50 lines.")


def test_a_module_is_one_sitting() -> None:
    """No module is longer than four hundred lines."""
    tree.hold(long_modules(), LONG_MODULES, rule="Split it: a module has at most 400 lines.")
