"""Which probes are due, and what follows from their results.

A probe that fails too often is an opinion, not a verdict. While the instance beats, it is
unreachable from here and nothing else. When it is silent as well, a second node is asked; down
is proposed when that can't reach it either, or when the cluster has no other node.

    good ──failed──> failing (1, 2, …) ──as often as set──> failed ──second node too──> down
      └<──────────────────── a good probe or call ──────────┘<─────────────────────────┘ up
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reachnode.liveness.agenda import Agenda
from reachnode.model.agents import HealthType, Instance
from reachnode.model.liveness import ProbeOrder, Reach, Verdict
from reachnode.model.settings import ProbeRules

PROBES_PER_SECOND = 100
URGENT_PER_SECOND = 80
"""While others wait too, the urgent ones take no more than so many."""
REAL_SECONDS = 60.0
"""So often an instance is really probed, whatever stands for a probe between."""
WISH_MS_MIN, WISH_MS_MAX = 1_000, 60_000
"""The intervals an instance may wish for."""
JITTER = 0.1
"""A probe comes up to this share of its interval early or late."""
POPS_MAX = 500
"""How many instances are looked at in one turn."""
LATE_SECONDS = 10.0
"""A result that is this late behind its timeout won't come any more."""
LAPSE_INTERVALS = 3
"""What was found of an instance that another node probes now is believed for so many intervals."""
DOUBT_SECONDS = 60.0
"""So long a node alone that doubts itself waits before it calls an instance down."""

UNPROBED = frozenset({"link", "pull"})
"""Protocols whose instances come to a node; there is nothing to connect to."""


def target_of(instance: Instance) -> tuple[HealthType, str] | None:
    """Return how an instance is probed and where, None when it isn't."""
    endpoints = [one.endpoint for one in instance.capabilities if one.protocol not in UNPROBED]
    fallback = instance.base_url or next(iter(endpoints), "")
    health = instance.health
    kind: HealthType = health.type if health else "tcp"
    endpoint = (health.endpoint if health else "") or fallback
    return (kind, endpoint) if kind != "none" and endpoint else None


def interval_seconds(instance: Instance, rules: ProbeRules) -> float:
    """Return how often an instance is probed: its own wish within bounds, else the settings."""
    wish = instance.health.interval_ms if instance.health else None
    if wish is None:
        return rules.interval_ms / 1000
    return min(max(wish, min(WISH_MS_MIN, rules.interval_ms)), WISH_MS_MAX) / 1000


@dataclass(slots=True, kw_only=True)
class Watch:
    """One instance, as this node's probes and calls found it."""

    instance: Instance
    kind: HealthType
    endpoint: str
    probed_at: float | None = None
    """When the last probe left, however it ended."""
    late_at: float | None = None
    """While a probe is under way: when it is given up."""
    stood_at: float | None = None
    """When something last stood for a probe."""
    seen_at: float = 0.0
    """When `reach` was last found; means nothing while that is empty."""
    failures: int = 0
    """Failed probes in a row."""
    failed_at: float = 0.0
    """When the first of them failed; means nothing without one."""
    asked: int = 0
    """How often another node was to be asked since then."""
    reach: Reach = ""
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one look at the agenda gives."""

    orders: tuple[ProbeOrder, ...]
    lapsed: tuple[str, ...]
    """Of these this node doesn't know any more whether it reaches them."""


class Probes:
    """The instances that this node may have to probe."""

    def __init__(self) -> None:
        self._watches: dict[str, Watch] = {}
        self._urgent = Agenda()
        self._routine = Agenda()
        self._left_at: deque[tuple[float, bool]] = deque(maxlen=PROBES_PER_SECOND)
        self._judged_count = 0
        self._failing_count = 0

    def __len__(self) -> int:
        return len(self._watches)

    @property
    def judged_count(self) -> int:
        """How many instances this node has found something of."""
        return self._judged_count

    @property
    def failing_count(self) -> int:
        """How many of them failed their last probe, be it the first that did."""
        return self._failing_count

    def get(self, agent_id: str) -> Watch | None:
        """Return what was found of an instance, None when it isn't probed."""
        return self._watches.get(agent_id)

    def watch(self, instance: Instance, *, at: float) -> None:
        """Begin to look after an instance, or after its new registration, from a time on.

        The same registration again changes nothing. One that can't be probed is dropped.
        """
        agent_id = instance.agent_id
        watch = self._watches.get(agent_id)
        if watch and watch.instance.incarnation == instance.incarnation:
            return
        self.forget(agent_id)
        target = target_of(instance)
        if target is not None:
            kind, endpoint = target
            self._watches[agent_id] = Watch(instance=instance, kind=kind, endpoint=endpoint)
            self._urgent.put(agent_id, at)

    def forget(self, agent_id: str) -> None:
        """Look after an instance no longer."""
        watch = self._watches.pop(agent_id, None)
        if watch is not None:
            self._tally(watch, by=-1)
            self._urgent.drop(agent_id)
            self._routine.drop(agent_id)

    def hurry(self, agent_id: str, *, at: float) -> None:
        """Probe an instance at a time, before those that aren't urgent."""
        if agent_id in self._watches:
            self._routine.drop(agent_id)
            self._urgent.put(agent_id, at)

    def stood(self, agent_id: str, *, at: float) -> None:
        """Let a heartbeat with a good self-check stand for a probe.

        It proves the process, not the way to it: what fails from here goes on failing.
        """
        watch = self._watches.get(agent_id)
        if watch is not None:
            watch.stood_at = at if watch.stood_at is None else max(at, watch.stood_at)

    def reached(self, agent_id: str, *, at: float) -> bool:
        """Let a good call from here stand for a probe; return whether it changed anything."""
        watch = self._watches.get(agent_id)
        if watch is None:
            return False
        self.stood(agent_id, at=at)
        is_news = watch.reach != "good"
        self._judge(watch, "good", now=at)
        return is_news

    def due(
        self,
        rules: ProbeRules,
        *,
        now: float,
        draw: Callable[[], float],
        is_mine: Callable[[str], bool],
        is_urgent: Callable[[str], bool],
    ) -> Round:
        """Return the probes to be made now, at most 100 in any second.

        Args:
            rules: The shared settings that hold.
            now: This node's monotonic clock.
            draw: Returns a random number in [0, 1).
            is_mine: Whether this node is the one to probe an instance.
            is_urgent: Whether an instance goes before others: pending, suspect.
        """
        lately = self._lately(now)
        left = PROBES_PER_SECOND - len(lately)
        orders: list[ProbeOrder] = []
        lapsed: list[str] = []
        pops = 0
        for agenda, most in (
            (self._urgent, min(left, URGENT_PER_SECOND - sum(lately))),
            (self._routine, left),
            (self._urgent, left),
        ):
            while len(orders) < most and pops < POPS_MAX:
                agent_id = agenda.pop(now)
                if agent_id is None:
                    break
                pops += 1
                watch = self._watches[agent_id]
                again_at = now + interval_seconds(watch.instance, rules) * _stretch(draw())
                if is_mine(agent_id):
                    order, again_at = self._look(watch, rules, now=now, again_at=again_at)
                    if order:
                        orders.append(order)
                        self._left_at.append((now, agenda is self._urgent))
                elif self._lapses(watch, rules, now=now):
                    lapsed.append(agent_id)
                is_first = 0 < watch.failures < rules.failures or is_urgent(agent_id)
                (self._urgent if is_first else self._routine).put(agent_id, again_at)
        return Round(orders=tuple(orders), lapsed=tuple(lapsed))

    def probed(
        self,
        order: ProbeOrder,
        fault: str,
        rules: ProbeRules,
        *,
        now: float,
        others: Sequence[str],
        alone_after_seconds: float | None = None,
    ) -> Verdict:
        """Take the result of a probe; return what follows if the instance is silent as well.

        Whether it is, or was taken out on purpose, isn't known here.

        Args:
            order: What was probed.
            fault: What went wrong, such as `timeout`; empty when it answered well.
            rules: The shared settings that hold.
            now: This node's monotonic clock.
            others: The other nodes that are heard, in the order in which to ask them.
            alone_after_seconds: How long it must have failed until this node alone may call it
                down; None when there are others who have to agree.
        """
        watch = self._current(order.agent_id, order.incarnation)
        if watch is None:
            return Verdict()
        watch.late_at = None
        watch.fault = fault
        if not fault:
            self._judge(watch, "good", now=now)
            return Verdict(is_up=True)
        if watch.failures == 0:
            watch.failed_at = now
        self._tally(watch, by=-1)
        watch.failures += 1
        self._tally(watch, by=1)
        if watch.failures < rules.failures:
            return Verdict()
        self._judge(watch, "failed", now=now)
        watch.asked += 1
        if alone_after_seconds is not None:
            return Verdict(is_down=now >= watch.failed_at + alone_after_seconds)
        return Verdict(ask=others[(watch.asked - 1) % len(others)] if others else None)

    def second(
        self, agent_id: str, incarnation: int, rules: ProbeRules, *, now: float
    ) -> ProbeOrder | None:
        """Return the probe by which this node forms an opinion for another.

        None when it can't have one: it doesn't know this incarnation, or probes enough already.
        """
        watch = self._current(agent_id, incarnation)
        if watch is None or len(self._lately(now)) == PROBES_PER_SECOND:
            return None
        self._left_at.append((now, True))
        return _order(watch, rules)

    def confirmed(self, agent_id: str, incarnation: int) -> bool:
        """Return whether another node's failed probe makes it down: ours must still fail too."""
        watch = self._current(agent_id, incarnation)
        return watch is not None and watch.reach == "failed"

    def _current(self, agent_id: str, incarnation: int) -> Watch | None:
        watch = self._watches.get(agent_id)
        return watch if watch and watch.instance.incarnation == incarnation else None

    def _look(
        self, watch: Watch, rules: ProbeRules, *, now: float, again_at: float
    ) -> tuple[ProbeOrder | None, float]:
        """Return a probe if one is needed, and when to look again."""
        if watch.late_at is not None and now < watch.late_at:
            return None, again_at
        if watch.probed_at is not None and watch.stood_at is not None and not watch.failures:
            real_at = watch.probed_at + REAL_SECONDS
            stands_until = watch.stood_at + interval_seconds(watch.instance, rules)
            if now < min(real_at, stands_until):
                return None, min(real_at, again_at)
        watch.probed_at = now
        watch.late_at = now + rules.timeout_ms / 1000 + LATE_SECONDS
        return _order(watch, rules), again_at

    def _lately(self, now: float) -> list[bool]:
        """Return, of each probe of the last second, whether it was urgent."""
        return [was_urgent for at, was_urgent in self._left_at if at > now - 1]

    def _lapses(self, watch: Watch, rules: ProbeRules, *, now: float) -> bool:
        """Forget what was found of another node's instance, once it is old."""
        interval = interval_seconds(watch.instance, rules)
        if not watch.reach or now < watch.seen_at + LAPSE_INTERVALS * interval:
            return False
        self._judge(watch, "", now=now)
        watch.fault = ""
        return True

    def _judge(self, watch: Watch, reach: Reach, *, now: float) -> None:
        self._tally(watch, by=-1)
        watch.reach = reach
        watch.seen_at = now
        if reach != "failed":
            watch.failures = watch.asked = 0
        self._tally(watch, by=1)

    def _tally(self, watch: Watch, *, by: int) -> None:
        """Count what was found of an instance (`by=1`), or take it from the count (`by=-1`)."""
        self._judged_count += by * (watch.reach != "" or watch.failures > 0)
        self._failing_count += by * (watch.failures > 0)


def _stretch(drawn: float) -> float:
    """Return the factor that a random number in [0, 1) makes of an interval."""
    return 1 + JITTER * (2 * drawn - 1)


def order_of(instance: Instance, rules: ProbeRules) -> ProbeOrder | None:
    """Return the probe of an instance that somebody asks for now, None where there is none."""
    target = target_of(instance)
    if target is None:
        return None
    kind, endpoint = target
    return _order(Watch(instance=instance, kind=kind, endpoint=endpoint), rules)


def _order(watch: Watch, rules: ProbeRules) -> ProbeOrder:
    return ProbeOrder(
        agent_id=watch.instance.agent_id,
        incarnation=watch.instance.incarnation,
        type=watch.kind,
        endpoint=watch.endpoint,
        timeout_seconds=rules.timeout_ms / 1000,
    )
