"""One member's consensus, without threads, sockets or files. Read this first.

The core joins the engine with everything that makes it safe. It is told what happened (a
connection, a message, a write that is durable, the time) and acts through two ports: the
wire and the disk's queue. The simulator drives it in virtual time, `replica.py` drives it in
trio; both run this very code.

    empty directory --> founding --(all voters heard, or a member of a cluster)--> founded
    founded --(identity, vote and journal durable)--> running, as follower or learner

One step of a running core, whatever woke it:

    disk and ballot may forbid a campaign -> the engine ticks (commits, applies) -> what was
    cut from the log is told -> changes move on -> slow work is begun
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reachnode.peers.raft.campaign import Campaign
from reachnode.peers.raft.disk import Condition, Disk
from reachnode.peers.raft.engine import Engine
from reachnode.peers.raft.held import Durable, Held
from reachnode.peers.raft.inbound import Inbound
from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.loading import Loaded
from reachnode.peers.raft.machine import Machine, without_requests
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.messages import AnyMessage, encode
from reachnode.peers.raft.opening import REGULAR, Opening
from reachnode.peers.raft.proposal import Fate, Leader, Proposal
from reachnode.peers.raft.proposals import Proposals
from reachnode.peers.raft.settings import RaftSettings
from reachnode.peers.raft.standing import Standing
from reachnode.peers.raft.transfers import Transfers
from reachnode.peers.raft.upkeep import Upkeep
from reachnode.peers.raft.wire import Wire
from reachnode.registry.codec import encode_envelope
from reachnode.registry.commands import Command, Envelope
from reachnode.registry.outcomes import Outcome, Refused
from reachnode.registry.state import genesis
from reachnode.world.sources import Sources

TURNS_MAX = 3
QUEUE_LOOK_SECONDS = 0.1
"""How often changes that wait for a leader are looked at."""
WAKE_SECONDS_MAX = 1.0
SLACK_SECONDS = 1e-4
"""The engine acts when a time has passed, not when it has come: a clock that stands still
between two readings, as a virtual one does, would be asked for ever."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a core has once it belongs to a cluster."""

    engine: Engine
    journal: Journal
    machine: Machine


