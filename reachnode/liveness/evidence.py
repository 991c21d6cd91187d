"""What this node itself knows of an instance, for its own judgment and for its peers."""

from reachnode.liveness.hearsay import Sight
from reachnode.liveness.leases import Lease
from reachnode.liveness.probes import Watch
from reachnode.model.liveness import Reach, Report


def own_sight(node: str, incarnation: int, *, lease: Lease | None, watch: Watch | None) -> Sight:
    """Return what a node knows of one incarnation; what it knows of others counts for nothing.

    Args:
        node: This node.
        incarnation: The one that is registered.
        lease: The lease it holds, if any.
        watch: What its probes and calls found, if anything.
    """
    reach: Reach = ""
    fault = ""
    if watch is not None and watch.instance.incarnation == incarnation:
        reach, fault = watch.reach, watch.fault
    if lease is None or lease.incarnation != incarnation:
        return Sight(node=node, incarnation=incarnation, reach=reach, fault=fault)
    return Sight(
        node=node,
        incarnation=incarnation,
        beat=lease.beat,
        heard_at=lease.heard_at,
        is_suspect=lease.is_suspect,
        load=lease.load,
        in_flight=lease.in_flight,
        self_check=lease.self_check,
        reach=reach,
        fault=fault,
    )


def report_of(sight: Sight, agent_id: str, *, sequence: int, now: float) -> Report:
    """Return what a peer is told of a sight, its time turned into an age."""
    return Report(
        agent_id=agent_id,
        incarnation=sight.incarnation,
        sequence=sequence,
        beat=sight.beat,
        age_ms=max(0, round((now - sight.heard_at) * 1000)) if sight.beat else 0,
        is_suspect=sight.is_suspect,
        load=sight.load,
        in_flight=sight.in_flight,
        self_check=sight.self_check,
        reach=sight.reach,
        fault=sight.fault,
    )
