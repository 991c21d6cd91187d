"""What a majority must hold at the moment it matters, looked up on the members themselves.

Losing something takes a second fault at the right moment, after which it shows. These look
at once: an entry that a leader applies is durable on a majority of the disks that count,
and a leader has the durable votes of a majority. Whoever is dead is given the benefit of
the doubt, and so is what a disk held when its process began: it is written anew then.
"""

from collections.abc import Iterable

from reachnode.peers.raft.core import Core
from sim.member import SimMember


def holders_of_entry(
    leader: Core, members: Iterable[SimMember], index: int, term: int
) -> list[str]:
    """Return the members whose disks hold an entry, as far as the leader may count them."""
    assert leader.running is not None
    admissions = leader.standing.admissions
    state, notes = leader.running.machine.state, leader.running.journal.notes
    return [
        member.id
        for member in members
        # A dead one may have been wiped since it acknowledged: one disk less, which is borne.
        if not member.is_alive
        or (
            admissions.admitted(member.id, state, notes) == member.incarnation
            and _holds_entry(member, index, term)
        )
    ]


def holders_of_vote(members: Iterable[SimMember], leader: str, term: int) -> list[str]:
    """Return the members whose disks hold a vote for a leader in a term."""
    return [member.id for member in members if _holds_vote(member, leader, term)]


def _holds_entry(member: SimMember, index: int, term: int) -> bool:
    """Return whether an entry outlives a power loss of a member."""
    core = member.core
    if core is None or core.running is None:
        return True
    journal = core.running.journal
    if journal.base >= index:
        return True
    is_durable = journal.synced_index() >= index or member.loaded.end >= index
    return is_durable and journal.term_at(index) == term


def _holds_vote(member: SimMember, leader: str, term: int) -> bool:
    """Return whether a vote outlives a power loss of a member."""
    core = member.core
    if core is None or core.running is None or core.running.journal.getCurrentTerm() > term:
        return True
    journal = core.running.journal
    is_durable = journal.vote_number <= core.disk.done or member.loaded.term >= term
    return is_durable and journal.getCurrentTerm() == term and journal.getVotedForNodeId() == leader
