"""When many vanish at once: who is in doubt then, and who may work all the same.

One instance that falls silent is in doubt itself. Many that fall silent to one node put that
node, or its network, in doubt: they stay candidates at reduced weight, and others probe them.
"""

from collections.abc import Container, Iterable, Mapping

from reachnode.model.liveness import Liveness

LOST_MIN = 5
"""Fewer than this are never a mass, whatever their share."""
LOST_SHARE = 0.5
WEIGHT_REDUCED = 0.25
"""What is left of the weight of an instance that is used at reduced weight."""


def is_mass_loss(lost: int, *, of: int) -> bool:
    """Return whether the loss says more about the observer than about the lost.

    Args:
        lost: How many it can't hear or reach, a count.
        of: How many it looks after, those included.
    """
    assert 0 <= lost <= of
    return lost >= LOST_MIN and lost >= LOST_SHARE * of


def doubted(leases: Mapping[str, tuple[int, int]]) -> frozenset[str]:
    """Return the homes that are in doubt.

    Args:
        leases: By home, how many of its leases have run out, and how many it holds.
    """
    return frozenset(home for home, (lost, held) in leases.items() if is_mass_loss(lost, of=held))


def readmitted(
    instances: Iterable[Liveness], *, ejected: Container[str] = frozenset()
) -> frozenset[str]:
    """Return who works again, because fewer than half of a capability's instances look well.

    Rather than bury the rest under all the work, those that only look unwell get their part
    of it: suspects, and whoever was ejected. Never one that is down or was taken out.

    Args:
        instances: All that offer the capability.
        ejected: Those this node put aside for failing, by `agent_id`.
    """
    counted = [one for one in instances if one.state not in {"updating", "disabled"}]
    well = [one for one in counted if one.state == "healthy" and one.agent_id not in ejected]
    if 2 * len(well) >= len(counted):
        return frozenset()
    return frozenset(
        one.agent_id
        for one in counted
        if one.state == "suspect" or (one.state == "healthy" and one.agent_id in ejected)
    )
