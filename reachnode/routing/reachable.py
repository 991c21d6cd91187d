"""Who may be asked, and why not each other one: one answer for a choice and for a gap.

Every instance that offers the capability becomes a candidate or an exclusion. Silence alone
excludes nobody: a suspect comes after the healthy ones, and one of which nothing was heard
yet after those.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from reachnode.model.capabilities import Capability
from reachnode.model.discovery import (
    HINTS_MAX,
    Candidate,
    Exclusion,
    Pairs,
    Reason,
    Seen,
    Vantage,
)
from reachnode.model.liveness import Use
from reachnode.registry.queries import capability_of
from reachnode.registry.seen import LivenessOf, seen_as
from reachnode.registry.state import Record
from reachnode.routing.match import Demand, misfit, preferences_met

LOAD_UNREPORTED = 0.5
USES: tuple[Use, ...] = ("full", "reduced", "last", "after_suspects")
"""How far routing goes with those that may be asked, best first."""
STATE_PARTS: Mapping[Use, float] = MappingProxyType(
    {use: round(1 - at / (len(USES) - 1), 3) for at, use in enumerate(USES)}
)
"""What a state is worth, by the use that is made of it: 1 for the best, 0 for the last."""
WEIGHTS = MappingProxyType({"state": 0.80, "preferred": 0.19, "free": 0.01})
"""Each part outweighs all after it, so that the score falls as the order does."""
assert WEIGHTS["state"] / (len(USES) - 1) > WEIGHTS["preferred"] + WEIGHTS["free"]
assert WEIGHTS["preferred"] / HINTS_MAX > WEIGHTS["free"]

NEVER = frozenset({"down", "updating", "disabled"})
ADDRESSLESS = frozenset({"link", "pull"})
"""Protocols in which the agent comes to the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """Who may be asked, the best first, and who not, by `agent_id`."""

    candidates: tuple[Candidate, ...]
    excluded: tuple[Exclusion, ...]


def reachable(
    records: Iterable[Record],
    demand: Demand,
    *,
    liveness_of: LivenessOf,
    here: Vantage,
    prefer: Pairs = (),
) -> Reachable:
    """Return what becomes of each instance that offers the capability.

    Args:
        records: Those that offer it, sorted by `agent_id`.
        demand: What they must declare.
        liveness_of: Tells how each is.
        here: From where they would be asked.
        prefer: What puts one before its equals, at most `HINTS_MAX`.
    """
    candidates, excluded = [], []
    for record in records:
        instance = record.instance
        capability = capability_of(instance, demand.capability)
        assert capability is not None
        seen = seen_as(record, liveness_of)
        why = misfit(instance, capability, demand) or out_of_reach(seen, capability, here)
        if why is None:
            candidates.append(candidate(seen, capability, prefer))
        else:
            reason, detail = why
            excluded.append(
                Exclusion(
                    agent_id=instance.agent_id, agent=instance.agent, reason=reason, detail=detail
                )
            )
    return Reachable(candidates=tuple(sorted(candidates, key=rank)), excluded=tuple(excluded))


def out_of_reach(seen: Seen, capability: Capability, here: Vantage) -> tuple[Reason, str] | None:
    """Return why an instance can't be asked from here now, None if it can."""
    if seen.state in NEVER or seen.liveness.use == "never":
        return "state", f"it is {seen.state}"
    if capability.protocol in ADDRESSLESS:
        return None
    family = seen.instance.address_type
    if family in {"ipv4", "ipv6"} and family not in here.families:
        return "address_family", f"it has {family} only, which {here.node_id} can't reach"
    if here.node_id in seen.liveness.unreachable_from:
        return "unreachable_from_here", f"{here.node_id} can't reach it, others may"
    return None


def candidate(seen: Seen, capability: Capability, prefer: Pairs) -> Candidate:
    """Return an instance with its score."""
    load = seen.liveness.load
    met = preferences_met(seen.instance, prefer)
    parts = {
        "state": STATE_PARTS[seen.liveness.use],
        "preferred": met / len(prefer) if prefer else 1.0,
        "free": 1 - min(max(LOAD_UNREPORTED if load is None else load, 0.0), 1.0),
    }
    score = sum(weight * parts[name] for name, weight in WEIGHTS.items())
    return Candidate(seen=seen, capability=capability, score=round(score, 6), parts=parts)


def rank(one: Candidate) -> tuple[float, float, float, str]:
    """Return what sorts the better candidate first; equals stand by `agent_id`."""
    parts = one.parts
    return -parts["state"], -parts["preferred"], -parts["free"], one.agent_id
