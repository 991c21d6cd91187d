"""One run: a cluster of real cores, clients, faults, and a judge, out of one seed.

    found -> chaos (safety: anything may fail) -> heal -> converge (liveness) -> judge

The seed first draws the circumstances (how many members, how slow the disks and the
network, which faults), then the run. The same seed gives the same run, which the trace
hash shows.
"""

import random
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from reachnode.peers.raft.core import Core
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.messages import decode
from reachnode.peers.raft.report import counters
from reachnode.peers.raft.settings import RaftSettings
from reachnode.registry.outcomes import Applied, Outcome
from reachnode.registry.state import genesis
from sim.circumstances import Circumstances, draw_circumstances
from sim.clients import KEYS, Clients
from sim.clock import Timeline
from sim.faults import Chaos
from sim.judge import Judge
from sim.majority import holders_of_entry, holders_of_vote
from sim.member import Hooks, SimMember
from sim.network import Ends, SimNetwork
from sim.rare import of_counters
from sim.report import Report

FOUNDING_SECONDS = 5.0
EARLY_SECONDS = 1.5
"""For how long members may die while they found the cluster."""
REQUESTS_MAX = 32
CONVERGE_ROUNDS_MAX = 12
_STAMP = struct.Struct("<dBB")


class World:
    """One run.

    Args:
        circumstances: What it is under.
        tell: Gets each line of the trace, if anybody wants to read it.
    """

    def __init__(
        self,
        seed: int,
        circumstances: Circumstances,
        *,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.seed = seed
        self.circumstances = circumstances
        self.draw = random.Random(f"world {seed}")
        self.timeline = Timeline()
        remembers = circumstances.safeguards.requests_are_remembered
        self.judge = Judge(requests_are_remembered=remembers)
        self.rare: Counter[str] = Counter()
        self.founders: Mapping[str, str] = {}
        self.cluster_id = ""
        self.on_role: Callable[[str, str, int], None] = lambda _member, _role, _term: None
        """Called with member, role and term, for whoever watches a run."""
        self._trace = blake2b(digest_size=16)
        self._tell = tell
        ids = [f"n{i + 1}" for i in range(circumstances.voters)]
        self._numbers = {member: number for number, member in enumerate(ids)}
        self.members = {member: self._member(member, ids) for member in ids}
        self.network = SimNetwork(
            ids,
            timeline=self.timeline,
            draw=random.Random(f"network {seed}"),
            delay_seconds=circumstances.delay_seconds,
            ends=Ends(
                is_alive=lambda member: self.members[member].is_alive,
                up=lambda member, peer: self.members[member].connected(peer),
                down=lambda member, peer: self.members[member].disconnected(peer),
                deliver=self._deliver,
            ),
        )
        for member in self.members.values():
            member.join(self.network)
        self.clients = Clients(self)
        self.chaos = Chaos(self)

    def _member(self, member: str, ids: list[str]) -> SimMember:
        """Return a member that has not started yet."""
        circumstances = self.circumstances
        settings = RaftSettings(
            snapshot_entries=circumstances.snapshot_entries,
            keep_entries=circumstances.keep_entries,
            digest_every=50,
            requests_max=REQUESTS_MAX,
            safeguards=circumstances.safeguards,
        )
        hooks = Hooks(
            applied=self._applied,
            role=self._role,
            stopped=self._stopped,
            cut=self._died_inside,
            notice=self._notice,
            rare=self._count_rare,
            ended=self._ended,
        )
        return SimMember(
            Membership(me=member, peers=tuple(f"{one}=sim:{one}" for one in ids)),
            settings=settings,
            timeline=self.timeline,
            seed=f"{self.seed} {member}",
            sync_seconds=circumstances.sync_seconds,
            hooks=hooks,
        )

    # --- the run

    def run(self) -> Report:
        """Run to the end and judge."""
        if self.found():
            end = FOUNDING_SECONDS + self.circumstances.chaos_seconds
            self.clients.begin(end)
            self.chaos.begin()
            self.timeline.run_until(end)
            self.chaos.end()
            self._converge()
        return self.report()

    def found(self) -> bool:
        """Start everybody; return whether they founded a cluster in time."""
        for member in self.members.values():
            member.start()
        if self.circumstances.early_crashes:
            self.chaos.disturb_founding(EARLY_SECONDS)
        self.timeline.run_until(FOUNDING_SECONDS)
        if any(core is None or core.running is None for core in self._cores()):
            self.judge.violated("no progress", f"no cluster after {FOUNDING_SECONDS:g} s")
            return False
        identities = [core.standing.identity for core in self._cores() if core is not None]
        if len({identity.cluster_id for identity in identities}) != 1:
            self.judge.violated("two clusters", str([one.cluster_id for one in identities]))
            return False
        self.cluster_id = identities[0].cluster_id
        self.founders = identities[0].founders
        return True

    def _cores(self) -> list[Core | None]:
        """Return everybody's core, None for who is dead."""
        return [member.core for member in self.members.values()]

    # --- convergence

    def _converge(self) -> None:
        """Heal everything, then demand progress and equality in bounded time."""
        for _ in range(CONVERGE_ROUNDS_MAX):
            self.timeline.run_until(self.timeline.now + 2.0)
            for member in self.members.values():
                if not member.is_alive and member.id not in self.chaos.stopped:
                    member.start()
            for name in sorted(self.members):
                self.clients.replace_disk(name)
            changes = [
                self.clients.change(one, KEYS[0]) for one in self.members.values() if one.is_alive
            ]
            self.timeline.run_until(self.timeline.now + 2.0)
            if all(isinstance(one.fate, Applied) for one in changes) and self._is_equal():
                break
        else:
            fates = [str(one.fate) for one in changes]
            what = f"after healing: {fates} {self._indexes()}, not counted {self._uncounted()}"
            self.judge.violated("no progress", what)
        self.timeline.run_until(self.timeline.now + 4.0)
        states = {
            one.id: (one.core.running.machine.index, one.core.running.machine.state)
            for one in self.members.values()
            if one.core is not None and one.core.running is not None
        }
        start = genesis(self.cluster_id, self.founders, requests_max=REQUESTS_MAX)
        self.judge.conclude(states, start)

    def _indexes(self) -> dict[str, int | None]:
        """Return how far everybody is."""
        return {
            one.id: one.core.running.machine.index if one.core and one.core.running else None
            for one in self.members.values()
        }

    def _is_equal(self) -> bool:
        """Return whether all members are alive, count, and applied the same."""
        indexes = set(self._indexes().values())
        return len(indexes) == 1 and None not in indexes and not self._uncounted()

    def _uncounted(self) -> list[str]:
        """Return the members whose disks nobody admitted."""
        return [
            one.id
            for one in self.members.values()
            if one.core is not None and one.core.running is not None and not one.core.counts(one.id)
        ]

    def report(self) -> Report:
        """Return what the run came to."""
        for core in self._cores():
            if core is not None:
                self._ended(core)
        rare = self.rare + Counter({"repeat_answered": self.judge.repeats_count})
        return Report(
            seed=self.seed,
            voters=self.circumstances.voters,
            seconds=self.timeline.now,
            acknowledged=self.judge.fates["applied"],
            fates=dict(sorted(self.judge.fates.items())),
            faults=dict(sorted(self.chaos.faults.items())),
            rare=dict(sorted(rare.items())),
            violations=tuple(self.judge.violations),
            trace_hash=self._trace.hexdigest(),
            result_digest=self.judge.log_digest(),
            events=self.timeline.events_count,
        )

    # --- hooks

    def trace(self, *what: object) -> None:
        """Add a line to the trace."""
        line = f"{self.timeline.now:.7f} {' '.join(map(str, what))}"
        self._trace.update(line.encode())
        if self._tell is not None:
            self._tell(line)

    def _deliver(self, a: str, b: str, lane: int, data: bytes) -> None:
        """Deliver a message, and trace it."""
        edge = self._numbers[a] << 4 | self._numbers[b]
        self._trace.update(_STAMP.pack(self.timeline.now, edge, lane) + data)
        if self._tell is not None:
            self._tell(f"{self.timeline.now:.7f} {a} > {b} {decode(data)}")
        self.members[b].deliver(a, data)

    def _applied(self, member: str, index: int, outcomes: Sequence[Outcome]) -> None:
        """Judge an applied entry."""
        core = self.members[member].core
        if core is None or core.running is None:
            return
        place = index - core.running.journal.base
        if place <= 0:
            return  # A snapshot: its entries were judged where they were applied one by one.
        command, _, term = core.running.journal[place]
        self.judge.applied(member, index, command, outcomes)
        if core.running.engine.is_leader:
            holders = holders_of_entry(core, self.members.values(), index, term)
            if not self._is_majority(holders):
                what = f"{member} applied {index} of term {term}, durable on {holders}"
                self.judge.violated("committed and not durable", what)

    def _role(self, member: str, role: str, term: int) -> None:
        """Judge a leader, and let the chaos aim."""
        self.trace("role", member, role, term)
        if role == "leader":
            self.judge.leads(member, self.members[member].incarnation, term)
            voters = holders_of_vote(self.members.values(), member, term)
            if not self._is_majority(voters):
                self.judge.violated("led without votes", f"{member} in {term}: {voters}")
        self.chaos.aim.role_changed(member, role, term)
        self.on_role(member, role, term)

    def _is_majority(self, members: Sequence[str]) -> bool:
        """Return whether so many members are a majority."""
        return len(members) * 2 > len(self.members)

    def _stopped(self, member: str, why: str) -> None:
        """Record a member that stopped by itself: no run here damages a disk."""
        self.chaos.stopped.add(member)
        self.judge.violated("stopped", f"{member}: {why}")

    def _notice(self, member: str, event: str, facts: Mapping[str, object]) -> None:
        """Count what the core has to tell, and let the chaos aim."""
        if event == "role":
            return
        self.trace("notice", member, event)
        if event == "log cut":
            self._count_rare("tail_truncated")
            self.chaos.aim.tail_was_cut(member)
        elif event == "gave up leadership":
            is_stall = facts["disk"] == "ok"
            self._count_rare("gave_up_for_stalled_disk" if is_stall else "gave_up_for_full_disk")

    def _died_inside(self, member: str) -> None:
        """Let the chaos plan the return of a member that died inside a step."""
        self.chaos.died_inside(member)

    def _count_rare(self, branch: str) -> None:
        """Count a rare branch."""
        self.rare[branch] += 1

    def _ended(self, core: Core) -> None:
        """Count what a core went through that will run no more."""
        if core.running is not None:
            self.rare.update(of_counters(counters(core)))


def run_seed(seed: int, **fixed: object) -> Report:
    """Run one seed."""
    return World(seed, draw_circumstances(seed, **fixed)).run()