class Core:
    """One member.

    Args:
        membership: Who is who.
        loaded: What the disk held.
        notice: Receives (event, facts) for the log.

    Raises:
        FailStop: The disk is another member's.
    """

    def __init__(  # noqa: PLR0913 - wired once, by name
        self,
        *,
        membership: Membership,
        settings: RaftSettings,
        sources: Sources,
        disk: Disk,
        wire: Wire,
        loaded: Loaded,
        notice: Callable[[str, Mapping[str, object]], None],
    ) -> None:
        self.membership = membership
        self.settings = settings
        self.rules = settings.safeguards
        self.sources = sources
        self.disk = disk
        self.wire = wire
        self.notice = notice
        self.running: Running | None = None
        self.standing = Standing(self, loaded, sources)
        self.held = Held(self.rules, self.epoch)
        self.proposals = Proposals(host=self, leaderless_seconds=settings.leaderless_seconds)
        self.upkeep = Upkeep(self)
        self.transfers = Transfers(self)
        self.campaign = Campaign(self)
        self.inbound = Inbound(self)
        self.heard_at: dict[str, float] = {}
        self.role_changes: dict[str, int] = {}
        self.on_applied: Callable[[int, Sequence[Outcome]], None] = lambda _index, _outcomes: None
        """Called after each entry, and after a snapshot with no outcomes."""
        self._loaded: Loaded | None = loaded

    def start(self) -> None:
        """Begin: greet as an empty disk, or run as a member of a cluster."""
        self.standing.begin()
        self.synced()

    def _run(self) -> None:
        """Make the engine, with what the disk held."""
        loaded, settings, identity = self._loaded, self.settings, self.standing.identity
        assert loaded is not None
        self._loaded = None
        state = genesis(identity.cluster_id, identity.founders, requests_max=settings.requests_max)
        index = 1
        if loaded.snapshot is not None:
            index, term, state = loaded.snapshot
            self.upkeep.snapshot = (index, term)
        journal = Journal(
            self.disk,
            base=loaded.base,
            entries=loaded.entries,
            term=loaded.term,
            voted_for=loaded.voted_for,
            notes=loaded.notes,
        )
        journal.begin()
        opening = Opening(
            member=self.membership.me,
            others=self.membership.others,
            applied_index=index,
            commit_index=max(index, loaded.commit_index),
            times=settings.times,
        )
        engine = Engine(
            opening,
            log=journal,
            sources=self.sources,
            apply=self._apply,
            send=self.inbound.from_engine,
            on_role=self._role_changed,
        )
        machine = Machine(state, index=index, digest_every=settings.digest_every)
        self.disk.committed = lambda: engine.commit_index
        self.running = Running(engine, journal, machine)
        self.standing.recall_notes(loaded.notes)
        self.standing.note_admissions()
        self.standing.greet_all()
        self.standing.let_all_in()

    # --- what happens

    def connected(self, peer: str) -> None:
        """Take a new consensus connection."""
        self.standing.connected(peer)

    def disconnected(self, peer: str) -> None:
        """Take the loss of the consensus connection to a peer."""
        self.standing.disconnected(peer)
        self.inbound.forget(peer)
        self.transfers.forget(peer)
        if self.running is not None and self.running.engine.is_connected(peer):
            self.running.engine.disconnect(peer)
        self.tick()

    def received(self, peer: str, data: bytes) -> bool:
        """Take a message of a peer; return False if it made `wake_at` come no nearer.

        Raises:
            BadMessage: It makes no sense; the connection is to be broken.
            FailStop: It revealed damage.
        """
        if self.epoch(peer) is None or not self.inbound.take(peer, data):
            return False
        self.tick()
        return True

    def synced(self) -> None:
        """Take note that more is durable, or that the disk failed or recovered."""
        if self.disk.is_journal_suspect and self.running is not None:
            self.running.journal.rewrite_suspect()
        self.standing.synced()
        if self.running is None and self.standing.is_ready_to_run():
            self._run()
        if self.running is not None:
            durable = self.durable()
            for peer, message in self.held.released(durable):
                self.send(peer, message)
            for peer, ack in self.held.released_counts(durable):
                self.inbound.count(peer, ack)
            self.upkeep.finish_snapshot()
        # What a follower's disk has takes no step here: the leader says what is committed.
        if self.running is None or self.running.engine.is_leader:
            self.tick()

    def tick(self) -> None:
        """Do one step; see the top of this module.

        Raises:
            FailStop: The state differs from the leader's, or can't be understood.
        """
        now = self.sources.now()
        raft = self.running
        if raft is None:
            self.standing.go_on_founding()
            self.proposals.pump(now)
            # A lone voter's disk is done in the call, and nobody else will say so.
            if self.standing.is_due():
                self.synced()
            return
        self.campaign.look(raft, now)
        for _ in range(TURNS_MAX):
            self.transfers.tend(now)
            raft.engine.tick()
            self.tell_of_cuts()
            self.proposals.reached(raft.machine.index)
            before = len(self.proposals.in_log)
            self.proposals.pump(now)
            # A lone voter commits in the tick after its append; others wait for answers.
            if self.membership.others or len(self.proposals.in_log) == before:
                break
        self.standing.note_admissions()
        self.upkeep.begin_snapshot()

    def work(self) -> bool:
        """Do one slice of slow work; return whether there is more.

        Raises:
            FailStop: The state's digest differs from the leader's.
        """
        more = self.upkeep.step()
        if not self.membership.others:
            # A lone voter's disk is done in the call, and nobody else will say so.
            self.upkeep.finish_snapshot()
        return more

    def wake_at(self) -> float:
        """Return when `tick` must be called next, on this node's clock."""
        now = self.sources.now()
        at = now + (QUEUE_LOOK_SECONDS if self.proposals.queue else WAKE_SECONDS_MAX)
        if self.running is not None:
            engine = self.running.engine
            due = (engine.append_at if engine.is_leader else engine.election_at) + SLACK_SECONDS
            at = min(at, due)
        deadline = self.proposals.next_at()
        if deadline is not None and deadline < at:
            at = deadline
        return max(now, at)

    # --- changes and reads

    def propose(
        self,
        command: Command,
        *,
        request_id: str,
        deadline: float,
        resolve: Callable[[Fate], None],
    ) -> None:
        """Propose a change; `resolve` is called once with what became of it."""

        def envelope(since_index: int) -> bytes:
            made = Envelope(request_id=request_id, since_index=since_index, command=command)
            return encode_envelope(made)

        self._submit(
            Proposal(
                envelope=envelope(self.running.machine.index if self.running is not None else 0),
                renew=envelope,
                deadline=deadline,
                submitted_at=self.sources.now(),
                resolve=resolve,
            )
        )

    def fence(self, *, deadline: float, resolve: Callable[[Fate], None]) -> None:
        """Ask for an index at which the local state is linearizable."""
        now = self.sources.now()
        self._submit(Proposal(envelope=b"", deadline=deadline, submitted_at=now, resolve=resolve))

    def _submit(self, proposal: Proposal) -> None:
        """Put a change on its way."""
        self.proposals.submit(proposal)
        self.tick()

    def hand_over(self) -> None:
        """Ask the follower that has most to lead, if it has everything; see `Campaign`."""
        if self.running is not None and self.running.engine.is_leader:
            self.campaign.hand_over(self.running, self.sources.now())

    # --- the host of proposals

    @property
    def is_leader(self) -> bool:
        """Whether this node leads and its disk takes entries."""
        raft = self.running
        return raft is not None and raft.engine.is_leader and self.can_write

    @property
    def takes_entries(self) -> bool:
        """Whether a leader appends now: not for a moment while it hands over."""
        return self.sources.now() >= self.campaign.rests_until

    @property
    def can_write(self) -> bool:
        """Whether the disk takes writes; a lone voter's must have nothing left to do (B22).

        After an error the worker catches up. Only from then on is a write done in the call,
        and an entry durable before the engine commits it.
        """
        has_room = self.disk.condition is Condition.OK
        return has_room and (bool(self.membership.others) or self.disk.is_idle)

    def reachable_leader(self) -> Leader | None:
        """Return another node that leads, was heard lately and is connected."""
        if self.running is None:
            return None
        leader = self.running.engine.leader
        if leader is None or leader == self.membership.me:
            return None
        epoch = self.epoch(leader)
        if epoch is None or self.inbound.quiet_seconds() > self.settings.contact_seconds:
            return None
        return Leader(leader, epoch)

    def append(self, batch: bytes) -> tuple[int, int]:
        """Append a batch of changes as leader; return index and term."""
        return self.append_command(REGULAR + batch)

    def append_command(self, command: bytes) -> tuple[int, int]:
        """Append an entry of any kind as leader; return index and term."""
        assert self.running is not None
        self.transfers.tend(self.sources.now())
        place = self.running.engine.append(command)
        self.campaign.give_up(self.running, self.sources.now())
        return place

    def refusal(self) -> Refused | None:
        """Return why this node takes no changes at all now."""
        if self.disk.condition is Condition.OK:
            return None
        error = self.disk.error
        what = error.strerror if error is not None else "unknown"
        return Refused("disk_full", f"this node's disk takes no writes ({what})")

    # --- what others in this room ask

    def epoch(self, peer: str) -> int | None:
        """Return the number of the consensus connection to a peer, None without one."""
        return self.standing.epochs.get(peer)

    def send(self, peer: str, message: AnyMessage) -> bool:
        """Send on the consensus connection at once; return whether there is one."""
        return self.epoch(peer) is not None and self.wire.consensus(peer, encode(message))

    def durable(self) -> Durable:
        """Return how far this disk is."""
        assert self.running is not None
        return Durable(
            done=self.disk.done,
            synced_index=self.running.journal.synced_index(),
            term=self.running.engine.term,
            is_leader=self.running.engine.is_leader,
        )

    def counts(self, member: str) -> bool:
        """Return whether a member's votes and acknowledgements count."""
        return not self.rules.wiped_disk_counts_not or self.standing.counts(member)

    # --- inside

    def _apply(self, command: bytes) -> None:
        """Apply the next committed entry, for the engine."""
        assert self.running is not None
        machine = self.running.machine
        outcomes = machine.apply(command)
        if not self.rules.requests_are_remembered:
            machine.state = without_requests(machine.state)
        term = self.running.journal.term_at(machine.index)
        assert term is not None
        self.proposals.applied(machine.index, term, outcomes)
        self.on_applied(machine.index, outcomes)

    def _role_changed(self, role: str) -> None:
        """Count and tell a change of role."""
        self.role_changes[role] = self.role_changes.get(role, 0) + 1
        term = self.running.engine.term if self.running is not None else 0
        self.notice("role", {"role": role, "term": term})

    def tell_of_cuts(self) -> None:
        """Take back what was to be said, or hoped, of entries that were cut."""
        cut = self.running.journal.take_cut() if self.running is not None else None
        if cut is not None:
            self.notice("log cut", {"index": cut})
            self.held.cut(cut)
            self.inbound.cut(cut)
            self.proposals.cut(cut)
