"""How commands speak: exit statuses, tables, JSON, one line for an error."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

EXIT_OK = 0
EXIT_NO = 1
EXIT_USAGE = 2
EXIT_NO_NODE = 3

STATUSES: Mapping[int, str] = {
    EXIT_OK: "Done; where a command answers a question, yes.",
    EXIT_NO: "Refused or failed; where a command answers a question, no.",
    EXIT_USAGE: "Wrong use: an unknown command or option, or a value that can't be read.",
    EXIT_NO_NODE: "No node answered.",
}


def say(*parts: object) -> None:
    """Print one line of an answer."""
    print(*parts)


def say_json(document: Any) -> None:
    """Print an answer for programs."""
    print(json.dumps(document, ensure_ascii=False, indent=2))


def table(rows: Sequence[Mapping[str, Any]], *, columns: Sequence[str]) -> str:
    """Return rows under their columns' names, aligned; missing values are dashes."""
    lines = [list(columns), *([shown(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def shown(value: object) -> str:
    """Return a value as people read it."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def fail(why: str, *, status: int = EXIT_NO) -> int:
    """Print one line on standard error; return the exit status."""
    print(f"reachnode: {why}", file=sys.stderr)
    return status
