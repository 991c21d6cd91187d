"""The reference pages that are made of the code: commands, paths, settings, exit statuses.

A test says when a page is stale. To renew them:
`python -c "from reachnode.cli.reference import write_pages; write_pages('docs/reference')"`.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from reachnode.cli.flags import add_node_flags
from reachnode.cli.main import parser
from reachnode.cli.output import STATUSES
from reachnode.model.config import NodeConfig, settings
from reachnode.peers.raft.failstop import CAUSES
from reachnode.serve.paths import ROUTES

HEAD = ("| option | meaning |", "| --- | --- |")
HELP = frozenset({"--help"})
ASKING = HELP | {"--node", "--token", "--json"}


def pages() -> Mapping[str, str]:
    """Return every page by its file name."""
    return {
        "commands.md": "\n".join(commands_page()) + "\n",
        "http-api.md": "\n".join(paths_page()) + "\n",
        "settings.md": "\n".join(settings_page()) + "\n",
        "exit-statuses.md": "\n".join(statuses_page()) + "\n",
    }


def write_pages(directory: str) -> None:
    """Write every page into a directory."""
    for name, text in pages().items():
        (Path(directory) / name).write_text(text, encoding="utf-8")


def commands_page() -> Iterator[str]:
    """Yield the page of commands, line by line."""
    yield "# Commands"
    yield ""
    yield "Every command takes `--help`."
    yield "Exit statuses are on [a page of their own](exit-statuses.md)."
    yield ""
    yield "## Asking a node"
    yield ""
    yield "Commands that ask a node take these options."
    yield from ("", *HEAD, *option_rows(asking(), HELP))
    for name, command in below("reachnode", parser()):
        yield ""
        yield f"## `{name}`"
        yield ""
        yield command.description or ""
        asks = any("--node" in action.option_strings for action in actions_of(command))
        if asks:
            yield "It [asks a node](#asking-a-node)."
        rows = list(option_rows(command, ASKING if asks else HELP))
        if rows:
            yield from ("", *HEAD, *rows)


def paths_page() -> Iterator[str]:
    """Yield the page of paths, line by line."""
    yield "# HTTP API"
    yield ""
    yield "Each path of the client port, what it does, and how it may refuse beyond what any may."
    yield "A node tells the rest of it: `GET /openapi.json` has every document, query and header."
    yield "What a code means is on [the page of errors](errors.md)."
    yield ""
    yield "| method and path | does | query | refuses with |"
    yield "| --- | --- | --- | --- |"
    for route in ROUTES:
        promise = route.operation
        asked = ", ".join(f"`{name}`" for name in promise.query or ())
        codes = ", ".join(f"`{code}`" for code in sorted({one.code for one in promise.refuses}))
        yield f"| `{route.method} {route.path}` | {promise.summary} | {asked} | {codes} |"


def asking() -> argparse.ArgumentParser:
    """Return a parser of the options that say which node to ask."""
    found = argparse.ArgumentParser(add_help=False)
    add_node_flags(found)
    return found


def below(
    name: str, command: argparse.ArgumentParser
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield every command under one, with its full name."""
    for action in actions_of(command):
        if isinstance(action.choices, dict):
            for word, inner in action.choices.items():
                yield f"{name} {word}", inner
                yield from below(f"{name} {word}", inner)


def actions_of(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options, arguments and groups of commands of a parser."""
    return command._actions  # noqa: SLF001 - argparse shows its parts nowhere else


def option_rows(command: argparse.ArgumentParser, known: frozenset[str]) -> Iterator[str]:
    """Yield one row for each option and argument of a command, but for those known."""
    for action in actions_of(command):
        hidden = action.help in (None, argparse.SUPPRESS) or known.intersection(
            action.option_strings
        )
        if hidden or isinstance(action.choices, dict) or action.nargs == argparse.REMAINDER:
            continue
        words = [*action.option_strings[-1:], *([str(action.metavar)] if action.metavar else [])]
        yield f"| `{escaped(' '.join(words))}` | {action.help} |"


def settings_page() -> Iterator[str]:
    """Yield the page of a node's settings, line by line."""
    yield "# Settings of a node"
    yield ""
    yield "A flag beats the environment, which beats the file, which beats the default."
    yield "An unknown key is an error, and so is one that this version doesn't enforce yet."
    yield "What the whole cluster shares is at `/api/v1/settings` instead."
    yield ""
    yield "| key | flag | variable | default | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    default = NodeConfig()
    for name, setting in settings().items():
        flag = f"`{setting.flag}`" if setting.flag else ""
        value = shown(getattr(default, name)) or setting.unset
        yield f"| `{setting.key}` | {flag} | `{setting.variable}` | {value} | {setting.help} |"


def shown(value: object) -> str:
    """Return a default as it would be written; nothing for one that depends."""
    if value is None or (isinstance(value, Mapping) and not value):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def statuses_page() -> Iterator[str]:
    """Yield the page of exit statuses, line by line."""
    yield "# Exit statuses"
    yield ""
    yield "| status | meaning |"
    yield "| --- | --- |"
    for status, meaning in STATUSES.items():
        yield f"| {status} | {meaning} |"
    yield ""
    yield "## When a node stops for damage"
    yield ""
    yield "A node never serves an empty or half table: it stops, and names what it found."
    yield "A full disk is no damage: changes are refused until there is room."
    yield ""
    yield "| status | word | found | what to do |"
    yield "| --- | --- | --- | --- |"
    for cause in CAUSES:
        yield f"| {cause.status} | `{cause.word}` | {cause.meaning} | {cause.remedy} |"


def escaped(text: str) -> str:
    """Return a text that a table's cell can hold."""
    return text.replace("|", "\\|")
