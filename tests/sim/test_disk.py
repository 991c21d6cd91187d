import errno
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reachnode.world.files import Files, SystemFiles
from sim.disk import CrashNow, FakeFiles
from sim.platter import GENTLE, Cruelty

seeds = st.integers(0, 1 << 30)
names = st.sampled_from(["a", "b", "c"])
Call = tuple[str, tuple[object, ...]]
calls: st.SearchStrategy[Call] = st.one_of(
    st.tuples(st.just("write"), st.tuples(names, st.integers(0, 9), st.binary(max_size=6))),
    st.tuples(st.just("truncate"), st.tuples(names, st.integers(0, 9))),
    st.tuples(st.just("sync"), st.tuples(names)),
    st.tuples(st.just("rename"), st.tuples(names, names)),
    st.tuples(st.just("remove"), st.tuples(names)),
    st.tuples(st.just("sync_names"), st.just(())),
)

CHANGING: list[Call] = [
    ("write", ("a", 0, b"0123456789")),
    ("truncate", ("a", 1)),
    ("sync", ("a",)),
    ("rename", ("a", "b")),
    ("remove", ("a",)),
    ("sync_names", ()),
]


def made(files: Files, call: Call) -> object:
    """Make a call; return its result, or the number of its error."""
    try:
        return getattr(files, call[0])(*call[1])
    except OSError as error:
        return error.errno


def synced(content: bytes = b"old") -> FakeFiles:
    """Return a disk with one durable file, `a`."""
    files = FakeFiles()
    files.restore({"a": content})
    return files


def number(act: Callable[[], object]) -> int | None:
    """Return the error number of a call that must fail."""
    with pytest.raises(OSError) as caught:  # noqa: PT011 -- the number is checked by the caller
        act()
    return caught.value.errno


@settings(max_examples=60)
@given(st.lists(calls, max_size=15))
def test_it_answers_as_the_system_does(history: list[Call]) -> None:
    """Every call has the result, or the error, that it has on a real directory."""
    directory = Path(tempfile.mkdtemp())
    real, fake = SystemFiles(directory), FakeFiles()
    try:
        for call in history:
            assert made(fake, call) == made(real, call)
            assert fake.names() == real.names()
            for name in real.names():
                assert fake.read(name) == real.read(name)
                assert fake.read(name, 2, 3) == real.read(name, 2, 3)
                assert fake.size(name) == real.size(name)
        for name in ("a", "missing"):
            assert made(fake, ("read", (name,))) == made(real, ("read", (name,)))
    finally:
        fake.close()
        real.close()
        shutil.rmtree(directory)


def test_it_is_a_files() -> None:
    """It can stand wherever the port is asked for."""
    files: Files = FakeFiles()
    assert files.names() == []


@given(st.lists(calls, max_size=15))
def test_a_killed_process_loses_nothing(history: list[Call]) -> None:
    """What was written before a kill -9 is read after it."""
    files = FakeFiles()
    for call in history:
        made(files, call)
    before = files.copy()
    files.kill()
    assert files.copy() == before


@given(st.lists(calls, max_size=15), seeds)
def test_the_names_after_power_loss_are_those_of_one_moment(history: list[Call], seed: int) -> None:
    """Of the changes of names since the last sync a prefix survives, whatever contents do."""
    files = FakeFiles()
    moments: list[list[str]] = [[]]
    for call in history:
        made(files, call)
        if call[0] == "sync_names":
            moments.clear()
        moments.append(files.names())
    files.power_loss(random.Random(seed))
    assert files.names() in moments


@given(st.lists(calls, max_size=15), seeds)
def test_all_is_durable_after_power_loss(history: list[Call], seed: int) -> None:
    """A second power cut takes nothing that the first one left."""
    files = FakeFiles()
    for call in history:
        made(files, call)
    files.power_loss(random.Random(seed))
    left = files.copy()
    assert files.durable() == left
    files.power_loss(random.Random(seed + 1))
    assert files.copy() == left


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=700), st.booleans()), max_size=8),
    seeds,
)
def test_a_synced_log_is_intact_after_power_loss(
    appends: list[tuple[bytes, bool]], seed: int
) -> None:
    """What an append-only file held at its last sync is there, byte for byte."""
    files = FakeFiles()
    files.write("log", 0, b"")
    files.sync_names()
    safe = b""
    for data, is_synced in appends:
        files.write("log", files.size("log"), data)
        if is_synced:
            files.sync("log")
            safe = files.read("log")
    assert files.durable() == {"log": safe}
    files.power_loss(random.Random(seed))
    assert files.read("log").startswith(safe)


@given(st.lists(calls, max_size=15), seeds)
def test_one_seed_has_one_outcome(history: list[Call], seed: int) -> None:
    """A power cut replays: same calls and same dice, same bytes."""
    left = []
    for _ in range(2):
        files = FakeFiles()
        for call in history:
            made(files, call)
        files.power_loss(random.Random(seed))
        left.append(files.copy())
    assert left[0] == left[1]


def test_a_synced_file_may_vanish_with_its_name() -> None:
    """Syncing content does not sync the creation: without `sync_names` the file may be gone."""
    left = set()
    for seed in range(100):
        files = FakeFiles()
        files.write("a", 0, b"x")
        files.sync("a")
        files.power_loss(random.Random(seed))
        left.add(tuple(files.copy().items()))
    assert left == {(), (("a", b"x"),)}


