"""Who the voters are, and which of them this node is."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The voters.

    Args:
        me: This node's id.
        peers: All voters as ``id=host:port``, sorted, the same text on every node.
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
