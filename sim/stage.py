"""A quiet cluster on which a trial plays one scene: no chaos, only what the scene does."""

from collections.abc import Callable, Sequence

from reachnode.peers.raft.core import Core, Running
from reachnode.peers.raft.safeguards import Safeguards
from reachnode.registry.outcomes import Applied
from sim.circumstances import Circumstances
from sim.clients import KEYS
from sim.member import SimMember
from sim.network import Edge
from sim.world import World

WAIT_SECONDS_MAX = 10.0
STEP_SECONDS = 0.0005
LONG_SECONDS = 1e6


class Stage:
    """One cluster, founded and led.

    Args:
        seed: Draws delays and timeouts.
        safeguards: Which rules are on.
        fixed: Circumstances other than quiet ones.
    """

    def __init__(self, seed: int, safeguards: Safeguards, **fixed: object) -> None:
        quiet: dict[str, object] = {
            "snapshot_entries": 10_000,
            "keep_entries": 0,
            "sync_seconds": (0.0005, 0.002),
            "delay_seconds": (0.0003, 0.002),
        }
        circumstances = Circumstances(**{**quiet, **fixed}, safeguards=safeguards)  # type: ignore[arg-type]  # fields of it
        self.world = World(seed, circumstances)
        self.leaders_count = 0
        self.world.on_role = self._role
        assert self.world.found()
        self.leader = self.wait_for_leader()

    def _role(self, _member: str, role: str, _term: int) -> None:
        """Count leaders."""
        self.leaders_count += role == "leader"

    # --- looking

    def member(self, name: str) -> SimMember:
        """Return a member."""
        return self.world.members[name]

    def core(self, name: str) -> Core:
        """Return a live member's core."""
        core = self.member(name).core
        assert core is not None
        return core

    def running(self, name: str) -> Running:
        """Return the parts of a live member's core."""
        running = self.core(name).running
        assert running is not None
        return running

    def _leads(self, name: str) -> bool:
        """Return whether a member is alive and leads."""
        core = self.member(name).core
        return core is not None and core.running is not None and core.running.engine.is_leader

    def others(self, *names: str) -> list[str]:
        """Return everybody else, sorted."""
        return [one for one in sorted(self.world.members) if one not in names]

    def end(self, name: str) -> int:
        """Return the index of a member's last entry."""
        return self.running(name).journal.end

    @property
    def now(self) -> float:
        """Return true time."""
        return self.world.timeline.now

    # --- letting happen

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.world.timeline.run_until(self.now + seconds)

    def wait(self, until: Callable[[], bool], seconds: float = WAIT_SECONDS_MAX) -> bool:
        """Let time pass until something holds; return whether it came about in time."""
        ends_at = self.now + seconds
        while not until():
            if self.now >= ends_at:
                return False
            self.run(STEP_SECONDS)
        return True

    def wait_for_leader(self, *, besides: Sequence[str] = ()) -> str:
        """Return the next leader that is not among some members."""

        def found() -> list[str]:
            return [one for one in self.others(*besides) if self._leads(one)]

        assert self.wait(lambda: bool(found())), "nobody was elected"
        return found()[0]

    def change(self, name: str, count: int = 1) -> bool:
        """Make changes through a member, one after the other; return whether all were applied."""
        for _ in range(count):
            change = self.world.clients.change(self.member(name), KEYS[0])
            self.wait(lambda change=change: change.fate is not None)  # type: ignore[misc]  # mypy infers no default
            if not isinstance(change.fate, Applied):
                return False
        return True

    def ask(self, name: str) -> None:
        """Ask a member for a change and wait for nothing."""
        self.world.clients.change(self.member(name), KEYS[0])

    def cut(self, *edges: Edge) -> None:
        """Cut directions until they are healed."""
        self.world.network.cut(edges, LONG_SECONDS)

    def isolate(self, name: str) -> None:
        """Cut a member off until it is healed."""
        self.cut(*self._edges(name))

    def heal(self, name: str) -> None:
        """Let everything from and to a member work again."""
        self.world.network.heal(self._edges(name))

    def _edges(self, name: str) -> list[Edge]:
        """Return all directions from and to a member."""
        others = self.others(name)
        return [(name, one) for one in others] + [(one, name) for one in others]

    # --- judging

    def promise(self, what: str, *, kept: bool) -> None:
        """Record a broken promise."""
        if not kept:
            self.world.judge.violated("promise broken", what)

    def verdict(self) -> list[str]:
        """Return what was violated."""
        return list(self.world.judge.violations)
