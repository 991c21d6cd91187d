"""Yesterday's directory: somebody puts an older copy of a member's disk back.

Such a disk has forgotten what it acknowledged and whom it voted for, and says it is the one
it was. No rule can make up for that while whoever remembers is away: it is a lost disk that
does not know it. What is promised is that a leader which remembers does not believe it. So
the copy comes back in a calm moment, must be noticed, and then is treated as the lost disk
it is: wiped and admitted anew.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.disk import Image

if TYPE_CHECKING:
    from sim.faults import Chaos
    from sim.world import World

CALM_SECONDS = 1.5
NOTICE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A copy of a directory, and what its owner held then."""

    incarnation: str
    log_end: int
    image: Image


class Forgetting:
    """The older copies of one run."""

    def __init__(self, world: "World", chaos: "Chaos") -> None:
        self._world = world
        self._chaos = chaos
        self._copies: dict[str, Copy] = {}

    def begin(self, member: str) -> None:
        """Copy a directory, or plan to put its copy back."""
        one = self._world.members[member]
        if one.core is None or one.core.running is None:
            return
        copy = self._copies.get(member)
        if copy is None or copy.incarnation != one.incarnation:
            self._copies[member] = Copy(
                incarnation=one.incarnation,
                log_end=one.core.running.journal.end,
                image=one.files.copy(),
            )
            return
        self._chaos.calm(CALM_SECONDS + NOTICE_SECONDS + 0.5)
        self._world.timeline.after(CALM_SECONDS, self._restore, member, copy)

    def _restore(self, member: str, copy: Copy) -> None:
        """Put the copy back if a leader is there that must notice."""
        world = self._world
        leader = self._chaos.leader()
        if leader in (None, member) or not self._chaos.may_wipe(member):
            return
        assert leader is not None
        core = world.members[leader].core
        assert core is not None
        assert core.running is not None
        incarnation, most = core.inbound._acked.get(member, ("", 0))
        if incarnation != copy.incarnation or min(most, core.running.engine.commit_index) <= (
            copy.log_end
        ):
            return
        one = world.members[member]
        if not one.is_alive or one.incarnation != incarnation:
            return
        self._chaos.faults["older_disk"] += 1
        world.trace("older disk", member)
        one.kill(power=False)
        one.files.restore(copy.image)
        one.start()
        term = core.running.engine.term
        world.timeline.after(NOTICE_SECONDS, self._conclude, member, leader, term)

    def _conclude(self, member: str, leader: str, term: int) -> None:
        """Demand that the leader noticed; then treat the disk as lost."""
        world = self._world
        core = world.members[leader].core
        if core is not None and core.running is not None and core.running.engine.term == term:
            if member in core.standing.admissions.amnesiac:
                world.rare["disk_forgot_and_was_noticed"] += 1
            elif core.running.engine.is_leader:
                world.judge.violated("not noticed", f"{member} came back with an older disk")
        del self._copies[member]
        self._chaos.wipe(member)
