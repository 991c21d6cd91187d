"""Nodes as real processes on loopback, and a client that waits on them without sleeping."""

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.live.processes import free_ports

SECONDS_MAX = 60.0
"""For anything a test waits for; reached only when something is wrong."""


@dataclass
class NodeProcess:
    """One `reachnode serve`, and what is known of it."""

    node_id: str
    directory: Path
    arguments: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    place: tuple[str, int] = ("", 0)
    """Where clients connect, once it runs."""
    environment: Mapping[str, str] = field(default_factory=dict)
    files_max: int | None = None
    """How many files it may open; None as many as this process."""

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start the process, and wait for nothing."""
        log = (self.directory / f"{self.node_id}.log").open("ab")
        arguments = [
            *("--node-id", self.node_id, "--data-dir", str(self.directory / self.node_id)),
            *("--listen", "127.0.0.1:0", "--log-format", "json", *self.arguments),
        ]
        command = [sys.executable, "-m", "reachnode", "serve", *arguments]
        if self.files_max is not None:
            bounded = f'ulimit -n {self.files_max}; exec "$@"'
            command = ["/bin/sh", "-c", bounded, "sh", *command]
        with log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "REACHNODE_CLUSTER__TIME_SCALE": "2", **self.environment},
            )
        return self.process

    def start(self) -> dict[str, Any]:
        """Start the process and return its ready line, read once it listens."""
        process = self.spawn()
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], SECONDS_MAX)
        line = process.stdout.readline() if readable else b""
        assert line, self.log()
        ready: dict[str, Any] = json.loads(line)
        host, _, port = ready["listen"].removeprefix("http://").rpartition(":")
        self.place = (host, int(port))
        return ready

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://{self.place[0]}:{self.place[1]}"

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        assert self.process is not None
        self.process.send_signal(signal_number)
        return self.ended()

    def ended(self) -> int:
        """Return the exit status once the process has ended."""
        assert self.process is not None
        status = self.process.wait(SECONDS_MAX)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def log(self) -> str:
        """Return everything it wrote to standard error."""
        return (self.directory / f"{self.node_id}.log").read_text()

    def ask(
        self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Return status and document of one answer."""
        connection = http.client.HTTPConnection(*self.place, timeout=SECONDS_MAX)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def insist(self, method: str, path: str, document: Any = None, *, key: str = "") -> Any:
        """Return the first good answer.

        A node holds a question it can't answer yet for a second or more, so asking again at
        once is no busy loop. A change needs a key, so that it counts once.
        """
        assert method == "GET" or key
        ends_at = time.monotonic() + SECONDS_MAX
        status, answer = 0, None
        while time.monotonic() < ends_at:
            status, answer = self.ask(method, path, document, {"Idempotency-Key": key or "-"})
            if status < 400:
                return answer
            assert status in (503, 504), answer
        raise AssertionError(f"{self.node_id} still answers {status} {answer}: {self.log()}")

    def see(self, path: str, *, index: int) -> Any:
        """Return what the node answers once it has applied an index."""
        return self.insist("GET", f"{path}?min_index={index}")


@contextmanager
def running(*nodes: NodeProcess) -> Iterator[None]:
    """Start nodes and wait until their cluster is founded; kill what is left at the end."""
    try:
        for node in nodes:
            node.start()
        for node in nodes:
            node.see("/api/v1/agents", index=1)
        yield
    finally:
        for node in nodes:
            if node.process is not None and node.process.poll() is None:
                node.stop(signal.SIGKILL)


def cluster_of(count: int, directory: Path) -> list[NodeProcess]:
    """Return the nodes of a cluster, not started."""
    secret = directory / "secret"
    secret.write_text("s" * 43)
    peers = {f"n{at}": f"127.0.0.1:{port}" for at, port in enumerate(free_ports(count), 1)}
    listed = ",".join(f"{node}={address}" for node, address in peers.items())
    arguments = ("--peers", listed, "--cluster-secret-file", str(secret))
    return [NodeProcess(node, directory, arguments) for node in peers]


def alone(directory: Path, *arguments: str) -> NodeProcess:
    """Return a cluster of one, not started."""
    return NodeProcess("n1", directory, ("--peer-listen", "127.0.0.1:0", *arguments))
