"""This disk among the others: founding, greetings, and whose word counts.

One per core. It knows which connections there are and who is behind them; `identity.py`
has the rules as pure functions over what it knows.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from reachnode.peers.raft.disk import Note, RewriteJournal, WriteIdentity, WriteVote
from reachnode.peers.raft.failstop import failstop
from reachnode.peers.raft.identity import Admissions, Founding, Identity, pack_identity
from reachnode.peers.raft.loading import Loaded
from reachnode.peers.raft.membership import Membership
from reachnode.peers.raft.messages import Greet
from reachnode.registry.outcomes import Refused
from reachnode.world.sources import Sources

if TYPE_CHECKING:
    from reachnode.peers.raft.core import Core, Running


class Standing:
    """Who this disk is, who is there, and who counts."""

    def __init__(self, core: "Core", loaded: Loaded, sources: Sources) -> None:
        self._core = core
        self.identity = checked_identity(loaded, core.membership, sources.new_id)
        self.founding: Founding | None = None
        self.admissions = Admissions(me=core.membership.me, incarnation=self.identity.incarnation)
        self.epochs: dict[str, int] = {}
        """Number of the consensus connection to each peer that has one."""
        self.greets: dict[str, Greet] = {}
        """The latest greeting on each of these connections."""
        self._epochs_count = 0
        self._awaited: int | None = None
        """The write after which greeting, or running, may begin."""
        self._noting: list[tuple[int, int]] = []
        """Write number and index of admissions that are being noted."""
        self._noted_index = 0
        self._members_seen: object = None
        self._view_told = ""

    # --- beginning

    def begin(self) -> None:
        """Make this disk's incarnation durable, and look for a cluster, if it has none.

        What was read is written again: the process before may not have come to sync it.
        """
        if not self.identity.cluster_id:
            self._awaited = self._core.disk.submit(WriteIdentity(pack_identity(self.identity)))
            membership = self._core.membership
            self.founding = Founding(
                identity=self.identity,
                peers=list(membership.peers),
                members=membership.members,
            )

    def go_on_founding(self) -> None:
        """Become a member of a cluster once it is decided, or say what would be one."""
        if self.founding is None or self._awaited is not None:
            return
        if self._view_told != self.founding.view():
            self._view_told = self.founding.view()
            self.greet_all()
        decided = self.founding.decide()
        if decided is None:
            return
        core = self._core
        self.identity = decided
        self.founding = None
        self._view_told = ""
        core.notice("cluster founded", {"cluster_id": decided.cluster_id})
        core.disk.submit(RewriteJournal(base_index=1, base_term=0, entries=()))
        core.disk.submit(WriteVote(term=0, voted_for=None, notes={}))
        # The identity comes last: a disk that belongs to a cluster has everything else.
        self._awaited = core.disk.submit(WriteIdentity(pack_identity(decided)))

    def is_ready_to_run(self) -> bool:
        """Return whether this disk belongs to a cluster, durably."""
        return bool(self.identity.cluster_id) and self._awaited is None

    def is_due(self) -> bool:
        """Return whether what was awaited is durable, and nobody has taken note of it yet."""
        return self._awaited is not None and self._awaited <= self._core.disk.done

    def synced(self) -> None:
        """Take note that more is durable."""
        if self.is_due():
            self._awaited = None
            self.greet_all()
        while self._noting and self._noting[0][0] <= self._core.disk.done:
            self._noted_index = max(self._noted_index, self._noting.pop(0)[1])
            self.greet_all()

    # --- connections

    def connected(self, peer: str) -> None:
        """Take a new consensus connection; the peer is spoken to once it has greeted."""
        assert peer not in self.epochs
        self._epochs_count += 1
        self.epochs[peer] = self._epochs_count
        if self._awaited is None:
            self._core.send(peer, self.greeting())

    def disconnected(self, peer: str) -> None:
        """Take the loss of a consensus connection."""
        self.epochs.pop(peer, None)
        self.greets.pop(peer, None)
        self.admissions.present.pop(peer, None)
        if self.founding is not None:
            self.founding.forget(peer)

    def greeting(self) -> Greet:
        """Return what this node says of itself first."""
        raft = self._core.running
        identity = self.identity
        return Greet(
            incarnation=identity.incarnation,
            cluster_id=identity.cluster_id if raft is not None else "",
            founders=identity.founders if raft is not None else {},
            peers=list(self._core.membership.peers),
            term=raft.engine.term if raft is not None else 0,
            log_end=raft.journal.end if raft is not None else 0,
            noted=self._noted_index,
            view=self._view_told,
        )

    def greet_all(self) -> None:
        """Greet every connected peer, first or anew."""
        for peer in sorted(self.epochs):
            self._core.send(peer, self.greeting())

    def greeted(self, peer: str, greet: Greet) -> None:
        """Take a peer's greeting: who it is, and with which disk."""
        core = self._core
        if self.founding is not None:
            self.founding.hear(peer, greet)
            self.greets[peer] = greet
            return
        if greet.cluster_id not in ("", self.identity.cluster_id):
            core.notice("another cluster", {"peer": peer, "cluster_id": greet.cluster_id})
            core.wire.drop(peer)
            return
        self.greets[peer] = greet
        core.inbound.judge_memory(peer, greet)
        self._let_in(peer, greet)

    def let_all_in(self) -> None:
        """Look again at everybody who has greeted, since what is known has changed."""
        for peer, greet in sorted(self.greets.items()):
            self._let_in(peer, greet)

    def _let_in(self, peer: str, greet: Greet) -> None:
        """Let the engine speak with a member of this cluster, and judge its disk."""
        core = self._core
        raft = core.running
        if raft is None or not greet.cluster_id:
            return
        if self.admissions.is_retired(peer, greet.incarnation, raft.machine.state):
            core.notice("a replaced disk", {"peer": peer, "incarnation": greet.incarnation})
            core.wire.drop(peer)
            return
        self.admissions.present[peer] = greet.incarnation
        if not raft.engine.is_connected(peer):
            if not core.counts(peer):
                raft.engine.forget_match(peer)
                core.notice("a disk without a vote", {"peer": peer, "disk": greet.incarnation})
            raft.engine.connect(peer)

    # --- admissions

    def counts(self, member: str) -> bool:
        """Return whether a member's votes and acknowledgements count.

        A former disk stops to count as soon as its replacement is in this log, the new one
        counts once that is applied. Were it one moment for both, the former disk and a node
        that has not applied it could elect a leader beside the new disk and one that has.
        """
        raft = self._core.running
        assert raft is not None
        if self._is_being_replaced(member, raft):
            return False
        return self.admissions.counts(member, raft.machine.state, raft.journal.notes)

    def _is_being_replaced(self, member: str, raft: "Running") -> bool:
        """Return whether an entry not known to be committed here admits another disk."""
        notes, state = raft.journal.notes, raft.machine.state
        note = notes.get(member)
        known_to = max(raft.machine.index, note.index if note is not None else 0)
        admitted = self.admissions.admitted(member, state, notes)
        return any(
            one.member_id == member and one.incarnation != admitted
            for index, ones in raft.journal.replacements.items()
            if index > known_to
            for one in ones
        )

    def newest_admission(self) -> int:
        """Return the index of the newest replacement of a disk, 0 when there was none."""
        raft = self._core.running
        assert raft is not None
        return max(one.admitted_index for one in raft.machine.state.members.values())

    def recall_notes(self, notes: Mapping[str, Note]) -> None:
        """Take what the disk had noted when this process began."""
        self._noted_index = max((note.index for note in notes.values()), default=0)

    def note_admissions(self) -> None:
        """Note on disk what the state says of admissions, beside the vote."""
        core = self._core
        raft = core.running
        if raft is None or raft.machine.state.members is self._members_seen:
            return
        members = self._members_seen = raft.machine.state.members
        if not core.rules.admission_is_noted:
            return
        for member_id in sorted(members):
            member = members[member_id]
            noted = raft.journal.notes.get(member_id)
            if member.admitted_index > (noted.index if noted is not None else 0):
                note = Note(member.admitted_index, member.incarnation)
                number = raft.journal.note(member_id, note)
                self._noting.append((number, note.index))
        self.let_all_in()

    def replaceable(self, member: str) -> str | Refused:
        """Return the incarnation that would replace a member's disk, or why none may.

        A second replacement waits until every other voter has the first one durably:
        two disks gone at once may be a majority.
        """
        core = self._core
        if core.running is None or member not in core.membership.members:
            return Refused("unknown_member", f"there is no member {member}")
        greet = self.greets.get(member)
        if greet is None:
            return Refused("invalid_request", f"{member} is not connected to this node")
        if member in self.admissions.amnesiac:
            why = f"{member} came back with an old copy of its disk: empty it and start it anew"
            return Refused("invalid_request", why)
        newest = self.newest_admission()
        behind = [
            peer
            for peer in core.membership.others
            if peer != member and (peer not in self.greets or self.greets[peer].noted < newest)
        ]
        behind += [core.membership.me] if self._noted_index < newest else []
        if behind and newest:
            who = ", ".join(behind)
            why = f"the last replacement is not known to be on the disks of {who}: try again"
            return Refused("cluster_changing", why)
        return greet.incarnation


def checked_identity(loaded: Loaded, membership: Membership, new_id: Callable[[], str]) -> Identity:
    """Return this disk's identity, a new one for an empty directory.

    Raises:
        FailStop: The directory is another member's, or of a cluster of other members.
    """
    identity = loaded.identity
    if identity is None:
        return Identity(member=membership.me, incarnation=new_id())
    if identity.member != membership.me:
        what = f"the data directory belongs to {identity.member}, this node is {membership.me}"
        raise failstop("identity_mismatch", what)
    if identity.cluster_id and set(identity.founders) != membership.members:
        founders = ", ".join(sorted(identity.founders))
        what = f"the cluster has the members {founders}, but cluster.peers lists others"
        raise failstop("identity_mismatch", what)
    return identity
