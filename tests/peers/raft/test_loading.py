"""Reading a data directory at start."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reachnode.peers.raft.disk import (
    AppendEntry,
    Note,
    RewriteJournal,
    SealSnapshot,
    Write,
    WriteIdentity,
    WriteSnapshot,
    WriteVote,
)
from reachnode.peers.raft.identity import Identity, pack_identity
from reachnode.peers.raft.loading import Loaded, load, read_snapshot
from reachnode.peers.raft.opening import REGULAR, Entry
from reachnode.peers.raft.records import Damaged
from reachnode.peers.raft.snapshot import SnapshotHeader, write_snapshot
from reachnode.peers.raft.storage import Storage, snapshot_name
from reachnode.registry.state import State
from sim.disk import FakeFiles
from tests.strategies import fresh_state, states

FOUNDERS = {"n1": "d1", "n2": "d2", "n3": "d3"}
IDENTITY = Identity(member="n1", incarnation="d1", cluster_id="c", founders=FOUNDERS)
NOTES = {"n2": Note(5, "d9")}


def entries(first: int, *terms: int) -> tuple[Entry, ...]:
    """Return entries of these terms."""
    return tuple((REGULAR, index, term) for index, term in enumerate(terms, start=first))


def snapshot(state: State, index: int, term: int, *, named: int | None = None) -> list[Write]:
    """Return the writes of a snapshot, which may be named wrongly."""
    data = b"".join(write_snapshot(state, SnapshotHeader(state.cluster_id, index, term)))
    return [
        WriteSnapshot(name="snapshot.new", offset=0, data=data),
        SealSnapshot(name="snapshot.new", index=named or index),
    ]


@dataclass(slots=True)
class Directory:
    """A data directory of n1, with its journal from a base on."""

    files: FakeFiles
    storage: Storage

    def write(self, *writes: Write) -> None:
        """Make writes durable."""
        assert self.storage.perform(writes).error is None

    def load(self) -> Loaded:
        """Start on it."""
        return load(self.files)


def directory(base: tuple[int, int] = (1, 0), *terms: int) -> Directory:
    """Return the directory of a member of a cluster."""
    files = FakeFiles()
    made = Directory(files, Storage(files))
    image = RewriteJournal(
        base_index=base[0], base_term=base[1], entries=entries(base[0] + 1, *terms)
    )
    vote = WriteVote(term=4, voted_for="n3", notes=NOTES)
    made.write(image, vote, WriteIdentity(pack_identity(IDENTITY)))
    return made


def test_an_empty_directory_is_a_new_disk() -> None:
    """It has no identity yet, and all else is as at the beginning of a log."""
    assert load(FakeFiles()) == Loaded(identity=None, notes={})


def test_an_unfounded_disk_has_an_identity_alone() -> None:
    """What a crash at founding left beside it doesn't count yet."""
    identity = Identity(member="n1", incarnation="d1")
    made = directory((1, 0), 1)
    made.write(WriteIdentity(pack_identity(identity)))
    assert made.load() == Loaded(identity=identity, notes={})


def test_what_was_durable_is_there() -> None:
    """Identity, term, vote, notes and log; the commit index as it was noted."""
    made = directory((1, 0), 1, 1, 2)
    made.storage.perform([AppendEntry(entries(5, 2)[0])], 4)
    loaded = made.load()
    assert loaded == Loaded(
        identity=IDENTITY,
        term=4,
        voted_for="n3",
        notes=NOTES,
        base=(1, 0),
        entries=entries(2, 1, 1, 2, 2),
        commit_index=4,
        generation=1,
        journal_bytes=made.files.size("journal"),
    )


def test_without_the_mark_nothing_is_known_to_be_committed() -> None:
    """Beyond the base; so it is with the mark of another journal."""
    made = directory((1, 0), 1, 1)
    made.storage.perform([AppendEntry(entries(4, 1)[0])], 4)
    old = made.files.read("mark")
    made.files.remove("mark")
    assert made.load().commit_index == 1
    made.write(RewriteJournal(base_index=1, base_term=0, entries=entries(2, 1)))
    made.files.write("mark", 0, old)
    assert made.load().commit_index == 1


def test_a_torn_tail_is_cut_off_and_told() -> None:
    """Bytes that never were durable are counted, and not read."""
    made = directory((1, 0), 1)
    length = made.files.size("journal")
    made.files.write("journal", length, b"torn off")
    loaded = made.load()
    assert (loaded.journal_bytes, loaded.torn_bytes) == (length, 8)
    assert loaded.entries == entries(2, 1)


def test_unfinished_work_is_removed() -> None:
    """A file that never got its name is as if it had never been begun."""
    made = directory()
    for name in ("vote.new", "snapshot.in", "snapshot.new.again.new"):
        made.files.write(name, 0, b"half")
    made.load()
    assert made.files.names() == ["identity", "journal", "mark", "vote"]


