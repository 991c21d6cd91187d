"""`reachnode sim`."""

import subprocess
import sys

import pytest

from reachnode.cli.main import main


def test_the_simulator_reads_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    """`--help` behind `sim` is the simulator's."""
    with pytest.raises(SystemExit) as caught:
        main(["sim", "run", "--help"])
    assert caught.value.code == 0
    assert "sim run" in capsys.readouterr().out


def test_the_simulator_is_loaded_only_when_asked_for() -> None:
    """Other commands don't pay for it."""
    check = (
        "import sys; from reachnode.cli.main import main; main(['version']); "
        "sys.exit(any(name == 'sim' or name.startswith('sim.') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
