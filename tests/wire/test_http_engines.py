"""Engines: one request, one refusal, whichever reads."""

import os
import subprocess
import sys
from pathlib import Path

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reachnode.errors import InvalidRequest
from reachnode.wire.http import ENGINE_NAME, READ_HEAD
from reachnode.wire.http_engines import Engine, chosen, read_with_h11
from tests.wire.http_streams import ENGINES, cut, cuts, outcome_of, sound_requests, streams

WITHOUT = Path(__file__).parents[1] / "without"
SECONDS_MAX = 300
HEAD = (
    b"POST /a?b HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: CHUNKED \r\nX-A: 1\r\nx-a:\t2 \r\n"
    b"Empty:\r\nLatin: \xe9\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_head_is_read(engine: Engine) -> None:
    """Names are in lower case, values without white space around them, repeats are joined."""
    request = engine(HEAD)
    assert (request.method, request.target, request.body) == ("POST", "/a?b", b"")
    assert request.keeps_alive
    assert request.headers == {
        "host": "n1",
        "transfer-encoding": "chunked",
        "x-a": "1, 2",
        "empty": "",
        "latin": "é",
        "upgrade": "h2c",
        "connection": "Upgrade",
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ["FROB", "get", "PRI", "SOURCE", "ANNOUNCE", "CONNECT"])
@pytest.mark.parametrize("target", ["/", "*", "a", 'a"|', "n1:443"])
def test_odd_methods_and_targets_are_read(engine: Engine, method: str, target: str) -> None:
    """No list of one library decides which words may come: the table of paths does."""
    request = engine(f"{method} {target} HTTP/1.1\r\nHost: n1\r\n\r\n".encode())
    assert (request.method, request.target, request.keeps_alive) == (method, target, True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("head", "keeps_alive"),
    [
        (b"GET / HTTP/1.1\r\nHost: n1\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: n1\r\nConnection: x, Close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: n1\r\nConnection: x\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
    ],
)
def test_who_wants_to_close_is_heard(engine: Engine, head: bytes, *, keeps_alive: bool) -> None:
    """HTTP/1.0 and `Connection: close` end the connection."""
    assert engine(head).keeps_alive is keeps_alive


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_no_whole_head_is_refused(engine: Engine) -> None:
    """The engine refuses what isn't a request, even if our own checks let it pass."""
    with pytest.raises(InvalidRequest, match="unreadable"):
        engine(b"GET / HTTP/1.1\r\nHost: a\r\n")
    with pytest.raises(InvalidRequest, match="no HTTP"):
        engine(b"hello\r\n\r\n")


@settings(max_examples=400)
@given(streams, cuts, cuts)
@example(b"GET / HTTP/1.1\r\nHost: a\r\nX: b \t\r\n\r\n", [], [])
@example(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", [], [])
@example(b"PRI / HTTP/1.1\r\nHost: a\r\n\r\n", [3], [])
def test_engines_give_the_same_answers(stream: bytes, here: list[int], there: list[int]) -> None:
    """The same requests and the same refusals, however the bytes are cut."""
    expected = outcome_of(cut(stream, here), read_with_h11)
    for engine in ENGINES:
        assert outcome_of(cut(stream, there), engine) == expected


@settings(max_examples=200)
@given(st.lists(sound_requests(kept=True), min_size=1, max_size=3).map(b"".join))
def test_what_we_read_others_read_alike(stream: bytes) -> None:
    """Nobody in front of us or behind us sees other requests than we do.

    h11 on its own frames the whole connection; where it refuses we may be anything but
    content.
    """
    ours = outcome_of([stream], READ_HEAD)
    theirs = framed_by_h11(stream)
    count = len(ours.requests)
    assert [(one.method, one.target, one.body) for one in ours.requests] == theirs[:count]
    assert ours.refusal or len(theirs) == count


def framed_by_h11(stream: bytes) -> list[tuple[str, str, bytes]]:
    """Return method, target and body of each request as h11 alone sees them."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(stream)
    found = []
    try:
        while isinstance(head := connection.next_event(), h11.Request):
            body = b""
            while isinstance(piece := connection.next_event(), h11.Data):
                body += bytes(piece.data)
            if not isinstance(piece, h11.EndOfMessage):
                break
            found.append((head.method.decode(), head.target.decode(), body))
            connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    except h11.RemoteProtocolError:
        pass
    return found


def test_the_engine_is_chosen_by_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast one is used where httptools is installed, else the reference."""
    assert chosen() == (ENGINE_NAME, READ_HEAD)
    monkeypatch.delitem(sys.modules, "reachnode.wire.http_fast", raising=False)
    monkeypatch.setitem(sys.modules, "httptools", None)
    assert chosen() == ("h11", read_with_h11)


def test_everything_holds_without_httptools() -> None:
    """Where httptools isn't installed, all that speaks HTTP keeps its promises.

    The whole suite runs so with `tests/without` first on the path.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-k", "not without_httptools", "tests/wire", "tests/serve", "tests/cases"),
        ],
        cwd=WITHOUT.parents[1],
        env={**os.environ, "PYTHONPATH": str(WITHOUT)},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout
