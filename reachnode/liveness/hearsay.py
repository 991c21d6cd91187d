"""What other nodes say of instances, and how far that can be believed.

Of two reports by one node the later holds: the later start of the node first, then the larger
sequence. So it doesn't matter in which order reports come, or how often.

A node that falls silent takes nothing with it. What it said last stands, but ages are unknown
from then on, not old, until the node speaks again, starts anew or leaves the cluster.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from reachnode.model.liveness import Delta, Reach, Report, clamped_count, clamped_load

SILENT_SECONDS = 3.0
"""A node is silent when nothing came from it for six of its deltas (one each 500 ms)."""
SIGHTS_MAX = 50_000
"""How many instances are kept of what one node says; beyond, the oldest word is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What one node knows of an instance, with its times on this node's clock."""

    node: str
    incarnation: int
    beat: int = 0
    heard_at: float = 0.0
    """When the instance beat last; means nothing without a lease."""
    is_suspect: bool = False
    load: float | None = None
    in_flight: int | None = None
    self_check: bool | None = None
    reach: Reach = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """How many leases a node holds, and how many of them have run out."""

    leases: int = 0
    suspects: int = 0

    def with_sight(self, sight: Sight, *, by: int) -> "Tally":
        """Return the tally after a sight came (`by=1`) or went (`by=-1`)."""
        if sight.beat == 0:
            return self
        return Tally(self.leases + by, self.suspects + by * sight.is_suspect)


@dataclass(slots=True, kw_only=True)
class _Voice:
    """One node, and what it said in its present life."""

    boot: int
    sequence: int = 0
    heard_at: float = 0.0
    is_live: bool = False
    tally: Tally = Tally()
    sights: OrderedDict[str, tuple[int, Sight]] = field(default_factory=OrderedDict)


class Hearsay:
    """What this node's peers say."""

    def __init__(self) -> None:
        self._voices: dict[str, _Voice] = {}

    def __len__(self) -> int:
        return sum(len(voice.sights) for voice in self._voices.values())

    @property
    def live(self) -> tuple[str, ...]:
        """The nodes that are being heard, sorted."""
        return tuple(sorted(node for node, voice in self._voices.items() if voice.is_live))

    def is_live(self, node: str) -> bool:
        """Return whether a node is being heard."""
        voice = self._voices.get(node)
        return voice is not None and voice.is_live

    def heard_up_to(self, node: str) -> tuple[int, int]:
        """Return boot and sequence of the last delta of a node, both 0 before the first.

        Whoever meets the node again asks it to go on from there.
        """
        voice = self._voices.get(node)
        return (voice.boot, voice.sequence) if voice else (0, 0)

    def tally(self, node: str) -> Tally:
        """Return how many leases a node says it holds, and how many ran out."""
        voice = self._voices.get(node)
        return voice.tally if voice else Tally()

    def about(self, agent_id: str) -> tuple[Sight, ...]:
        """Return what each node knows of an instance, silent nodes included, by their names."""
        found = []
        for node in sorted(self._voices):
            said = self._voices[node].sights.get(agent_id)
            if said is not None:
                found.append(said[1])
        return tuple(found)

    def beat_of(self, agent_id: str, incarnation: int) -> int:
        """Return the latest beat of an incarnation that any node told of, 0 if none did."""
        beats = [one.beat for one in self.about(agent_id) if one.incarnation == incarnation]
        return max(beats, default=0)

    def may_beat(self, agent_id: str, incarnation: int, *, since: float) -> bool:
        """Return whether an instance beats, for all that is known, to a node now silent.

        Args:
            agent_id: The instance.
            incarnation: Which of its registrations.
            since: Nodes that were heard last before this moment don't count.
        """
        for voice in self._voices.values():
            said = voice.sights.get(agent_id)
            if said is None or voice.is_live or voice.heard_at < since:
                continue
            sight = said[1]
            if sight.incarnation == incarnation and sight.beat and not sight.is_suspect:
                return True
        return False

    def of(self, node: str) -> tuple[str, ...]:
        """Return the instances a node has said something of."""
        voice = self._voices.get(node)
        return tuple(voice.sights) if voice else ()

    def take(self, delta: Delta, *, now: float) -> tuple[str, ...]:
        """Take what a node tells; return the instances of which that is news.

        Who the delta is from was made sure of by the link it came over.
        """
        voice = self._voices.get(delta.node)
        if voice is None:
            voice = self._voices[delta.node] = _Voice(boot=delta.boot)
        if delta.boot < voice.boot:
            return ()
        news: dict[str, None] = {}
        if delta.boot > voice.boot:
            news.update(dict.fromkeys(voice.sights))
            voice = self._voices[delta.node] = _Voice(boot=delta.boot)
        if not voice.is_live:
            news.update(dict.fromkeys(voice.sights))
        voice.is_live = True
        voice.heard_at = max(voice.heard_at, now)
        voice.sequence = max(voice.sequence, delta.sequence)
        for report in delta.reports:
            if _put(voice, report.agent_id, report.sequence, seen(delta.node, report, now=now)):
                news[report.agent_id] = None
        while len(voice.sights) > SIGHTS_MAX:
            agent_id, (_, sight) = voice.sights.popitem(last=False)
            voice.tally = voice.tally.with_sight(sight, by=-1)
            news[agent_id] = None
        return tuple(news)

    def silenced(self, now: float) -> tuple[str, ...]:
        """Return the nodes that have fallen silent since this was last asked."""
        found = []
        for node in sorted(self._voices):
            voice = self._voices[node]
            if voice.is_live and now >= voice.heard_at + SILENT_SECONDS:
                voice.is_live = False
                found.append(node)
        return tuple(found)

    def forget(self, agent_id: str) -> None:
        """Drop an instance that isn't registered any more."""
        for voice in self._voices.values():
            said = voice.sights.pop(agent_id, None)
            if said is not None:
                voice.tally = voice.tally.with_sight(said[1], by=-1)

    def retain(self, nodes: Collection[str]) -> tuple[str, ...]:
        """Drop all nodes but these; return the instances of which they had said something.

        For members that left, and for one whose clock was put back so far that its new
        start looks older: its link knows that it is new.
        """
        gone: Iterable[str] = [node for node in sorted(self._voices) if node not in nodes]
        news: dict[str, None] = {}
        for node in gone:
            news.update(dict.fromkeys(self._voices.pop(node).sights))
        return tuple(news)


def seen(node: str, report: Report, *, now: float) -> Sight:
    """Return what a node reports, its age turned into a time on this node's clock."""
    return Sight(
        node=node,
        incarnation=report.incarnation,
        beat=max(0, report.beat),
        heard_at=now - max(0, report.age_ms) / 1000,
        is_suspect=report.is_suspect,
        load=clamped_load(report.load),
        in_flight=clamped_count(report.in_flight),
        self_check=report.self_check,
        reach=report.reach,
        fault=report.fault,
    )


def _put(voice: _Voice, agent_id: str, sequence: int, sight: Sight) -> bool:
    """Let a sight hold unless a later one does; return whether it is news."""
    before = voice.sights.get(agent_id)
    if before is not None:
        if sequence <= before[0]:
            return False
        voice.tally = voice.tally.with_sight(before[1], by=-1)
    voice.sights[agent_id] = (sequence, sight)
    voice.sights.move_to_end(agent_id)
    voice.tally = voice.tally.with_sight(sight, by=1)
    return True
