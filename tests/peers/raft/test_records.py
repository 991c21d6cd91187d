"""The bytes of a data directory."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.disk import AppendEntry, CutTail, Note
from reachnode.peers.raft.opening import REGULAR, Entry
from reachnode.peers.raft.records import (
    CUT_KIND,
    ENTRY_KIND,
    PAYLOAD_BYTES_MAX,
    Damaged,
    Mark,
    pack_header,
    pack_mark,
    pack_record,
    pack_vote,
    read_journal,
    read_mark,
    read_vote,
    seal,
    unseal,
)
from tests.peers.raft.journals import Log, Step, steps

GENERATION = 3


@dataclass(slots=True)
class Written:
    """A journal's bytes, what they say, and how far they are durable."""

    data: bytes = field(default_factory=lambda: pack_header(GENERATION, 1, 0))
    stages: list[tuple[int, list[Entry]]] = field(default_factory=list)
    """Length and entries after each record, the header first."""
    synced: int = 0

    def entries_at(self, length: int) -> list[Entry]:
        """Return the entries of the records that are whole within a length."""
        return [entries for end, entries in self.stages if end <= length][-1]


def written(drawn: list[Step]) -> Written:
    """Write steps as a journal; each may begin a new sync, the last of which never came."""
    log, out = Log(), Written()
    out.synced = len(out.data)
    out.stages.append((out.synced, []))
    for step in drawn:
        write = log.play(step) if step[0] != "trim" else None
        if step[3]:
            out.synced = len(out.data)
        match write:
            case AppendEntry((command, index, term)):
                out.data += pack_record(ENTRY_KIND, index, term, out.synced, command)
            case CutTail(index):
                out.data += pack_record(CUT_KIND, index, 0, out.synced, b"")
            case _:
                continue
        out.stages.append((len(out.data), list(log.entries)))
    return out


def mark(synced_bytes: int, generation: int = GENERATION) -> Mark:
    """Return a mark of a journal."""
    return Mark(generation=generation, synced_bytes=synced_bytes, commit_index=0)


@given(steps)
def test_a_journal_is_read_back_as_it_was_written(drawn: list[Step]) -> None:
    """Appends and cuts in any order give the log they made, with a mark or without."""
    out = written(drawn)
    for hint in (None, mark(out.synced), mark(len(out.data))):
        image = read_journal(out.data, hint)
        assert image.entries == out.stages[-1][1]
        assert (image.bytes_count, image.torn_bytes) == (len(out.data), 0)
        assert (image.generation, image.base_index, image.base_term) == (GENERATION, 1, 0)


@given(steps, st.data())
def test_a_torn_tail_gives_what_was_whole_before_it(drawn: list[Step], data: st.DataObject) -> None:
    """Cut anywhere behind the last sync, with noise instead of the rest or nothing."""
    out = written(drawn)
    length = data.draw(st.integers(out.synced, len(out.data)))
    noise = data.draw(st.binary(max_size=40) | st.just(bytes(60)))
    torn = out.data[:length] + noise
    image = read_journal(torn, mark(out.synced))
    # The noise may happen to be what was there.
    same = next(
        (at for at, (one, other) in enumerate(zip(torn, out.data, strict=False)) if one != other),
        min(len(torn), len(out.data)),
    )
    assert image.entries == out.entries_at(same)
    assert image.bytes_count + image.torn_bytes == len(torn)
    assert image.bytes_count <= same


@given(steps, st.data())
def test_a_flipped_bit_in_what_was_durable_stops_the_node(
    drawn: list[Step], data: st.DataObject
) -> None:
    """With the mark, damage is told wherever it is, at an offset no later than it."""
    out = written(drawn)
    place = data.draw(st.integers(0, out.synced - 1))
    damaged = bytearray(out.data)
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Damaged) as caught:
        read_journal(bytes(damaged), mark(out.synced))
    assert caught.value.name == "journal"
    assert caught.value.offset <= place


@given(steps, st.data())
def test_without_a_mark_later_records_bear_witness(drawn: list[Step], data: st.DataObject) -> None:
    """A record written after a sync says how far it went: before that no damage passes."""
    out = written([*drawn, ("append", 0, b"later", True)])
    place = data.draw(st.integers(0, out.synced - 1))
    damaged = bytearray(out.data)
    damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    for hint in (None, mark(99_999, generation=GENERATION - 1)):
        with pytest.raises(Damaged) as caught:
            read_journal(bytes(damaged), hint)
        assert caught.value.offset <= place


