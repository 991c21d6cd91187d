"""What all that is said of an instance amounts to: its state, and why.

    what stands                                        state       used
    ─────────────────────────────────────────────────  ──────────  ──────────────────────────
    the log says updating, disabled, down              the same    never
    its home hears it                                  healthy     full
    its home doesn't, for a lease                      suspect     last
      … nor many others                                suspect     reduced: the home is in doubt
    its home is silent itself, a node reaches it       healthy     full
    its home is silent itself, its probes fail         suspect     last
    its home is silent itself, nobody else knows       as it was   reduced
    nobody has a lease, a node reaches it              healthy     full
    nobody has a lease, probes fail                    suspect     last
    nobody knows anything                              pending     after the suspects
    its state flips again and again                    suspect     last

First what was announced or agreed, then heartbeats, then probes; of several homes the one that
heard the latest beat. Probes alone never make a beating instance worse than unreachable from
where they came. Nothing here asks the time: whatever goes with time changed before, by a sweep.
"""

from collections.abc import Container, Sequence
from dataclasses import replace

from reachnode.liveness.hearsay import Sight
from reachnode.model.liveness import Basis, InstanceState, Liveness, Use
from reachnode.registry.state import Record

UNHEARD = "nothing was heard of it yet"
ANNOUNCED = {
    "updating": "it is being updated",
    "disabled": "an operator disabled it",
    "down": "probes failed and nobody heard it",
}


def joined(
    record: Record,
    sights: Sequence[Sight],
    *,
    me: str,
    live: Container[str],
    doubted: Container[str],
) -> Liveness:
    """Return what an instance's state is, and what that stands on.

    Args:
        record: What the log says of it.
        sights: What each node knows of it, in any order.
        me: This node.
        live: The nodes that are being heard, this one included.
        doubted: Homes that lost so many at once that they are in doubt themselves.
    """
    incarnation = record.instance.incarnation
    fitting = [one for one in sights if one.incarnation == incarnation]
    fitting.sort(key=lambda one: one.node)
    lease = _holding(fitting, live)
    failing = [one.node for one in fitting if one.reach == "failed" and one.node in live]
    reaching = [one.node for one in fitting if one.reach == "good" and one.node in live]
    is_current = lease is not None and lease.node in live
    is_beating = lease is not None and is_current and not lease.is_suspect
    if lease and is_current:
        state, why, use, witness = _by_home(lease, is_doubted=lease.node in doubted)
    else:
        state, why, use, witness = _by_probes(failing, reaching, lease)
    if record.standing:
        state, why, use = record.standing, ANNOUNCED[record.standing], "never"
    return Liveness(
        agent_id=record.instance.agent_id,
        incarnation=incarnation,
        state=state,
        why=why,
        use=use,
        basis=_basis(witness, me),
        home=lease.node if lease else None,
        heard_at=lease.heard_at if lease and is_current else None,
        load=lease.load if lease and is_current else None,
        in_flight=lease.in_flight if lease and is_current else None,
        unreachable_from=tuple(failing),
        is_beating=is_beating,
        fault=next((one.fault for one in fitting if one.fault and one.node in live), ""),
    )


def _holding(sights: Sequence[Sight], live: Container[str]) -> Sight | None:
    """Return the lease that holds: the latest, of a live node, and none that ran out beside it.

    One that ran out never overrules one that holds, whatever beats were counted where.
    """
    return max(
        (one for one in sights if one.beat),
        key=lambda one: (one.node in live, not one.is_suspect, one.beat, one.node),
        default=None,
    )


def held(seen: Liveness) -> Liveness:
    """Return what is made of an instance whose state flips again and again."""
    if seen.state != "healthy":
        return seen
    return replace(seen, state="suspect", why="its state flips again and again", use="last")


_Judgment = tuple[InstanceState, str, Use, str]
"""State, reason, use, and the node whose word it is."""


def _by_home(lease: Sight, *, is_doubted: bool) -> _Judgment:
    """Judge by a home that is heard."""
    home = lease.node
    if not lease.is_suspect:
        return "healthy", f"it beats at {home}", "full", home
    if is_doubted:
        return "suspect", f"{home} lost many at once and is in doubt itself", "reduced", home
    return "suspect", f"it fell silent at {home}", "last", home


def _by_probes(failing: list[str], reaching: list[str], lease: Sight | None) -> _Judgment:
    """Judge without a home that is heard."""
    if reaching:
        return "healthy", f"{reaching[0]} reaches it", "full", reaching[0]
    if failing:
        return "suspect", f"{failing[0]} can't reach it", "last", failing[0]
    if lease:
        why = f"{lease.node}, where it beat, is silent itself"
        if lease.is_suspect:
            return "suspect", why, "last", lease.node
        return "healthy", why, "reduced", lease.node
    return "pending", UNHEARD, "after_suspects", ""


def _basis(witness: str, me: str) -> Basis:
    if not witness:
        return "none"
    return "own" if witness == me else "hearsay"
