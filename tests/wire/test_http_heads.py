"""Heads: where they end, what they may hold, and where the body behind them ends."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import HeadersTooLarge, InvalidRequest, PayloadTooLarge, UriTooLong
from reachnode.wire.http_heads import (
    BODY_BYTES_MAX,
    FIRST_LINE_BYTES_MAX,
    HEAD_BYTES_MAX,
    Framing,
    HeadReader,
    check_head,
    faults,
)
from tests.wire.http_streams import heads

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def take(data: bytes, step: int) -> tuple[bytes | None, bytes]:
    """Return the head found in bytes that come in steps, and what is left of them then."""
    reader, buffer = HeadReader(), bytearray()
    for at in range(0, len(data), step):
        buffer += data[at : at + step]
        head = reader.take(buffer)
        if head is not None:
            return head, bytes(buffer)
    return None, bytes(buffer)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_a_head_is_cut_off(step: int) -> None:
    """Empty lines before it are skipped, what comes behind it is left."""
    head, rest = take(b"\r\n\r\n" + GET + b"rest" * 25, step)
    assert head == GET
    assert (b"rest" * 25).startswith(rest)
    assert take(GET[:-1], step) == (None, GET[:-1])


@pytest.mark.parametrize("step", [1, 1000, 100_000])
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"GET /" + b"a" * 100_000, UriTooLong),
        (GET[:-2] + b"X: " + b"a" * 70_000 + b"\r\n\r\n", HeadersTooLarge),
        (
            GET[:-2] + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 1000) for n in range(200)),
            HeadersTooLarge,
        ),
        (GET[:-2] + b"X: " + b"a" * 9000 + b"\0" + b"a" * 70_000, InvalidRequest),
        (b"GET /" + b"a" * 100 + b"\n" + b"a" * 9000, InvalidRequest),
        (b"GET /" + b"a" * 9000 + b"\n", UriTooLong),
    ],
)
def test_hopeless_heads_are_refused_alike(data: bytes, step: int, error: type[Exception]) -> None:
    """What is wrong first decides, whether it comes in one piece or byte by byte."""
    with pytest.raises(error):
        take(data, step)


def test_a_whole_head_may_fill_its_limit() -> None:
    """32 KiB with the empty line at the end, and 8 KiB of first line, are the most."""
    room = HEAD_BYTES_MAX - len(GET) - len(b"X: \r\n")
    whole = GET[:-2] + b"X: " + b"a" * room + b"\r\n\r\n"
    assert take(whole, 50_000)[0] == whole
    with pytest.raises(HeadersTooLarge):
        take(whole[:-4] + b"a\r\n\r\n", 50_000)
    line = b"GET /" + b"a" * (FIRST_LINE_BYTES_MAX - 5 - 2) + b"\r\n\r\n"
    assert take(line, 50_000)[0] == line


@pytest.mark.parametrize(
    ("lines", "framing"),
    [
        (b"", Framing(length=0, is_1_0=False)),
        (b"CONTENT-length:\t12 \r\n", Framing(length=12, is_1_0=False)),
        (b"Content-Length: 0\r\n", Framing(length=0, is_1_0=False)),
        (b"Transfer-Encoding: Chunked\r\n", Framing(length=None, is_1_0=False)),
        (b"X-Content-Length: 3\r\nX: Content-Length: 4\r\n", Framing(length=0, is_1_0=False)),
    ],
)
def test_the_end_of_the_body_is_plain(lines: bytes, framing: Framing) -> None:
    """One length, or chunks, or no body."""
    assert check_head(GET[:-2] + lines + b"\r\n") == framing


def test_http_1_0_needs_no_host() -> None:
    """A request of the older version is told apart."""
    assert check_head(b"GET / HTTP/1.0\r\n\r\n") == Framing(length=0, is_1_0=True)


def test_an_announced_body_is_bounded() -> None:
    """A body over 1 MiB is refused by its announcement, a number of 19 digits as none."""
    head = GET[:-2] + b"Content-Length: %d\r\n\r\n"
    assert check_head(head % BODY_BYTES_MAX).length == BODY_BYTES_MAX
    with pytest.raises(PayloadTooLarge):
        check_head(head % (BODY_BYTES_MAX + 1))
    with pytest.raises(InvalidRequest):
        check_head(head % 10**18)


@given(heads() | st.binary(max_size=60).map(lambda data: data + b"\r\n\r\n"))
def test_what_is_wrong_can_be_named(head: bytes) -> None:
    """The one pattern that takes a head agrees with those that say what is wrong with it."""
    named = list(faults(head))
    with contextlib.suppress(PayloadTooLarge, UriTooLong):
        try:
            check_head(head)
        except InvalidRequest as error:
            said = error.why
        else:
            said = ""
        assert said == named[0] if named else "line" not in said
