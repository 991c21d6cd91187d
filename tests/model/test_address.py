"""What an address is, and what people may write for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.model.address import Address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7401", "127.0.0.1", 7401),
        ("node-1.example:0", "node-1.example", 0),
        ("[::1]:65535", "::1", 65535),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
        ("[10.0.0.1]:7", "10.0.0.1", 7),
    ],
)
def test_the_usual_spellings_are_read(text: str, host: str, port: int) -> None:
    """Names, IPv4 and bracketed IPv6 hosts are understood."""
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no port"),
        ("localhost", "no port"),
        ("[::1]", "no port"),
        (":7401", "needs a host"),
        ("[]:7401", "needs a host"),
        ("::1:7401", "in brackets"),
        ("[::1:7401", "in brackets"),
        ("h:", "not a number"),
        ("h:x", "not a number"),
        ("h:-1", "not a number"),
        ("h:+1", "not a number"),
        ("h:٣", "not a number"),
        ("h:100000", "not a number"),
        ("h:65536", "not between"),
        ("a b:1", "a blank"),
        ("http//h:1", "not allowed"),
        ("[a]b:1", "not allowed"),
        ("\x00:1", "not allowed"),
        ("h" * 256 + ":1", "over 255"),
    ],
)
def test_anything_else_is_refused_and_says_why(text: str, why: str) -> None:
    """A text that is no address gets an error that names the fault."""
    with pytest.raises(ValueError, match=why):
        Address.parse(text)


def test_a_negative_port_is_refused() -> None:
    """An address made in code is checked like one that was read."""
    with pytest.raises(ValueError, match="not between"):
        Address("h", -1)


@given(st.sampled_from(["h", "10.0.0.1", "::1", "a-b.c"]), st.integers(0, 65535))
def test_an_address_reads_back_what_it_prints(host: str, port: int) -> None:
    """Printing and reading are inverse."""
    assert Address.parse(str(Address(host, port))) == Address(host, port)


@given(st.text(max_size=40))
def test_no_text_does_more_than_raise_value_error(text: str) -> None:
    """Whatever is written, the answer is an address or a ValueError."""
    try:
        address = Address.parse(text)
    except ValueError:
        return
    assert Address.parse(str(address)) == address
