"""Endpoints: which texts are one, for which protocol, and what they say.

A canonical endpoint is a URL with a scheme, a host and, where it isn't the scheme's own, a
port. `redis_stream` may name a stream instead, of the broker that the nodes are told of.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal
from urllib.parse import urljoin, urlsplit

from reachnode.model.words import is_invisible, shown

ENDPOINT_CHARACTERS_MAX = 2_048
HOST_CHARACTERS_MAX = 253
HOST = re.compile(r"""[^\s/?#@:\[\]\\%<>^`{|}"']+""")
HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\]+):([0-9]{1,5})")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

Kind = Literal["rest", "grpc", "websocket", "redis_stream", "http", "tcp", "resource"]
"""What an endpoint is for: a protocol, a way to probe, or a resource that is needed."""

SCHEMES: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "rest": ("http", "https"),
        "http": ("http", "https"),
        "grpc": ("grpc", "grpcs"),
        "websocket": ("ws", "wss"),
        "redis_stream": ("redis", "rediss"),
        "tcp": ("tcp",),
        "resource": (),
    }
)
"""The schemes of each kind; none listed: any."""
RENAMED: Mapping[tuple[Kind, str], str] = MappingProxyType(
    {
        ("grpc", "http"): "grpc",
        ("grpc", "https"): "grpcs",
        ("websocket", "http"): "ws",
        ("websocket", "https"): "wss",
    }
)
"""Schemes that are read as another one, as when a base URL is shared."""
BARE: Mapping[Kind, str] = MappingProxyType({"grpc": "grpc", "tcp": "tcp", "resource": "tcp"})
"""Kinds that may be written `host:port`, and the scheme it gets."""
PROTOCOL_OF: Mapping[str, str] = MappingProxyType(
    {
        "http": "rest",
        "https": "rest",
        "grpc": "grpc",
        "grpcs": "grpc",
        "ws": "websocket",
        "wss": "websocket",
        "redis": "redis_stream",
        "rediss": "redis_stream",
    }
)
"""The protocol that a scheme speaks of, where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an endpoint is."""

    scheme: str
    host: str
    """As written; an IPv6 address without its brackets."""
    port: int | None


def place_of(endpoint: str) -> Place:
    """Return where a URL leads.

    Raises:
        ValueError: It isn't one with a host; the message says what is wrong.
    """
    if len(endpoint) > ENDPOINT_CHARACTERS_MAX:
        raise ValueError(f"it is longer than {ENDPOINT_CHARACTERS_MAX} characters")
    if any(one.isspace() or is_invisible(one) or one == "\\" for one in endpoint):
        raise ValueError(f"{shown(endpoint)} has a blank, a control character or \\ in it")
    if not SCHEME.match(endpoint):
        raise ValueError(
            f"{shown(endpoint)} is no whole URL: write http://host:port/path, or give a base_url"
        )
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{shown(endpoint)} can't be read: {error}") from None
    if "@" in parts.netloc:
        raise ValueError("it has a user or password in it: leave them out")
    if parts.fragment or endpoint.endswith("#"):
        raise ValueError(f"{shown(endpoint)} has a fragment: leave out what follows #")
    if not host:
        raise ValueError(f"{shown(endpoint)} has no host")
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(f"{shown(endpoint)} has no port from 1 to 65535 after its colon")
    if len(host) > HOST_CHARACTERS_MAX or not (HOST.fullmatch(host) or family_of(host) == "ipv6"):
        raise ValueError(f"{shown(host)} is no host")
    return Place(scheme=parts.scheme, host=host, port=port)


def absolute(endpoint: str, *, base_url: str, kind: Kind) -> str:
    """Return an endpoint as it is kept: whole, and with a scheme of its kind.

    Args:
        endpoint: What was said, not empty.
        base_url: What it is resolved against where it is relative; empty for none.
        kind: What it is for.

    Raises:
        ValueError: It is no endpoint of this kind; the message says what is wrong.
    """
    if kind == "redis_stream" and "://" not in endpoint:
        if len(endpoint) > HOST_CHARACTERS_MAX or any(map(is_invisible, endpoint)):
            raise ValueError(f"{shown(endpoint)} is no name of a stream")
        return endpoint
    whole = endpoint
    if kind in BARE and HOST_PORT.fullmatch(endpoint):
        whole = f"{BARE[kind]}://{endpoint}"
    elif base_url and not SCHEME.match(endpoint):
        try:
            whole = urljoin(base_url, endpoint)
        except ValueError:
            raise ValueError(f"{shown(endpoint)} can't be resolved against base_url") from None
    place = place_of(whole)
    scheme = RENAMED.get((kind, place.scheme), place.scheme)
    allowed = SCHEMES[kind]
    if allowed and scheme not in allowed:
        raise ValueError(f"{shown(whole)} must begin with {' or '.join(allowed)}")
    return scheme + whole[len(place.scheme) :]


def family_of(host: str) -> Literal["ipv4", "ipv6"] | None:
    """Return the address family of a host that is an address, None where it is a name.

    An address with a zone (`fe80::1%eth0`) means something on one machine only, and is none.
    """
    if "%" in host:
        return None
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        return None
    return "ipv4" if version == 4 else "ipv6"
