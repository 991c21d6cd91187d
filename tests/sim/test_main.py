"""`reachnode sim`: which command does what."""

import pytest

import sim.kill9
from sim.crew import JobFailed
from sim.main import main


def test_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The help names every command."""
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for command in ("run", "replay", "mutants", "linear", "kill9"):
        assert command in text


def test_an_unknown_command_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong use has the status for it."""
    with pytest.raises(SystemExit) as stopped:
        main(["walk"])
    assert stopped.value.code == 2
    assert "walk" in capsys.readouterr().err


def test_a_command_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments reach the command, and its status comes back."""
    assert main(["run", "--seeds", "1"]) == 0
    assert "1 seeds from 0" in capsys.readouterr().out


def test_kill9_reads_its_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows is handed on as it is."""
    monkeypatch.setattr(sim.kill9, "main", len)
    assert main(["kill9", "--kills", "3"]) == 2


@pytest.mark.parametrize("error", [JobFailed("a run raised"), KeyboardInterrupt()])
def test_a_run_that_fails_is_one_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault of the simulator, or of whoever interrupts it, is told and not thrown."""

    def fail(_args: object) -> int:
        raise error

    monkeypatch.setattr("sim.run.run", fail)
    assert main(["run"]) == 1
    assert "reachnode sim:" in capsys.readouterr().err
