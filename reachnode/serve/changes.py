"""Proposing a change for a client, with three outcomes: done, not done, unknown."""

from reachnode.errors import UnknownOutcome, error_of
from reachnode.model.membership import Unknown
from reachnode.registry.commands import Command
from reachnode.registry.outcomes import Applied, Refused
from reachnode.serve.front import CHANGE_SECONDS, Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.ports import Fate


async def change(front: Front, inquiry: Inquiry, command: Command) -> Applied:
    """Return what a change did.

    The client's `Idempotency-Key` is its request id, so that a repeat counts once.

    Raises:
        UnknownOutcome: It may or may not happen; a repeat under the same key is safe.
        ReachError: It was refused, under the code of the refusal.
    """
    fate = await front.replica.propose(
        command,
        deadline=front.sources.now() + CHANGE_SECONDS,
        request_id=inquiry.idempotency_key(),
    )
    return settled(fate)


def settled(fate: Fate) -> Applied:
    """Return what a change did, or raise what became of it instead."""
    if isinstance(fate, Refused):
        raise error_of(fate.code, fate.why, details=fate.details)
    if isinstance(fate, Unknown):
        raise UnknownOutcome(
            f"{fate.why}; ask again under the same Idempotency-Key",
            details={"cause": fate.why},
        )
    return fate
