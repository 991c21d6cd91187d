"""What a test needs from the machine beyond Python, and what happens when it is missing.

A developer's machine may lack etcd or root, so such a test is skipped there, with the
reason. Where everything is promised (`.ci/run` sets REACHNODE_REQUIRE_ALL=1) a skip would
hide a hole, so the same test fails.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping

import pytest

REQUIRE_ALL = "REACHNODE_REQUIRE_ALL"
SYSTEM_DIRECTORIES = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where administrators' programs live that a user's PATH leaves out."""


def find_program(name: str) -> str | None:
    """Return the path of a program, or None when it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_DIRECTORIES}")


def find_root() -> str | None:
    """Return a word when this process is root, else None."""
    return "root" if os.geteuid() == 0 else None


def find_mount() -> str | None:
    """Return the path of `mount` when a small tmpfs can be mounted and unmounted, else None."""
    mount, umount = find_program("mount"), find_program("umount")
    if mount is None or umount is None or find_root() is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        tried = subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place],
            check=False,
            capture_output=True,
        )
        if tried.returncode != 0:
            return None
        subprocess.run([umount, place], check=True, capture_output=True)
    return mount


SPECIAL: Mapping[str, Callable[[], str | None]] = {"mount": find_mount, "root": find_root}


def require(thing: str) -> str:
    """Return the path of a program the test needs, or end the test.

    Args:
        thing: A program (`etcd`), or `root` (this process is root), or `mount` (a tmpfs
            can be mounted here, tried for real).

    Raises:
        pytest.skip.Exception: It is missing.
        pytest.fail.Exception: It is missing and REACHNODE_REQUIRE_ALL is 1.
    """
    find = SPECIAL.get(thing)
    found = find() if find is not None else find_program(thing)
    if found is not None:
        return found
    reason = f"{thing} is missing here"
    if os.environ.get(REQUIRE_ALL) == "1":
        pytest.fail(f"{reason}, and {REQUIRE_ALL}=1 allows no test to be skipped")
    pytest.skip(reason)
