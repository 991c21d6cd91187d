"""The commands that the README and the guides show are commands that exist."""

import itertools

import pytest

from tests.house import pages, tree

START = "python3 -m venv .venv && "
GUIDES = ("README.md", "docs/tutorial/", "docs/howto/")


def one_line_commands() -> list[str]:
    """Return the README's commands that begin by making a virtual environment."""
    lines = pages.console_lines(tree.text("README.md"))
    return [line for line in lines if line.startswith(START)]


def shown_commands() -> list[tuple[str, ...]]:
    """Return the arguments of every `reachnode` that a guide shows, each once."""
    return sorted(
        {
            tuple(arguments)
            for page in pages.markdown_files()
            if page.startswith(GUIDES)
            for line in pages.console_lines(tree.text(page))
            for arguments in pages.reachnode_commands(line)
        }
    )


def test_there_are_two_commands_of_one_line() -> None:
    """One line takes a newcomer from a clone to a running program, one to a passed test."""
    run, test = one_line_commands()
    assert ".venv/bin/pip install . && .venv/bin/reachnode " in run
    assert test == START + ".venv/bin/pip install -e '.[test]' && .venv/bin/pytest"


def test_the_check_from_a_clean_clone_runs_the_test_command() -> None:
    """What `.ci/run` ends with is the README's test command, letter by letter."""
    _, test = one_line_commands()
    assert tree.text(".ci/run").splitlines()[-1] == test
    assert (tree.ROOT / ".ci/run").stat().st_mode & 0o111 == 0o111


@pytest.mark.parametrize("arguments", shown_commands(), ids=" ".join)
def test_a_shown_command_exists(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command explains itself when asked, and knows the options that are shown."""
    from reachnode.cli.main import main

    words = itertools.takewhile(lambda word: not word.startswith("-"), arguments)
    options = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    with pytest.raises(SystemExit) as left:
        main([*words, "--help"])
    assert left.value.code == 0
    explained = capsys.readouterr().out
    assert [option for option in options if option not in explained] == []


def test_commands_are_found_between_others() -> None:
    """Assignments, redirections, paths and comments don't hide a command."""
    line = "A=1 && .venv/bin/reachnode sim run --seconds 20 > out && reachnode serve &  # a node"
    assert list(pages.reachnode_commands(line)) == [
        ["sim", "run", "--seconds", "20"],
        ["serve"],
    ]
