"""How the simulator speaks to people: progress while it works, tables when it is done."""

import sys
import time
from collections.abc import Mapping

PLAIN_EVERY_SECONDS = 30.0
TERMINAL_EVERY_SECONDS = 0.2


class Progress:
    """One line that is written over on a terminal, and now and then a plain line elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._every = TERMINAL_EVERY_SECONDS if self._is_terminal else PLAIN_EVERY_SECONDS
        self._next_at = time.monotonic() + self._every
        self._width = 0

    def say(self, text: str) -> None:
        """Show how far it is, unless that was shown a moment ago."""
        now = time.monotonic()
        if now < self._next_at:
            return
        self._next_at = now + self._every
        end = "" if self._is_terminal else "\n"
        start = "\r" if self._is_terminal else ""
        print(start + text.ljust(self._width), end=end, file=sys.stderr, flush=True)
        self._width = len(text)

    def end(self) -> None:
        """Take the line away again."""
        if self._is_terminal and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
        self._width = 0


def counted(counts: Mapping[str, int], *, width: int = 96) -> str:
    """Return names with their counts, the most frequent first, wrapped and indented."""
    lines, line = [], ""
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        piece = f"{name.replace('_', ' ')} {count:,}"
        if line and len(line) + len(piece) + 3 > width:
            lines.append(line)
            line = ""
        line = f"{line} · {piece}" if line else piece
    return "\n".join(f"    {one}" for one in [*lines, line] if one)
