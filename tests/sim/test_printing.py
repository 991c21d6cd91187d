"""Progress on a terminal and plain lines elsewhere; counts that can be read."""

import sys

import pytest

from sim.printing import Progress, counted


def test_counts_are_wrapped_with_the_most_frequent_first() -> None:
    """Names read as words, numbers have their separators, and no line is too long."""
    text = counted({"one_way_cut": 12_345, "crash": 3, "reset": 3}, width=30)
    assert text == "    one way cut 12,345 · crash 3\n    reset 3"
    assert counted({}) == ""


def test_plain_lines_are_rare(capsys: pytest.CaptureFixture[str]) -> None:
    """A log gets a line now and then, without a terminal's tricks."""
    progress = Progress()
    progress.say("too soon")
    progress._next_at = 0.0
    progress.say("half way")
    progress.end()
    assert capsys.readouterr().err == "half way\n"


def test_a_terminal_shows_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is written over, and taken away in the end."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = Progress()
    progress._next_at = 0.0
    progress.say("half way")
    progress.end()
    assert capsys.readouterr().err == "\rhalf way\r" + " " * 8 + "\r"
