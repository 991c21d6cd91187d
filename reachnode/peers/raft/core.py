"""One member's consensus, without threads, sockets or files. Read this first.

The core joins the engine with everything that makes it safe. It is told what happened (a
connection, a message, a write that is durable, the time) and acts through three ports: the
wire, the disk's queue, and callbacks. The simulator drives it in virtual time, `replica.py`
drives it in trio; both run this very code.

    empty directory --> founding --(all voters heard, or a member of a cluster)--> founded
    founded --(identity, vote and journal durable)--> running, as follower or learner

One step of a running core, whatever woke it:

    disk and ballot may forbid a campaign -> the engine ticks (commits, applies) -> what was
    cut from the log is told -> changes move on -> the state's slow work is asked for
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reachnode.peers.raft.disk import Condition, Disk, Note, RewriteJournal
from reachnode.peers.raft.disk import WriteIdentity, WriteVote
from reachnode.peers.raft.engine import Engine, Opening
from reachnode.peers.raft.held import Durable, Held
from reachnode.peers.raft.identity import Admissions, Founding, Identity, pack_identity
from reachnode.peers.raft.inbound import Inbound
from reachnode.peers.raft.journal import Journal
from reachnode.peers.raft.loading import Loaded
from reachnode.peers.raft.machine import Machine, SnapshotMaker, failstop, pack_digest
from reachnode.peers.raft.messages import AnyMessage, Greet, Poll, encode
from reachnode.peers.raft.proposals import Fate, Leader, Proposal, Proposals
from reachnode.peers.raft.settings import RaftSettings
from reachnode.registry.codec import encode_envelope
from reachnode.registry.commands import Command, Envelope
from reachnode.registry.outcomes import Outcome, Refused
from reachnode.registry.state import genesis
from reachnode.world.sources import Sources


class Wire(Protocol):
    """The way to the peers. Nothing here blocks or raises."""

    def consensus(self, peer: str, data: bytes) -> bool:
        """Send on the consensus connection; return whether there is one."""
        ...

    def bulk(self, peer: str, data: bytes) -> bool:
        """Send on the data connection, which never delays consensus."""
        ...

    def drop(self, peer: str) -> None:
        """Break the connections to a peer; it may dial again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Who this node is and who the voters are.

    `peers` are all voters as ``id=host:port``, sorted, the same text on every node.
    """

    me: str
    peers: tuple[str, ...]
    members: frozenset[str] = field(init=False)
    """The ids of all voters."""
    others: tuple[str, ...] = field(init=False)
    """The ids of the other voters, sorted."""

    def __post_init__(self) -> None:
        members = frozenset(peer.partition("=")[0] for peer in self.peers)
        assert self.me in members
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "others", tuple(sorted(members - {self.me})))


class Core:
    """One member.

    Args:
        membership: Who is who.
        loaded: What the disk held.
        notice: Receives (event, facts) for the log.
    """

    def __init__(
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
        self.loaded = loaded
        self.identity = self._checked_identity(loaded)
        self.engine: Engine | None = None
        self.journal: Journal | None = None
        self.machine: Machine | None = None
        self.maker = SnapshotMaker(disk)
        self.snapshot: tuple[int, int] | None = None
        """Index and term of the newest durable snapshot."""
        self.founding: Founding | None = None
        self.admissions = Admissions(me=membership.me, incarnation=self.identity.incarnation)
        self.held = Held(self.rules, self.epoch)
        self.proposals = Proposals(host=self, leaderless_seconds=settings.leaderless_seconds)
        self.inbound = Inbound(self)
        self.epochs: dict[str, int] = {}
        """Number of the consensus connection to each peer that has one."""
        self.greets: dict[str, Greet] = {}
        """The latest greeting on each of these connections."""
        self.heard_at: dict[str, float] = {}
        self.on_applied: Callable[[int, Sequence[Outcome]], None] = lambda _index, _outcomes: None
        """Called after each entry, and after a snapshot with no outcomes."""
        self.role_changes: dict[str, int] = {}
        self.snapshots_made_count = 0
        self._epoch_counter = 0
        self._ready_number: int | None = None
        """Of the write after which greeting, or running, may begin."""
        self._noted: list[tuple[int, int]] = []
        self._noted_index = 0
        self._digest: tuple[int, str] | None = None
        self._members_seen: object = None

    # --- beginning

    def start(self) -> None:
        """Begin: greet as an empty disk, or run as a member of a cluster."""
        if self.loaded.identity is None:
            self._ready_number = self.disk.submit(WriteIdentity(pack_identity(self.identity)))
        if self.identity.cluster_id:
            self._run()
        else:
            self.founding = Founding(
                identity=self.identity,
                peers=list(self.membership.peers),
                members=self.membership.members,
            )
        self.synced()

    def _checked_identity(self, loaded: Loaded) -> Identity:
        """Return this disk's identity, a new one for an empty directory.

        Raises:
            FailStop: The directory is another member's, or of a cluster of other members.
        """
        identity = loaded.identity
        me = self.membership.me
        if identity is None:
            return Identity(member=me, incarnation=self.sources.new_id())
        if identity.member != me:
            what = f"the data directory belongs to {identity.member}, this node is {me}"
            raise failstop("identity_mismatch", what)
        if identity.cluster_id and set(identity.founders) != self.membership.members:
            founders = ", ".join(sorted(identity.founders))
            what = f"the cluster has the members {founders}, but cluster.peers lists others"
            raise failstop("identity_mismatch", what)
        return identity

    def _go_on_founding(self) -> None:
        """Become a member of a cluster once it is decided and everything is durable."""
        assert self.founding is not None
        if self._ready_number is not None:
            return
        decided = self.founding.decide()
        if decided is None:
            return
        self.identity = decided
        self.notice("cluster founded", {"cluster_id": decided.cluster_id})
        self.disk.submit(RewriteJournal(base_index=1, base_term=0, entries=()))
        self.disk.submit(WriteVote(term=0, voted_for=None, notes={}))
        self._ready_number = self.disk.submit(WriteIdentity(pack_identity(decided)))
        self.founding = None

    def _run(self) -> None:
        """Make the engine, with what the disk held."""
        loaded, settings = self.loaded, self.settings
        requests_max = settings.requests_max if self.rules.requests_are_remembered else 1
        state = genesis(self.identity.cluster_id, self.identity.founders, requests_max=requests_max)
        index = 1
        if loaded.snapshot is not None:
            index, term, state = loaded.snapshot
            self.snapshot = (index, term)
        self.journal = Journal(
            self.disk,
            base=loaded.base,
            entries=loaded.entries,
            term=loaded.term,
            voted_for=loaded.voted_for,
            notes=loaded.notes,
        )
        self.journal.begin()
        self.machine = Machine(state, index=index, digest_every=settings.digest_every)
        self.engine = Engine(
            Opening(
                member=self.membership.me,
                others=self.membership.others,
                applied_index=index,
                commit_index=max(index, loaded.commit_index),
                times=settings.times,
            ),
            log=self.journal,
            sources=self.sources,
            apply=self._apply,
            send=self.inbound.from_engine,
            on_role=self._role_changed,
        )
        self._note_admissions()
        self._noted_index = self._newest_note()
        self._greet_all()

    # --- what happens

    def connected(self, peer: str) -> None:
        """Take a new consensus connection; the peer is spoken to once it has greeted."""
        assert peer not in self.epochs
        self._epoch_counter += 1
        self.epochs[peer] = self._epoch_counter
        if self._may_greet():
            self.send(peer, self.greeting())

    def disconnected(self, peer: str) -> None:
        """Take the loss of the consensus connection to a peer."""
        self.epochs.pop(peer, None)
        self.greets.pop(peer, None)
        self.admissions.present.pop(peer, None)
        self.inbound.forget(peer)
        if self.founding is not None:
            self.founding.forget(peer)
        if self.engine is not None and self.engine.is_connected(peer):
            self.engine.disconnect(peer)
        self.tick()

    def received(self, peer: str, data: bytes) -> None:
        """Take a message of a peer, from either of its connections.

        Raises:
            BadMessage: It makes no sense; the connection is to be broken.
            FailStop: It revealed damage.
        """
        if peer in self.epochs and self.inbound.take(peer, data):
            self.tick()

    def greeted(self, peer: str, greet: Greet) -> None:
        """Take a peer's greeting: who it is, and with which disk."""
        if self.founding is not None:
            self.founding.hear(peer, greet)
            self.greets[peer] = greet
            return
        if greet.cluster_id not in ("", self.identity.cluster_id):
            self.notice("another cluster", {"peer": peer, "cluster_id": greet.cluster_id})
            self.wire.drop(peer)
            return
        self.greets[peer] = greet
        self.inbound.judge_memory(peer, greet)
        self._admit(peer, greet)

    def _admit(self, peer: str, greet: Greet) -> None:
        """Let the engine speak with a member of this cluster, and judge its disk."""
        engine, machine = self.engine, self.machine
        if engine is None or machine is None or not greet.cluster_id:
            return
        if self.admissions.is_retired(peer, greet.incarnation, machine.state):
            self.notice("a replaced disk", {"peer": peer, "incarnation": greet.incarnation})
            self.wire.drop(peer)
            return
        self.admissions.present[peer] = greet.incarnation
        if not engine.is_connected(peer):
            if not self.counts(peer):
                engine.forget_match(peer)
                self.notice("a disk without a vote", {"peer": peer, "disk": greet.incarnation})
            engine.connect(peer)

    def synced(self) -> None:
        """Take note that more is durable, or that the disk failed or recovered."""
        if self.disk.is_journal_suspect and self.journal is not None:
            self.journal.rewrite_suspect()
        if self._ready_number is not None and self._ready_number <= self.disk.done:
            self._ready_number = None
            if self.identity.cluster_id and self.engine is None:
                self._run()
            else:
                self._greet_all()
        if self.engine is not None:
            self._release()
            self._note_durable()
            self._finish_snapshot()
        self.tick()

    def _release(self) -> None:
        """Say and count what waited for the disk."""
        durable = self.durable()
        for peer, message in self.held.released(durable):
            self.send(peer, message)
        for peer, ack in self.held.released_counts(durable):
            self.inbound.count(peer, ack)

    def tick(self) -> None:
        """Do one step; see the top of this module.

        Raises:
            FailStop: The state differs from the leader's, or can't be understood.
        """
        now = self.sources.now()
        engine, journal, machine = self.engine, self.journal, self.machine
        if engine is None or journal is None or machine is None:
            if self.founding is not None:
                self._go_on_founding()
            self.proposals.pump(now)
            return
        self._give_up_leadership(engine, now)
        self._ask_before_campaign(engine, journal, now)
        for _ in range(TURNS_MAX):
            self.inbound.tend_transfers(now)
            engine.tick()
            self._tell_of_cuts(journal)
            self.proposals.reached(machine.index)
            before = len(self.proposals.in_log)
            self.proposals.pump(now)
            # A lone voter commits in the tick after its append; others wait for answers.
            if self.membership.others or len(self.proposals.in_log) == before:
                break
        self._note_admissions()
        self._begin_snapshot(journal, machine)

    def work(self) -> bool:
        """Do one slice of slow work; return whether there is more.

        Raises:
            FailStop: The state's digest differs from the leader's.
        """
        machine = self.machine
        if machine is None:
            return False
        if self.maker.is_writing:
            self.maker.step()
        elif machine.digests.is_busy:
            finished = machine.digests.step()
            if finished is not None:
                self._digest = finished
        if self._digest is not None and self.is_leader:
            index, digest = self._digest
            self._digest = None
            self._append(pack_digest(index, digest))
            self.tick()
        return self.has_work

    @property
    def has_work(self) -> bool:
        """Whether there is a slice of slow work to do."""
        machine = self.machine
        return machine is not None and (self.maker.is_writing or machine.digests.is_busy)

    def wake_at(self) -> float:
        """Return when `tick` must be called next, on this node's clock."""
        now = self.sources.now()
        times = [now + 1.0]
        if self.engine is not None:
            times.append(
                self.engine.append_at if self.engine.is_leader else self.engine.election_at
            )
        if self.proposals.queue:
            times.append(now + QUEUE_LOOK_SECONDS)
        if (deadline := self.proposals.next_at()) is not None:
            times.append(deadline)
        return max(min(times), now)

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

        proposal = Proposal(
            envelope=envelope(self.machine.index if self.machine is not None else 0),
            renew=envelope,
            deadline=deadline,
            submitted_at=self.sources.now(),
            resolve=resolve,
        )
        self.proposals.submit(proposal)
        self.tick()

    def fence(self, *, deadline: float, resolve: Callable[[Fate], None]) -> None:
        """Ask for an index at which the local state is linearizable."""
        now = self.sources.now()
        self.proposals.submit(
            Proposal(envelope=b"", deadline=deadline, submitted_at=now, resolve=resolve)
        )
        self.tick()

    # --- the host of proposals

    @property
    def is_leader(self) -> bool:
        """Whether this node leads and its disk takes entries."""
        return (
            self.engine is not None
            and self.engine.is_leader
            and self.disk.condition is Condition.OK
        )

    def reachable_leader(self) -> Leader | None:
        """Return another node that leads, was heard lately and is connected."""
        engine = self.engine
        if engine is None or engine.leader is None or engine.leader == self.membership.me:
            return None
        epoch = self.epochs.get(engine.leader)
        if epoch is None or self.inbound.quiet_seconds() > self.settings.contact_seconds:
            return None
        return Leader(engine.leader, epoch)

    def append(self, batch: bytes) -> tuple[int, int]:
        """Append a batch of changes as leader; return index and term."""
        return self._append(b"\x00" + batch)

    def refusal(self) -> Refused | None:
        """Return why this node takes no changes at all now."""
        if self.disk.condition is Condition.OK:
            return None
        error = self.disk.error
        what = error.strerror if error is not None else "unknown"
        return Refused("disk_full", f"this node's disk takes no writes ({what})", None)

    def _append(self, command: bytes) -> tuple[int, int]:
        """Append a command as leader."""
        assert self.engine is not None
        self.inbound.tend_transfers(self.sources.now())
        return self.engine.append(command)

    # --- what others in this room ask

    def epoch(self, peer: str) -> int | None:
        """Return the number of the consensus connection to a peer."""
        return self.epochs.get(peer)

    def send(self, peer: str, message: AnyMessage) -> bool:
        """Send on the consensus connection at once."""
        return peer in self.epochs and self.wire.consensus(peer, encode(message))

    def durable(self) -> Durable:
        """Return how far this disk is."""
        assert self.engine is not None
        assert self.journal is not None
        return Durable(
            done=self.disk.done,
            synced_index=self.journal.synced_index(),
            term=self.engine.term,
            is_leader=self.engine.is_leader,
        )

    def counts(self, member: str) -> bool:
        """Return whether a member's votes and acknowledgements count."""
        if not self.rules.wiped_disk_counts_not:
            return True
        assert self.machine is not None
        assert self.journal is not None
        return self.admissions.counts(member, self.machine.state, self.journal.notes)

    def greeting(self) -> Greet:
        """Return what this node says of itself first."""
        journal, engine = self.journal, self.engine
        return Greet(
            incarnation=self.identity.incarnation,
            cluster_id=self.identity.cluster_id if engine is not None else "",
            founders=self.identity.founders if engine is not None else {},
            peers=list(self.membership.peers),
            term=engine.term if engine is not None else 0,
            log_end=journal.synced_index() if journal is not None else 0,
            noted=self._noted_index,
        )

    # --- inside

    def _may_greet(self) -> bool:
        """Return whether what a greeting says of this disk is durable."""
        return self._ready_number is None

    def _greet_all(self) -> None:
        """Greet every connected peer, first or anew."""
        for peer in sorted(self.epochs):
            self.send(peer, self.greeting())
        for peer, greet in sorted(self.greets.items()):
            self._admit(peer, greet)

    def _apply(self, command: bytes) -> None:
        """Apply the next committed entry, for the engine."""
        assert self.machine is not None
        assert self.journal is not None
        outcomes = self.machine.apply(command)
        index = self.machine.index
        term = self.journal.term_at(index)
        assert term is not None
        self.proposals.applied(index, term, outcomes)
        self.on_applied(index, outcomes)

    def _role_changed(self, role: str) -> None:
        """Count and tell a change of role."""
        self.role_changes[role] = self.role_changes.get(role, 0) + 1
        term = self.engine.term if self.engine is not None else 0
        self.notice("role", {"role": role, "term": term})

    def _give_up_leadership(self, engine: Engine, now: float) -> None:
        """Stop leading with a disk that is full, failed or stalled."""
        if not engine.is_leader:
            return
        stalled = self.disk.stalled_seconds(now) > self.settings.disk_stall_seconds
        if stalled or self.disk.condition is not Condition.OK:
            self.notice("gave up leadership", {"disk": self.disk.condition.value})
            engine.step_down()
            engine.election_at = now + self.settings.times.election_max * 2

    def _ask_before_campaign(self, engine: Engine, journal: Journal, now: float) -> None:
        """Put off a campaign until a majority would vote for this node."""
        if engine.is_leader or engine.election_at >= now:
            return
        times = self.settings.times
        if self.disk.condition is not Condition.OK or not self.counts(self.membership.me):
            engine.election_at = now + times.election_min
            return
        ballot = self.inbound.ballot
        alone = not self.membership.others
        if not self.rules.pre_vote or alone or engine.is_transferring:
            return
        if ballot.is_cleared(engine.term):
            return
        engine.election_at = now + self.sources.draw.uniform(
            times.election_min / 3, times.election_max / 3
        )
        poll: Poll = ballot.ask(
            me=self.membership.me,
            term=engine.term,
            last_index=journal.end,
            last_term=journal.end_term,
        )
        for peer in self.membership.others:
            self.send(peer, poll)

    def _tell_of_cuts(self, journal: Journal) -> None:
        """Take back what was to be said, or hoped, of entries that were cut."""
        cut = journal.take_cut()
        if cut is not None:
            self.held.cut(cut)
            self.proposals.cut(cut)

    def _begin_snapshot(self, journal: Journal, machine: Machine) -> None:
        """Begin a snapshot when the journal has grown enough."""
        covered = self.snapshot[0] if self.snapshot is not None else journal.base
        grown = machine.index - covered >= self.settings.snapshot_entries
        heavy = journal.bytes_count >= self.settings.snapshot_bytes and machine.index > covered
        if not self.maker.is_idle or not (grown or heavy):
            return
        term = journal.term_at(machine.index)
        assert term is not None
        self.maker.begin(machine.state, index=machine.index, term=term)
        if not self.rules.snapshot_before_trim:
            journal.trim(machine.index)

    def _finish_snapshot(self) -> None:
        """Trim the journal once the snapshot it relies on is durable."""
        assert self.journal is not None
        header = self.maker.take_finished()
        if header is None:
            return
        self.snapshot = (header.index, header.term)
        self.snapshots_made_count += 1
        heavy = self.journal.bytes_count >= self.settings.snapshot_bytes
        keep = 0 if heavy else self.settings.keep_entries
        index = max(self.journal.base, header.index - keep)
        if index > self.journal.base:
            self.journal.trim(index)

    # --- admissions

    def _newest_note(self) -> int:
        """Return the index of the newest admission noted on this disk."""
        assert self.journal is not None
        return max((note.index for note in self.journal.notes.values()), default=0)

    def _note_admissions(self) -> None:
        """Note on disk what the state says of admissions, beside the vote."""
        assert self.machine is not None
        assert self.journal is not None
        members = self.machine.state.members
        if members is self._members_seen or not self.rules.admission_is_noted:
            return
        self._members_seen = members
        for member_id in sorted(members):
            member = members[member_id]
            noted = self.journal.notes.get(member_id)
            if member.admitted_index > (noted.index if noted is not None else 0):
                note = Note(member.admitted_index, member.incarnation)
                number = self.journal.note(member_id, note)
                self._noted.append((number, note.index))
        for peer, greet in sorted(self.greets.items()):
            self._admit(peer, greet)

    def _note_durable(self) -> None:
        """Tell the peers which admissions this disk will not forget."""
        while self._noted and self._noted[0][0] <= self.disk.done:
            self._noted_index = max(self._noted_index, self._noted.pop(0)[1])
            self._greet_all()

    def newest_admission(self) -> int:
        """Return the index of the newest replacement of a disk, 0 when there was none."""
        assert self.machine is not None
        return max(one.admitted_index for one in self.machine.state.members.values())

    def hand_over(self) -> None:
        """Ask the follower that has most to lead; it must have everything."""
        engine = self.engine
        if engine is None or not engine.is_leader:
            return
        able = [
            peer for peer in self.membership.others if peer in self.greets and self.counts(peer)
        ]
        for peer in sorted(able, key=engine.match_index, reverse=True):
            if engine.transfer(peer):
                return

    def replaceable(self, member: str) -> str | Refused:
        """Return the incarnation that would replace a member's disk, or why none may.

        A second replacement waits until every other voter has the first one durably:
        two disks gone at once may be a majority.
        """
        if self.machine is None or member not in self.membership.members:
            return Refused("not_found", f"there is no member {member}", None)
        greet = self.greets.get(member)
        if member == self.membership.me or greet is None:
            return Refused("invalid_request", f"{member} is not connected to this node", None)
        newest = self.newest_admission()
        behind = [
            peer
            for peer in self.membership.others
            if peer != member and self.greets.get(peer, _NOBODY).noted < newest
        ]
        if self._noted_index < newest or behind:
            who = ", ".join(behind or [self.membership.me])
            why = f"the last replacement is not yet on the disks of {who}"
            return Refused("cluster_changing", why, None)
        return greet.incarnation


TURNS_MAX = 3
QUEUE_LOOK_SECONDS = 0.1
_NOBODY = Greet(incarnation="", cluster_id="", founders={}, peers=[], term=0, log_end=0, noted=-1)
