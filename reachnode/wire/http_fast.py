"""The fast engine: heads read by httptools, the llhttp of Node.js.

Importing this module fails where httptools isn't installed; `http_engines` chooses.
"""

import httptools

from reachnode.wire.http_engines import Request, add_header, made_request, read_with_h11


class Caught:
    """What the parser calls back with."""

    __slots__ = ("headers", "is_whole", "target")

    def __init__(self) -> None:
        self.target = b""
        self.headers: dict[str, str] = {}
        self.is_whole = False

    def on_url(self, data: bytes) -> None:
        """Take the target."""
        self.target += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; llhttp leaves white space behind a value, and coding names as sent."""
        name, value = name.lower(), value.rstrip(b" \t")
        add_header(self.headers, name, value.lower() if name == b"transfer-encoding" else value)

    def on_headers_complete(self) -> None:
        """Take note that nothing is missing."""
        self.is_whole = True


def read_with_httptools(head: bytes) -> Request:
    """Return the request of a head, read by httptools.

    What it refuses (a method it doesn't know, an odd target) the reference decides.

    Raises:
        InvalidRequest: The reference can't read it either.
    """
    caught = Caught()
    parser = httptools.HttpRequestParser(caught)
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass  # It stops behind the head of who would speak another protocol; we don't.
    except httptools.HttpParserError:
        return read_with_h11(head)
    if not caught.is_whole:
        return read_with_h11(head)
    return made_request(
        method=parser.get_method(),
        target=caught.target,
        version=parser.get_http_version().encode(),
        headers=caught.headers,
    )
