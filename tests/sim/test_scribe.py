"""A pretend process that writes a data directory."""

import random

import pytest

from reachnode.peers.raft.disk import RewriteJournal
from reachnode.peers.raft.loading import load
from reachnode.peers.raft.storage import JOURNAL
from sim.disk import FakeFiles
from sim.ledger import FOUNDED, Ledger
from sim.scribe import Scribe


def lived(seed: int, *, is_alone: bool, files: FakeFiles, ledger: Ledger) -> Scribe:
    """Return a process that has lived to its end."""
    scribe = Scribe(files, ledger, random.Random(seed), loaded=load(files), is_alone=is_alone)
    scribe.live(60)
    return scribe


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_life_ends_with_everything_durable(is_alone: bool) -> None:
    """What it says is durable is all it submitted, and the next life goes on from there."""
    for seed in range(5):
        files, ledger = FakeFiles(), Ledger()
        for life in range(3):
            scribe = lived(seed + life, is_alone=is_alone, files=files, ledger=ledger)
            assert scribe.disk.is_idle
            assert all(not part.later for part in ledger.parts)
            files.power_loss(random.Random(seed))
            loaded = load(files)
            assert loaded.identity == FOUNDED
            assert list(ledger.faults(loaded)) == []
            ledger.reborn(loaded, has_lost_power=True)


def test_a_life_has_something_of_everything() -> None:
    """Entries, cuts, notes, snapshots of both kinds and trimmed journals come about."""
    seen: set[str] = set()
    for seed in range(10):
        files, ledger = FakeFiles(), Ledger()
        submitted = ledger.submitted

        def see(number: int, write: object, submitted=submitted) -> None:  # type: ignore[no-untyped-def]  # bound early
            seen.add(getattr(write, "name", type(write).__name__))
            if isinstance(write, RewriteJournal) and write.base_index > 1:
                seen.add("trimmed")
            submitted(number, write)

        ledger.submitted = see  # type: ignore[method-assign]  # what is watched
        lived(seed, is_alone=False, files=files, ledger=ledger)
    wanted = {"AppendEntry", "CutTail", "WriteVote", "WriteIdentity", "ReadSnapshot", "trimmed"}
    assert wanted | {"snapshot.new", "snapshot.in"} <= seen


def test_one_seed_is_one_life() -> None:
    """Its bytes are the same, or no crash point could be repeated."""
    images = []
    for _ in range(2):
        files = FakeFiles()
        lived(3, is_alone=False, files=files, ledger=Ledger())
        images.append(files.copy())
    assert images[0] == images[1]


def test_a_full_disk_gets_room_again() -> None:
    """The process waits for it, and nothing is lost."""
    files, ledger = FakeFiles(), Ledger()
    files.full(1_500)
    lived(1, is_alone=False, files=files, ledger=ledger)
    assert files.size(JOURNAL)
    assert list(ledger.faults(load(files))) == []


def test_a_disk_that_never_works_is_noticed() -> None:
    """The life ends with an error, not never."""
    files = FakeFiles()
    files.sync_errors(1_000_000)
    with pytest.raises(AssertionError, match="come to rest"):
        lived(1, is_alone=False, files=files, ledger=Ledger())


def test_a_wrong_read_is_told() -> None:
    """What a read gives is compared with what was sealed."""
    for seed in range(20):
        files, ledger = FakeFiles(), Ledger()
        read = files.read

        def torn(name: str, offset: int = 0, count: int | None = None, read=read) -> bytes:  # type: ignore[no-untyped-def]  # bound early
            data: bytes = read(name, offset, count)
            return data[:-1] if name.startswith("snapshot-") else data

        files.read = torn  # type: ignore[method-assign]  # a disk that reads badly
        lived(seed, is_alone=False, files=files, ledger=ledger)
        if ledger.read_faults:
            assert "reads differently" in ledger.read_faults[0]
            return
    pytest.fail("nothing was read")
