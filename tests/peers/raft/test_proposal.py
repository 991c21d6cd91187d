"""Nouns of changes under way."""

from reachnode.peers.raft.proposal import Foreign, Proposal
from reachnode.peers.raft.proposals import BATCH_BYTES_MAX, BATCH_MAX
from reachnode.registry.codec import encode_batch


def own(envelope: bytes) -> Proposal:
    """Return a change of this node."""
    return Proposal(envelope=envelope, deadline=1, submitted_at=0, resolve=lambda _: None)


def foreign(envelope: bytes) -> Foreign:
    """Return a change of another node."""
    return Foreign(peer="n2", epoch=1, number=1, envelope=envelope)


def test_a_fence_is_a_change_without_a_command() -> None:
    """The same holds for a node's own and another's."""
    assert own(b"").is_fence
    assert foreign(b"").is_fence
    assert not own(b"x").is_fence
    assert not foreign(b"x").is_fence


def test_the_weight_covers_what_a_batch_makes_of_it() -> None:
    """However changes are cut, their weights are at least the bytes of their batch."""
    for size in (0, 1, 31, 32, 255, 256, 65_535, 65_536, BATCH_BYTES_MAX - 16):
        assert own(bytes(size)).weight == foreign(bytes(size)).weight
        count = max(1, min(BATCH_MAX, BATCH_BYTES_MAX // (size + 16)))
        batch = encode_batch([bytes(size)] * count)
        assert len(batch) <= count * own(bytes(size)).weight
