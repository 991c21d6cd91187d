import errno
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reachnode.world.files import FULL_ERRNOS, DirectoryInUse, Files, SystemFiles

HOLDER = """
import sys
from pathlib import Path
from reachnode.world.files import SystemFiles
files = SystemFiles(Path(sys.argv[1]))
files.lock()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def files(tmp_path: Path) -> Iterator[SystemFiles]:
    """Files of a fresh directory."""
    made = SystemFiles(tmp_path / "data")
    yield made
    made.close()


def test_a_missing_directory_is_made_private_with_its_parents(tmp_path: Path) -> None:
    """Nobody else on the machine can look into a data directory that we made."""
    directory = tmp_path / "a" / "b"
    SystemFiles(directory).close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_new_directory_is_synced_into_its_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory made at the first start outlives power loss: each parent is fsynced."""
    synced: list[int] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    SystemFiles(tmp_path / "a" / "b").close()
    assert synced == [tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino]
    SystemFiles(tmp_path / "a" / "b").close()
    assert len(synced) == 2


def test_a_file_in_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    """A path that is a file is refused, and left alone."""
    path = tmp_path / "data"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        SystemFiles(path)
    assert path.read_bytes() == b"mine"


def test_what_was_written_is_read(files: SystemFiles) -> None:
    """Writes land where they were told, and reads return exactly the bytes asked for."""
    files.write("log", 0, b"0123456789")
    files.write("log", 3, b"ab")
    files.write("log", 12, b"z")
    assert files.read("log") == b"012ab56789\0\0z"
    assert files.read("log", 3, 4) == b"ab56"
    assert files.read("log", 11) == b"\0z"
    assert files.read("log", 10, 99) == b"\0\0z"
    assert files.read("log", 99) == b""
    assert files.size("log") == 13
    assert files.names() == ["log"]


def test_writing_nothing_makes_an_empty_file(files: SystemFiles) -> None:
    """A write of no bytes creates the file and does not lengthen it."""
    files.write("log", 7, b"")
    assert files.size("log") == 0


def test_a_short_write_is_continued(files: SystemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes are written even when the system takes a few at a time."""
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: real(fd, bytes(data)[:3], offset))
    files.write("log", 0, b"0123456789")
    assert files.read("log") == b"0123456789"


def test_a_file_cut_by_another_while_it_is_read_ends_early(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read of a file that shrinks under it returns what there is and does not hang."""
    files.write("log", 0, b"0123")
    monkeypatch.setattr(os, "pread", lambda _fd, _count, _offset: b"")
    assert files.read("log") == b""


def test_truncate_cuts_and_extends(files: SystemFiles) -> None:
    """A cut keeps the first bytes; a larger size is filled with zeros."""
    files.write("log", 0, b"0123")
    files.truncate("log", 2)
    assert files.read("log") == b"01"
    files.truncate("log", 4)
    assert files.read("log") == b"01\0\0"


def test_rename_replaces_and_keeps_writing_to_the_right_file(files: SystemFiles) -> None:
    """After a replacement, writes under the new name go to the file that was renamed."""
    files.write("snapshot", 0, b"old")
    files.write("snapshot.new", 0, b"new")
    files.rename("snapshot.new", "snapshot")
    files.write("snapshot", 3, b"er")
    files.sync("snapshot")
    files.sync_names()
    assert files.read("snapshot") == b"newer"
    assert files.names() == ["snapshot"]
    files.write("snapshot.new", 0, b"third")
    assert files.read("snapshot") == b"newer"


def test_rename_works_without_a_kept_descriptor(files: SystemFiles) -> None:
    """A file never written by this process is renamed as well."""
    (files.directory / "a").write_bytes(b"1")
    files.rename("a", "b")
    assert files.read("b") == b"1"


def test_a_replaced_file_is_not_written_to_any_more(files: SystemFiles) -> None:
    """When a file made elsewhere replaces one that is open, writes go to the new one."""
    files.write("a", 0, b"old")
    (files.directory / "b").write_bytes(b"new")
    files.rename("b", "a")
    files.write("a", 3, b"er")
    assert files.read("a") == b"newer"


def test_writing_to_a_file_of_an_earlier_start_keeps_its_bytes(files: SystemFiles) -> None:
    """Opening an existing file to write leaves the rest of it alone."""
    (files.directory / "log").write_bytes(b"0123")
    files.write("log", 4, b"45")
    assert files.read("log") == b"012345"


def test_remove_forgets_the_file(files: SystemFiles) -> None:
    """A removed file is gone; writing its name again starts an empty one."""
    files.write("log", 0, b"0123")
    files.remove("log")
    files.remove("log")
    assert files.names() == []
    files.write("log", 0, b"x")
    assert files.read("log") == b"x"


@pytest.mark.parametrize("call", ["size", "read", "sync", "truncate", "rename"])
def test_a_missing_file_is_an_error_and_is_not_made(files: SystemFiles, call: str) -> None:
    """Only `write` makes files: a mistaken name is told, never turned into an empty file."""
    arguments = {"truncate": ("log", 0), "rename": ("log", "new")}.get(call, ("log",))
    with pytest.raises(FileNotFoundError):
        getattr(files, call)(*arguments)
    assert files.names() == []


def test_sync_asks_the_system(files: SystemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """`sync` is an fdatasync of the file and `sync_names` an fsync of the directory."""
    calls: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: calls.append(("file", os.fstat(fd).st_ino)))
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append(("directory", os.fstat(fd).st_ino)))
    files.write("log", 0, b"x")
    files.sync("log")
    files.sync_names()
    assert calls == [
        ("file", (files.directory / "log").stat().st_ino),
        ("directory", files.directory.stat().st_ino),
    ]


