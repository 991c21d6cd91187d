"""Chaos: what goes wrong, when, to whom. Some of it at random, some of it aimed.

Random faults alone let some mistakes survive a hundred seeds. So a part is aimed at the few
milliseconds in which a vote, a won election or a replaced tail is not yet durable.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.world import World

AIM_SECONDS = 0.02


class Chaos:
    """The faults of one run."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._circumstances = world.circumstances
        self._draw = world.draw
        self.faults: Counter[str] = Counter()
        self.stopped: set[str] = set()
        """Members that stopped by themselves; nobody starts them again."""
        self._is_on = False
        self._aimed_at: tuple[str, str] | None = None

    def begin(self) -> None:
        """Let things go wrong from now on."""
        self._is_on = True
        self._world.timeline.after(1.0, self._next)

    def end(self) -> None:
        """Heal everything and start whoever is down."""
        self._is_on = False
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
        kinds = ["crash", "crash_inside", "blackout", "reset"]
        circumstances = self._circumstances
        if circumstances.cuts:
            kinds += ["isolate", "pair_cut", "one_way_cut", "isolate_leader"]
        kinds += ["pause"] if circumstances.pauses else []
        kinds += ["disk_stall", "disk_stall"] if circumstances.disk_stalls else []
        kinds += ["wipe"] if circumstances.wipes else []
        kinds += ["full_disk"] if circumstances.full_disks else []
        kinds += ["sync_error"] if circumstances.sync_errors else []
        kind = self._draw.choice(kinds)
        member = self._draw.choice(sorted(self._world.members))
        self._world.trace("fault", kind, member)
        if getattr(self, f"_{kind}")(member):
            self.faults[kind] += 1
        wait = self._draw.expovariate(1 / circumstances.fault_every_seconds)
        self._world.timeline.after(wait, self._next)

    def _seconds(self) -> float:
        """Return how long a fault lasts: often briefly, sometimes past every timeout."""
        return self._draw.choice((0.2, 0.6, 1.2, 2.0, 3.0, 6.0)) * (0.5 + self._draw.random())

    def _other(self, member: str) -> str:
        """Return another member."""
        return self._draw.choice([one for one in sorted(self._world.members) if one != member])

    def _leader(self) -> str | None:
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
        self._world.timeline.after(seconds, self._restart, member)
        return True

    def _restart(self, member: str) -> None:
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
        self._world.timeline.after(0.2 + 2 * self._draw.random(), self._restart, member)

    def _blackout(self, _member: str) -> bool:
        """Let everybody lose power at once, now and then."""
        if self._draw.random() < 0.6:
            return False
        for member in sorted(self._world.members):
            self._kill(member, 0.1 + self._draw.random())
        return True

    def _reset(self, member: str) -> bool:
        self._world.network.break_off(member, self._other(member))
        return True

    def _isolate(self, member: str) -> bool:
        self._world.network.isolate(member, self._seconds())
        return True

    def _isolate_leader(self, _member: str) -> bool:
        leader = self._leader()
        if leader is None:
            return False
        self._world.network.isolate(leader, self._seconds())
        return True

    def _pair_cut(self, member: str) -> bool:
        other = self._other(member)
        self._world.network.cut([(member, other), (other, member)], self._seconds())
        return True

    def _one_way_cut(self, member: str) -> bool:
        self._world.network.cut([(member, self._other(member))], self._seconds())
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
        world = self._world
        if not self._may_wipe(member):
            return False
        one = world.members[member]
        one.kill(power=False)
        one.wipe()
        world.timeline.after(0.1 + self._draw.random(), self._restart, member)
        world.timeline.after(0.5 + self._draw.random(), self._admit, member)
        return True

    def _may_wipe(self, member: str) -> bool:
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
        world.replace_disk(member)
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

    # --- aimed

    def role_changed(self, member: str, role: str) -> None:
        """Aim at an election: power is lost while something of it is not yet durable."""
        if not (self._is_on and self._circumstances.aimed):
            return
        if role == "candidate" and self._draw.random() < 0.25:
            self._aim_at_candidacy(member)
        elif role == "leader" and self._aimed_at is not None and self._aimed_at[0] == member:
            self._aim_at_winner(member)

    def _aim_at_candidacy(self, candidate: str) -> None:
        """Hide the candidate from one member, then take a voter or the candidate itself.

        The hidden member has not voted; with what the other one forgets, it could make a
        second leader of the same term.
        """
        hidden = self._other(candidate)
        self._world.network.cut([(candidate, hidden), (hidden, candidate)], 2.5)
        voters = [one for one in sorted(self._world.members) if one not in (candidate, hidden)]
        if self._draw.random() < 0.5:
            self._aimed_at = (candidate, hidden)
            self._plan(candidate, "aimed_candidate", voters)
        else:
            self._plan(self._draw.choice(voters), "aimed_voter", [candidate])

    def _aim_at_winner(self, winner: str) -> None:
        """Take the power of a leader that was elected a moment ago."""
        assert self._aimed_at is not None
        hidden = self._aimed_at[1]
        self._aimed_at = None
        voters = [one for one in sorted(self._world.members) if one not in (winner, hidden)]
        self._plan(winner, "aimed_winner", voters)

    def tail_was_cut(self, member: str) -> None:
        """Take the power of a member that has just replaced its tail, and hide the leader."""
        if not (self._is_on and self._circumstances.aimed and self._draw.random() < 0.3):
            return
        leader = self._leader()
        self._plan(member, "aimed_cut", [leader] if leader not in (None, member) else [])

    def _plan(self, victim: str, kind: str, isolated: "Sequence[str | None]") -> None:
        """Cut a member's power within moments, and isolate others then."""
        delay = self._draw.random() * AIM_SECONDS
        self._world.timeline.after(delay, self._strike, victim, kind, isolated)

    def _strike(self, victim: str, kind: str, isolated: "Sequence[str | None]") -> None:
        """Do what was planned."""
        one = self._world.members[victim]
        if not self._is_on or not one.is_alive:
            return
        self.faults[kind] += 1
        self._world.trace("aimed", kind, victim)
        one.kill(power=self._circumstances.power)
        self._world.timeline.after(0.05 + 0.2 * self._draw.random(), self._restart, victim)
        for member in isolated:
            if member is not None:
                self._world.network.isolate(member, 2.0)
