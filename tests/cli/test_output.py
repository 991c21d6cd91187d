"""How commands speak."""

import pytest

from reachnode.cli.output import fail, say, say_json, table


def test_a_table_is_aligned() -> None:
    """Columns line up, missing values are dashes, truths are words, no line ends in blanks."""
    rows = [{"id": "n1", "alive": True, "index": 0}, {"id": "long", "alive": False, "index": None}]
    assert table(rows, columns=("id", "alive", "index")).splitlines() == [
        "id    alive  index",
        "n1    yes    0",
        "long  no     -",
    ]
    assert table([], columns=("id", "x")) == "id  x"


def test_answers_and_errors_go_different_ways(capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked for is on standard output, what went wrong on standard error."""
    say("a", 1)
    say_json({"é": None})
    assert fail("no", status=2) == 2
    captured = capsys.readouterr()
    assert captured.out == 'a 1\n{\n  "é": null\n}\n'
    assert captured.err == "reachnode: no\n"
