"""Which node does what for an instance: the same answer on every node that sees the same nodes.

Rendezvous hashing: each node draws a number for the instance, the highest does it. A node that
leaves gives up only what it had; one that comes takes only what it gets.

Source:
    D. Thaler, C. Ravishankar, "Using name-based mappings to increase hit rates",
    IEEE/ACM Transactions on Networking 6(1), 1998.
"""

from collections.abc import Iterable
from hashlib import blake2b

WEIGHT_BYTES = 8


def weight(node: str, agent_id: str) -> bytes:
    """Return the number a node draws for an instance, as bytes that compare like it.

    It is a hash of both names (BLAKE2b), so it doesn't differ between processes as Python's
    own hash does. Names hold no zero byte, which therefore keeps them apart.
    """
    return blake2b(f"{node}\0{agent_id}".encode(), digest_size=WEIGHT_BYTES).digest()


def ranked(agent_id: str, nodes: Iterable[str], *, last: str | None = None) -> tuple[str, ...]:
    """Return the nodes in the order in which they are to look after an instance.

    Args:
        agent_id: The instance.
        nodes: The nodes, in any order.
        last: One of them that is to come last, because its word is in doubt.
    """
    return tuple(
        sorted(
            nodes,
            key=lambda node: (node != last, weight(node, agent_id), node),
            reverse=True,
        )
    )
