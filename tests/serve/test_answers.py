"""What an answer is made of."""

import json

from reachnode.errors import InvalidRequest, MethodNotAllowed, NoQuorum, leaves
from reachnode.serve.answers import document, problem
from reachnode.wire.http import REASONS


def test_a_document_is_json() -> None:
    """A handler's document is the body."""
    given = document({"a": "é"}, status=201, headers={"X": "y"})
    assert (given.status, given.content_type, given.headers) == (
        201,
        "application/json",
        {"X": "y"},
    )
    assert given.body == '{"a":"é"}\n'.encode()


def test_an_error_becomes_problem_details() -> None:
    """A program finds code and can_retry, a person the sentence."""
    given = problem(InvalidRequest("no", details={"at": "x"}), request_id="r1")
    assert given.content_type == "application/problem+json"
    assert json.loads(given.body) == {
        "title": "Bad Request",
        "status": 400,
        "detail": "no",
        "code": "invalid_request",
        "can_retry": False,
        "request_id": "r1",
        "details": {"at": "x"},
    }
    assert given.headers == {}


def test_what_passes_says_when_to_come_back() -> None:
    """A 503 carries Retry-After in whole seconds, rounded up."""
    assert problem(NoQuorum(), request_id="r").headers == {"Retry-After": "1"}
    given = problem(NoQuorum(retry_after_ms=1001), request_id="r")
    assert given.headers == {"Retry-After": "2"}
    assert json.loads(given.body)["retry_after_ms"] == 1001


def test_a_wrong_method_is_told_the_right_ones() -> None:
    """A 405 carries Allow."""
    error = MethodNotAllowed(details={"allow": ["GET", "HEAD"]})
    assert problem(error, request_id="r").headers == {"Allow": "GET, HEAD"}


def test_every_error_has_a_reason_phrase() -> None:
    """No error of ours can fail to be framed."""
    assert {leaf.status for leaf in leaves()} <= set(REASONS)
