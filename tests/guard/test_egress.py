"""Which hosts a node may connect to."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import EndpointRefused
from reachnode.guard.egress import (
    allows_local,
    endpoints_of,
    loose_ipv4,
    refuse_endpoints,
    why_not_address,
    why_not_endpoint,
    why_not_host,
)
from reachnode.wire.registrations import read_registration

LOOPBACK = [
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "ip6-localhost",
    "127.0.0.1",
    "127.255.255.254",
    "::1",
]
ODD_LOOPBACK = [
    "127.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.0.0.1.",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
]
IN_IPV6 = ["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]
LINK_LOCAL = ["169.254.0.1", "fe80::1", "fec0::1", "::ffff:169.254.1.1"]
NEVER = [
    "0.0.0.0",  # noqa: S104 - refused here, not listened on
    "0",
    "0.1.2.3",
    "::",
    "::ffff:0.0.0.0",
    "169.254.169.254",
    "0xa9fea9fe",
    "::ffff:a9fe:a9fe",
    "fd00:ec2::254",
    "100.100.100.200",
    "metadata.google.internal",
    "Metadata.Google.Internal.",
    "224.0.0.1",
    "255.255.255.255",
    "ff02::1",
]
TAKEN = [
    "10.0.0.7",
    "192.168.1.1",
    "8.8.8.8",
    "2001:db8::7",
    "fd12::1",
    "agent.internal",
    "localhost.example.org",
    "notlocalhost",
    "a1",
    "1a.test",
    "意图.test",
]
NO_ADDRESS = [
    "256.0.0.1",
    "1.2.3.4.5",
    "1.2.3.256",
    "09.0.0.1",
    "0x1ffffffff",
    "1.a.2",
    "1" * 40,
    "1::2::3",
    "fe80::1%eth0",
]


@pytest.mark.parametrize("host", [*LOOPBACK, *LINK_LOCAL, *IN_IPV6])
def test_local_hosts_are_refused_unless_allowed(host: str) -> None:
    """Loopback and link-local, also inside an IPv6 address."""
    assert why_not_host(host, allow_local=False) is not None
    assert why_not_host(host, allow_local=True) is None


@pytest.mark.parametrize("host", ODD_LOOPBACK)
def test_an_address_counts_in_any_spelling(host: str) -> None:
    """What some resolvers read as loopback is refused, and where that is allowed: write it."""
    why = why_not_host(host, allow_local=False)
    assert why == "127.0.0.1 is a loopback address"
    assert (why_not_host(host, allow_local=True) or "").endswith("write 127.0.0.1")


@pytest.mark.parametrize("host", NEVER)
def test_some_hosts_are_never_allowed(host: str) -> None:
    """Wildcards, metadata services, multicast and reserved ones."""
    assert why_not_host(host, allow_local=False) is not None
    assert why_not_host(host, allow_local=True) is not None


@pytest.mark.parametrize("host", TAKEN)
def test_other_hosts_are_taken(host: str) -> None:
    """Private and public addresses, and names."""
    assert why_not_host(host, allow_local=False) is None


@pytest.mark.parametrize("host", NO_ADDRESS)
def test_what_ends_like_an_address_must_be_one(host: str) -> None:
    """A resolver would make something of it; which, we can't know."""
    assert (why_not_host(host, allow_local=True) or "").endswith("is no address")


def test_a_short_spelling_of_a_public_address_is_refused_too() -> None:
    """Programs differ in how they read it, so it isn't guessed."""
    why = "'10.2.3' is read as 10.2.0.3 by some and not by others: write 10.2.0.3"
    assert why_not_host("10.2.3", allow_local=False) == why


