"""The cluster as this node sees it, and what an operator may change about it."""

import trio

from reachnode.errors import (
    ClusterChanging,
    NoQuorum,
    NotLeader,
    RevisionConflict,
    UnknownMember,
)
from reachnode.model.membership import MemberStatus
from reachnode.serve.answers import Answer, document
from reachnode.serve.changes import settled
from reachnode.serve.front import CHANGE_SECONDS, Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import BODIES, CHANGES, READS, operation
from reachnode.serve.reads import READ_QUERY, fresh_state
from reachnode.serve.shapes import (
    ClusterShown,
    MemberAction,
    MemberChanged,
    MemberShown,
    Transferred,
)
from reachnode.wire.documents import refuse_strays, to_noun


@operation(gives={200: ClusterShown}, refuses=READS, query=READ_QUERY)
async def show_cluster(front: Front, inquiry: Inquiry) -> Answer:
    """Answer members, leader, term and index as this node sees them, in any phase.

    Only a query that asks for freshness makes it wait or refuse.
    """
    if inquiry.query:
        await fresh_state(front, inquiry)
    status = front.replica.status()
    content = ClusterShown(
        cluster_id=status.cluster_id or None,
        node=front.about.node_id,
        client_address=front.about.client_address,
        phase=status.phase,
        role=status.role,
        leader=status.leader,
        term=status.term,
        index=status.index,
        commit_index=status.commit_index,
        synced_index=status.synced_index,
        quorum=status.quorum,
        disk=status.disk,
        level=status.level,
        members=[shown(member) for member in status.members],
        agents=agents_by_state(front),
        founding_waits_for=list(status.founding_waits_for),
    )
    return document(content)


def shown(member: MemberStatus) -> MemberShown:
    """Return one member as clients see it."""
    return MemberShown(
        id=member.id,
        address=member.address,
        role=member.role,
        alive=member.alive,
        index=member.index,
        lag_ms=member.lag_ms,
    )


def agents_by_state(front: Front) -> dict[str, int]:
    """Return how many instances are in each state; none while the table isn't loaded."""
    if front.replica.status().phase != "running":
        return {}
    return {str(state): count for state, count in front.sights.counts.items()}


@operation(
    takes=MemberAction,
    gives={200: MemberChanged},
    refuses=(*BODIES, *CHANGES, UnknownMember, ClusterChanging, RevisionConflict),
)
async def change_members(front: Front, inquiry: Inquiry) -> Answer:
    """Admit the disk that a member came back with, in place of the one it lost."""
    body = inquiry.document()
    refuse_strays(body, MemberAction)
    action = to_noun(body, MemberAction)
    deadline = front.sources.now() + CHANGE_SECONDS
    applied = settled(await front.replica.replace_member(action.id, deadline))
    return document(MemberChanged(id=action.id, index=applied.index))


@operation(gives={200: Transferred}, refuses=(NotLeader, NoQuorum))
async def transfer(front: Front, _inquiry: Inquiry) -> Answer:
    """Hand leadership to another member.

    Raises:
        NotLeader: This node doesn't lead.
        NoQuorum: No other member was ready to take over.
    """
    before = front.replica.status()
    if before.role != "leader":
        raise NotLeader(
            f"{front.about.node_id} doesn't lead; ask {before.leader or 'again in a second'}",
            details={"leader": before.leader},
        )
    is_handed_over = False
    if front.others_alive():
        with trio.move_on_after(CHANGE_SECONDS):
            is_handed_over = await front.replica.transfer_leadership()
    if not is_handed_over:
        raise NoQuorum("no other member was ready to take over; this node still leads")
    status = front.replica.status()
    return document(Transferred(node=front.about.node_id, leader=status.leader))
