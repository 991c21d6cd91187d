"""A desk for proposals: a pretend node, and notes of what became of each change."""

from dataclasses import dataclass, field

from reachnode.peers.raft.messages import AnyMessage, Propose, Proposed
from reachnode.peers.raft.proposal import Fate, Leader, Proposal
from reachnode.peers.raft.proposals import Proposals
from reachnode.registry.codec import encode_envelope, encode_outcome
from reachnode.registry.commands import Advance, Envelope
from reachnode.registry.outcomes import Applied, Outcome, Refused

DISK_FULL = Refused("disk_full", "this node's disk takes no writes")
EXPIRED = Refused("request_expired", "too old", {"floor": 9})
NO = Refused("unknown_agent", "there is none")


def envelope(name: str, since_index: int = 0) -> bytes:
    """Return the bytes of a change."""
    return encode_envelope(
        Envelope(request_id=name, since_index=since_index, command=Advance(by_ms=1))
    )


@dataclass(slots=True)
class Node:
    """A node as proposals see it, with a log of its own."""

    is_leader: bool = False
    takes_entries: bool = True
    leader: Leader | None = None
    refuses: Refused | None = None
    unreachable: set[str] = field(default_factory=set)
    term: int = 1
    end: int = 1
    batches: list[bytes] = field(default_factory=list)
    said: list[tuple[str, AnyMessage]] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=lambda: {"n2": 1, "n3": 1})

    def reachable_leader(self) -> Leader | None:
        return self.leader

    def append(self, batch: bytes) -> tuple[int, int]:
        self.end += 1
        self.batches.append(batch)
        return self.end, self.term

    def send(self, peer: str, message: AnyMessage) -> bool:
        if peer in self.unreachable:
            return False
        self.said.append((peer, message))
        return True

    def epoch(self, peer: str) -> int | None:
        return self.epochs.get(peer)

    def refusal(self) -> Refused | None:
        return self.refuses

    def sent_number(self) -> int:
        """Return the number of the last change that was sent to the leader."""
        proposes = [message for _, message in self.said if isinstance(message, Propose)]
        return proposes[-1].number

    def answers(self) -> list[tuple[str, Proposed]]:
        """Return what other nodes were told of their changes."""
        return [(to, message) for to, message in self.said if isinstance(message, Proposed)]


@dataclass(slots=True)
class Desk:
    """Proposals of one node, and what became of each."""

    node: Node = field(default_factory=Node)
    proposals: Proposals = field(init=False)
    fates: dict[str, list[Fate]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.proposals = Proposals(host=self.node, leaderless_seconds=1.5)

    def submit(
        self, name: str = "a", *, deadline: float = 10.0, now: float = 0.0, fence: bool = False
    ) -> Proposal:
        """Propose a change, or a fence."""
        fates: list[Fate] = self.fates.setdefault(name, [])
        proposal = Proposal(
            envelope=b"" if fence else envelope(name),
            renew=None if fence else lambda index: envelope(name, index),
            deadline=deadline,
            submitted_at=now,
            resolve=fates.append,
        )
        self.proposals.submit(proposal)
        return proposal

    def submit_bytes(self, data: bytes) -> list[Fate]:
        """Propose anything, and return where its fate will be."""
        fates: list[Fate] = []
        self.proposals.submit(
            Proposal(envelope=data, deadline=10, submitted_at=0, resolve=fates.append)
        )
        return fates

    def apply(self, *outcomes: Outcome, term: int | None = None) -> None:
        """Apply the entry that is in the log."""
        (index,) = self.proposals.in_log
        self.proposals.applied(index, term or self.node.term, outcomes)

    def hear(
        self,
        fate: str,
        outcome: Outcome | None = None,
        *,
        number: int | None = None,
        applied_index: int = 0,
    ) -> None:
        """Hear the leader's word on a change, by default the one that was sent last."""
        number = self.node.sent_number() if number is None else number
        data = encode_outcome(outcome) if outcome is not None else b""
        index = outcome.index if isinstance(outcome, Applied) else 7
        told = Proposed(number, fate, index, data)  # type: ignore[arg-type]  # the test names a fate
        self.proposals.hear(told, applied_index=applied_index)

    def check_at_rest(self) -> None:
        """Nothing is under way, and nothing is kept of what was."""
        proposals = self.proposals
        assert (proposals.open_count, proposals.foreign_count) == (0, 0)
        assert not proposals.in_log
        assert not [item for item in proposals.queue if getattr(item, "place", "") != "closed"]
        assert proposals.next_at() is None


def leading() -> Desk:
    """Return a desk at the leader."""
    return Desk(Node(is_leader=True))


def following(member: str = "n2") -> Desk:
    """Return a desk at a follower of a leader."""
    return Desk(Node(leader=Leader(member, 1)))


def refused_code(fate: Fate) -> str:
    """Return the code of a refusal."""
    assert isinstance(fate, Refused)
    return fate.code