@given(steps, st.data())
def test_a_scattered_tail_is_no_damage(drawn: list[Step], data: st.DataObject) -> None:
    """Power loss may leave any sectors of what was not synced; the log ends before the first."""
    out = written(drawn)
    if out.synced == len(out.data):
        return
    place = data.draw(st.integers(out.synced, len(out.data) - 1))
    torn = bytearray(out.data)
    torn[place] ^= 1 << data.draw(st.integers(0, 7))
    image = read_journal(bytes(torn), mark(out.synced))
    assert image.entries == out.entries_at(place)


def test_a_journal_that_ends_before_its_mark_is_damaged() -> None:
    """What was durable is gone: the offset is where the file ends."""
    out = written([("append", 0, b"one", True)])
    with pytest.raises(Damaged, match="ends there") as caught:
        read_journal(out.data, mark(len(out.data) + 1))
    assert caught.value.offset == len(out.data)


def test_a_journal_shorter_than_its_header_is_damaged() -> None:
    """It got its name only after it was whole."""
    with pytest.raises(Damaged, match="cut short"):
        read_journal(pack_header(1, 1, 0)[:-1], None)


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (pack_record(ENTRY_KIND, 3, 1, 0, b"gap"), "entry 3 follows entry 1"),
        (pack_record(CUT_KIND, 1, 0, 0, b""), "a cut at 1"),
        (pack_record(CUT_KIND, 2, 0, 0, b""), "a cut at 2"),
        (
            pack_record(ENTRY_KIND, 2, 5, 0, b"") + pack_record(ENTRY_KIND, 3, 4, 0, b""),
            "entry 3 follows entry 2",
        ),
    ],
)
def test_records_that_contradict_each_other_are_damage(record: bytes, why: str) -> None:
    """Gaps, falling terms and cuts outside the log were never written by a node."""
    with pytest.raises(Damaged, match=why):
        read_journal(pack_header(1, 1, 0) + record, None)


@pytest.mark.parametrize("kind", [0, 3, 255])
def test_a_record_of_another_kind_ends_the_log(kind: int) -> None:
    """Even with a right checksum it isn't played."""
    image = read_journal(pack_header(1, 1, 0) + pack_record(kind, 2, 1, 0, b"x"), None)
    assert image.entries == []
    assert image.torn_bytes > 0


def test_a_command_over_the_limit_is_a_mistake_of_ours() -> None:
    """Nothing is written that would not be read."""
    with pytest.raises(AssertionError):
        pack_record(ENTRY_KIND, 2, 1, 0, bytes(PAYLOAD_BYTES_MAX + 1))
    whole = pack_record(ENTRY_KIND, 2, 1, 0, bytes(PAYLOAD_BYTES_MAX))
    assert len(read_journal(pack_header(1, 1, 0) + whole, None).entries) == 1


@given(st.integers(0, 2**63), st.integers(0, 2**63), st.integers(0, 2**63))
def test_a_mark_comes_back_and_a_torn_one_is_none(generation: int, synced: int, at: int) -> None:
    """Power may be lost while it is written: then it is as if there were none."""
    made = Mark(generation=generation, synced_bytes=synced, commit_index=at)
    data = pack_mark(made)
    assert read_mark(data) == made
    assert read_mark(data[:-1]) is None
    assert read_mark(data[:5] + bytes([data[5] ^ 1]) + data[6:]) is None


@given(
    st.integers(0, 2**60),
    st.none() | st.text(max_size=8),
    st.dictionaries(
        st.text(max_size=4), st.builds(Note, st.integers(0, 2**60), st.text()), max_size=3
    ),
)
def test_a_vote_comes_back_as_it_was(
    term: int, voted_for: str | None, notes: dict[str, Note]
) -> None:
    """Term, vote and notes."""
    assert read_vote(pack_vote(term, voted_for, notes)) == (term, voted_for, notes)


@given(st.data())
def test_a_changed_vote_is_never_believed(data: st.DataObject) -> None:
    """Any bit that turned over, and any cut, is damage."""
    whole = pack_vote(7, "n2", {"n1": Note(5, "disk")})
    flipped = bytearray(whole)
    flipped[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    for changed in (bytes(flipped), cut):
        with pytest.raises(Damaged, match="vote"):
            read_vote(changed)


def test_a_vote_that_was_sealed_but_is_none_is_damage() -> None:
    """A right checksum over something else doesn't help."""
    with pytest.raises(Damaged, match="vote is damaged at byte 4"):
        read_vote(seal(REGULAR))


def test_a_seal_keeps_its_body() -> None:
    """Even an empty one."""
    assert unseal("x", seal(b"")) == b""
    assert unseal("x", seal(b"body")) == b"body"
