"""`reachnode bench`."""

import pytest

from reachnode.cli import bench
from reachnode.cli.main import main


def test_rows_are_those_that_can_be_measured() -> None:
    """The command line names them without loading the measuring."""
    from sim.bench import ROWS

    assert tuple(ROWS) == bench.ROWS


@pytest.mark.parametrize(
    "options", [["--rounds", "0"], ["--runs", "0"], ["changes", "--seconds", "0"]]
)
def test_nothing_to_measure_is_wrong_use(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused before anything starts."""
    assert main(["bench", *options]) == 2
    assert "rounds and runs must be 1 or more" in capsys.readouterr().err


def test_an_unknown_row_is_wrong_use() -> None:
    """The known ones are named."""
    with pytest.raises(SystemExit) as ended:
        main(["bench", "speed"])
    assert ended.value.code == 2
