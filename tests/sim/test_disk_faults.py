"""Disks that fill up, fail to sync, go bad or are put back: the faults of a pretend disk."""

import errno
import random
from collections.abc import Callable

import pytest

from sim.disk import CrashNow, FakeFiles


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


def test_a_full_disk_takes_part_of_a_write() -> None:
    """The bytes that fit are written, then ENOSPC; overwriting needs no room."""
    files = synced()
    files.full(2)
    files.write("a", 0, b"old")
    assert number(lambda: files.write("a", 3, b"1234")) == errno.ENOSPC
    assert files.read("a") == b"old12"
    files.write("a", 0, b"OLD12")
    assert number(lambda: files.write("a", 4, b"xy")) == errno.ENOSPC
    assert files.read("a") == b"OLD1x"
    assert number(lambda: files.write("a", 9, b"y")) == errno.ENOSPC
    assert number(lambda: files.write("b", 0, b"y")) == errno.ENOSPC
    assert files.copy() == {"a": b"OLD1x", "b": b""}
    assert number(lambda: files.truncate("a", 9)) == errno.ENOSPC
    files.sync("a")
    files.full(None)
    files.write("a", 5, b"z")


def test_what_is_freed_is_room_again() -> None:
    """Cuts, removals and replacements let a full disk take as many bytes again."""
    files = synced(b"0123456789")
    files.restore({"a": b"0123456789", "b": b"01234", "c": b"01"})
    files.full(0)
    files.truncate("a", 7)
    files.write("d", 0, b"xyz")
    files.remove("b")
    files.write("d", 3, b"12345")
    files.rename("d", "c")
    files.rename("a", "a")
    files.write("e", 0, b"12")
    files.truncate("a", 7)
    assert number(lambda: files.write("e", 2, b"1")) == errno.ENOSPC


def test_a_crash_in_a_write_to_a_full_disk_is_a_crash() -> None:
    """When both are armed the process dies, with no more written than had room."""
    files = synced()
    files.full(1)
    files.fail_after(0, part=0.5)
    with pytest.raises(CrashNow):
        files.write("a", 3, b"1234")
    files.kill()
    assert files.read("a") == b"old1"


def test_a_failed_sync_is_not_healed_by_another() -> None:
    """Bytes whose sync failed read well but are gone after power loss, though a sync followed."""
    files = synced()
    files.write("a", 3, b"er")
    files.sync_errors(1)
    assert number(lambda: files.sync("a")) == errno.EIO
    files.sync("a")
    assert files.read("a") == b"older"
    assert files.durable() == {"a": b"old"}
    files.power_loss(random.Random(1))
    assert files.read("a") == b"old"


def test_a_failed_sync_of_names_may_be_repeated() -> None:
    """The directory stays unsynced after an error, and a later sync covers it."""
    files = FakeFiles()
    files.write("a", 0, b"x")
    files.sync_errors(1)
    assert number(files.sync_names) == errno.EIO
    assert files.durable() == {}
    files.sync_names()
    assert files.durable() == {"a": b""}


def test_a_flipped_bit_is_read_and_survives() -> None:
    """Damage shows at once and after power loss."""
    files = synced(b"\0\0")
    files.flip("a", 1, 2)
    assert files.read("a") == b"\0\x04"
    assert files.durable() == {"a": b"\0\x04"}
    files.flip("a", 0)
    assert files.read("a") == b"\x01\x04"


def test_yesterdays_copy_can_be_put_back() -> None:
    """A restored copy is the whole directory, durable, and independent of later writes."""
    files = synced()
    yesterday = files.copy()
    files.write("a", 0, b"new")
    files.write("b", 0, b"x")
    files.sync("a")
    files.restore(yesterday)
    assert files.copy() == files.durable() == {"a": b"old"}
    files.write("a", 0, b"new")
    assert yesterday == {"a": b"old"}


def test_a_wiped_disk_is_empty_for_good() -> None:
    """After a wipe nothing comes back, whatever was synced."""
    files = synced()
    files.write("b", 0, b"x")
    files.wipe()
    files.power_loss(random.Random(1))
    assert files.names() == []
