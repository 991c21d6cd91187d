"""What is put right in messages before the engine sees them."""

from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.disk import Disk
from reachnode.peers.raft.guards import back_off, trim_overlap
from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.messages import Ack, Append
from reachnode.peers.raft.opening import REGULAR, Entry


def entries_of(terms: list[int], start: int) -> list[Entry]:
    """Return entries of these terms, beginning at an index."""
    return [(REGULAR, start + place, term) for place, term in enumerate(terms)]


def journal_of(terms: list[int], base: tuple[int, int] = (1, 0)) -> Journal:
    """Return a journal whose entries have these terms."""
    entries = entries_of(terms, base[0] + 1)
    return Journal(Disk(), base=base, entries=entries, term=9, voted_for=None, notes={})


def append(previous: tuple[int, int], terms: list[int], commit_index: int = 99) -> Append:
    """Return a leader's message: (index, term) before the entries, and their terms."""
    return Append(9, commit_index, *previous, entries_of(terms, previous[0] + 1))


def rising(draw: st.DrawFn, count: int, least: int = 0) -> list[int]:
    """Draw terms that never fall."""
    return sorted(draw(st.lists(st.integers(least, 4), min_size=count, max_size=count)))


@st.composite
def logs_and_messages(draw: st.DrawFn) -> tuple[list[int], Append]:
    """Draw a follower's log, and a message out of a leader's log that shares a part of it."""
    log = rising(draw, draw(st.integers(0, 8)))
    shared = draw(st.integers(0, len(log)))
    theirs = log[:shared]
    theirs += rising(draw, draw(st.integers(0, 4)), least=theirs[-1] if theirs else 0)
    start = draw(st.integers(0, len(theirs)))
    count = draw(st.integers(0, len(theirs) - start))
    previous = (start + 1, theirs[start - 1] if start else 0)
    return log, append(previous, theirs[start : start + count], draw(st.integers(0, 20)))


@given(logs_and_messages())
def test_trimming_leaves_what_raft_would_do(drawn: tuple[list[int], Append]) -> None:
    """Played by figure 2 of the paper, the trimmed message makes the same log as the whole.

    And it says nothing that is held already, and lets nothing be committed that it has not
    verified.
    """
    log, message = drawn
    held = dict(enumerate([0, *log], start=1))  # index to term, the base included
    trimmed, is_protected = trim_overlap(journal_of(log), message)
    if held.get(message.previous_index) != message.previous_term:
        assert (trimmed, is_protected) == (message, False)
        return
    assert played(held, trimmed) == played(held, message)
    assert all(held.get(index) != term for _, index, term in trimmed.entries[:1])
    verified = message.previous_index + len(message.entries)
    assert trimmed.previous_index + len(trimmed.entries) == verified
    assert trimmed.commit_index == min(message.commit_index, verified)
    assert is_protected == (trimmed.entries == [])
    if is_protected:
        assert played(held, message) == held, "nothing in the message justifies a cut"


def played(held: dict[int, int], message: Append) -> dict[int, int]:
    """Return a log after a message, as the paper has it: cut on conflict only."""
    log = dict(held)
    for _, index, term in message.entries:
        if log.get(index) not in (None, term):
            log = {at: of for at, of in log.items() if at < index}
        log[index] = term
    return log


def test_a_heartbeat_for_a_longer_log_protects_it() -> None:
    """The tail behind a heartbeat's place stays, and is not committed by it."""
    message, is_protected = trim_overlap(journal_of([1, 1, 1]), append((2, 1), [], 9))
    assert is_protected
    assert (message.previous_index, message.commit_index) == (2, 2)


def test_entries_before_the_base_are_no_ground_to_trim() -> None:
    """A place this log no longer has can't be compared: the engine answers for it."""
    message = append((3, 1), [1, 1])
    assert trim_overlap(journal_of([1], base=(5, 1)), message) == (message, False)


def test_a_refusal_names_the_end_of_what_is_committed() -> None:
    """The leader goes on behind it at once, and never later than it was told."""
    journal = journal_of([1, 1, 1])
    refused = Ack(9, 4, reset=True, success=False)
    assert back_off(refused, journal, 2) == Ack(9, 3, reset=True, success=False)
    assert back_off(refused, journal, 4) == refused


def test_a_refusal_for_missing_entries_stays() -> None:
    """Where the log ends before the leader's place, the engine named its end already."""
    journal = journal_of([1, 1, 1])
    missing = Ack(9, 5, reset=True, success=False)
    assert back_off(missing, journal, 2) == missing
    taken = Ack(9, 3, reset=False, success=True)
    assert back_off(taken, journal, 1) == taken
