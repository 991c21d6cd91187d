"""The cluster as this node sees it, and what an operator may change about it."""

from collections import Counter
from typing import Any, Literal

import msgspec
import trio

from reachnode.errors import NoQuorum, NotLeader
from reachnode.model.membership import MemberStatus
from reachnode.serve.agents import state_of
from reachnode.serve.answers import Answer, document
from reachnode.serve.changes import settled
from reachnode.serve.front import CHANGE_SECONDS, Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.reads import fresh_state
from reachnode.wire.documents import refuse_strays, to_noun


class MemberAction(msgspec.Struct, frozen=True, kw_only=True):
    """The body that changes a member."""

    action: Literal["replace"]
    id: str


async def show_cluster(front: Front, inquiry: Inquiry) -> Answer:
    """Answer members, leader, term and index as this node sees them, in any phase.

    Only a query that asks for freshness makes it wait or refuse.
    """
    if inquiry.query:
        await fresh_state(front, inquiry)
    status = front.replica.status()
    content: dict[str, Any] = {
        "cluster_id": status.cluster_id or None,
        "node": front.about.node_id,
        "client_address": front.about.client_address,
        "phase": status.phase,
        "role": status.role,
        "leader": status.leader,
        "term": status.term,
        "index": status.index,
        "commit_index": status.commit_index,
        "synced_index": status.synced_index,
        "quorum": status.quorum,
        "disk": status.disk,
        "level": status.level,
        "members": [shown(member) for member in status.members],
        "agents": dict(agents_by_state(front)),
    }
    if status.founding_waits_for:
        content["founding_waits_for"] = list(status.founding_waits_for)
    return document(content)


def shown(member: MemberStatus) -> dict[str, object]:
    """Return one member as clients see it."""
    return {
        "id": member.id,
        "address": member.address,
        "role": member.role,
        "alive": member.alive,
        "index": member.index,
        "lag_ms": member.lag_ms,
    }


def agents_by_state(front: Front) -> Counter[str]:
    """Return how many instances are in each state; none while the table isn't loaded."""
    if front.replica.status().phase != "running":
        return Counter()
    return Counter(state_of(record) for record in front.replica.state.agents.values())


async def change_members(front: Front, inquiry: Inquiry) -> Answer:
    """Admit the disk that a member came back with, in place of the one it lost."""
    body = inquiry.document()
    refuse_strays(body, MemberAction)
    action = to_noun(body, MemberAction)
    deadline = front.sources.now() + CHANGE_SECONDS
    applied = settled(await front.replica.replace_member(action.id, deadline))
    return document({"id": action.id, "index": applied.index})


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
    return document({"node": front.about.node_id, "leader": front.replica.status().leader})
