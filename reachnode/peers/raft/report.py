"""What a core says of itself: the status that the HTTP front and the command line show."""

from collections.abc import Mapping

from reachnode.model.membership import MemberStatus, Phase, ReplicaStatus, Role
from reachnode.peers.raft.core import Core, Membership


def describe(
    core: Core | None, membership: Membership, addresses: Mapping[str, str]
) -> ReplicaStatus:
    """Return a node's standing at this moment.

    Args:
        core: None while the disk is being read.
        membership: Who is who.
        addresses: Peer address of every member.
    """
    if core is None or core.engine is None or core.journal is None or core.machine is None:
        return _outside(core, membership, addresses)
    engine = core.engine
    age = _contact_age(core)
    return ReplicaStatus(
        member_id=membership.me,
        cluster_id=core.identity.cluster_id,
        phase="running",
        role=_role(core),
        leader=_leader(core),
        term=engine.term,
        index=core.machine.index,
        commit_index=engine.commit_index,
        log_first=core.journal.base,
        log_last=core.journal.end,
        synced_index=core.journal.synced_index(),
        quorum=age is not None and age <= core.settings.contact_seconds,
        contact_age_seconds=age,
        disk=core.disk.condition.value,
        level=core.machine.state.level,
        members=tuple(_member(core, member, addresses) for member in sorted(membership.members)),
        counters=counters(core),
        founding_waits_for=(),
    )


def _outside(
    core: Core | None, membership: Membership, addresses: Mapping[str, str]
) -> ReplicaStatus:
    """Return the standing of a node that belongs to no cluster yet, or reads its disk."""
    phase: Phase = "loading" if core is None or core.founding is None else "founding"
    connected = core.epochs if core is not None else {}
    waits = core.founding.waits_for() if core is not None and core.founding is not None else ()
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
    assert core.engine is not None
    if core.engine.is_leader:
        return "leader"
    return "follower" if core.counts(core.membership.me) else "learner"


def _leader(core: Core) -> str | None:
    """Return who leads, as far as this node was told lately."""
    assert core.engine is not None
    if core.engine.is_leader:
        return core.membership.me
    leader = core.reachable_leader()
    return leader.member if leader is not None else None


def _contact_age(core: Core) -> float | None:
    """Return seconds since a leader was heard, or since a majority answered this one."""
    assert core.engine is not None
    if core.engine.is_leader:
        return max(0.0, core.sources.now() - core.engine.majority_heard_at())
    quiet = core.inbound.quiet_seconds()
    return None if quiet == float("inf") else quiet


def _member(core: Core, member: str, addresses: Mapping[str, str]) -> MemberStatus:
    """Return one voter as this node sees it."""
    assert core.engine is not None
    assert core.machine is not None
    me = core.membership.me
    if member == me:
        index: int | None = core.machine.index
        lag_ms: int | None = 0
    else:
        index = core.engine.match_index(member) if core.engine.is_leader else None
        heard_at = core.heard_at.get(member)
        lag_ms = None if heard_at is None else int((core.sources.now() - heard_at) * 1000)
    role: Role = "follower"
    if member == _leader(core):
        role = "leader"
    elif member == me or member in core.greets:
        role = "follower" if core.counts(member) else "learner"
    return MemberStatus(
        id=member,
        address=addresses[member],
        role=role,
        alive=member == me or member in core.greets,
        index=index,
        lag_ms=lag_ms,
    )


def counters(core: Core) -> dict[str, int]:
    """Return every counter of a core, by name."""
    return {
        **core.inbound.counters,
        **core.held.counters,
        **{f"became_{role}": count for role, count in sorted(core.role_changes.items())},
        "leader_changes_total": core.inbound.leader_changes_count,
        "polls": core.inbound.ballot.polls_count,
        "proposals_open": core.proposals.open_count,
        "proposals_retried": core.proposals.retried_count,
        "snapshots_made": core.snapshots_made_count,
    }
