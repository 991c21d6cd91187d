"""The error tree: one code, one meaning."""

import re
from pathlib import Path

import pytest

from reachnode.errors import (
    BY_CODE,
    CallerError,
    ClusterError,
    ConflictError,
    Internal,
    MissingError,
    NoQuorum,
    ReachError,
    RevisionConflict,
    UnknownAgent,
    error_of,
    leaves,
    reference_page,
)

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "errors.md"

PROMISED = {
    "invalid_request": (400, False),
    "schema_mismatch": (422, False),
    "payload_too_large": (413, False),
    "unauthenticated": (401, False),
    "forbidden": (403, False),
    "trust_too_low": (403, False),
    "unknown_capability": (404, False),
    "confirmation_required": (409, False),
    "no_reachable_agent": (503, True),
    "no_matching_agent": (503, False),
    "busy": (503, True),
    "rate_limited": (429, True),
    "quota_exceeded": (429, True),
    "circuit_open": (503, True),
    "deadline_exceeded": (504, True),
    "connect_failed": (502, True),
    "agent_rejected": (422, False),
    "agent_error": (502, False),
    "unknown_outcome": (504, False),
    "idempotency_mismatch": (422, False),
    "in_progress": (409, True),
    "business_error": (200, False),
    "depth_exceeded": (508, False),
    "stream_interrupted": (502, False),
    "duplicate_capability": (422, False),
    "agent_id_in_use": (409, False),
    "capability_taken": (409, False),
    "superseded": (409, False),
    "would_uncover": (409, False),
    "cluster_changing": (409, True),
    "stale_lease": (409, False),
    "too_stale": (503, True),
    "loop_detected": (508, False),
    "upstream_redirect": (502, False),
    "result_too_large": (502, False),
    "index_expired": (410, False),
    "disk_full": (503, True),
    "dependency_cycle": (422, False),
    "embedding_mismatch": (422, False),
    "endpoint_refused": (422, False),
    "unknown_agent": (404, False),
    "unknown_ticket": (404, False),
    "revision_conflict": (412, False),
    "no_quorum": (503, True),
    "shutting_down": (503, True),
    "not_found": (404, False),
    "method_not_allowed": (405, False),
    "unsupported_media_type": (415, False),
    "headers_too_large": (431, False),
    "uri_too_long": (414, False),
    "request_timeout": (408, False),
    "internal": (500, False),
}
"""The table of the contract: HTTP status and `can_retry` by code."""


def test_a_leaf_carries_what_every_surface_needs() -> None:
    """A leaf has its code, status and retry, and is caught by its branch."""
    with pytest.raises(ClusterError) as caught:
        raise NoQuorum(details={"voters": 3}, retry_after_ms=250)
    error = caught.value
    assert (error.code, error.status, error.can_retry) == ("no_quorum", 503, True)
    assert str(error) == "This node is cut off from a majority; nothing was changed."
    assert error.details == {"voters": 3}
    assert error.retry_after_ms == 250


def test_a_message_of_its_own_replaces_the_meaning() -> None:
    """What happened is said in the words of whoever raises."""
    error = UnknownAgent("a1 isn't registered: register it again")
    assert error.why == str(error) == "a1 isn't registered: register it again"
    assert error.details == {}
    assert error.retry_after_ms is None


def test_a_leaf_inherits_its_branch_status() -> None:
    """A leaf without a status of its own has the branch's; retrying is never inherited."""
    assert UnknownAgent.status == MissingError.status == 404
    assert issubclass(UnknownAgent, CallerError)
    assert (RevisionConflict.status, ConflictError.status) == (412, 409)
    assert not RevisionConflict.can_retry


def test_every_code_is_used_once() -> None:
    """No two leaves share a code, and only leaves have one."""
    found = list(leaves())
    codes = [leaf.code for leaf in found]
    assert len(set(codes)) == len(codes) == len(BY_CODE)
    assert all(not leaf.__subclasses__() for leaf in found)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


def test_every_error_says_when_in_one_sentence() -> None:
    """The first line of every docstring is a whole sentence, fit for a table."""
    for leaf in leaves():
        assert leaf.meaning().endswith("."), leaf
        assert "|" not in leaf.meaning()
        assert 200 <= leaf.status < 600


def test_an_error_is_found_by_its_code() -> None:
    """A code from another node becomes the same error here; a newer one becomes `internal`."""
    error = error_of("revision_conflict", "it is at 4", details={"revision": 4})
    assert isinstance(error, RevisionConflict)
    assert (error.why, error.details) == ("it is at 4", {"revision": 4})
    strange = error_of("from_the_future", "who knows")
    assert isinstance(strange, Internal)
    assert strange.why == "unknown error code 'from_the_future': who knows"


def test_the_table_of_the_contract_is_kept() -> None:
    """Clients rely on these codes, statuses and retries."""
    assert {code: (BY_CODE[code].status, BY_CODE[code].can_retry) for code in PROMISED} == PROMISED


def test_a_branch_has_no_code() -> None:
    """A branch is for catching: it is never found by code."""
    assert ReachError.code == CallerError.code == ""


def test_the_reference_page_is_fresh() -> None:
    """`docs/reference/errors.md` says what the code says.

    To renew it: `python -c "from reachnode.errors import reference_page as page;
    print(page(), end='')" > docs/reference/errors.md`.
    """
    assert PAGE.read_text(encoding="utf-8") == reference_page()
