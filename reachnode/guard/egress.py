"""Which hosts a node may connect to on an agent's word.

An endpoint on the node itself, on its link or at a cloud's metadata service would let whoever
registers it look inside, so it is refused:

                            by default      where local endpoints are allowed
    loopback, localhost     refused         taken
    link-local              refused         taken
    wildcard                refused         refused: it is an address to listen on
    metadata service        refused         refused
    multicast, reserved     refused         refused

An address counts in whatever spelling a resolver might read it: octal, hexadecimal, one number,
wide digits, or inside an IPv6 address. A name that resolves to such an address is judged when
it is resolved, by `why_not_address`.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from reachnode.errors import EndpointRefused
from reachnode.model.agents import Instance
from reachnode.model.words import shown
from reachnode.wire.endpoints import place_of

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
        ),
    )
)
"""Where clouds hand out credentials to whoever asks from inside."""
NETWORKS = tuple(
    (kind, tuple(map(ipaddress.ip_network, networks)))
    for kind, networks in (
        ("wildcard", ("0.0.0.0/8", "::/128")),
        ("loopback", ("127.0.0.0/8", "::1/128")),
        ("link-local", ("169.254.0.0/16", "fe80::/10", "fec0::/10")),
        ("multicast", ("224.0.0.0/4", "ff00::/8")),
        ("reserved", ("240.0.0.0/4",)),
    )
)
"""Kinds of addresses that don't lead to another machine by its own address."""
NAT64 = ipaddress.ip_network("64:ff9b::/96")
COMPATIBLE = ipaddress.ip_network("::/96")
NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+")
NUMBER_CHARACTERS_MAX = 32


def allows_local(*, rule: Literal["auto"] | bool, listens_on_loopback_only: bool) -> bool:
    """Return whether local endpoints are taken, by `registry.allow_local_endpoints`.

    `auto` takes them while the node itself can be reached from its own machine only.
    """
    return listens_on_loopback_only if rule == "auto" else rule


def refuse_endpoints(instance: Instance, *, allow_local: bool) -> None:
    """Raise where a registration names a host that this node must not connect to.

    Args:
        instance: As it was read: its endpoints are whole.
        allow_local: Whether loopback and link-local ones are taken.

    Raises:
        EndpointRefused: It does; `details` list every place.
    """
    problems = []
    for at, endpoint in endpoints_of(instance):
        why = why_not_endpoint(endpoint, allow_local=allow_local)
        if why is not None:
            problems.append({"at": at, "why": why})
    if problems:
        raise EndpointRefused(
            f"{problems[0]['at']}: {problems[0]['why']}", details={"problems": problems}
        )


def endpoints_of(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield every URL of a registration that a node may connect to, with its place."""
    if instance.base_url:
        yield "base_url", instance.base_url
    if instance.health is not None and "://" in instance.health.endpoint:
        yield "health.endpoint", instance.health.endpoint
    for number, capability in enumerate(instance.capabilities):
        place = f"capabilities[{number}]"
        if "://" in capability.endpoint:
            yield f"{place}.endpoint", capability.endpoint
        for at, dependency in enumerate(capability.dependencies):
            if "://" in dependency.endpoint:
                yield f"{place}.dependencies[{at}].endpoint", dependency.endpoint


def why_not_endpoint(endpoint: str, *, allow_local: bool) -> str | None:
    """Return why a node must not connect to a URL, None if it may."""
    try:
        host = place_of(endpoint).host
    except ValueError as error:
        return str(error)
    return why_not_host(host, allow_local=allow_local)


def why_not_host(host: str, *, allow_local: bool) -> str | None:
    """Return why a node must not connect to a host, a name or an address; None if it may."""
    name = unicodedata.normalize("NFKC", host).replace("\u3002", ".").casefold().rstrip(".")
    if name in METADATA_NAMES:
        return f"{shown(host)} is a metadata service"
    if name in LOCAL_NAMES or name.endswith(".localhost"):
        return None if allow_local else f"{shown(host)} is the node itself, for each node another"
    is_ipv6 = ":" in name
    if not is_ipv6 and not NUMBER.fullmatch(name.rpartition(".")[2]):
        return None
    address = strict_ipv6(name) if is_ipv6 else loose_ipv4(name)
    if address is None:
        return f"{shown(host)} is no address"
    why = why_not_address(address, allow_local=allow_local)
    if why is None and not is_ipv6 and str(address) != host:
        why = f"{shown(host)} is read as {address} by some and not by others: write {address}"
    return why


def why_not_address(address: Address, *, allow_local: bool) -> str | None:
    """Return why a node must not connect to an address, None if it may.

    Whoever resolves a name asks this of each address it resolved to.
    """
    for one in (address, *embedded(address)):
        kind = kind_of(one)
        if kind == "public" or (allow_local and kind in {"loopback", "link-local"}):
            continue
        inside = "" if one == address else f" with {one} in it"
        return f"{address} is a {kind} address{inside}"
    return None


def kind_of(address: Address) -> str:
    """Return what kind of address one is, by itself; a private one counts as public."""
    if address in METADATA_ADDRESSES:
        return "metadata"
    return next(
        (kind for kind, networks in NETWORKS if any(address in one for one in networks)), "public"
    )


def embedded(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address leads to by way of a translator."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):
        yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)


def strict_ipv6(text: str) -> ipaddress.IPv6Address | None:
    """Return the address that a text spells, None if none; one with a zone isn't taken."""
    try:
        return None if "%" in text else ipaddress.IPv6Address(text)
    except ValueError:
        return None


def loose_ipv4(text: str) -> ipaddress.IPv4Address | None:
    """Return the address that a C resolver reads from one to four numbers, None if none.

    Source:
        POSIX inet_addr(): `0x` is hexadecimal, a leading 0 octal, and the last number fills
        all bytes that are left.
    """
    words = text.split(".")
    if len(words) > 4 or len(text) > NUMBER_CHARACTERS_MAX:
        return None
    numbers = []
    for word in words:
        number = _loose_number(word)
        if number is None:
            return None
        numbers.append(number)
    *firsts, last = numbers
    if any(number > 255 for number in firsts) or last >= 256 ** (4 - len(firsts)):
        return None
    value = last
    for place, number in enumerate(firsts):
        value += number << (8 * (3 - place))
    return ipaddress.IPv4Address(value)


def _loose_number(word: str) -> int | None:
    """Return a number in C's spelling."""
    if not NUMBER.fullmatch(word):
        return None
    if word.startswith("0x"):
        return int(word[2:] or "0", 16)
    if not word.startswith("0"):
        return int(word)
    return int(word, 8) if all(digit in "01234567" for digit in word) else None