@pytest.mark.parametrize("name", ["identity", "vote", "journal"])
def test_a_missing_file_is_damage(name: str) -> None:
    """A directory with some of its files is not taken for an empty one."""
    made = directory()
    made.files.remove(name)
    with pytest.raises(Damaged, match=f"{name} is damaged at byte 0: it is missing"):
        made.load()


def test_a_mark_alone_is_no_disk() -> None:
    """It is never synced, and may outlive a directory that was emptied."""
    made = directory()
    for name in ("identity", "vote", "journal"):
        made.files.remove(name)
    assert made.load().identity is None


@given(st.sampled_from(["identity", "vote", "journal"]), st.data())
def test_a_flipped_bit_anywhere_stops_the_node(name: str, data: st.DataObject) -> None:
    """The error names the file, and an offset no later than the damage."""
    made = directory((1, 0), 1, 1, 2)
    place = data.draw(st.integers(0, made.files.size(name) - 1))
    made.files.flip(name, place, data.draw(st.integers(0, 7)))
    with pytest.raises(Damaged) as caught:
        made.load()
    assert caught.value.name == name
    assert caught.value.offset <= place


def test_a_flipped_bit_in_the_mark_costs_only_its_hint() -> None:
    """It is as if there were no mark."""
    made = directory((1, 0), 1)
    made.files.flip("mark", 3)
    assert made.load().commit_index == 1


# --- snapshots


@given(states)
def test_a_snapshot_is_read_with_the_journal_behind_it(state: State) -> None:
    """The state, its index, and what followed."""
    made = directory((1, 0), 1, 1, 2, 2)
    made.write(*snapshot(state, 3, 1))
    loaded = made.load()
    assert loaded.snapshot == (3, 1, state)
    assert (loaded.base, loaded.commit_index) == ((1, 0), 3)
    assert loaded.entries == entries(2, 1, 1, 2, 2)


def test_a_journal_that_a_snapshot_has_overruled_is_left_out() -> None:
    """A crash came between the snapshot and the journal that relies on it."""
    for index, term in ((4, 3), (9, 2)):
        made = directory((1, 0), 1, 1, 2)
        made.write(*snapshot(fresh_state(), index, term))
        loaded = made.load()
        assert (loaded.base, loaded.entries) == ((index, term), ())
        assert loaded.commit_index == index


def test_the_newest_snapshot_counts() -> None:
    """An older one is the remainder of an interrupted removal."""
    made = directory((1, 0), 1, 1)
    made.write(*snapshot(fresh_state(), 3, 1))
    old = made.files.read(snapshot_name(3))
    made.files.write(snapshot_name(2), 0, old)
    loaded = made.load()
    assert loaded.snapshot is not None
    assert loaded.snapshot[0] == 3


def test_a_damaged_snapshot_is_not_replaced_by_an_older_one() -> None:
    """It was durable before it got its name: the node stops."""
    made = directory((1, 0), 1, 1)
    made.write(*snapshot(fresh_state(), 3, 1))
    made.files.write(snapshot_name(2), 0, made.files.read(snapshot_name(3)))
    made.files.flip(snapshot_name(3), 40)
    with pytest.raises(Damaged, match=r"snapshot-0*3 is damaged at byte"):
        made.load()


def test_a_snapshot_of_another_index_is_damage() -> None:
    """Its name and its header say the same."""
    made = directory((1, 0), 1, 1)
    made.write(*snapshot(fresh_state(), 2, 1, named=3))
    with pytest.raises(Damaged, match="it is of index 2"):
        read_snapshot(made.files, 3)


def test_a_journal_that_begins_behind_its_snapshot_has_a_gap() -> None:
    """Entries are missing in between; without any snapshot, all the more."""
    made = directory((5, 2), 2)
    with pytest.raises(Damaged, match="begins at 5, with no snapshot"):
        made.load()
    made.write(*snapshot(fresh_state(), 4, 2))
    with pytest.raises(Damaged, match="begins at 5, behind snapshot 4"):
        made.load()
    made.write(*snapshot(fresh_state(), 5, 2))
    assert made.load().entries == entries(6, 2)


@given(st.integers(0, 2**32))
def test_power_loss_at_rest_changes_nothing(seed: int) -> None:
    """All was synced; only hints may be gone."""
    made = directory((1, 0), 1, 1, 2)
    made.write(*snapshot(fresh_state(), 3, 1))
    before = made.load()
    made.files.power_loss(random.Random(seed))
    after = made.load()
    assert after.entries == before.entries
    assert after.snapshot == before.snapshot
    assert (after.identity, after.term) == (before.identity, before.term)