def test_a_rename_may_outlive_the_content() -> None:
    """Replacing a file without syncing the new one first can leave it empty or short."""
    left = set()
    for seed in range(300):
        files = synced()
        files.write("a.new", 0, b"new")
        files.rename("a.new", "a")
        files.power_loss(random.Random(seed))
        left.add(files.copy()["a"])
    assert {b"old", b"", b"n", b"new"} <= left


def test_a_proper_replacement_is_old_or_new() -> None:
    """Write, sync, rename: at any power cut the file is one of the two, whole."""
    left = set()
    for seed in range(300):
        files = synced()
        files.write("a.new", 0, b"new")
        files.sync("a.new")
        files.rename("a.new", "a")
        files.power_loss(random.Random(seed))
        left.add(files.copy()["a"])
    assert left == {b"old", b"new"}


def test_a_removed_file_may_come_back() -> None:
    """A removal that was not synced can be undone by a power cut."""
    left = set()
    for seed in range(100):
        files = synced()
        files.remove("a")
        files.power_loss(random.Random(seed))
        left.add(tuple(files.names()))
    assert left == {(), ("a",)}


def test_gentle_keeps_names_and_contents() -> None:
    """With every cruelty off, power loss is like a kill."""
    for seed in range(50):
        files = FakeFiles(GENTLE)
        files.write("a", 0, b"x")
        files.rename("a", "b")
        files.power_loss(random.Random(seed))
        assert files.copy() == {"b": b"x"}


def test_names_can_be_kept_while_contents_are_lost() -> None:
    """The two kinds of loss are switched apart."""
    sizes = set()
    for seed in range(50):
        files = FakeFiles(Cruelty(names_lost=False))
        files.write("a", 0, b"x")
        files.power_loss(random.Random(seed))
        sizes.add(files.size("a"))
    assert sizes == {0, 1}


@pytest.mark.parametrize("call", CHANGING, ids=lambda call: call[0])
def test_a_crash_falls_before_or_after_each_call(call: Call) -> None:
    """A process can die on either side of any changing call, and is dead until it restarts."""
    files = synced()
    files.write("a", 3, b"er")
    before = files.copy()
    files.fail_after(0)
    with pytest.raises(CrashNow):
        made(files, call)
    for later in (*CHANGING, ("read", ("a",)), ("size", ("a",)), ("names", ())):
        with pytest.raises(CrashNow):
            made(files, later)
    files.kill()
    if call[0] != "write":
        assert files.copy() == before

    twin = synced()
    twin.write("a", 3, b"er")
    made(twin, call)
    files = synced()
    files.write("a", 3, b"er")
    files.fail_after(0, part=1.0)
    with pytest.raises(CrashNow):
        made(files, call)
    files.kill()
    assert files.copy() == twin.copy()
    assert files.durable() == twin.durable()
    assert files.operations == twin.operations


def test_a_crash_inside_a_write_leaves_its_first_bytes() -> None:
    """A process can die with half of a write in the page cache."""
    files = synced(b"")
    files.fail_after(1, part=0.5)
    files.write("a", 0, b"0123")
    with pytest.raises(CrashNow):
        files.write("a", 4, b"4567")
    files.kill()
    assert files.read("a") == b"012345"
    files.write("a", 6, b"x")


def test_power_loss_ends_a_crash_too() -> None:
    """After a crash and a power cut the next process can use the disk."""
    files = synced()
    files.fail_after(0)
    with pytest.raises(CrashNow):
        files.remove("a")
    files.power_loss(random.Random(1))
    assert files.read("a") == b"old"


def test_a_call_that_fails_passes_the_crash_on() -> None:
    """A crash that falls on a call with an error happens in the next one, not never."""
    files = synced()
    files.fail_after(0, part=1.0)
    assert number(lambda: files.sync("missing")) == errno.ENOENT
    with pytest.raises(CrashNow):
        files.sync("a")


@pytest.mark.parametrize("call", CHANGING, ids=lambda call: call[0])
@pytest.mark.parametrize("part", [0.0, 1.0])
def test_a_crash_comes_before_a_read_only_disk_is_noticed(call: Call, part: float) -> None:
    """A crash is not swallowed by another armed fault."""
    files = synced()
    files.read_only(True)
    files.fail_after(0, part=part)
    with pytest.raises(CrashNow):
        made(files, call)
    files.kill()
    assert files.copy() == {"a": b"old"}


def test_operations_count_changing_calls() -> None:
    """The counter says how many crash points a run had."""
    files = FakeFiles()
    for count, call in enumerate(CHANGING, start=1):
        made(files, call)
        assert files.operations == count
    files.names()
    assert files.operations == len(CHANGING)


def test_a_read_only_disk_refuses_changes_and_reads_on() -> None:
    """Every changing call raises EROFS while it lasts; nothing is changed."""
    files = synced()
    files.read_only(True)
    for call in CHANGING:
        assert made(files, call) == errno.EROFS
    assert files.copy() == {"a": b"old"}
    assert files.read("a") == b"old"
    files.read_only(False)
    files.write("a", 0, b"new")
