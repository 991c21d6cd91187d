"""The engine on httptools, beside what tests of all engines hold it to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reachnode.wire.http import READ_HEAD
from tests.wire.http_streams import outcome_of, sound_requests

httptools = pytest.importorskip("httptools")


class Messages:
    """What llhttp calls back with, for a whole connection."""

    def __init__(self) -> None:
        self.found: list[tuple[str, bytes]] = []
        self.open: list[Any] = []

    def on_url(self, data: bytes) -> None:
        self.open = [data, b""]

    def on_body(self, data: bytes) -> None:
        self.open[1] += data

    def on_message_complete(self) -> None:
        self.found.append((self.open[0].decode(), self.open[1]))


@settings(max_examples=200)
@given(st.lists(sound_requests(kept=True), min_size=1, max_size=3).map(b"".join))
def test_what_we_read_llhttp_reads_alike(stream: bytes) -> None:
    """Node.js and its kin, framing the whole connection, see the requests that we see."""
    ours = outcome_of([stream], READ_HEAD)
    messages = Messages()
    parser = httptools.HttpRequestParser(messages)
    refused = False
    try:
        parser.feed_data(stream)
    except httptools.HttpParserError:
        refused = True
    count = len(ours.requests)
    assert [(one.target, one.body) for one in ours.requests] == messages.found[:count]
    assert ours.refusal or (len(messages.found) == count and not refused)
