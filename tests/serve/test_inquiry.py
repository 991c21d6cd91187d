"""What a request says, checked."""

import pytest

from reachnode.errors import InvalidRequest, ReachError, UnsupportedMediaType
from reachnode.serve.inquiry import Inquiry
from reachnode.wire.http_engines import Request


def inquiry(body: bytes = b"{}", query: dict[str, str] | None = None, **headers: str) -> Inquiry:
    """Return an inquiry with these headers, underscores standing for dashes."""
    request = Request(
        method="POST",
        target="/",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=body,
        keeps_alive=True,
    )
    return Inquiry(request=request, request_id="r", parts={}, query=query or {})


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=utf-8", "application/x.y+json"]
)
def test_json_is_read(kind: str) -> None:
    """Every spelling of JSON is taken, and so is none."""
    assert inquiry(b'{"a": 1}', content_type=kind).document() == {"a": 1}
    assert inquiry(b'{"a": 1}').document() == {"a": 1}


@pytest.mark.parametrize("kind", ["text/plain", "", "application/jsonx"])
def test_another_type_is_refused(kind: str) -> None:
    """What says it isn't JSON is not guessed at."""
    with pytest.raises(UnsupportedMediaType):
        inquiry(content_type=kind).document()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "", "x"])
def test_a_compressed_body_is_refused(coding: str) -> None:
    """A small body that grows is no way around the limit."""
    with pytest.raises(UnsupportedMediaType):
        inquiry(content_encoding=coding).document()
    assert inquiry(content_encoding="Identity").document() == {}


def test_whole_numbers_of_the_query() -> None:
    """A number is read, its absence is None, anything else is refused."""
    assert inquiry(query={"n": "007"}).whole_number("n") == 7
    assert inquiry().whole_number("n") is None
    for text in ("", "-1", "1.5", "٣", "1" * 19):
        with pytest.raises(InvalidRequest, match="n must be a whole number"):
            inquiry(query={"n": text}).whole_number("n")


@pytest.mark.parametrize(
    ("said", "key"), [("abc-1", "abc-1"), ('"a b"', "a b"), ("x" * 128, "x" * 128)]
)
def test_a_key_is_quoted_or_bare(said: str, key: str) -> None:
    """Both forms of Idempotency-Key mean the same."""
    assert inquiry(idempotency_key=said).idempotency_key() == key
    assert inquiry().idempotency_key() is None


@pytest.mark.parametrize("said", ["", '""', "a b", '"a', "x" * 129, "é"])
def test_another_key_is_refused(said: str) -> None:
    """A key that can't be kept is an error, never dropped."""
    with pytest.raises(InvalidRequest, match="Idempotency-Key"):
        inquiry(idempotency_key=said).idempotency_key()


@pytest.mark.parametrize(("said", "revision"), [("3", 3), ('"3"', 3), ("*", None)])
def test_a_revision_is_quoted_or_bare(said: str, revision: int | None) -> None:
    """`If-Match` takes the revision in both forms; a star is any."""
    assert inquiry(if_match=said).expected_revision() == revision
    assert inquiry().expected_revision() is None


@pytest.mark.parametrize("said", ['W/"3"', "x", "", '"3", "4"'])
def test_another_revision_is_refused(said: str) -> None:
    """A guard that can't be kept is an error, never dropped."""
    with pytest.raises(ReachError, match="If-Match"):
        inquiry(if_match=said).expected_revision()
