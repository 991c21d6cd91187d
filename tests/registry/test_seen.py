"""An instance as it is seen."""

from msgspec.structs import replace

from reachnode.registry.seen import seen_as, unseen
from tests.routing.seen import liveness, record_of, told_by


def test_what_was_announced_overrules_what_was_seen() -> None:
    """The log's word comes first, and health where it has none."""
    record = record_of("a1", "x")
    found = told_by({"a1": liveness("a1", "suspect")})
    seen = seen_as(record, found)
    assert (seen.state, seen.index, seen.instance) == ("suspect", 1, record.instance)
    assert seen_as(replace(record, standing="updating"), found).state == "updating"


def test_of_whom_nothing_was_heard_is_pending() -> None:
    """It comes after the suspects."""
    found = unseen(record_of("a1", "x"))
    assert (found.agent_id, found.state, found.use, found.basis) == (
        "a1",
        "pending",
        "after_suspects",
        "none",
    )
