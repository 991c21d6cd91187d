"""One directory of files, and the few operations a data directory needs.

The port is small on purpose: what is not here cannot go wrong in a way the simulator does
not play. Names are flat, without separators. Every call blocks, so in a node they are made
from the disk worker's thread or before the loop starts. A change is durable only after
`sync` (content) or `sync_names` (creation, renaming, removal) returned.
"""

import errno
import fcntl
import os
from pathlib import Path
from typing import Protocol

FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""What the system says when nothing more can be written; room may come back."""


class Files(Protocol):
    """A flat directory. All methods raise `OSError` as the system does."""

    def names(self) -> list[str]:
        """Return the names present, sorted."""
        ...

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""
        ...

    def read(self, name: str, offset: int = 0, count: int | None = None) -> bytes:
        """Return up to `count` bytes from `offset` (all that follow when None)."""
        ...

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, making the file if it is missing."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to `size` bytes; it must be there."""
        ...

    def sync(self, name: str) -> None:
        """Make the content of a file durable (fdatasync); it must be there."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Replace `new` by `old` in one step."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        ...

    def sync_names(self) -> None:
        """Make creations, renamings and removals durable (fsync of the directory)."""
        ...

    def close(self) -> None:
        """Let go of every descriptor."""
        ...


class DirectoryInUse(OSError):
    """Another process holds the directory's lock."""


class SystemFiles:
    """Files of the operating system, descriptors kept open between writes.

    Args:
        directory: Made with mode 0700 when missing, durably, its parents too.
    """

    def __init__(self, directory: Path) -> None:
        make_durably(directory)
        self.directory = directory
        self._open: dict[str, int] = {}
        self._lock: int | None = None
        self._directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def lock(self) -> None:
        """Hold the directory for this process until `close`.

        Raises:
            DirectoryInUse: Another process has it.
            OSError: The file system knows no locks, or the lock file cannot be made.
        """
        assert self._lock is None
        fd = os.open(
            "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=self._directory_fd
        )
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(fd)
            raise DirectoryInUse(
                error.errno, "the data directory is in use by another process", str(self.directory)
            ) from error
        except OSError:
            os.close(fd)
            raise
        self._lock = fd

    def names(self) -> list[str]:
        """Return the names of the files present, sorted.

        The lock file is left out, and so are directories: the root of a mounted volume
        has a `lost+found` that is none of ours.
        """
        with os.scandir(self._directory_fd) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.name != "LOCK" and not entry.is_dir(follow_symlinks=False)
            )

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""
        return os.stat(name, dir_fd=self._directory_fd).st_size

    def read(self, name: str, offset: int = 0, count: int | None = None) -> bytes:
        """Return up to `count` bytes from `offset`, through a descriptor of its own."""
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory_fd)
        try:
            left = os.fstat(fd).st_size - offset if count is None else count
            pieces = []
            while left > 0:
                piece = os.pread(fd, min(left, 1 << 24), offset)
                if not piece:
                    break
                pieces.append(piece)
                offset += len(piece)
                left -= len(piece)
            return b"".join(pieces)
        finally:
            os.close(fd)

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, making the file if it is missing."""
        fd = self._descriptor(name, os.O_CREAT)
        view = memoryview(data)
        while view:
            count = os.pwrite(fd, view, offset)
            view = view[count:]
            offset += count

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to `size` bytes."""
        os.ftruncate(self._descriptor(name), size)

    def sync(self, name: str) -> None:
        """Make the content of a file durable."""
        os.fdatasync(self._descriptor(name))

    def rename(self, old: str, new: str) -> None:
        """Replace `new` by `old` in one step."""
        os.rename(old, new, src_dir_fd=self._directory_fd, dst_dir_fd=self._directory_fd)
        self._forget(new)
        if old in self._open:
            self._open[new] = self._open.pop(old)

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        self._forget(name)
        try:
            os.unlink(name, dir_fd=self._directory_fd)
        except FileNotFoundError:
            return

    def sync_names(self) -> None:
        """Make creations, renamings and removals durable."""
        os.fsync(self._directory_fd)

    def close(self) -> None:
        """Close every descriptor and let go of the lock."""
        for name in list(self._open):
            self._forget(name)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        if self._directory_fd >= 0:
            os.close(self._directory_fd)
            self._directory_fd = -1

    def _descriptor(self, name: str, flags: int = 0) -> int:
        """Return the kept descriptor of a file, opening it at first use."""
        fd = self._open.get(name)
        if fd is None:
            assert "/" not in name
            flags |= os.O_RDWR | os.O_CLOEXEC
            fd = self._open[name] = os.open(name, flags, 0o600, dir_fd=self._directory_fd)
        return fd

    def _forget(self, name: str) -> None:
        """Close a kept descriptor, if there is one."""
        fd = self._open.pop(name, None)
        if fd is not None:
            os.close(fd)


def make_durably(directory: Path) -> None:
    """Make a directory that is still there after power loss; one that exists is no error.

    Syncing a directory keeps its entries, not its own name: that is in its parent.
    """
    if directory.is_dir():
        return
    make_durably(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
