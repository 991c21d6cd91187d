"""Chaos: what goes wrong, when, to whom.

Random here; what is aimed at a decision is in `aimed.py`, older copies of a disk are in
`forgetting.py`.
"""

from collections import Counter
from typing import TYPE_CHECKING

from sim.aimed import Aim
from sim.circumstances import Circumstances
from sim.forgetting import Forgetting

if TYPE_CHECKING:
    from sim.world import World

FOUNDING_CRASHES_MAX = 4


class Chaos:
    """The faults of one run."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._circumstances = world.circumstances
        self._draw = world.draw
        self._kinds = kinds_of(world.circumstances)
        self._calm_until = 0.0
        self._is_on = False
        self._forgetting = Forgetting(world, self)
        self.aim = Aim(world, self)
        self.faults: Counter[str] = Counter()
        self.stopped: set[str] = set()
        """Members that stopped by themselves; nobody starts them again."""

    @property
    def is_on(self) -> bool:
        """Whether anything may go wrong now."""
        return self._is_on and self._world.timeline.now >= self._calm_until

    def disturb_founding(self, seconds: float) -> None:
        """Let members die while the cluster is being founded."""
        for _ in range(self._draw.randint(1, FOUNDING_CRASHES_MAX)):
            member = self._draw.choice(sorted(self._world.members))
            self._world.timeline.after(self._draw.random() * seconds, self._early_crash, member)

    def _early_crash(self, member: str) -> None:
        """Kill a member, and start it again soon."""
        self.faults["early_crash"] += self._kill(member, 0.05 + 0.3 * self._draw.random())

    def begin(self) -> None:
        """Let things go wrong from now on."""
        self._is_on = True
        self._plan_next()

    def end(self) -> None:
        """Heal everything and start whoever is down."""
        self._is_on = False
        self._heal()

    def calm(self, seconds: float) -> None:
        """Heal everything, and let nothing go wrong for a while."""
        self._calm_until = self._world.timeline.now + seconds
        self._heal()

    def _heal(self) -> None:
        """Let everything work again."""
        world = self._world
        for member in world.members.values():
            member.stalled_until = member.paused_until = 0.0
            member.sends_left = None
            member.files.full(None)
            if not member.is_alive and member.id not in self.stopped:
                member.start()
        world.network.heal_all()

    # --- at random

    def _next(self) -> None:
        """Do one thing and plan the next."""
        if not self._is_on:
            return
        if self.is_on:
            kind = self._draw.choice(self._kinds)
            member = self._draw.choice(sorted(self._world.members))
            self._world.trace("fault", kind, member)
            if getattr(self, f"_{kind}")(member):
                self.faults[kind] += 1
        self._plan_next()

    def _plan_next(self) -> None:
        """Let the next thing go wrong in a while."""
        wait = self._draw.expovariate(1 / self._circumstances.fault_every_seconds)
        self._world.timeline.after(wait, self._next)

    def _seconds(self) -> float:
        """Return how long a fault lasts: often briefly, sometimes past every timeout."""
        return self._draw.choice((0.2, 0.6, 1.2, 2.0, 3.0, 6.0)) * (0.5 + self._draw.random())

    def other(self, member: str) -> str:
        """Return another member."""
        return self._draw.choice([one for one in sorted(self._world.members) if one != member])

    def leader(self) -> str | None:
        """Return who leads with the highest term, None if nobody does."""
        leaders = [
            (one.core.running.engine.term, one.id)
            for one in self._world.members.values()
            if one.core is not None
            and one.core.running is not None
            and one.core.running.engine.is_leader
        ]
        return max(leaders)[1] if leaders else None

    def _kill(self, member: str, seconds: float) -> bool:
        """Kill a member, by power loss more often than not, and start it again later."""
        one = self._world.members[member]
        if not one.is_alive:
            return False
        one.kill(power=self._circumstances.power and self._draw.random() < 0.7)
        self._world.timeline.after(seconds, self.restart, member)
        return True

    def restart(self, member: str) -> None:
        """Start a dead member."""
        one = self._world.members[member]
        if not one.is_alive and member not in self.stopped:
            one.start()

    def _crash(self, member: str) -> bool:
        return self._kill(member, self._seconds())

    def _crash_inside(self, member: str) -> bool:
        """Let a member die between two messages of one step."""
        one = self._world.members[member]
        if not one.is_alive:
            return False
        one.sends_left = self._draw.randint(0, 12)
        return True

    def died_inside(self, member: str) -> None:
        """Plan the return of a member that died inside a step."""
        self._world.timeline.after(0.2 + 2 * self._draw.random(), self.restart, member)

    def _blackout(self, _member: str) -> bool:
        """Let everybody lose power at once, now and then."""
        if self._draw.random() < 0.6:
            return False
        for member in sorted(self._world.members):
            self._kill(member, 0.1 + self._draw.random())
        return True

    def _reset(self, member: str) -> bool:
        self._world.network.break_off(member, self.other(member))
        return True

    def _isolate(self, member: str) -> bool:
        self._world.network.isolate(member, self._seconds())
        return True

    def _isolate_leader(self, _member: str) -> bool:
        leader = self.leader()
        if leader is None:
            return False
        self._world.network.isolate(leader, self._seconds())
        return True

    def _pair_cut(self, member: str) -> bool:
        other = self.other(member)
        self._world.network.cut([(member, other), (other, member)], self._seconds())
        return True

    def _one_way_cut(self, member: str) -> bool:
        self._world.network.cut([(member, self.other(member))], self._seconds())
        return True

    def _pause(self, member: str) -> bool:
        """Stop a process for a while: it hears and does nothing."""
        one = self._world.members[member]
        pause = self._draw.uniform(0.01, 3.0)
        one.paused_until = max(one.paused_until, self._world.timeline.now + pause)
        return one.is_alive

    def _disk_stall(self, member: str) -> bool:
        stall = self._draw.uniform(0.2, 2.0)
        self._world.members[member].stalled_until = self._world.timeline.now + stall
        return True

    def _wipe(self, member: str) -> bool:
        """Empty a disk, if the others would survive it: two gone at once may be a majority."""
        if not self.may_wipe(member):
            return False
        self.wipe(member)
        return True

    def wipe(self, member: str) -> None:
        """Empty a disk, and have it admitted later."""
        world = self._world
        one = world.members[member]
        one.kill(power=False)
        one.wipe()
        world.timeline.after(0.1 + self._draw.random(), self.restart, member)
        world.timeline.after(0.5 + self._draw.random(), self._admit, member)

    def may_wipe(self, member: str) -> bool:
        """Return whether every other disk knows durably of everybody's present disk."""
        world = self._world
        cores = [one.core for one in world.members.values()]
        if any(core is None or core.running is None for core in cores):
            return False
        for one in world.members.values():
            core = one.core
            assert core is not None
            assert core.running is not None
            if not core.disk.is_idle:
                return False
            for other in world.members.values():
                known = core.standing.admissions.admitted(
                    other.id, core.running.machine.state, core.running.journal.notes
                )
                if one.id != member and known != other.incarnation:
                    return False
        return True

    def _admit(self, member: str) -> None:
        """Ask for a wiped disk to be admitted until it is."""
        world = self._world
        core = world.members[member].core
        if core is not None and core.running is not None and core.counts(member):
            return
        world.clients.replace_disk(member)
        if self._is_on:
            world.timeline.after(0.7, self._admit, member)

    def _full_disk(self, member: str) -> bool:
        """Leave a disk a few bytes for a while."""
        files = self._world.members[member].files
        files.full(self._draw.randint(0, 2000))
        self._world.timeline.after(self._seconds(), files.full, None)
        return True

    def _sync_error(self, member: str) -> bool:
        """Let the next sync of a disk fail."""
        one = self._world.members[member]
        if one.is_alive:
            one.files.sync_errors(1)
        return one.is_alive

    def _forget(self, member: str) -> bool:
        """Put an older copy of a directory back, once there is one; counted when it happens."""
        self._forgetting.begin(member)
        return False

    def _hand_over(self, _member: str) -> bool:
        return self.aim.hand_over()

    def _strand(self, _member: str) -> bool:
        return self.aim.strand()


def kinds_of(circumstances: Circumstances) -> list[str]:
    """Return the kinds of faults there are, some more than once."""
    kinds = ["crash", "crash_inside", "blackout"]
    if circumstances.voters == 1:
        return kinds + (["disk_stall"] if circumstances.disk_stalls else [])
    kinds += ["reset"]
    if circumstances.cuts:
        kinds += ["isolate", "pair_cut", "one_way_cut", "isolate_leader"]
    optional = {
        "pause": circumstances.pauses,
        "disk_stall": circumstances.disk_stalls,
        "wipe": circumstances.wipes,
        "full_disk": circumstances.full_disks,
        "sync_error": circumstances.sync_errors,
        "forget": circumstances.forgetting,
        "hand_over": circumstances.transfers,
        "strand": circumstances.strandings and circumstances.cuts,
    }
    kinds += [kind for kind, is_on in optional.items() if is_on]
    return kinds + (["disk_stall"] if circumstances.disk_stalls else [])
