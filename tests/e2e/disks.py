"""Small disks that can be filled up, and given room again."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

FILLER = "filler"
"""No file of a node; it stands for whatever else fills a disk."""


@contextmanager
def small_disk(directory: Path, require: Callable[[str], str], *, size_kib: int) -> Iterator[None]:
    """Mount a small file system at a directory while inside."""
    mount = require("mount")
    directory.mkdir()
    options = f"size={size_kib}k"
    subprocess.run(
        [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(directory)],
        check=True,
        capture_output=True,
    )
    try:
        yield
    finally:
        # Lazily: a process that was just killed may hold it for another moment.
        umount = str(Path(mount).with_name("umount"))
        subprocess.run([umount, "-l", str(directory)], check=True, capture_output=True)


def fill(directory: Path) -> None:
    """Fill a disk to the last byte."""
    with (directory / FILLER).open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(os.urandom(size))
            except OSError:
                continue


def give_room(directory: Path) -> None:
    """Take away what filled a disk."""
    (directory / FILLER).unlink()
