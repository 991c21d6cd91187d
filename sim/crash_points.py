"""Crashes at every system call of a script of writes, and what must be left of them.

A script is one life of a `sim.scribe` on an empty disk. It is run once undisturbed, to
learn which system calls it makes, and then once for each trial:

    kill, power    the process, or the machine, ends before a call, or amid a write
    sync_error     a sync, and perhaps the next ones, fail; the process goes on, and dies later
    full           there is no room from a write on, and later there is; likewise

After each crash the directory is loaded and compared with the `sim.ledger`. Then the next
process begins on it and is cut short as well, and a third one lives to the end.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from traceback import extract_tb

from reachnode.peers.raft.loading import Loaded, load
from reachnode.peers.raft.records import Damaged
from sim.disk import CrashNow, FakeFiles
from sim.ledger import Ledger
from sim.scribe import NODE, Rooms, Scribe

STEPS = (4, 40)
"""Things a script's process does, at least and at most."""
LATER_STEPS = 3
ALONE_SHARE = 0.25
POWER_SHARE = 0.7
"""How often a later process ends with the machine."""
BEGIN_CALLS = 24
"""About so many changing calls a process makes to begin; the second crash is among them."""
LATER_CALLS = 60
SYNC_ERRORS_MAX = 3
ROOM_BYTES_MAX = 2_000


class Fate(StrEnum):
    """What happens at a point."""

    KILL = "kill"
    POWER = "power"
    SYNC_ERROR = "sync_error"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One trial: a changing call of a script, counted from 0, and what happens there."""

    call: int
    fate: Fate
    part: float = 0.0
    """How much of the call is done, 0 to 1."""


class CountedFiles(FakeFiles):
    """A pretend disk that knows which calls were writes and syncs, and may arm a fault at one."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []
        self.syncs: list[int] = []
        self.fault: tuple[int, Callable[[], None]] | None = None

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, making the file if it is missing."""
        self._count(self.writes)
        super().write(name, offset, data)

    def sync(self, name: str) -> None:
        """Make the content of a file durable."""
        self._count(self.syncs)
        super().sync(name)

    def sync_names(self) -> None:
        """Make creations, renamings and removals durable."""
        self._count(self.syncs)
        super().sync_names()

    def _count(self, calls: list[int]) -> None:
        """Take note of the call that begins, and arm what is due."""
        calls.append(self.operations)
        if self.fault is not None and self.operations >= self.fault[0]:
            arm, self.fault = self.fault[1], None
            arm()


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One script of writes, drawn from a seed and its number."""

    seed: int
    number: int
    rooms: Rooms = NODE

    def dice(self, what: object = "") -> random.Random:
        """Return dice of this script for something."""
        return random.Random(f"disk {self.seed} {self.number} {what}")

    def first_life(self, files: FakeFiles, ledger: Ledger) -> None:
        """Live from an empty directory to the end."""
        draw = self.dice()
        is_alone, steps = draw.random() < ALONE_SHARE, draw.randint(*STEPS)
        self.scribe(files, ledger, draw, load(files), is_alone=is_alone).live(steps)

    def scribe(
        self,
        files: FakeFiles,
        ledger: Ledger,
        draw: random.Random,
        loaded: Loaded,
        *,
        is_alone: bool,
    ) -> Scribe:
        """Return a process that begins on what was loaded."""
        return Scribe(files, ledger, draw, loaded=loaded, is_alone=is_alone, rooms=self.rooms)

    def points(self) -> list[Point]:
        """Return every trial of this script, in order."""
        files = CountedFiles()
        self.first_life(files, Ledger())
        draw = self.dice("points")
        points: list[Point] = []
        for call in range(files.operations):
            points += [Point(call=call, fate=fate) for fate in (Fate.KILL, Fate.POWER)]
        for call in files.writes:
            for fate in (Fate.KILL, Fate.POWER):
                points.append(Point(call=call, fate=fate, part=draw.uniform(0.01, 0.99)))
        points += [Point(call=call, fate=Fate.SYNC_ERROR) for call in files.syncs]
        points += [Point(call=call, fate=Fate.FULL) for call in files.writes]
        return points


@dataclass(slots=True)
class Trial:
    """One point tried."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def run(self, script: Script, point: Point) -> None:
        """Try a point; what was wrong is in `faults` afterwards."""
        dice = script.dice(f"{point.call} {point.fate} {point.part}")
        try:
            self._lives(script, point, dice)
        except Damaged as damage:
            self.faults.append(f"refused: {damage}")
        except Exception as error:  # noqa: BLE001 - whatever a process raises, the point is told
            place = extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}, line {place.lineno}"
            self.faults.append(f"raised: {type(error).__name__} in {where}: {error}")

    def _lives(self, script: Script, point: Point, dice: random.Random) -> None:
        """Let three processes live on one disk, each cut short but the last."""
        files, ledger = CountedFiles(), Ledger()
        is_alone = dice.random() < ALONE_SHARE
        _arm(files, point, dice)
        has_died = _dies(lambda: script.first_life(files, ledger))
        takes_power = point.fate is Fate.POWER or not has_died or dice.random() < POWER_SHARE
        loaded = self._crash(files, ledger, dice, takes_power=takes_power and point.fate != "kill")
        for is_last in (False, True):
            if self.faults:
                return
            if not is_last:
                files.fail_after(dice.randint(0, BEGIN_CALLS), part=dice.random())
            scribe = script.scribe(files, ledger, dice, loaded, is_alone=is_alone)
            has_died = _dies(lambda scribe=scribe: scribe.live(LATER_STEPS))  # type: ignore[misc]  # mypy infers no default
            takes_power = not has_died or dice.random() < POWER_SHARE
            loaded = self._crash(files, ledger, dice, takes_power=takes_power)

    def _crash(
        self, files: CountedFiles, ledger: Ledger, dice: random.Random, *, takes_power: bool
    ) -> Loaded:
        """End a process, and judge what is left."""
        if takes_power:
            files.power_loss(dice)
        else:
            files.kill()
        self.counts["power_losses" if takes_power else "kills"] += 1
        files.full(None)
        files.sync_errors(0)
        files.fault = None
        loaded = load(files)
        self.counts["torn"] += loaded.torn_bytes > 0
        self.faults += ledger.faults(loaded)
        if not self.faults:
            ledger.reborn(loaded, has_lost_power=takes_power)
        return loaded


def _arm(files: CountedFiles, point: Point, dice: random.Random) -> None:
    """Let happen what is to happen at a point."""
    if point.fate in (Fate.KILL, Fate.POWER):
        files.fail_after(point.call, part=point.part)
        return
    if point.fate is Fate.SYNC_ERROR:
        count = dice.randint(1, SYNC_ERRORS_MAX)
        room = dice.randint(0, ROOM_BYTES_MAX) if dice.random() < 0.2 else None
    else:
        count = 0
        room = dice.choice((0, dice.randint(0, ROOM_BYTES_MAX)))

    def arm() -> None:
        files.sync_errors(count)
        files.full(room)

    files.fault = (point.call, arm)
    files.fail_after(point.call + dice.randint(1, LATER_CALLS), part=dice.random())


def _dies(live: Callable[[], None]) -> bool:
    """Return whether a process dies before it has done all it wants."""
    try:
        live()
    except CrashNow:
        return True
    return False
