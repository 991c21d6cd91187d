"""Processes that are started, killed and waited for, each with a log of its own."""

import os
import random
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

LOG_TAIL_BYTES = 4096
PORTS_BELOW = Path("/proc/sys/net/ipv4/ip_local_port_range")
PORT_LOWEST = 10_240


class ProcessEnded(Exception):
    """A process ended that was not told to."""


def free_ports(count: int) -> list[int]:
    """Return ports on loopback that nobody uses now, found by binding each of them.

    They lie below those the system gives to outgoing connections: a port taken back after a
    restart must not have become somebody's, and nobody may by chance connect to itself.
    """
    try:
        highest = int(PORTS_BELOW.read_text().split()[0])
    except (OSError, ValueError):
        highest = 32_768
    dice = random.SystemRandom()
    sockets: list[socket.socket] = []
    try:
        for port in dice.sample(range(PORT_LOWEST, highest), 100 * count):
            try:
                sockets.append(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            if len(sockets) == count:
                break
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@dataclass(slots=True, kw_only=True)
class Process:
    """One program, started again and again with the same arguments."""

    name: str
    argv: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    says_ready: bool = True
    """Whether its standard output is read, for a line that says that it listens."""
    running: subprocess.Popen[bytes] | None = None
    ended: list[int] = field(default_factory=list)
    """Exit statuses so far; a signal's number is negative."""

    def start(self) -> None:
        """Start the program, and wait for nothing."""
        assert self.running is None
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(  # noqa: S603 - our own arguments
                list(self.argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self.says_ready else subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **self.environment},
            )

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.running is not None and self.running.poll() is None

    async def first_line(self) -> bytes:
        """Return what it first says on standard output.

        Raises:
            ProcessEnded: It ended before.
        """
        assert self.running is not None
        out = self.running.stdout
        assert out is not None
        await trio.lowlevel.wait_readable(out)
        line = out.readline()
        if not line:
            status = self.running.wait()
            raise ProcessEnded(f"{self.name} ended with {status}: {self.log_tail()}")
        return line

    def kill(self) -> None:
        """End it with SIGKILL; its parent, this process, has then seen it end."""
        self.end(signal.SIGKILL)

    def end(self, number: int, *, seconds: float = 20.0) -> int:
        """Send a signal and return the exit status."""
        assert self.running is not None
        self.running.send_signal(number)
        status = self.running.wait(seconds)
        self._note(status)
        return status

    def collect(self) -> int | None:
        """Return the exit status of a process that ended by itself, else None."""
        if self.running is None or self.running.poll() is None:
            return None
        status = self.running.returncode
        self._note(status)
        return status

    def _note(self, status: int) -> None:
        """Let go of a process that has ended."""
        assert self.running is not None
        if self.running.stdout is not None:
            self.running.stdout.close()
        self.running = None
        self.ended.append(status)

    def log_tail(self) -> str:
        """Return the last line it logged."""
        try:
            data = self.log.read_bytes()[-LOG_TAIL_BYTES:]
        except FileNotFoundError:
            return ""
        lines = data.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
