"""Where something listens: a host and a port, and the text people write for them."""

from dataclasses import dataclass
from typing import Self

PORT_MAX = 65535
HOST_CHARS_MAX = 255
"""The longest a host name may be in DNS."""


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP endpoint. Port 0 asks the system for a free one when listening."""

    host: str
    port: int

    def __post_init__(self) -> None:
        if not self.host:
            raise ValueError("an address needs a host before the port, as in 127.0.0.1:7401")
        if len(self.host) > HOST_CHARS_MAX:
            raise ValueError(f"the host of an address is over {HOST_CHARS_MAX} characters")
        if any(char.isspace() or not char.isprintable() or char in "[]/" for char in self.host):
            raise ValueError(f"the host {self.host!r} holds a blank or a character not allowed")
        if not 0 <= self.port <= PORT_MAX:
            raise ValueError(f"the port {self.port} is not between 0 and {PORT_MAX}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the address that `text` spells, as ``host:port`` or ``[v6]:port``.

        Raises:
            ValueError: The text is something else; the message says what is missing.
        """
        host, colon, port = text.rpartition(":")
        if not colon or port.endswith("]"):
            raise ValueError(f"the address {text!r} has no port; write host:port or [v6]:port")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(
                f"the address {text!r} has several colons; put an IPv6 host in brackets: [::1]:7401"
            )
        if not (port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX))):
            raise ValueError(
                f"the port in {text!r} is not a number from 0 to {PORT_MAX}; write host:port"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
