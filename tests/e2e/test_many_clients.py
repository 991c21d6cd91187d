"""Slow clients, many clients, large requests at a real node: prc-02, inp-05 of the known cases.

In each somebody with a real question is answered all the while.
"""

import contextlib
import os
import re
import resource
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import NodeProcess, alone, running

FILES_MAX = 256
HEAD_SECONDS = 10.0
GET = b"GET /health HTTP/1.1\r\nHost: n\r\n\r\n"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(name="node")
def node_fixture(tmp_path: Path) -> Iterator[NodeProcess]:
    """Give a running node that may open 256 files."""
    node = alone(tmp_path)
    node.files_max = FILES_MAX
    with running(node):
        yield node
        assert node.stop() == 0


@contextlib.contextmanager
def connections(node: NodeProcess, count: int) -> Iterator[list[socket.socket]]:
    """Give so many connections, and close them at the end."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(node.place, timeout=5))
            for _ in range(count)
        ]


def read_proc(node: NodeProcess, name: str) -> str:
    """Return what the system says of a node's process."""
    assert node.process is not None
    return Path(f"/proc/{node.process.pid}/{name}").read_text(encoding="ascii")


def cpu_seconds(node: NodeProcess) -> float:
    """Return the processor time a node has used."""
    fields = read_proc(node, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def memory_bytes(node: NodeProcess) -> int:
    """Return the memory a node holds."""
    return int(read_proc(node, "statm").split()[1]) * PAGE_BYTES


def files(node: NodeProcess) -> set[int]:
    """Return the numbers of the files a node has open."""
    assert node.process is not None
    return {int(one.name) for one in Path(f"/proc/{node.process.pid}/fd").iterdir()}


def is_up(node: NodeProcess) -> bool:
    """Return whether a newcomer is answered within 5 s."""
    with socket.create_connection(node.place, timeout=5) as client:
        client.sendall(GET)
        return client.recv(65536).startswith(b"HTTP/1.1 200")


def test_prc_02_a(node: NodeProcess) -> None:
    """200 heads that come a byte a second end after 10 s each; calls meanwhile are answered."""
    started_at = time.monotonic()
    with connections(node, 200) as clients:
        waiting = set(clients)
        while waiting:
            dripped_at = time.monotonic()
            assert dripped_at < started_at + HEAD_SECONDS + 5
            for client in waiting:
                client.send(b"GET"[:1])
            assert is_up(node)
            while (left := dripped_at + 1 - time.monotonic()) > 0 and waiting:
                for client in select.select(list(waiting), [], [], left)[0]:
                    assert client.recv(65536)[:12] in (b"", b"HTTP/1.1 408")
                    assert time.monotonic() > started_at + HEAD_SECONDS - 0.5
                    waiting.discard(client)


def test_prc_02_b_idle_connections_keep_nobody_out(node: NodeProcess) -> None:
    """With 300 idle connections and 256 files, 20 calls are answered, and all is given back."""
    before = len(files(node))
    with connections(node, 300):
        for _ in range(20):
            assert node.ask("GET", "/api/v1/agents?min_index=1")[0] == 200
        assert node.ask("POST", "/register", {"agent_id": "a"})[0] == 201
        assert len(files(node)) < FILES_MAX
    while len(files(node)) > before:
        assert is_up(node)


def test_prc_02_b_no_file_is_left(node: NodeProcess) -> None:
    """Where not one more file can be opened, the node rests, serves whom it has, and recovers."""
    assert node.process is not None
    _, hard = resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE)
    with socket.create_connection(node.place, timeout=5) as known:
        known.sendall(GET)
        assert known.recv(65536).startswith(b"HTTP/1.1 200")
        first_free = min(set(range(FILES_MAX)) - files(node))
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (first_free, hard))
        used = cpu_seconds(node)
        with socket.create_connection(node.place, timeout=2) as newcomer:
            newcomer.sendall(GET)
            with pytest.raises(TimeoutError):
                newcomer.recv(65536)
            assert cpu_seconds(node) - used < 1.0
            known.sendall(GET)
            assert known.recv(65536).startswith(b"HTTP/1.1 200")
            resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
            newcomer.settimeout(1)
            assert newcomer.recv(65536).startswith(b"HTTP/1.1 200")
    page = first_answer(node, b"GET /metrics HTTP/1.1\r\nHost: n\r\n\r\n")
    failures = re.search(rb"^reachnode_http_accept_failures_total ([0-9]+)$", page, re.MULTILINE)
    assert failures
    assert int(failures[1]) > 0


def first_answer(node: NodeProcess, data: bytes) -> bytes:
    """Return the beginning of what a node answers to some bytes, 64 KiB at most."""
    with socket.create_connection(node.place, timeout=5) as client:
        client.sendall(data)
        return client.recv(65536)


def test_prc_02_d(node: NodeProcess) -> None:
    """Large heads and announcements are refused with their status, however they travel."""
    for data, status in (
        (GET[:-2] + b"X: " + b"a" * 70_000 + b"\r\n\r\n", b"431"),
        (GET[:-2] + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1000) for n in range(200)), b"431"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"POST / HTTP/1.1\r\nHost: n\r\nContent-Length: 1048577\r\n\r\n", b"413"),
    ):
        assert first_answer(node, data).startswith(b"HTTP/1.1 " + status)
    assert is_up(node)


def test_prc_02_e(node: NodeProcess) -> None:
    """1,000 connections that come and go leave nothing behind."""
    before = len(files(node))
    for _ in range(1000):
        socket.create_connection(node.place, timeout=5).close()
    assert is_up(node)
    while len(files(node)) > before:
        assert is_up(node)


def test_inp_05_b_memory_does_not_follow_the_body(node: NodeProcess) -> None:
    """A body of 100 MB in chunks is refused after 1 MiB, and held nowhere."""
    assert is_up(node)
    before = memory_bytes(node)
    chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    answer = b""
    with socket.create_connection(node.place, timeout=5) as client:
        client.sendall(b"POST /register HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):  # The node stops reading in the end.
            for _ in range(1600):
                client.sendall(chunk)
                if select.select([client], [], [], 0)[0] and not answer:
                    answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413")
    assert memory_bytes(node) - before < 20_000_000
    assert is_up(node)
