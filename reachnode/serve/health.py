"""Whether the process is alive, and whether the node can serve."""

from reachnode.serve.answers import Answer, document
from reachnode.serve.front import Front
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import lenient
from reachnode.serve.shapes import Alive, Readiness


@lenient({200: Alive})
async def show_health(_front: Front, _inquiry: Inquiry) -> Answer:
    """Answer that the process is alive."""
    return document(Alive(status="UP"))


@lenient({200: Readiness, 503: Readiness})
async def show_ready(front: Front, _inquiry: Inquiry) -> Answer:
    """Answer 200 when this node can serve, else 503 with the reason.

    Being cut off is no reason: reads and calls go on.
    """
    reason = why_not_ready(front)
    if reason is None:
        return document(Readiness(ready=True))
    waits_for = front.replica.status().founding_waits_for if reason == "founding" else ()
    content = Readiness(ready=False, reason=reason, waits_for=", ".join(waits_for))
    return document(content, status=503, headers={"Retry-After": "1"})


def why_not_ready(front: Front) -> str | None:
    """Return why this node can't serve, in one word; None when it can."""
    status = front.replica.status()
    if front.is_draining:
        return "shutting_down"
    if status.phase != "running":
        return status.phase
    if front.is_catching_up():
        return "loading"
    return {"ok": None, "full": "disk_full", "failed": "disk_failed"}[status.disk]
