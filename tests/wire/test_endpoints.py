"""Which texts are endpoints, and what they say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.wire.endpoints import (
    ENDPOINT_CHARACTERS_MAX,
    PROTOCOL_OF,
    SCHEMES,
    Kind,
    Place,
    absolute,
    family_of,
    place_of,
)


@pytest.mark.parametrize(
    ("endpoint", "place"),
    [
        ("http://10.0.0.7:9000/x?a=1", Place(scheme="http", host="10.0.0.7", port=9000)),
        ("HTTPS://Agent.Example/", Place(scheme="https", host="agent.example", port=None)),
        ("http://[2001:db8::1]:80/x", Place(scheme="http", host="2001:db8::1", port=80)),
        ("tcp://store:1", Place(scheme="tcp", host="store", port=1)),
        ("http://意图.test/", Place(scheme="http", host="意图.test", port=None)),
        ("http://order_svc.internal/", Place(scheme="http", host="order_svc.internal", port=None)),
    ],
)
def test_an_endpoint_says_where_it_is(endpoint: str, place: Place) -> None:
    """Scheme, host without brackets, and port where one is written."""
    assert place_of(endpoint) == place


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("9001", "no whole URL"),
        ("/x", "no whole URL"),
        ("", "no whole URL"),
        ("http:/h/x", "no whole URL"),
        ("http://:9001", "no host"),
        ("http:///x", "no host"),
        ("http://h:99999/", "can't be read: Port out of range"),
        ("http://h:0/", "no port from 1"),
        ("http://h:/", "no port from 1"),
        ("http://h:x/", "can't be read"),
        ("http://[/", "can't be read"),
        ("http://[fe80::1%25eth0]/", "no host|can't be read"),
        ("http://%31%32%37.0.0.1/", "is no host"),
        ("http://a<b/", "is no host"),
        ("http://" + "a" * 254, "is no host"),
        ("http://user:pass@h/", "user or password"),
        ("http://@h/", "user or password"),
        ("http://h/#top", "fragment"),
        ("http://h/#", "fragment"),
        ("http://h/a b", "a blank"),
        ("http://h/\r\nX: 1", "a blank"),
        ("http://h\\@evil/", "a blank"),
        ("http://h\u200b/", "a blank"),
        ("http://h/" + "a" * ENDPOINT_CHARACTERS_MAX, "longer than"),
    ],
)
def test_what_leads_nowhere_is_refused(endpoint: str, why: str) -> None:
    """The message says what is wrong with it, and shows no password."""
    with pytest.raises(ValueError, match=why) as caught:
        place_of(endpoint)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "base_url", "kind", "kept"),
    [
        ("http://h/x", "", "rest", "http://h/x"),
        ("https://h/x", "http://other/", "rest", "https://h/x"),
        ("x", "http://h/api/", "rest", "http://h/api/x"),
        ("/x", "http://h/api/", "rest", "http://h/x"),
        ("?a=1", "http://h/api", "rest", "http://h/api?a=1"),
        ("9001", "http://h/", "rest", "http://h/9001"),
        ("h:50051", "", "grpc", "grpc://h:50051"),
        ("[::1]:50051", "http://other/", "grpc", "grpc://[::1]:50051"),
        ("https://h:443", "", "grpc", "grpcs://h:443"),
        ("/ws", "http://h:1", "websocket", "ws://h:1/ws"),
        ("/ws", "https://h", "websocket", "wss://h/ws"),
        ("wss://h/ws", "", "websocket", "wss://h/ws"),
        ("redis://h:6379/orders", "", "redis_stream", "redis://h:6379/orders"),
        ("orders", "http://h/", "redis_stream", "orders"),
        ("h:6333", "", "tcp", "tcp://h:6333"),
        ("h:6333", "", "resource", "tcp://h:6333"),
        ("qdrant://h:6333", "", "resource", "qdrant://h:6333"),
        ("/ping", "http://h/", "http", "http://h/ping"),
    ],
)
def test_an_endpoint_is_kept_whole(endpoint: str, base_url: str, kind: Kind, kept: str) -> None:
    """Resolved where it is relative, with a scheme of its kind, and stable from then on."""
    assert absolute(endpoint, base_url=base_url, kind=kind) == kept
    assert absolute(kept, base_url="", kind=kind) == kept


@pytest.mark.parametrize(
    ("endpoint", "base_url", "kind", "why"),
    [
        ("ftp://h/x", "", "rest", "must begin with http or https"),
        ("ws://h/x", "", "rest", "must begin with http or https"),
        ("x", "", "rest", "give a base_url"),
        ("//[/x", "http://h/", "rest", "can't be resolved"),
        ("http://h/", "", "redis_stream", "must begin with redis or rediss"),
        ("a\x00b", "", "redis_stream", "no name of a stream"),
        ("a" * 300, "", "redis_stream", "no name of a stream"),
        ("h:1", "", "http", "no whole URL"),
    ],
)
def test_what_is_of_another_kind_is_refused(
    endpoint: str, base_url: str, kind: Kind, why: str
) -> None:
    """The message says which schemes fit."""
    with pytest.raises(ValueError, match=why):
        absolute(endpoint, base_url=base_url, kind=kind)


def test_every_scheme_of_a_protocol_speaks_of_it() -> None:
    """A protocol that isn't named is told from the scheme, and from its own only."""
    protocols: tuple[Kind, ...] = ("rest", "grpc", "websocket", "redis_stream")
    assert {scheme: kind for kind in protocols for scheme in SCHEMES[kind]} == PROTOCOL_OF


def test_a_literal_has_a_family() -> None:
    """A name has none, nor has an address that means something on one machine only."""
    assert family_of("10.0.0.7") == "ipv4"
    assert family_of("2001:db8::1") == "ipv6"
    assert family_of("agent.test") is None
    assert family_of("fe80::1%eth0") is None


texts = st.text(st.sampled_from("htps:/[]@#?.%1a \\\x00é"), max_size=20)


@given(
    texts | texts.map("http://".__add__),
    st.sampled_from(["", "http://h/a/"]),
    st.sampled_from(list(SCHEMES)),
)
def test_any_text_is_an_endpoint_or_a_clear_error(text: str, base_url: str, kind: Kind) -> None:
    """No text raises anything but ValueError, and what is kept is kept the same again."""
    try:
        kept = absolute(text, base_url=base_url, kind=kind)
    except ValueError:
        return
    assert absolute(kept, base_url="", kind=kind) == kept
