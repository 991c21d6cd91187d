"""A pretend disk: what was written, what was synced, and what a power cut leaves of it.

It keeps the port of `reachnode.world.files` in memory and remembers two things apart:

    content   what a reader sees (the page cache), and the changes since the last `sync`
    names     who is in the directory, and the changes since the last `sync_names`

    call                 content                          names
    write, truncate      seen at once, unsynced           a new file: unsynced
    rename, remove       -                                seen at once, unsynced
    sync                 durable                          untouched: a new file may still vanish
    sync_names           untouched                        durable
    kill                 kept                             kept
    power_loss           see `Cruelty`                    a prefix of the changes, on its own

There is no clock and no dice in here; the caller brings both. How one file loses its
unsynced bytes is in `sim.platter`.
"""

import errno
import os
import random
from collections.abc import Mapping

from sim.platter import CRUEL, Content, Cruelty, prefix

Image = Mapping[str, bytes]
"""A whole directory: content by name."""

NameChange = tuple[str | None, str | None, Content]
"""Name taken away, name given, and the file they speak of."""


class CrashNow(BaseException):
    """The pretend process dies here; only the simulator may catch this."""


class FakeFiles:
    """A flat directory in memory that can lose power, fill up and go bad.

    It stands for the disk, not for a process: after `kill` or `power_loss` the next
    pretend process uses the same object.

    Args:
        cruelty: What `power_loss` may do.
    """

    def __init__(self, cruelty: Cruelty = CRUEL) -> None:
        self.cruelty = cruelty
        self.operations = 0
        """Calls so far that change something, the syncs among them."""
        self._names: dict[str, Content] = {}
        self._durable_names: dict[str, Content] = {}
        self._unsynced_names: list[NameChange] = []
        self._is_watched = False  # any fault is armed; else the calls skip the checks
        self._is_dead = False
        self._is_read_only = False
        self._crash_at: int | None = None
        self._crash_part = 0.0
        self._room_bytes: int | None = None
        self._sync_errors = 0

    # The port.

    def names(self) -> list[str]:
        """Return the names present, sorted."""
        self._check_alive()
        return sorted(self._names)

    def size(self, name: str) -> int:
        """Return the length of a file in bytes."""
        return len(self._content(name).cache)

    def read(self, name: str, offset: int = 0, count: int | None = None) -> bytes:
        """Return up to `count` bytes from `offset` (all that follow when None)."""
        assert offset >= 0
        with memoryview(self._content(name).cache) as view:
            return bytes(view[offset:] if count is None else view[offset : offset + count])

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, making the file if it is missing."""
        assert offset >= 0
        self.operations += 1
        fate: BaseException | None = None
        if self._is_watched:
            self._check_alive()
            if self._is_read_only:
                raise self._die() if self._is_last() else system_error(errno.EROFS, name)
            data, fate = self._part_written(name, offset, data)
        content = self._names.get(name)
        if content is None:
            content = self._names[name] = Content()
            self._unsynced_names.append((None, name, content))
        if data:
            content.put(offset, data)
        if fate is not None:
            raise fate

    def truncate(self, name: str, size: int) -> None:
        """Cut a file to `size` bytes."""
        assert size >= 0
        self._enter()
        content = self._content(name)
        growth = size - len(content.cache)
        if self._room_bytes is not None:
            # As for a write that makes a gap, the zeros count: a strict disk has no holes.
            if growth > self._room_bytes:
                raise system_error(errno.ENOSPC, name)
            self._room_bytes -= growth
        content.resize(size)
        self._leave()

    def sync(self, name: str) -> None:
        """Make the content of a file durable; its name is not content."""
        self._enter()
        content = self._content(name)
        if self._sync_fails():
            content.fail_sync()
            raise system_error(errno.EIO, name)
        content.sync()
        self._leave()

    def rename(self, old: str, new: str) -> None:
        """Replace `new` by `old` in one step."""
        self._enter()
        content = self._content(old)
        if old != new:
            self._give_room(new)
            self._change_name((old, new, content))
        self._leave()

    def remove(self, name: str) -> None:
        """Remove a file; a missing one is no error."""
        self._enter()
        content = self._names.get(name)
        if content is not None:
            self._give_room(name)
            self._change_name((name, None, content))
        self._leave()

    def sync_names(self) -> None:
        """Make creations, renamings and removals durable; after an error they stay unsynced."""
        self._enter()
        if self._sync_fails():
            raise system_error(errno.EIO, ".")
        self._durable_names = dict(self._names)
        self._unsynced_names.clear()
        self._leave()

    def close(self) -> None:
        """Do nothing: the disk outlives the process, and there are no descriptors."""

    # What befalls the machine.

    def kill(self) -> None:
        """End the process: all it wrote stays; a pending `fail_after` is forgotten."""
        self._is_dead, self._crash_at = False, None
        self._watch()

    def power_loss(self, draw: random.Random) -> None:
        """End the machine: of what was not synced, keep what `cruelty` leaves."""
        count = len(self._unsynced_names)
        keep = prefix(count, draw, self.cruelty) if self.cruelty.names_lost else count
        for change in self._unsynced_names[:keep]:
            rename_in(self._durable_names, change)
        self._unsynced_names.clear()
        for content in self._durable_names.values():
            content.lose_power(draw, self.cruelty)
        self._names = dict(self._durable_names)
        self.kill()

    def durable(self) -> Image:
        """Return what is left at least, whatever a power cut does: the synced names and bytes."""
        return {name: bytes(one.durable()) for name, one in self._durable_names.items()}

    def copy(self) -> Image:
        """Return the directory as a reader sees it, for `restore`."""
        return {name: bytes(content.cache) for name, content in self._names.items()}

    def restore(self, image: Image) -> None:
        """Replace the whole directory, durably: somebody put yesterday's copy back."""
        self._names = {name: Content(data) for name, data in image.items()}
        self._durable_names = dict(self._names)
        self._unsynced_names.clear()

    def wipe(self) -> None:
        """Lose every file, durably: a new disk in the same machine."""
        self.restore({})

    # Faults to inject.

    def fail_after(self, operations: int, *, part: float = 0.0) -> None:
        """Let the process die in the changing call after `operations` further ones.

        It is dead then: every later call, a read too, raises `CrashNow` until `kill` or
        `power_loss`, so that a caller which swallowed the first one cannot stumble on.

        Args:
            operations: Changing calls that still succeed; 0 or more.
            part: How much of the last call is done, 0 to 1: of a write that share of its
                bytes (the file is made in any case), of another call all from 0.5 up.
        """
        assert operations >= 0
        assert 0 <= part <= 1
        self._crash_at, self._crash_part = self.operations + operations + 1, part
        self._watch()

    def full(self, room_bytes: int | None) -> None:
        """Let files grow by `room_bytes` more in total, then raise ENOSPC; None lifts it.

        What a cut or a removal frees is room again.
        """
        assert room_bytes is None or room_bytes >= 0
        self._room_bytes = room_bytes
        self._watch()

    def read_only(self, on: bool) -> None:  # noqa: FBT001 -- a switch
        """Let every changing call raise EROFS, or stop that."""
        self._is_read_only = on
        self._watch()

    def sync_errors(self, count: int) -> None:
        """Let the next `count` syncs raise EIO.

        What a failed `sync` should have written still reads well but counts as clean: a
        later sync does not write it; only writing the same bytes again does.
        """
        assert count >= 0
        self._sync_errors = count

    def flip(self, name: str, offset: int, bit: int = 0) -> None:
        """Turn over bit `bit` (0 to 7) of a byte, in the cache and on the platter."""
        assert 0 <= bit < 8
        content = self._names[name]
        assert 0 <= offset < len(content.cache)
        content.flip(offset, bit)

    # Inside.

    def _watch(self) -> None:
        """Note whether calls need the checks at all."""
        self._is_watched = (
            self._is_dead
            or self._is_read_only
            or self._crash_at is not None
            or self._room_bytes is not None
        )

    def _check_alive(self) -> None:
        """Let a dead process do nothing more."""
        if self._is_dead:
            raise CrashNow

    def _is_last(self) -> bool:
        """Return whether the process dies in this call; a call that failed passes it on."""
        return self._crash_at is not None and self.operations >= self._crash_at

    def _content(self, name: str) -> Content:
        """Return the file of that name."""
        self._check_alive()
        content = self._names.get(name)
        if content is None:
            raise system_error(errno.ENOENT, name)
        return content

    def _die(self) -> CrashNow:
        """Mark the process dead and return what to raise."""
        self._is_dead = True
        return CrashNow()

    def _enter(self) -> None:
        """Count a changing call, and stop it where a fault says so."""
        self.operations += 1
        if self._is_watched:
            self._check_alive()
            if self._is_last() and (self._crash_part < 0.5 or self._is_read_only):
                raise self._die()
            if self._is_read_only:
                raise system_error(errno.EROFS, ".")

    def _leave(self) -> None:
        """End a changing call, dying between its effect and its return if so told."""
        if self._is_last():
            raise self._die()

    def _part_written(
        self, name: str, offset: int, data: bytes
    ) -> tuple[bytes, BaseException | None]:
        """Return what of a write gets through the armed faults, and what to raise then."""
        fate: BaseException | None = None
        if self._is_last():
            data = data[: int(len(data) * self._crash_part)]
            fate = self._die()
        if self._room_bytes is not None and data:
            content = self._names.get(name)
            size = len(content.cache) if content else 0
            end = max(size, min(offset + len(data), size + self._room_bytes))
            if end < offset + len(data):
                data = data[: max(0, end - offset)]
                fate = fate or system_error(errno.ENOSPC, name)
            if data:
                self._room_bytes -= max(0, offset + len(data) - size)
        return data, fate

    def _sync_fails(self) -> bool:
        """Use up one armed sync error, if there is one."""
        if self._sync_errors == 0:
            return False
        self._sync_errors -= 1
        return True

    def _give_room(self, name: str) -> None:
        """Count the bytes of a file that goes away as room."""
        content = self._names.get(name)
        if self._room_bytes is not None and content is not None:
            self._room_bytes += len(content.cache)

    def _change_name(self, change: NameChange) -> None:
        """Make a change that readers see at once."""
        rename_in(self._names, change)
        self._unsynced_names.append(change)


def rename_in(names: dict[str, Content], change: NameChange) -> None:
    """Make one change of names in a directory that has had all earlier ones."""
    gone, new, content = change
    if gone is not None:
        del names[gone]
    if new is not None:
        names[new] = content


def system_error(code: int, name: str) -> OSError:
    """Return the error as the system words it."""
    return OSError(code, os.strerror(code), name)
