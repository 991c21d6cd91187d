"""Telling systemd how the node is doing, where it asked to be told (`Type=notify`).

Source:
    sd_notify(3) of systemd: datagrams to the socket named by NOTIFY_SOCKET.
"""

import logging
import socket
from collections.abc import Mapping

LOG = logging.getLogger(__name__)
READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(text: str, environment: Mapping[str, str]) -> bool:
    """Tell systemd; return whether somebody was told.

    Args:
        text: One assignment of the protocol, such as `READY`.
        environment: Of the process; without NOTIFY_SOCKET nobody wants to know.
    """
    name = environment.get("NOTIFY_SOCKET", "")
    if not name.startswith(("/", "@")):
        return False
    address = "\0" + name[1:] if name.startswith("@") else name
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            sender.sendto(text.encode(), address)
    except OSError as error:
        LOG.warning("systemd could not be told %s: %s", text, error)
        return False
    return True
