"""Crashes at every system call of a script of writes."""

import errno
from collections import Counter

import pytest

from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.storage import Storage, snapshot_name
from sim.crash_points import CountedFiles, Fate, Point, Script, Trial
from sim.ledger import Ledger
from sim.scribe import Rooms

SCRIPTS = (2, 7, 24, 29)


class Unsynced(Storage):
    """Gives a new file its name without having synced it."""

    def _replace(self, name: str, data: bytes) -> None:
        self.files.remove(f"{name}.new")
        self.files.write(f"{name}.new", 0, data)
        self.files.rename(f"{name}.new", name)
        self.files.sync_names()


class Unnamed(Storage):
    """Doesn't sync the directory."""

    def _replace(self, name: str, data: bytes) -> None:
        self.files.remove(f"{name}.new")
        self.files.write(f"{name}.new", 0, data)
        self.files.sync(f"{name}.new")
        self.files.rename(f"{name}.new", name)


class InPlace(Storage):
    """Writes over what is there."""

    def _replace(self, name: str, data: bytes) -> None:
        self.files.write(name, 0, data)
        self.files.truncate(name, len(data))
        self.files.sync(name)
        self.files.sync_names()


class Unsealed(Storage):
    """Calls a snapshot finished before it is durable."""

    def _seal(self, write) -> None:  # type: ignore[no-untyped-def]  # as in its parent
        self.files.rename(write.name, snapshot_name(write.index))
        self.files.sync_names()


class Hasty(Storage):
    """Notes what is committed before the log that it speaks of is durable."""

    def perform(self, writes, commit_index=0):  # type: ignore[no-untyped-def]  # as in its parent
        self.noted_commit = commit_index
        return super().perform(writes, commit_index)


class Trusting(Journal):
    """Takes what was read at start for durable."""

    def begin(self) -> None:
        self._write_vote()


def first_fault(rooms: Rooms) -> str:
    """Return the first thing that is noticed, empty when nothing is."""
    for number in SCRIPTS:
        script = Script(seed=0, number=number, rooms=rooms)
        for point in script.points():
            trial = Trial()
            trial.run(script, point)
            if trial.faults:
                return trial.faults[0]
    return ""


def test_nothing_durable_is_lost_and_nothing_false_is_believed() -> None:
    """One whole script, cut short at each of its calls."""
    script = Script(seed=0, number=7)
    counts: Counter[str] = Counter()
    for point in script.points():
        trial = Trial()
        trial.run(script, point)
        assert trial.faults == [], point
        counts.update(trial.counts)
    assert min(counts["kills"], counts["power_losses"], counts["torn"]) > 0


@pytest.mark.parametrize("storage", [Unsynced, Unnamed, InPlace, Unsealed, Hasty])
def test_a_storage_that_forgets_a_step_is_noticed(storage: type[Storage]) -> None:
    """Each step is there for a crash that would show its absence."""
    assert first_fault(Rooms(storage=storage))


def test_a_journal_that_believes_what_it_reads_is_noticed() -> None:
    """What a killed process wrote and never synced can be lost later."""
    assert first_fault(Rooms(journal=Trusting))


def test_every_call_is_a_point() -> None:
    """Before each call the process and the machine end; writes are torn, syncs fail."""
    script = Script(seed=0, number=1)
    files = CountedFiles()
    script.first_life(files, Ledger())
    points = script.points()
    assert points == script.points()
    for fate in (Fate.KILL, Fate.POWER):
        whole = [point.call for point in points if point.fate is fate and point.part == 0]
        torn = [point.call for point in points if point.fate is fate and point.part > 0]
        assert whole == list(range(files.operations))
        assert torn == files.writes
    assert [point.call for point in points if point.fate is Fate.SYNC_ERROR] == files.syncs
    assert [point.call for point in points if point.fate is Fate.FULL] == files.writes


def test_a_fault_is_armed_at_its_call() -> None:
    """The sync at that place fails, no earlier one."""
    files = CountedFiles()
    files.fault = (1, lambda: files.sync_errors(1))
    files.write("a", 0, b"x")
    with pytest.raises(OSError, match="error") as caught:
        files.sync("a")
    assert caught.value.errno == errno.EIO
    files.sync_names()
    assert (files.writes, files.syncs) == ([0], [1, 2])


def test_a_point_can_be_repeated() -> None:
    """Its dice are its own, and so are its faults."""
    script = Script(seed=0, number=0, rooms=Rooms(storage=Unsynced))
    point = Point(call=20, fate=Fate.POWER)
    trials = [Trial(), Trial()]
    for trial in trials:
        trial.run(script, point)
    assert trials[0] == trials[1]


def test_a_process_that_raises_is_told() -> None:
    """Whatever it raises, the point is not lost."""

    class Broken(Journal):
        def begin(self) -> None:
            raise ValueError("no")

    trial = Trial()
    trial.run(
        Script(seed=0, number=0, rooms=Rooms(journal=Broken)), Point(call=500, fate=Fate.KILL)
    )
    (fault,) = trial.faults
    assert fault.startswith("raised: ValueError in test_crash_points.py, line ")
    assert fault.endswith(": no")