def test_the_reason_names_the_address_inside() -> None:
    """An operator sees what was meant."""
    mapped = ipaddress.IPv6Address("::ffff:127.0.0.1")  # Python 3.13 writes it another way.
    assert why_not_host("::ffff:127.0.0.1", allow_local=False) == (
        f"{mapped} is a loopback address with 127.0.0.1 in it"
    )
    teredo = ipaddress.IPv6Address("2001:0:7f00:1::")
    assert "with 127.0.0.1 in it" in (why_not_address(teredo, allow_local=False) or "")


def test_a_url_is_judged_by_its_host() -> None:
    """One that can't be read isn't connected to either."""
    assert why_not_endpoint("http://10.0.0.7/x", allow_local=False) is None
    assert "loopback" in (why_not_endpoint("http://[::1]:9001", allow_local=False) or "")
    assert "no host" in (why_not_endpoint("http://:9001", allow_local=True) or "")


FULL = {
    "agent_id": "a1",
    "base_url": "http://localhost:9000",
    "health": {"type": "http", "endpoint": "/ping"},
    "capabilities": [
        {
            "name": "a",
            "protocol": "rest",
            "endpoint": "http://0.0.0.0/x",
            "dependencies": ["b", {"resource": "store", "endpoint": "169.254.169.254:80"}],
        },
        {"name": "b", "protocol": "rest", "endpoint": "http://10.0.0.7/b"},
        {"name": "c", "protocol": "redis_stream", "endpoint": "orders"},
        {"name": "d", "protocol": "pull"},
    ],
}


def test_every_endpoint_of_a_registration_is_judged() -> None:
    """Base, health, capabilities and resources, each place in the details."""
    instance = read_registration(FULL).instance
    with pytest.raises(EndpointRefused, match=r"^base_url: 'localhost' is the node") as caught:
        refuse_endpoints(instance, allow_local=False)
    assert [one["at"] for one in caught.value.details["problems"]] == [
        "base_url",
        "health.endpoint",
        "capabilities[0].endpoint",
        "capabilities[0].dependencies[1].endpoint",
    ]
    with pytest.raises(EndpointRefused) as caught:
        refuse_endpoints(instance, allow_local=True)
    assert len(caught.value.details["problems"]) == 2


def test_a_registration_without_urls_is_taken() -> None:
    """An agent that comes to the node has none."""
    bare = read_registration({"agent_id": "a1", "health": {"type": "none"}}).instance
    assert list(endpoints_of(bare)) == []
    refuse_endpoints(bare, allow_local=False)


def test_local_endpoints_follow_the_setting() -> None:
    """`auto` allows them while the node itself listens on loopback only."""
    assert allows_local(rule="auto", listens_on_loopback_only=True)
    assert not allows_local(rule="auto", listens_on_loopback_only=False)
    assert allows_local(rule=True, listens_on_loopback_only=False)
    assert not allows_local(rule=False, listens_on_loopback_only=True)


def spellings(value: int) -> list[str]:
    """Return ways to write an IPv4 address that a C resolver reads."""
    one, two, three, four = value.to_bytes(4, "big")
    low, lower = value & 0xFFFFFF, value & 0xFFFF
    return [
        str(value),
        hex(value),
        f"0{value:o}",
        f"{one}.{low}",
        f"{one:#x}.{two}.{lower}",
        f"0{one:o}.{two:#x}.{three}.0{four:o}",
    ]


@given(st.integers(0, 2**32 - 1), st.integers(0, 5))
def test_every_spelling_is_the_same_address(value: int, at: int) -> None:
    """Whatever the base of its numbers and however many there are."""
    assert loose_ipv4(spellings(value)[at]) == ipaddress.IPv4Address(value)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_an_address_inside_another_is_no_way_around(value: int, allow_local: bool) -> None:
    """What is refused plainly is refused in an IPv6 address too."""
    address = ipaddress.IPv4Address(value)
    if why_not_address(address, allow_local=allow_local) is None:
        return
    for inside in (f"::ffff:{address}", f"64:ff9b::{address}"):
        assert why_not_host(inside, allow_local=allow_local) is not None
