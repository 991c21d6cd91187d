"""Faults aimed at the moments in which something is decided and not yet durable.

Random faults alone let some mistakes survive a hundred seeds. These strike in the few
milliseconds around a vote, a won election or a replaced tail, or leave a leader alone with
an entry that the others go on without.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.clients import KEYS

if TYPE_CHECKING:
    from sim.faults import Chaos
    from sim.world import World

AIM_SECONDS = 0.02
TRANSFER_SECONDS_MAX = 1.0


class Aim:
    """The aimed faults of one run."""

    def __init__(self, world: "World", chaos: "Chaos") -> None:
        self._world = world
        self._chaos = chaos
        self._draw = world.draw
        self._candidate: tuple[str, str] | None = None
        """A candidate to strike when it wins, and the member hidden from it."""
        self._handed_over: tuple[str, int, float] | None = None
        """Who was asked to hand over, in which term and when."""

    def _is_on(self) -> bool:
        """Return whether something may be struck now."""
        circumstances = self._world.circumstances
        return self._chaos.is_on and circumstances.aimed and circumstances.voters > 1

    # --- elections

    def role_changed(self, member: str, role: str, term: int) -> None:
        """Aim at an election: power is lost while something of it is not yet durable."""
        if role == "leader":
            self._count_transfer(member, term)
        if not self._is_on():
            return
        if role == "candidate" and self._draw.random() < 0.25:
            self._at_candidacy(member)
        elif role == "leader" and self._candidate is not None and self._candidate[0] == member:
            self._at_winner(member)

    def _at_candidacy(self, candidate: str) -> None:
        """Hide the candidate from one member, then take a voter or the candidate itself.

        The hidden member has not voted; with what the other one forgets, it could make a
        second leader of the same term.
        """
        hidden = self._chaos.other(candidate)
        self._world.network.cut([(candidate, hidden), (hidden, candidate)], 2.5)
        voters = [one for one in sorted(self._world.members) if one not in (candidate, hidden)]
        if self._draw.random() < 0.5:
            self._candidate = (candidate, hidden)
            self._plan(candidate, "aimed_candidate", voters)
        else:
            self._plan(self._draw.choice(voters), "aimed_voter", [candidate])

    def _at_winner(self, winner: str) -> None:
        """Take the power of a leader that was elected a moment ago."""
        assert self._candidate is not None
        hidden = self._candidate[1]
        self._candidate = None
        voters = [one for one in sorted(self._world.members) if one not in (winner, hidden)]
        self._plan(winner, "aimed_winner", voters)

    def hand_over(self) -> bool:
        """Ask the leader to hand over; return whether there is one."""
        leader = self._chaos.leader()
        core = self._world.members[leader].core if leader is not None else None
        if leader is None or core is None or core.running is None:
            return False
        self._handed_over = (leader, core.running.engine.term, self._world.timeline.now)
        self._world.members[leader].enter(core.hand_over)
        return True

    def _count_transfer(self, member: str, term: int) -> None:
        """Count a leader that was made by handing over."""
        if self._handed_over is None:
            return
        former, former_term, at = self._handed_over
        self._handed_over = None
        in_time = self._world.timeline.now - at < TRANSFER_SECONDS_MAX
        if in_time and member != former and term == former_term + 1:
            self._world.rare["leadership_transferred"] += 1

    # --- logs

    def tail_was_cut(self, member: str) -> None:
        """Take the power of a member that has just replaced its tail, and hide the leader."""
        if not self._is_on() or self._draw.random() >= 0.3:
            return
        leader = self._chaos.leader()
        self._plan(member, "aimed_cut", [leader] if leader not in (None, member) else [])

    def strand(self) -> bool:
        """Leave a leader alone with an entry, and nothing else for the others to do.

        They elect one of their own, whose first entry takes that place. With snapshots that
        are frequent, the stranded one comes back to a snapshot that ends right there.
        """
        world, draw = self._world, self._draw
        leader = self._chaos.leader()
        if leader is None:
            return False
        seconds = draw.uniform(1.0, 4.0)
        world.clients.quiet_until = world.timeline.now + seconds
        world.network.isolate(leader, seconds)
        for key in KEYS[: draw.randint(1, len(KEYS))]:
            if world.members[leader].is_alive:
                world.clients.change(world.members[leader], key)
        if draw.random() < 0.5:
            world.timeline.after(draw.uniform(0.05, seconds), self._strike, leader, "aimed_strand")
        return True

    # --- striking

    def _plan(self, victim: str, kind: str, isolated: Sequence[str | None]) -> None:
        """Cut a member's power within moments, and isolate others then."""
        delay = self._draw.random() * AIM_SECONDS
        self._world.timeline.after(delay, self._strike, victim, kind, isolated)

    def _strike(self, victim: str, kind: str, isolated: Sequence[str | None] = ()) -> None:
        """Do what was planned."""
        if not self._is_on() or not self._world.members[victim].is_alive:
            return
        world = self._world
        self._chaos.faults[kind] += 1
        world.trace("aimed", kind, victim)
        world.members[victim].kill(power=world.circumstances.power)
        delay = 0.05 + 0.2 * self._draw.random()
        world.timeline.after(delay, self._chaos.restart, victim)
        for member in isolated:
            if member is not None:
                world.network.isolate(member, 2.0)