def test_names_leaves_out_directories(files: SystemFiles) -> None:
    """The `lost+found` of a mounted volume is not taken for one of our files."""
    (files.directory / "lost+found").mkdir()
    files.write("b", 0, b"")
    files.write("a", 0, b"")
    assert files.names() == ["a", "b"]


def test_a_name_with_a_separator_is_a_bug(files: SystemFiles) -> None:
    """No file outside the directory can be opened by mistake."""
    with pytest.raises(AssertionError):
        files.write("../log", 0, b"x")


def test_a_second_process_is_kept_out_until_the_first_ends(files: SystemFiles) -> None:
    """Two nodes never write one data directory, and a dead one leaves no lock behind."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(files.directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryInUse, match="in use by another process") as caught:
            files.lock()
        assert str(files.directory) in str(caught.value)
        holder.kill()
        holder.wait()
        files.lock()
    assert files.names() == []


def test_closing_gives_the_lock_back(tmp_path: Path) -> None:
    """A node that stopped in order can be started again in the same process."""
    for _ in range(2):
        one = SystemFiles(tmp_path)
        one.lock()
        one.close()


def test_a_lock_that_fails_otherwise_is_not_called_in_use(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks is reported as such, with no descriptor left open."""

    def flock(_fd: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- a count is all we want
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="No locks available") as caught:
        files.lock()
    assert not isinstance(caught.value, DirectoryInUse)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 -- as above


def test_after_close_nothing_works_and_nothing_leaks(tmp_path: Path) -> None:
    """`close` lets go of every descriptor, may be repeated, and later calls fail."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- a count is all we want
    one = SystemFiles(tmp_path)
    one.lock()
    one.write("log", 0, b"x")
    one.close()
    one.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 -- as above
    with pytest.raises(OSError, match="Bad file descriptor"):
        one.write("log", 0, b"x")


def test_a_full_disk_is_told_as_the_system_tells_it(files: SystemFiles) -> None:
    """ENOSPC comes through with its number, which is among those that mean no room."""
    (files.directory / "log").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        files.write("log", 0, b"x")
    assert caught.value.errno in FULL_ERRNOS


def test_system_files_are_files(files: SystemFiles) -> None:
    """The real directory can stand wherever the port is asked for."""
    port: Files = files
    assert port.names() == []
