"""Asking nodes over HTTP, blocking, with another node in place of one that can't answer.

Every change carries an idempotency key, so that asking another node after a lost connection
or an unknown outcome counts once.
"""

import http.client
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT_SECONDS = 15.0
ANSWER_BYTES_MAX = 64 << 20
KEY = "Idempotency-Key"
ELSEWHERE = frozenset({"not_leader", "unknown_outcome", "too_stale", "shutting_down", "no_quorum"})
"""Codes after which another node may do better."""


class NoNodeAnswered(Exception):
    """Not one of the nodes could be reached."""


class NodeRefused(Exception):
    """A node answered with a problem."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        self.code = str(problem.get("code", "unknown"))
        self.detail = str(problem.get("detail", problem.get("title", "")))
        super().__init__(f"{self.code}: {self.detail}")


class NotReached(Exception):
    """One node couldn't be connected to, so nothing was sent."""


class WrongUrl(ValueError):
    """A node's URL can't be used."""


class Api:
    """The nodes a command was told of.

    Args:
        nodes: Their URLs, asked in this order.
        token: Sent as a bearer token, None for none.

    Raises:
        WrongUrl: One of them isn't `http://HOST:PORT`.
    """

    def __init__(self, nodes: Sequence[str], token: str | None = None) -> None:
        self._nodes = [(node, place_of(node)) for node in nodes]
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, query: Mapping[str, str | None] | None = None) -> Any:
        """Return what a node answers to a GET."""
        said = {name: value for name, value in (query or {}).items() if value is not None}
        return self._ask("GET", f"{path}?{urlencode(said)}" if said else path)

    def question(self, path: str, document: Any) -> Any:
        """Return what a node answers to a question that has a body; it changes nothing."""
        return self._ask("POST", path, document)

    def change(self, method: str, path: str, document: Any = None) -> Any:
        """Return what a node answers to a change, made once whoever answers."""
        return self._ask(method, path, document, {KEY: secrets.token_hex(16)})

    def _ask(
        self,
        method: str,
        path: str,
        document: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the answer of the first node that has one.

        Raises:
            NodeRefused: One refused for good, or all that answered did; or a change may have
            happened and nobody could say.
            NoNodeAnswered: None answered.
        """
        body = None if document is None else json.dumps(document)
        every = {**self._headers, "Content-Type": "application/json", **(headers or {})}
        refused: NodeRefused | None = None
        may_have_happened = False
        failures = []
        for node, place in self._nodes:
            try:
                return ask_one(place, method, path, body, every)
            except NodeRefused as error:
                if error.code not in ELSEWHERE:
                    raise
                may_have_happened |= error.code == "unknown_outcome"
                refused = error
            except NotReached as error:
                failures.append(f"{node} ({error})")
            except (OSError, http.client.HTTPException) as error:
                may_have_happened |= KEY in every
                failures.append(f"{node} ({str(error) or type(error).__name__})")
        if may_have_happened:
            # What one node couldn't do says nothing of what another may have done.
            why = "it may have happened; look before you ask again"
            raise NodeRefused({"code": "unknown_outcome", "detail": why})
        if refused is not None:
            raise refused
        raise NoNodeAnswered(f"no node answered: {', '.join(failures)}")


def ask_one(
    place: tuple[str, int], method: str, path: str, body: str | None, headers: Mapping[str, str]
) -> Any:
    """Return what one node answers.

    Raises:
        NodeRefused: It answered with a problem.
        NotReached: Nothing was sent.
        OSError: The connection broke.
        http.client.HTTPException: It isn't HTTP that it speaks.
    """
    connection = http.client.HTTPConnection(*place, timeout=TIMEOUT_SECONDS)
    try:
        connection.connect()
    except OSError as error:
        raise NotReached(str(error) or type(error).__name__) from error
    try:
        connection.request(
            method, path, body=None if body is None else body.encode(), headers=dict(headers)
        )
        response = connection.getresponse()
        data = response.read(ANSWER_BYTES_MAX)
    finally:
        connection.close()
    try:
        document = json.loads(data)
    except ValueError:
        raise http.client.HTTPException("it answered no JSON; is it a node?") from None
    if response.status >= http.client.BAD_REQUEST:
        raise NodeRefused(document if isinstance(document, dict) else {})
    return document


def place_of(node: str) -> tuple[str, int]:
    """Return host and port of a node's URL.

    Raises:
        WrongUrl: It isn't `http://HOST:PORT`.
    """
    try:
        url = urlsplit(node if "://" in node else f"http://{node}")
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if host is None or url.scheme != "http" or url.path.strip("/") or url.query:
        raise WrongUrl(f"{node!r} is no node's URL such as http://127.0.0.1:7400")
    return host, port or 80


def segment(text: str) -> str:
    """Return a text as one segment of a path."""
    return quote(text, safe="")
