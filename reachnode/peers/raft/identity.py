"""Which disk counts as which voter, and how a cluster begins.

A data directory has an *incarnation*, made when the directory was empty. A voter whose
disk was wiped comes back with another one, and has forgotten what it once acknowledged;
were it counted, the others could elect a leader that lacks it. So its votes and
acknowledgements don't count until a logged replacement admits the new incarnation.

Only what is counted is dropped, never a request: a node whose own view is old must still
answer those who know more.

Founding has no founder, and takes two rounds. Every node makes its incarnation durable and
tells it to all the others; whoever has heard all of them computes the cluster's id from what
it heard, and tells that, too. A node founds once all the others have computed the same id.
One round is not enough: a disk wiped in between would let two nodes found two clusters, each
with the former or the new one. With two, the second of them lacks the first one's word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from reachnode.peers.raft.disk import Note
from reachnode.peers.raft.failstop import failstop
from reachnode.peers.raft.messages import Greet
from reachnode.peers.raft.records import Damaged, seal, unseal
from reachnode.registry.state import State


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who a data directory is. `cluster_id` is empty until the cluster is founded."""

    format: int = 1
    member: str
    incarnation: str
    cluster_id: str = ""
    founders: dict[str, str] = {}
    """Member to incarnation at founding."""


def pack_identity(identity: Identity) -> bytes:
    """Return the bytes of the identity file."""
    return seal(msgspec.msgpack.encode(identity))


def read_identity(data: bytes) -> Identity:
    """Return an identity.

    Raises:
        Damaged: The checksum does not match.
        FailStop: It is of a later format.
    """
    try:
        identity = msgspec.msgpack.decode(unseal("identity", data), type=Identity)
    except msgspec.MsgspecError as error:
        raise Damaged("identity", 4, str(error)) from error
    if identity.format != 1:
        what = f"the data directory has format {identity.format}, this release knows 1"
        raise failstop("format_unknown", what)
    return identity


def cluster_id_of(founders: Mapping[str, str], peers: Iterable[str]) -> str:
    """Return the id of the cluster that these disks found: 32 hexadecimal digits."""
    image = msgspec.msgpack.encode((sorted(founders.items()), sorted(peers)))
    return blake2b(image, digest_size=16, person=b"reach-founding").hexdigest()


@dataclass(slots=True, kw_only=True)
class Founding:
    """What an unfounded node has heard, and what follows from it.

    Args:
        identity: This disk, its incarnation durable.
        peers: Every voter as ``id=host:port``, sorted; the same text on every node.
        members: Every voter's id, this one included.
    """

    identity: Identity
    peers: list[str]
    members: frozenset[str]
    heard: dict[str, Greet] = field(default_factory=dict)

    def hear(self, member: str, greet: Greet) -> None:
        """Take a peer's greeting; its latest one counts."""
        assert member in self.members
        self.heard[member] = greet

    def forget(self, member: str) -> None:
        """Drop what a peer said, since it is gone and may come back as another disk."""
        self.heard.pop(member, None)

    def waits_for(self) -> tuple[str, ...]:
        """Return who has not been heard, or disagrees, with the reason; () when founded."""
        waits = []
        for member in sorted(self.members - {self.identity.member}):
            greet = self.heard.get(member)
            if greet is None:
                waits.append(f"{member} (not heard)")
            elif self.identity.member in greet.founders:
                waits.append(f"{member} (its cluster has the members {', '.join(greet.founders)})")
            elif greet.cluster_id:
                waits.append(f"{member} (its cluster was founded without this node)")
            elif greet.peers != self.peers:
                waits.append(f"{member} (lists other peers: {', '.join(greet.peers)})")
        return tuple(waits or self._disagreeing())

    def view(self) -> str:
        """Return the id of the cluster that those heard would found; "" while one is missing."""
        if self.heard.keys() != self.members - {self.identity.member}:
            return ""
        return cluster_id_of(self._founders(), self.peers)

    def decide(self) -> Identity | None:
        """Return the identity of this disk in a cluster, None while there is none.

        A peer that belongs to a cluster decides the matter: this disk joins it, and counts
        there only if it was among the founders. An empty directory never founds a second
        cluster beside a living member of the first. Nor does it join one of other members than
        it lists: what it took for a majority would be none there.
        """
        for member in sorted(self.heard):
            greet = self.heard[member]
            if greet.cluster_id and greet.founders.keys() == self.members:
                return self._within(greet.cluster_id, greet.founders)
        if self.waits_for():
            return None
        return self._within(self.view(), self._founders())

    def _disagreeing(self) -> list[str]:
        """Return who has not computed the same id, everybody being heard."""
        view = self.view()
        return [
            f"{member} (hears other disks, or not all of them)"
            for member, greet in sorted(self.heard.items())
            if greet.view != view
        ]

    def _founders(self) -> dict[str, str]:
        """Return the incarnations of those heard and of this disk, by member."""
        founders = {member: greet.incarnation for member, greet in self.heard.items()}
        return founders | {self.identity.member: self.identity.incarnation}

    def _within(self, cluster_id: str, founders: Mapping[str, str]) -> Identity:
        """Return this disk's identity as a member of a cluster."""
        return msgspec.structs.replace(
            self.identity, cluster_id=cluster_id, founders=dict(sorted(founders.items()))
        )


@dataclass(slots=True, kw_only=True)
class Admissions:
    """Whose votes and acknowledgements count, as this node knows it.

    Args:
        me: This member.
        incarnation: This disk.
    """

    me: str
    incarnation: str
    present: dict[str, str] = field(default_factory=dict)
    """Peer to the incarnation it greeted with."""
    amnesiac: set[str] = field(default_factory=set)
    """Peers that came back with less than they had acknowledged."""

    def admitted(self, member: str, state: State, notes: Mapping[str, Note]) -> str:
        """Return the incarnation that counts as `member`; "" for nobody."""
        known = state.members.get(member)
        note = notes.get(member)
        if known is None:
            return note.incarnation if note is not None else ""
        if note is not None and note.index > known.admitted_index:
            return note.incarnation
        return known.incarnation

    def counts(self, member: str, state: State, notes: Mapping[str, Note]) -> bool:
        """Return whether what `member` says is counted."""
        if member == self.me:
            return self.admitted(member, state, notes) == self.incarnation
        if member in self.amnesiac:
            return False
        return self.admitted(member, state, notes) == self.present.get(member)

    def is_retired(self, member: str, incarnation: str, state: State) -> bool:
        """Return whether a disk was replaced and can never count again."""
        known = state.members.get(member)
        return known is not None and incarnation in known.retired
