"""What a core says of itself: the status that the HTTP front and the command line show."""

from collections.abc import Mapping

from reachnode.model.membership import MemberStatus, Phase, ReplicaStatus, Role
from reachnode.peers.raft.core import Core, Running
from reachnode.peers.raft.membership import Membership


def describe(
    core: Core | None, membership: Membership, addresses: Mapping[str, str]
) -> ReplicaStatus:
    """Return a node's standing at this moment.

    Args:
        core: None while the disk is being read.
        membership: Who is who.
        addresses: Peer address of every member.
    """
    if core is None or core.running is None:
        return _outside(core, membership, addresses)
    raft = core.running
    engine = raft.engine
    age = _contact_age(core)
    return ReplicaStatus(
        member_id=membership.me,
        cluster_id=core.standing.identity.cluster_id,
        phase="running",
        role=_role(core),
        leader=_leader(core),
        term=engine.term,
        index=raft.machine.index,
        commit_index=engine.commit_index,
        log_first=raft.journal.base,
        log_last=raft.journal.end,
        synced_index=raft.journal.synced_index(),
        quorum=age is not None and age <= core.settings.contact_seconds,
        contact_age_seconds=age,
        disk=core.disk.condition.value,
        level=raft.machine.state.level,
        members=tuple(_member(core, member, addresses) for member in sorted(membership.members)),
        counters=counters(core),
        founding_waits_for=(),
    )


def _outside(
    core: Core | None, membership: Membership, addresses: Mapping[str, str]
) -> ReplicaStatus:
    """Return the standing of a node that belongs to no cluster yet, or reads its disk."""
    phase: Phase = "loading" if core is None or core.standing.founding is None else "founding"
    connected = core.standing.epochs if core is not None else {}
    waits = (
        core.standing.founding.waits_for()
        if core is not None and core.standing.founding is not None
        else ()
    )
    return ReplicaStatus(
        member_id=membership.me,
        cluster_id="",
        phase=phase,
        role="learner",
        leader=None,
        term=0,
        index=0,
        commit_index=0,
        log_first=0,
        log_last=0,
        synced_index=0,
        quorum=False,
        contact_age_seconds=None,
        disk=core.disk.condition.value if core is not None else "ok",
        level=1,
        members=tuple(
            MemberStatus(
                id=member,
                address=addresses[member],
                role="learner",
                alive=member in connected or member == membership.me,
                index=None,
                lag_ms=None,
            )
            for member in sorted(membership.members)
        ),
        counters={},
        founding_waits_for=waits,
    )


def _role(core: Core) -> Role:
    """Return this node's own role."""
    raft = _raft(core)
    if raft.engine.is_leader:
        return "leader"
    return "follower" if core.counts(core.membership.me) else "learner"


def _leader(core: Core) -> str | None:
    """Return who leads, as far as this node was told lately."""
    raft = _raft(core)
    if raft.engine.is_leader:
        return core.membership.me
    leader = core.reachable_leader()
    return leader.member if leader is not None else None


def _contact_age(core: Core) -> float | None:
    """Return seconds since a leader was heard, or since a majority answered this one."""
    led_at = _raft(core).engine.majority_heard_at()
    led_age = float("inf") if led_at is None else max(0.0, core.sources.now() - led_at)
    if _raft(core).engine.is_leader:
        return led_age
    age = min(led_age, core.inbound.quiet_seconds())
    return None if age == float("inf") else age


def _member(core: Core, member: str, addresses: Mapping[str, str]) -> MemberStatus:
    """Return one voter as this node sees it."""
    raft = _raft(core)
    me = core.membership.me
    if member == me:
        index: int | None = raft.machine.index
        lag_ms: int | None = 0
    else:
        index = raft.engine.match_index(member) if raft.engine.is_leader else None
        heard_at = core.heard_at.get(member)
        lag_ms = None if heard_at is None else int((core.sources.now() - heard_at) * 1000)
    role: Role = "follower"
    if member == _leader(core):
        role = "leader"
    elif member == me or member in core.standing.greets:
        role = "follower" if core.counts(member) else "learner"
    return MemberStatus(
        id=member,
        address=addresses[member],
        role=role,
        alive=member == me or member in core.standing.greets,
        index=index,
        lag_ms=lag_ms,
    )


def counters(core: Core) -> dict[str, int]:
    """Return every counter of a core, by name."""
    return {
        **core.inbound.counters,
        **core.transfers.counters,
        **core.held.counters,
        **{f"became_{role}": count for role, count in sorted(core.role_changes.items())},
        "leader_changes_total": core.inbound.leader_changes_count,
        "polls": core.campaign.ballot.polls_count,
        "proposals_rescued": core.proposals.rescued_count,
        "proposals_retried": core.proposals.retried_count,
        "snapshots_made": core.upkeep.snapshots_count,
    }


def _raft(core: Core) -> Running:
    """Return the parts of a running core."""
    assert core.running is not None
    return core.running
