"""Asking nodes, one after the other."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from reachnode.cli.api import Api, NodeRefused, NoNodeAnswered, WrongUrl, place_of, segment
from reachnode.model.membership import Unknown
from reachnode.registry.outcomes import Refused
from tests.cli.conftest import LiveNode
from tests.serve.local_replica import ALONE

NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://127.0.0.1:7400", ("127.0.0.1", 7400)),
        ("http://[::1]:7400/", ("::1", 7400)),
        ("node-1:7400", ("node-1", 7400)),
        ("http://node-1", ("node-1", 80)),
    ],
)
def test_a_url_says_where_to_ask(url: str, place: tuple[str, int]) -> None:
    """The usual spellings are read."""
    assert place_of(url) == place


@pytest.mark.parametrize(
    "url", ["https://h:1", "http://", "http://h:x", "http://h/p", "http://[:1"]
)
def test_another_url_is_refused(url: str) -> None:
    """What can't be asked is said before anything is sent."""
    with pytest.raises(WrongUrl, match="no node's URL"):
        Api([url])


def test_the_next_node_is_asked_when_one_is_gone(node: LiveNode) -> None:
    """A dead node costs nothing but a moment."""
    api = Api([NOWHERE, node.url], "a-token")
    assert api.get("/api/v1/cluster")["node"] == "n1"
    assert api.change("POST", "/register", {"agent_id": "a"})["index"] == 1


def test_nobody_answers() -> None:
    """Every node is named with what became of asking it."""
    with pytest.raises(NoNodeAnswered, match=r"127.0.0.1:1 \(.*refused.*127.0.0.1:2"):
        Api([NOWHERE, "http://127.0.0.1:2"]).get("/health")


@contextmanager
def stranger(answer: bytes) -> Iterator[str]:
    """Give the URL of a server that says one thing to everybody and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def test_what_is_no_node_does_not_answer() -> None:
    """A server of another kind is passed over."""
    hello = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    with stranger(hello) as url, pytest.raises(NoNodeAnswered, match="is it a node"):
        Api([url]).get("/health")


def test_a_lost_answer_is_an_unknown_outcome(node: LiveNode) -> None:
    """A change that was sent may have happened, unless a node can say what became of it."""
    with stranger(b"") as url, pytest.raises(NodeRefused, match="unknown_outcome: it may have"):
        Api([url]).change("POST", "/register", {"agent_id": "a"})
    with stranger(b"") as url:
        done = Api([url, node.url]).change("POST", "/register", {"agent_id": "a"})
        assert done["agent_id"] == "a"


def test_a_lost_answer_to_a_question_is_no_loss(node: LiveNode) -> None:
    """Another node is asked; a question changes nothing, so nothing is unknown."""
    asked = {"capability": "x"}
    with stranger(b"") as url, pytest.raises(NoNodeAnswered):
        Api([url]).question("/api/v1/discover", asked)
    with stranger(b"") as url:
        got = Api([url, node.url]).question("/api/v1/discover", asked)
        assert got["gap"]["code"] == "unknown_capability"


def test_a_node_that_cannot_say_settles_nothing(node: LiveNode, second: LiveNode) -> None:
    """After an unknown outcome, another node's lack of a quorum is no refusal."""
    node.replica.answers = Unknown("late")
    second.replica.answers = Refused("no_quorum", "cut off")
    with pytest.raises(NodeRefused) as caught:
        Api([node.url, second.url]).change("POST", "/register", {"agent_id": "a"})
    assert caught.value.code == "unknown_outcome"


def test_a_refusal_is_final(node: LiveNode, second: LiveNode) -> None:
    """What one node refuses for good, no other is asked."""
    with pytest.raises(NodeRefused, match="unknown_agent: x isn't registered"):
        Api([node.url, second.url]).change("DELETE", "/api/v1/agents/x")
    assert second.replica.proposed == []


def test_another_node_may_do_better(node: LiveNode, second: LiveNode) -> None:
    """An unknown outcome is asked again elsewhere, under the same key."""
    node.replica.answers = Unknown("late")
    done = Api([node.url, second.url]).change("POST", "/register", {"agent_id": "a"})
    assert done["agent_id"] == "a"
    keys = [one.replica.proposed[0][2] for one in (node, second)]
    assert keys[0] == keys[1]


def test_the_last_refusal_is_told(node: LiveNode) -> None:
    """When nobody does better, the reason is what a node said, not that others are gone."""
    node.replica.now = replace(ALONE, role="follower", leader="n2")
    with pytest.raises(NodeRefused) as caught:
        Api([node.url, NOWHERE]).change("POST", "/api/v1/cluster/transfer")
    assert caught.value.code == "not_leader"


def test_a_query_leaves_out_what_is_not_said(node: LiveNode) -> None:
    """None means nothing was asked."""
    got = Api([node.url]).get("/api/v1/agents", {"zone": None, "agent": "a&b"})
    assert got["items"] == []


def test_ids_become_one_segment() -> None:
    """No id can leave its place in a path."""
    assert segment("a/b:c?d") == "a%2Fb%3Ac%3Fd"
