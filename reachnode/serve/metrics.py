"""Figures in Prometheus' text format: consensus, peer links, this front."""

from collections import Counter
from collections.abc import Iterator, Mapping

import trio

from reachnode.model.membership import SYNC_BOUNDS_SECONDS, Syncs
from reachnode.registry.seen import seen_as
from reachnode.serve.answers import Answer
from reachnode.serve.front import Front
from reachnode.serve.health import why_not_ready
from reachnode.serve.inquiry import Inquiry
from reachnode.serve.operations import operation

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CAPABILITIES_MAX = 200
"""Capabilities with figures of their own."""
OTHERS = "(others)"
"""Not a capability: the ones beyond."""
SLICE = 200
"""Instances looked at in one turn."""


@operation(gives={200: str})
async def show_metrics(front: Front, _inquiry: Inquiry) -> Answer:
    """Answer every figure of this node."""
    counted = await instances_counted(front)
    text = "".join([*lines(front), *instances(counted)])
    return Answer(body=text.encode(), content_type=CONTENT_TYPE)


def lines(front: Front) -> Iterator[str]:
    """Yield the page, one metric after the other."""
    status = front.replica.status()
    build = {"version": front.about.version, "node": front.about.node_id}
    yield from gauge("build_info", "Version of this node.", 1, build)
    yield from gauge("ready", "Whether this node can serve.", why_not_ready(front) is None)
    yield from gauge("raft_term", "Term of the consensus engine.", status.term)
    yield from gauge("raft_commit_index", "Last committed log index.", status.commit_index)
    yield from gauge("raft_applied_index", "Last applied log index.", status.index)
    yield from gauge("raft_synced_index", "Last log index durable here.", status.synced_index)
    yield from gauge(
        "raft_apply_lag",
        "Entries committed and not applied yet.",
        max(0, status.commit_index - status.index),
    )
    yield from gauge(
        "raft_log_entries",
        "Entries in the journal.",
        max(0, status.log_last - status.log_first + 1),
    )
    yield from gauge("raft_is_leader", "Whether this node leads.", status.role == "leader")
    yield from gauge("raft_has_quorum", "Whether a majority is in contact.", status.quorum)
    yield from gauge("raft_level", "Cluster level.", status.level)
    yield from gauge("stale_seconds", "Since the last contact with a leader.", stale(front))
    yield from sync_times(status.syncs)
    yield from counts("raft_", status.counters)
    yield from counts("link_", front.link_counters())
    yield from counts("gossip_", front.sights.counters)
    yield from gauge("watchers", "Clients that watch changes.", front.herald.watchers_count)
    yield from counts("watches_", front.herald.counters)
    yield from counts("", {"stale_answers": front.stale_answers_count})
    yield from gauge("http_connections", "Client connections open.", front.connections_count)
    http_counters = {
        "accept_failures": front.accept_failures(),
        "streams_slow": front.streams_slow_count,
    }
    yield from counts("http_", http_counters)
    yield from answers(front)


async def instances_counted(front: Front) -> Counter[tuple[str, str]]:
    """Return how many instances offer each capability in each state, counted in slices.

    Beyond so many capabilities, by name, they are counted together: a page of figures doesn't
    grow with whatever is registered.
    """
    counted: Counter[tuple[str, str]] = Counter()
    if front.replica.status().phase != "running":
        return counted
    state, looked = front.replica.state, 0
    for number, name in enumerate(sorted(state.capabilities)):
        label = name if number < CAPABILITIES_MAX else OTHERS
        for agent_id in state.capabilities[name]:
            seen = seen_as(state.agents[agent_id], front.sights.of)
            counted[label, seen.state] += 1
            looked += 1
            if looked % SLICE == 0:
                await trio.lowlevel.checkpoint()
    return counted


def instances(counted: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield how many instances there are, by capability and state."""
    name = "reachnode_instances"
    yield f"# HELP {name} Instances that offer a capability, by state.\n# TYPE {name} gauge\n"
    for (capability, state), count in sorted(counted.items()):
        yield f"{name}{labelled({'capability': capability, 'state': state})} {count}\n"


def stale(front: Front) -> float:
    """Return the seconds since the last contact with a leader."""
    return front.stale_ms() / 1000


def gauge(
    name: str, text: str, value: float, labels: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield a figure that goes up and down."""
    yield f"# HELP reachnode_{name} {text}\n# TYPE reachnode_{name} gauge\n"
    yield f"reachnode_{name}{labelled(labels or {})} {number(value)}\n"


def number(value: float) -> str:
    """Return a figure in full: an index has more digits than a short form shows."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def sync_times(syncs: Syncs) -> Iterator[str]:
    """Yield how long the disk took, as a histogram."""
    name = "reachnode_raft_fsync_seconds"
    yield f"# HELP {name} How long the disk took to make writes durable.\n"
    yield f"# TYPE {name} histogram\n"
    running = 0
    for bound, count in zip((*SYNC_BOUNDS_SECONDS, "+Inf"), syncs.counts, strict=True):
        running += count
        yield f"{name}_bucket{labelled({'le': str(bound)})} {running}\n"
    yield f"{name}_sum {number(syncs.total_seconds)}\n{name}_count {running}\n"


def counts(prefix: str, counters: Mapping[str, int]) -> Iterator[str]:
    """Yield counters that a room keeps under names of its own."""
    for counter in sorted(counters):
        name = f"reachnode_{prefix}{counter.removesuffix('_total')}_total"
        yield f"# TYPE {name} counter\n{name} {counters[counter]}\n"


def answers(front: Front) -> Iterator[str]:
    """Yield how many answers were given, by status."""
    name = "reachnode_http_answers_total"
    yield f"# HELP {name} Answers given, by status.\n# TYPE {name} counter\n"
    for status, count in sorted(front.answers_count.items()):
        yield f"{name}{labelled({'status': str(status)})} {count}\n"


def labelled(labels: Mapping[str, str]) -> str:
    """Return labels in braces, escaped; nothing when there are none."""
    if not labels:
        return ""
    said = (f'{name}="{escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(said) + "}"


def escaped(text: str) -> str:
    """Return a label's value as the format wants it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
