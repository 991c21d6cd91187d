"""Bodies: where they end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.errors import InvalidRequest, PayloadTooLarge
from reachnode.wire.http_bodies import CHUNKS_MAX, Body, ChunkedBody, SizedBody
from reachnode.wire.http_heads import BODY_BYTES_MAX
from tests.wire.http_streams import cut, cuts


def take(body: Body, *pieces: bytes) -> tuple[bytes, bytes] | None:
    """Return a whole body and what is left behind it; None while it isn't whole."""
    buffer = bytearray()
    for at, piece in enumerate(pieces):
        buffer += piece
        if body.take(buffer):
            return bytes(body.content), bytes(buffer) + b"".join(pieces[at + 1 :])
    return None


@given(st.binary(max_size=50), st.binary(max_size=9), cuts)
def test_a_body_of_a_length_ends_there(content: bytes, rest: bytes, places: list[int]) -> None:
    """Not a byte of the next request belongs to it."""
    pieces = cut(content + rest, places)
    assert take(SizedBody(len(content)), *pieces) == (content, rest)
    if content:
        assert take(SizedBody(len(content)), *cut(content[:-1], places)) is None


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.binary(max_size=9), cuts)
def test_chunks_are_joined(chunks: list[bytes], rest: bytes, places: list[int]) -> None:
    """However they are cut, their content comes out and the rest stays."""
    wire = b"".join(b"%X;a=b\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\n\r\n"
    assert take(ChunkedBody(), *cut(wire + rest, places)) == (b"".join(chunks), rest)
    assert take(ChunkedBody(), *cut(wire[:-1], places)) is None


@pytest.mark.parametrize("line", [b"3", b"0003", b"3;a", b"3;a=b;c", b'3;a="b; c\t"', b"3;!=~"])
def test_extensions_are_passed_over(line: bytes) -> None:
    """Whatever RFC 9112 lets stand behind a size, without white space."""
    assert take(ChunkedBody(), line + b"\r\nabc\r\n0\r\n\r\n") == (b"abc", b"")


@pytest.mark.parametrize(
    "wire",
    [
        b"x\r\n",
        b"\r\n",
        b"-3\r\n",
        b"+3\r\n",
        b"0x3\r\n",
        b"3 \r\n",
        b" 3\r\n",
        b"3\n",
        b"3\r\r\n",
        b"3; a\r\n",
        b"3;\r\n",
        b"3;a=\r\n",
        b'3;a="\r\n',
        b"3;a\rb\r\n",
        b"3;a\x00\r\n",
        b"ffffffffffffffff1\r\n",
        b"000000003\r\n",
        b"3;" + b"a" * 300,
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n",
        b"3\r\nabc0\r\n",
        b"0\r\nX: 1\r\n\r\n",
        b"0\r\n\n",
    ],
)
def test_chunks_of_another_form_are_refused(wire: bytes) -> None:
    """What programs read differently ends the connection, however it is cut."""
    with pytest.raises(InvalidRequest):
        take(ChunkedBody(), wire)
    with pytest.raises(InvalidRequest):
        take(ChunkedBody(), *(wire[at : at + 1] for at in range(len(wire))))


def test_a_chunked_body_is_bounded() -> None:
    """A chunk that goes over 1 MiB is refused by its size, before it comes."""
    whole = b"%x\r\n%s\r\n" % (BODY_BYTES_MAX, bytes(BODY_BYTES_MAX))
    assert take(ChunkedBody(), whole, b"0\r\n\r\n") == (bytes(BODY_BYTES_MAX), b"")
    with pytest.raises(PayloadTooLarge):
        take(ChunkedBody(), whole, b"1\r\n")
    with pytest.raises(PayloadTooLarge):
        take(ChunkedBody(), b"ffffffff\r\n")


def test_crumbs_are_bounded() -> None:
    """A body in ever so many chunks would cost more than it carries."""
    with pytest.raises(InvalidRequest, match="send larger ones"):
        take(ChunkedBody(), b"1\r\na\r\n" * (CHUNKS_MAX + 1))
    assert take(ChunkedBody(), b"1\r\na\r\n" * (CHUNKS_MAX - 1) + b"0\r\n\r\n")
