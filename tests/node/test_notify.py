"""Telling systemd."""

import socket
from pathlib import Path

import pytest

from reachnode.node.notify import READY, notify


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_is_told(tmp_path: Path, is_abstract: bool) -> None:
    """The datagram arrives, at a path and at an abstract name alike."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0" + path if is_abstract else path)
        assert notify(READY, {"NOTIFY_SOCKET": "@" + path if is_abstract else path})
        assert receiver.recv(100) == b"READY=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:1"}])
def test_nobody_wants_to_know(environment: dict[str, str]) -> None:
    """Without systemd nothing is sent."""
    assert not notify(READY, environment)


def test_a_deaf_systemd_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A socket that isn't there is logged, no more."""
    assert not notify(READY, {"NOTIFY_SOCKET": str(tmp_path / "gone")})
    assert "could not be told READY=1" in caplog.text
