"""The documentation as the house rules see it: console blocks, and the commands in them."""

import re
import shlex
from collections.abc import Iterator

from tests.house import tree

PROMPT = "$ "
ENDS_OF_COMMAND = frozenset({"&&", "||", "|", "&", ";", ">", ">>", "<"})

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def markdown_files() -> list[str]:
    """Return the README and every page of the documentation."""
    pages = (path.relative_to(tree.ROOT).as_posix() for path in (tree.ROOT / "docs").rglob("*.md"))
    return ["README.md", *sorted(pages)]


def console_lines(page: str) -> list[str]:
    """Return what is typed in the console blocks of a page, without the prompt."""
    return [
        line.removeprefix(PROMPT)
        for block in CONSOLE.findall(page)
        for line in block.splitlines()
        if line.startswith(PROMPT)
    ]


def prose(page: str) -> str:
    """Return a page with its fenced blocks emptied, lines kept."""
    return FENCED.sub(lambda block: "\n" * block.group().count("\n"), page)


def reachnode_commands(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each `reachnode …` on a console line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    arguments: list[str] | None = None
    for word in [*lexer, "&&"]:
        if word in ENDS_OF_COMMAND:
            if arguments is not None:
                yield arguments
            arguments = None
        elif arguments is not None:
            arguments.append(word)
        elif word.rpartition("/")[2] == "reachnode":
            arguments = []
