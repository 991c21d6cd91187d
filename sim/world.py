"""One run: a cluster of real cores, clients, faults, and a judge, out of one seed.

    found -> chaos (safety: anything may fail) -> heal -> converge (liveness) -> judge

The seed first draws the circumstances (how many members, how slow the disks and the
network, which faults), then the run. The same seed gives the same run, which the trace
hash shows; it needs PYTHONHASHSEED=0, since the engine iterates over sets.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from reachnode.model.agents import Instance
from reachnode.model.membership import Unknown
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.safeguards import ALL_ON, Safeguards
from reachnode.peers.raft.settings import RaftSettings
from reachnode.registry.commands import Register, ReplaceMember
from reachnode.registry.outcomes import Applied, Outcome, Refused
from reachnode.registry.state import genesis
from sim.clock import Timeline
from sim.faults import Chaos
from sim.judge import Change, FencedRead, Judge
from sim.member import Hooks, SimMember
from sim.network import Ends, SimNetwork

KEYS = ("a1", "a2", "a3")
CLIENT_DEADLINE_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a seed draws before its run begins. Times in seconds."""

    voters: int = 3
    chaos_seconds: float = 60.0
    sync_seconds: tuple[float, float] = (0.0002, 0.02)
    delay_seconds: tuple[float, float] = (0.0003, 0.0023)
    change_every_seconds: float = 0.15
    fault_every_seconds: float = 1.0
    snapshot_entries: int = 40
    keep_entries: int = 5
    disk_stalls: bool = True
    wipes: bool = False
    full_disks: bool = False
    sync_errors: bool = False
    pauses: bool = True
    power: bool = True
    cuts: bool = True
    aimed: bool = True
    safeguards: Safeguards = ALL_ON


def draw_circumstances(seed: int, **fixed: object) -> Circumstances:
    """Return the circumstances of a seed; `fixed` overrules what it draws."""
    draw = random.Random(f"circumstances {seed}")
    slow = draw.random() < 0.15
    drawn = Circumstances(
        voters=draw.choice((3, 3, 3, 5)),
        sync_seconds=(0.005, 0.15) if slow else (0.0002, draw.choice((0.002, 0.02))),
        delay_seconds=(0.0003, draw.choice((0.001, 0.0023, 0.02))),
        change_every_seconds=draw.choice((0.1, 0.2, 0.4)),
        fault_every_seconds=draw.choice((0.7, 1.0, 2.0)),
        snapshot_entries=draw.choice((20, 40, 100)),
        keep_entries=draw.choice((0, 5, 20)),
        disk_stalls=draw.random() < 0.5,
        wipes=draw.random() < 0.4,
        full_disks=draw.random() < 0.3,
        sync_errors=draw.random() < 0.3,
        pauses=draw.random() < 0.5,
    )
    return replace(drawn, **fixed)  # type: ignore[arg-type]  # names are checked by replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one run came to."""

    seed: int
    voters: int
    seconds: float
    """Simulated."""
    acknowledged: int
    fates: Mapping[str, int]
    faults: Mapping[str, int]
    rare: Mapping[str, int]
    violations: tuple[str, ...]
    trace_hash: str
    result_digest: str
    events: int


