"""Programs that are started, killed and waited for."""

import signal
import sys
from pathlib import Path

import pytest

from sim.live.processes import Process, ProcessEnded, free_ports


def python(directory: Path, code: str) -> Process:
    """Return a process that runs some Python."""
    return Process(name="p", argv=(sys.executable, "-c", code), log=directory / "p.log")


def test_ports_are_free_and_never_given_to_outgoing_connections() -> None:
    """All different, and below those that the system hands out."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = free_ports(6)
    assert len(set(ports)) == 6
    assert all(1024 < port < lowest for port in ports)


async def test_a_process_is_ready_then_killed_then_starts_again(tmp_path: Path) -> None:
    """Its first line is waited for; a kill is a kill, and the next start is another process."""
    process = python(tmp_path, "import time; print('ready', flush=True); time.sleep(60)")
    process.start()
    assert await process.first_line() == b"ready\n"
    assert process.is_alive
    process.kill()
    assert process.running is None
    process.start()
    assert await process.first_line() == b"ready\n"
    assert process.end(signal.SIGTERM) == -signal.SIGTERM
    assert process.ended == [-signal.SIGKILL, -signal.SIGTERM]


async def test_an_end_before_the_first_line_says_why(tmp_path: Path) -> None:
    """The status and the last line of the log are in the error."""
    process = python(tmp_path, "import sys; sys.exit('no room')")
    process.start()
    with pytest.raises(ProcessEnded, match="p ended with 1: no room"):
        await process.first_line()
    assert process.collect() == 1
    assert process.collect() is None
    assert process.log_tail() == "no room"


def test_a_process_without_a_log_has_no_last_line(tmp_path: Path) -> None:
    """It was never started."""
    assert python(tmp_path, "").log_tail() == ""
