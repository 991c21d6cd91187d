"""What a core says of itself."""

from dataclasses import replace

import pytest

from reachnode.model.membership import MemberStatus, ReplicaStatus
from reachnode.peers.raft.report import counters, describe
from tests.peers.raft.cores import MEMBERS, Cores, three

ADDRESSES = {member: f"{member}:7401" for member in MEMBERS}


def status(cores: Cores, member: str) -> ReplicaStatus:
    """Return a member's standing."""
    return describe(cores[member].core, cores.membership(member), ADDRESSES)


def by_id(one: ReplicaStatus) -> dict[str, MemberStatus]:
    """Return the members as a node sees them."""
    return {member.id: member for member in one.members}


def test_while_the_disk_is_read_nothing_is_known() -> None:
    """The members are those of the configuration, this one alive."""
    one = describe(None, Cores().membership("n2"), ADDRESSES)
    assert (one.phase, one.role, one.cluster_id, one.quorum) == ("loading", "learner", "", False)
    assert [(member.id, member.alive) for member in one.members] == [
        ("n1", False),
        ("n2", True),
        ("n3", False),
    ]
    assert one.members[0].address == "n1:7401"


def test_a_founding_node_says_whom_it_waits_for() -> None:
    """And who is there."""
    cores = Cores()
    cores.start("n1", "n2")
    one = status(cores, "n1")
    assert one.phase == "founding"
    assert one.founding_waits_for == ("n3 (not heard)",)
    assert [member.alive for member in one.members] == [True, True, False]


def test_a_founded_node_that_does_not_run_yet_is_loading() -> None:
    """Its disk is still taking the identity."""
    cores = Cores()
    cores["n1"].is_stalled = True
    cores.start()
    core = cores["n1"].core
    assert status(cores, "n1").phase == "founding"
    core.standing.founding = None
    assert status(cores, "n1").phase == "loading"


@pytest.mark.parametrize("member", MEMBERS)
def test_a_running_node_says_where_it_stands(member: str) -> None:
    """Its role, its log, who leads and who is there."""
    cores = three()
    cores["n1"].propose()
    cores.run(0.2)
    one = status(cores, member)
    raft = cores[member].raft
    assert one.phase == "running"
    assert one.role == ("leader" if member == "n1" else "follower")
    assert one.leader == "n1"
    assert one.cluster_id == cores[member].core.standing.identity.cluster_id
    assert (one.index, one.commit_index) == (raft.machine.index, raft.engine.commit_index)
    assert (one.log_first, one.log_last, one.synced_index) == (1, one.index, one.index)
    assert (one.quorum, one.disk, one.level, one.founding_waits_for) == (True, "ok", 1, ())
    assert one.contact_age_seconds == pytest.approx(0.1, abs=0.1)
    seen = by_id(one)
    assert {name: seen[name].role for name in MEMBERS} == {
        "n1": "leader",
        "n2": "follower",
        "n3": "follower",
    }
    assert all(seen[name].alive for name in MEMBERS)
    assert seen[member].index == one.index
    assert seen[member].lag_ms == 0


def test_a_leader_knows_what_the_others_hold() -> None:
    """A follower knows of itself alone."""
    cores = three()
    cores.run(0.2)
    at_leader, at_follower = by_id(status(cores, "n1")), by_id(status(cores, "n2"))
    assert at_leader["n3"].index == cores["n3"].raft.journal.end
    assert at_follower["n3"].index is None
    assert at_leader["n3"].lag_ms is not None
    assert 0 <= at_leader["n3"].lag_ms < 1000


def test_a_node_that_is_cut_off_says_so() -> None:
    """No quorum, no leader, and the others as they were known."""
    cores = three()
    for member in ("n1", "n2"):
        cores.stop("n3")
        cores.isolate(member)
    cores.run(3.0)
    for member in ("n1", "n2"):
        one = status(cores, member)
        assert (one.quorum, one.leader, one.role) == (False, None, "follower")
        assert one.contact_age_seconds is not None
        assert 2.0 < one.contact_age_seconds < 4.0
        assert not by_id(one)["n3"].alive
    cores.stop("n1")
    cores["n1"].start()
    fresh = status(cores, "n1")
    assert fresh.contact_age_seconds is None
    assert by_id(fresh)["n2"].lag_ms is None


def test_a_wiped_disk_is_a_learner() -> None:
    """In its own eyes and in the others'."""
    cores = three()
    cores.stop("n2")
    cores["n2"].files.wipe()
    cores.start("n2")
    cores.run(0.5)
    assert status(cores, "n2").role == "learner"
    assert by_id(status(cores, "n1"))["n2"].role == "learner"


def test_a_full_disk_is_told() -> None:
    """Beside everything else."""
    cores = three()
    cores["n2"].files.full(0)
    cores["n1"].propose()
    cores.settle()
    assert status(cores, "n2").disk == "full"
    assert replace(status(cores, "n2"), disk="ok").disk == status(cores, "n1").disk


def test_every_counter_has_a_name() -> None:
    """Those of all parts, none of them negative."""
    cores = three()
    found = counters(cores["n1"].core)
    assert found == status(cores, "n1").counters
    assert found["became_leader"] == 1
    assert found["leader_changes_total"] >= 0
    assert {"held_acks", "snapshots_sent", "polls", "snapshots_made"} <= found.keys()
    assert min(found.values()) >= 0