class World:
    """One run."""

    def __init__(self, seed: int, circumstances: Circumstances) -> None:
        self.seed = seed
        self.circumstances = circumstances
        self.draw = random.Random(f"world {seed}")
        self.timeline = Timeline()
        self.judge = Judge()
        self.rare: Counter[str] = Counter()
        self.founders: dict[str, str] = {}
        self.cluster_id = ""
        self._trace = blake2b(digest_size=16)
        self._request = 0
        ids = [f"n{i + 1}" for i in range(circumstances.voters)]
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
        self.chaos = Chaos(self)

    def _member(self, member: str, ids: list[str]) -> SimMember:
        """Return a member that has not started yet."""
        circumstances = self.circumstances
        settings = RaftSettings(
            snapshot_entries=circumstances.snapshot_entries,
            keep_entries=circumstances.keep_entries,
            digest_every=50,
            requests_max=256,
            safeguards=circumstances.safeguards,
        )
        hooks = Hooks(
            applied=self._applied,
            role=self._role,
            stopped=self._stopped,
            cut=lambda member: self.chaos.died_inside(member),
            notice=self._notice,
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
        for member in self.members.values():
            member.start()
        self.timeline.run_until(5.0)
        if any(
            not one.core or not one.core.standing.identity.cluster_id
            for one in self.members.values()
        ):
            self.judge.violated("no progress", "the cluster was not founded in 5 s")
            return self._report()
        first = self.members["n1"].core
        assert first is not None
        self.cluster_id = first.standing.identity.cluster_id
        self.founders = first.standing.identity.founders
        self.timeline.after(0, self._client)
        self.chaos.begin()
        self.timeline.run_until(5.0 + self.circumstances.chaos_seconds)
        self.chaos.end()
        self._converge()
        return self._report()

    def _client(self) -> None:
        """Ask a random live member for something, for as long as the chaos lasts."""
        if self.timeline.now > 5.0 + self.circumstances.chaos_seconds:
            return
        live = [one for one in self.members.values() if one.is_alive]
        if live:
            member = self.draw.choice(live)
            if self.draw.random() < 0.25:
                self.read(member, self.draw.choice(KEYS))
            else:
                self.change(member, self.draw.choice(KEYS))
        wait = self.draw.expovariate(1 / self.circumstances.change_every_seconds)
        self.timeline.after(wait, self._client)

    def change(self, member: SimMember, key: str) -> Change:
        """Ask a member to register an agent anew."""
        self._request += 1
        change = Change(
            request_id=f"q{self._request}",
            client=self._request,
            key=key,
            value=f"v{self._request}",
            invoked_at=self.timeline.now,
        )
        self.judge.changes[change.request_id] = change
        instance = Instance(agent_id=key, agent=key, name=change.value)
        core, sources = member.core, member.sources
        assert core is not None

        def resolve(fate: Applied | Refused | Unknown) -> None:
            self.trace("fate", member.id, change.request_id, str(type(fate).__name__))
            self.judge.told(change, fate, self.timeline.now)

        member.enter(
            lambda: core.propose(
                Register(instance=instance),
                request_id=change.request_id,
                deadline=sources.now() + CLIENT_DEADLINE_SECONDS,
                resolve=resolve,
            )
        )
        return change

    def read(self, member: SimMember, key: str) -> None:
        """Read a key behind a fence."""
        core, sources = member.core, member.sources
        assert core is not None
        invoked_at = self.timeline.now

        def resolve(fate: Applied | Refused | Unknown) -> None:
            if not isinstance(fate, Applied) or core.running is None:
                return
            self.rare["fenced_reads"] += 1
            record = core.running.machine.state.agents.get(key)
            self.judge.reads.append(
                FencedRead(
                    client=0,
                    key=key,
                    invoked_at=invoked_at,
                    returned_at=self.timeline.now,
                    index=core.running.machine.index,
                    value=record.instance.name if record is not None else None,
                )
            )

        deadline = sources.now() + CLIENT_DEADLINE_SECONDS
        member.enter(lambda: core.fence(deadline=deadline, resolve=resolve))

    def replace_disk(self, member: str) -> None:
        """Admit a wiped disk, asking whichever member allows it."""
        for one in self.members.values():
            core = one.core
            if one.id == member or core is None or core.running is None:
                continue
            incarnation = core.standing.replaceable(member)
            if isinstance(incarnation, Refused):
                self.rare[f"replace_refused_{incarnation.code}"] += 1
                continue
            known = core.running.machine.state.members[member]
            if known.incarnation == incarnation:
                continue
            self._request += 1
            sources = one.sources
            command = ReplaceMember(
                member_id=member, incarnation=incarnation, follows=core.standing.newest_admission()
            )
            request_id = f"r{self._request}"
            one.enter(
                lambda core=core, command=command, request_id=request_id, sources=sources: (
                    core.propose(
                        command,
                        request_id=request_id,
                        deadline=sources.now() + CLIENT_DEADLINE_SECONDS,
                        resolve=lambda _: None,
                    )
                )
            )
            return

    # --- convergence

    def _converge(self) -> None:
        """Heal everything, then demand progress and equality in bounded time."""
        for _ in range(CONVERGE_ROUNDS_MAX):
            self.timeline.run_until(self.timeline.now + 2.0)
            for member in self.members.values():
                if not member.is_alive and member.id not in self.chaos.stopped:
                    member.start()
            for name in sorted(self.members):
                self.replace_disk(name)
            changes = [self.change(one, KEYS[0]) for one in self.members.values() if one.is_alive]
            self.timeline.run_until(self.timeline.now + 2.0)
            if all(isinstance(one.fate, Applied) for one in changes) and self._is_equal():
                break
        else:
            fates = [str(one.fate) for one in changes]
            self.judge.violated("no progress", f"after healing: {fates} {self._indexes()}")
        self.timeline.run_until(self.timeline.now + 4.0)
        states = {
            one.id: (one.core.running.machine.index, one.core.running.machine.state)
            for one in self.members.values()
            if one.core is not None and one.core.running is not None
        }
        start = genesis(self.cluster_id, self.founders, requests_max=256)
        self.judge.conclude(states, start)

    def _indexes(self) -> dict[str, int | None]:
        """Return how far everybody is."""
        return {
            one.id: one.core.running.machine.index if one.core and one.core.running else None
            for one in self.members.values()
        }

    def _is_equal(self) -> bool:
        """Return whether all members are alive and applied the same."""
        indexes = set(self._indexes().values())
        return len(indexes) == 1 and None not in indexes

    def _report(self) -> Report:
        """Return what the run came to."""
        for member in self.members.values():
            core = member.core
            if core is not None:
                self.rare.update(core.inbound.counters)
                self.rare.update(core.transfers.counters)
                self.rare.update(core.held.counters)
                self.rare["proposals_retried"] += core.proposals.retried_count
                self.rare["polls"] += core.campaign.ballot.polls_count
        log = sorted(self.judge.log.items())
        result = blake2b(repr([(i, c) for i, c in log]).encode(), digest_size=16).hexdigest()
        return Report(
            seed=self.seed,
            voters=self.circumstances.voters,
            seconds=self.timeline.now,
            acknowledged=self.judge.fates["applied"],
            fates=dict(sorted(self.judge.fates.items())),
            faults=dict(sorted(self.chaos.faults.items())),
            rare=dict(sorted(self.rare.items())),
            violations=tuple(self.judge.violations),
            trace_hash=self._trace.hexdigest(),
            result_digest=result,
            events=self.timeline.events_count,
        )

    # --- hooks

    def trace(self, *what: object) -> None:
        """Add a line to the trace."""
        self._trace.update(f"{self.timeline.now:.7f} {what}\n".encode())

    def _deliver(self, a: str, b: str, lane: int, data: bytes) -> None:
        """Deliver a message, and trace it."""
        self._trace.update(b"%.7f %s %s %d" % (self.timeline.now, a.encode(), b.encode(), lane))
        self._trace.update(data)
        self.members[b].deliver(a, data)

    def _applied(self, member: str, index: int, outcomes: Sequence[Outcome]) -> None:
        """Judge an applied entry."""
        core = self.members[member].core
        if core is None or core.running is None or core.running is None:
            return
        place = index - core.running.journal.base
        if place <= 0:
            return  # A snapshot: its entries were judged where they were applied one by one.
        command: bytes = core.running.journal[place][0]
        self.judge.applied(member, index, command, outcomes)

    def _role(self, member: str, role: str, term: int) -> None:
        """Judge a leader, and let the chaos aim."""
        self.trace("role", member, role, term)
        if role == "leader":
            self.judge.leads(member, self.members[member].incarnation, term)
        self.chaos.role_changed(member, role)

    def _stopped(self, member: str, why: str) -> None:
        """Record a member that stopped by itself: no run here damages a disk."""
        self.chaos.stopped.add(member)
        self.judge.violated("stopped", f"{member}: {why}")

    def _notice(self, member: str, event: str, facts: Mapping[str, object]) -> None:
        """Count what the core has to tell."""
        self.trace("notice", member, event)
        if event != "role":
            self.rare[event.replace(" ", "_")] += 1
        _ = facts


CONVERGE_ROUNDS_MAX = 12


def run_seed(seed: int, **fixed: object) -> Report:
    """Run one seed."""
    return World(seed, draw_circumstances(seed, **fixed)).run()
