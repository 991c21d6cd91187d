"""Discovery: who can do what now, or why nobody can.

    question -> what it demands -> everybody who offers it -> candidates and exclusions
                                            |                         |
                                  nobody: close names        no candidate: the gap

An answer without candidates is a gap report, and no error: that it names the error which a
call would get now.
"""

from collections import Counter
from collections.abc import Callable

from reachnode.errors import ReachError, error_of
from reachnode.model.discovery import (
    REASONS_OF_DECLARATION,
    Exclusion,
    Found,
    Gap,
    Question,
    Vantage,
)
from reachnode.registry.queries import records
from reachnode.registry.seen import LivenessOf
from reachnode.registry.state import State
from reachnode.routing.match import demand_of
from reachnode.routing.reachable import reachable
from reachnode.wire.discovery import write_gap

EXCLUDED_SHOWN_MAX = 100
"""Exclusions that are told one by one; `reasons` counts all."""


def discover(
    state: State,
    question: Question,
    *,
    liveness_of: LivenessOf,
    here: Vantage,
    close_names: Callable[[str], tuple[str, ...]],
) -> Found:
    """Return who may be asked, the best first, or why nobody may.

    The cost goes by the instances that offer the capability.

    Args:
        state: Who offers what.
        question: What is asked.
        liveness_of: Tells how each instance is.
        here: From where they are looked at.
        close_names: Gives declared names that read like one that isn't.

    Raises:
        InvalidRequest: The question names no capability, or no readable version range.
    """
    demand = demand_of(question)
    name = demand.capability
    offering = records(state, capability=name)
    if not offering:
        gap = Gap(
            code="unknown_capability",
            capability=name,
            missing=f"no registered instance declares {name}",
            close_names=close_names(name),
        )
        return Found(candidates=(), excluded=(), gap=gap)
    found = reachable(offering, demand, liveness_of=liveness_of, here=here, prefer=question.prefer)
    shown = found.excluded[:EXCLUDED_SHOWN_MAX]
    return Found(
        candidates=found.candidates[: question.limit],
        excluded=shown if question.explain else (),
        gap=None if found.candidates else gap_of(name, found.excluded),
    )


def gap_of(name: str, excluded: tuple[Exclusion, ...]) -> Gap:
    """Return the gap that a capability has when all who offer it are excluded.

    Where all are excluded by what they declare, waiting won't help: nobody matches.
    """
    assert excluded
    reasons = Counter[str](one.reason for one in excluded)
    told = ", ".join(f"{count} by {reason}" for reason, count in sorted(reasons.items()))
    is_mismatch = REASONS_OF_DECLARATION.issuperset(reasons)
    return Gap(
        code="no_matching_agent" if is_mismatch else "no_reachable_agent",
        capability=name,
        missing=f"{name} is declared, and every instance is ruled out: {told}",
        excluded=excluded[:EXCLUDED_SHOWN_MAX],
        reasons=dict(sorted(reasons.items())),
    )


def gap_error(gap: Gap) -> ReachError:
    """Return the error of a call that finds this gap."""
    hint = f"; did you mean {gap.close_names[0]}?" if gap.close_names else ""
    return error_of(gap.code, gap.missing + hint, details={"gap": write_gap(gap)})
