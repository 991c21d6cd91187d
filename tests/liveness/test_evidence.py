"""What this node itself knows of an instance."""

from reachnode.liveness.evidence import own_sight, report_of
from reachnode.liveness.hearsay import Sight, seen
from reachnode.liveness.leases import Lease
from reachnode.liveness.probes import Watch
from tests.liveness.crowds import instance

LEASE = Lease(
    incarnation=3,
    beat=7,
    heard_at=10.0,
    seconds=10.0,
    load=0.5,
    in_flight=2,
    self_check=True,
    counters=(),
    is_suspect=True,
)


def watch(incarnation: int) -> Watch:
    """Return what failing probes found of an incarnation."""
    made = instance("a1", incarnation=incarnation)
    return Watch(instance=made, kind="tcp", endpoint="e", reach="failed", fault="timeout")


def test_a_peer_sees_what_this_node_sees() -> None:
    """A lease and what probes found are one sight, and reach a peer as they are."""
    sight = own_sight("n1", 3, lease=LEASE, watch=watch(3))
    assert sight == Sight(
        node="n1",
        incarnation=3,
        beat=7,
        heard_at=10.0,
        is_suspect=True,
        load=0.5,
        in_flight=2,
        self_check=True,
        reach="failed",
        fault="timeout",
    )
    report = report_of(sight, "a1", sequence=5, now=12.5)
    assert (report.agent_id, report.sequence, report.age_ms) == ("a1", 5, 2_500)
    # The peer's clock shows another time; the age is what counts.
    assert seen("n1", report, now=12.5) == sight


def test_without_evidence_there_is_little_to_say() -> None:
    """Neither a lease nor a probe: the report is all defaults, and holds no age."""
    sight = own_sight("n1", 3, lease=None, watch=None)
    assert sight == Sight(node="n1", incarnation=3)
    assert report_of(sight, "a1", sequence=5, now=12.5).age_ms == 0


def test_another_incarnation_is_not_meant() -> None:
    """What is known of a predecessor isn't told as if it were of its successor."""
    assert own_sight("n1", 4, lease=LEASE, watch=watch(3)) == Sight(node="n1", incarnation=4)
    mixed = own_sight("n1", 4, lease=LEASE, watch=watch(4))
    assert (mixed.beat, mixed.reach) == (0, "failed")
