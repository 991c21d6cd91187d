"""The causes for which a node stops, and their exit statuses."""

import pytest

from reachnode.peers.raft.failstop import CAUSES, FailStop


def test_every_cause_has_a_status_and_a_word_of_its_own() -> None:
    """An exit status between 70 and 79 names exactly one cause."""
    statuses = [cause.status for cause in CAUSES]
    assert statuses == sorted(set(statuses))
    assert all(70 <= status <= 79 for status in statuses)
    assert len({cause.word for cause in CAUSES}) == len(CAUSES)
    assert all(cause.meaning and cause.remedy for cause in CAUSES)


def test_a_fail_stop_says_what_was_found_and_what_to_do() -> None:
    """The error carries its status, its word, the finding and the remedy."""
    stop = FailStop(70, "journal_damaged", "bad checksum at byte 4096")
    assert (stop.status, stop.word) == (70, "journal_damaged")
    assert str(stop) == "journal_damaged: bad checksum at byte 4096"
    assert "replace" in stop.remedy


@pytest.mark.parametrize(("status", "word"), [(71, "journal_damaged"), (70, "unheard_of")])
def test_an_undocumented_pair_is_a_mistake_of_ours(status: int, word: str) -> None:
    """No node can exit with a status that the table doesn't explain."""
    with pytest.raises((AssertionError, KeyError)):
        FailStop(status, word, "anything")
