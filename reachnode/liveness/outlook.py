"""What one node makes of all instances, and the one place where its evidence comes together.

The loops above bring what happened and the time at which it did; they take what is to be
done: probes to make, deltas to tell, a node to ask, commands to propose. Each call costs what
it changes. Readers ask `of` and get an answer that was worked out before, unless something
that it stands on has changed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from reachnode.liveness.backlog import Backlog
from reachnode.liveness.damping import Damper
from reachnode.liveness.evidence import own_sight, report_of
from reachnode.liveness.hearsay import Hearsay, Sight
from reachnode.liveness.leases import Leases, lease_ms
from reachnode.liveness.mass_loss import doubted, is_mass_loss
from reachnode.liveness.placement import ranked
from reachnode.liveness.probes import DOUBT_SECONDS, Probes
from reachnode.liveness.proposals import Proposals
from reachnode.liveness.sayings import PARTS_MAX, Sayings
from reachnode.liveness.seen import Conclusion, Seen
from reachnode.liveness.states import held, joined
from reachnode.model.liveness import (
    Delta,
    Heard,
    Heartbeat,
    InstanceState,
    Liveness,
    ProbeOrder,
)
from reachnode.registry.commands import MarkDown, MarkUp
from reachnode.registry.state import Record, State

RECHECKS_MAX = 100
"""How many instances are looked at in one turn after something larger changed."""


class Outlook:
    """The health of all instances, as one node sees it.

    Args:
        me: This node's id.
        boot: Which start of this node it is, larger for a later one.
        state: What is registered; `follow` tells of everything after it.
        now: The monotonic clock, in seconds: from here on this node listens.
    """

    def __init__(self, *, me: str, boot: int, state: State, now: float) -> None:
        self._me = me
        self._boot = boot
        self._state = state
        self._now = now
        self._leases = Leases(listening_since=now)
        self._hearsay = Hearsay()
        self._sayings = Sayings()
        self._probes = Probes()
        self._damper = Damper()
        self._live = frozenset({me})
        self._doubted: frozenset[str] = frozenset()
        self._seen = Seen()
        self._proposals = Proposals()
        self._backlog = Backlog()
        self.follow(state, state.agents, now=now)

    def of(self, record: Record) -> Liveness:
        """Return what this node makes of an instance as the log has it."""
        agent_id = record.instance.agent_id
        seen = self._seen.get(agent_id)
        if seen and seen.record is record and agent_id not in self._backlog:
            return seen.liveness
        if self._state.agents.get(agent_id) is not record:
            return self._conclude(record).liveness  # another moment of the log: not kept
        return self._look(record)

    @property
    def counts(self) -> Mapping[InstanceState, int]:
        """How many instances are in each state."""
        return self._seen.counts

    @property
    def live(self) -> frozenset[str]:
        """The nodes that are being heard, this one included."""
        return self._live

    def stirred(self) -> dict[str, InstanceState]:
        """Return whose state has changed since this was last asked, with the state before.

        What the log changed is not among it: whoever follows the log knows.
        """
        return self._seen.stirred()

    def follow(self, state: State, agent_ids: Iterable[str], *, now: float) -> None:
        """Take a new state of the registry.

        Args:
            state: The state from now on.
            agent_ids: The instances that differ from the one before, or may. When they are
                very many, sweeps look at them in turn.
            now: The monotonic clock.
        """
        self._now = now
        self._state = state
        self._news(sorted(agent_ids))

    def heartbeat(self, agent_id: str, heartbeat: Heartbeat, *, now: float) -> Heard:
        """Take a heartbeat and return what the instance is to be told.

        Raises:
            UnknownAgent: It isn't registered, and should register again.
            Superseded: Its id was taken over by a later registration.
        """
        self._now = now
        record = self._state.agents.get(agent_id)
        current = record.instance.incarnation if record else 0
        heard = self._leases.heard(
            self._state,
            agent_id,
            heartbeat,
            now=now,
            beat_known=self._hearsay.beat_of(agent_id, heartbeat.incarnation or current),
        )
        if heartbeat.self_check:
            self._probes.stood(agent_id, at=now)
        self._changed(agent_id)
        return heard

    def called(self, agent_id: str, *, now: float) -> None:
        """Take note of a call from here that the instance answered well."""
        self._now = now
        if self._probes.reached(agent_id, at=now):
            self._changed(agent_id)

    def sweep(self, *, now: float) -> tuple[str, ...]:
        """Do what time alone does; return who became suspect here. At least once a second."""
        self._now = now
        overdue = self._leases.overdue(now)
        for agent_id in overdue:
            self._sayings.say(agent_id)
        self._news(overdue)
        for node in self._hearsay.silenced(now):
            self._live -= {node}
            self._backlog.add(self._hearsay.of(node))
        for agent_id in self._damper.released(now):
            self._again(agent_id)
        self._doubt()
        self._catch_up()
        return overdue

    def tell(self, sequence: int, *, now: float, most: int = PARTS_MAX) -> Delta:
        """Return what a peer is to be told that was told up to a sequence; 0 tells everything.

        The next delta goes on from the sequence of this one; while that is below
        `told_up_to`, there is more to tell.
        """
        told, upto = self._sayings.since(sequence, most=most)
        agents = self._state.agents
        reports = tuple(
            report_of(self._own(agents[agent_id]), agent_id, sequence=number, now=now)
            for agent_id, number in told
        )
        return Delta(node=self._me, boot=self._boot, sequence=upto, reports=reports)

    @property
    def told_up_to(self) -> int:
        """The sequence of the last thing this node has to tell."""
        return self._sayings.sequence

    def take(self, delta: Delta, *, now: float) -> None:
        """Take what a peer tells. That it is from that peer was made sure of by its link."""
        self._now = now
        if delta.node == self._me:
            return
        was_live = self._hearsay.is_live(delta.node)
        news = self._hearsay.take(delta, now=now)
        for report in delta.reports:
            agent_id = report.agent_id
            beat = 0 if report.is_suspect else report.beat
            if self._leases.release(agent_id, incarnation=report.incarnation, beat=beat):
                self._sayings.say(agent_id)
            if beat and report.self_check:
                self._probes.stood(agent_id, at=now - max(0, report.age_ms) / 1000)
        if not was_live:
            self._live |= {delta.node}
        self._news(news)

    def members(self, nodes: Collection[str]) -> None:
        """Believe only these nodes from now on: the members, without one that starts anew."""
        news = self._hearsay.retain(nodes)
        self._live = frozenset((self._me, *self._hearsay.live))
        self._news(news)

    def probes_due(self, *, now: float, draw: Callable[[], float]) -> tuple[ProbeOrder, ...]:
        """Return the probes to make now, at most 100 in any second; `probed` takes each result.

        Args:
            now: The monotonic clock. Ask every 100 ms or so.
            draw: Returns a random number in [0, 1).
        """
        self._now = now
        self._catch_up()
        due = self._probes.due(
            self._state.settings.probes,
            now=now,
            draw=draw,
            is_mine=lambda agent_id: self._probers(agent_id)[0] == self._me,
            is_urgent=self._is_urgent,
        )
        for agent_id in due.lapsed:
            self._changed(agent_id)
        return due.orders

    def probed(self, order: ProbeOrder, fault: str, *, now: float) -> str | None:
        """Take the result of a probe; return the node to be asked for its opinion, if any.

        Args:
            order: The probe.
            fault: Why it failed, such as `timeout`; empty when it answered well.
            now: The monotonic clock.
        """
        self._now = now
        agent_id = order.agent_id
        verdict = self._probes.probed(
            order,
            fault,
            self._state.settings.probes,
            now=now,
            others=[node for node in self._probers(agent_id) if node != self._me],
            alone_after_seconds=self._alone_after_seconds(),
        )
        self._changed(agent_id)
        if verdict.is_up and agent_id in self._state.agents:
            self._propose_up(self._state.agents[agent_id])
        if not self._is_in_question(agent_id, order.incarnation):
            return None
        if verdict.is_down:
            self._proposals.down(agent_id, order.incarnation)
        return verdict.ask

    def asked(self, agent_id: str, incarnation: int, *, now: float) -> ProbeOrder | None:
        """Return the probe by which this node forms an opinion for a peer; None: it has none."""
        return self._probes.second(agent_id, incarnation, self._state.settings.probes, now=now)

    def opined(self, order: ProbeOrder, fault: str, *, now: float) -> bool:
        """Take the result of such a probe; return the opinion: it answers, or it is heard."""
        if not fault:
            self.called(order.agent_id, now=now)
        record = self._state.agents.get(order.agent_id)
        return not fault or (record is not None and self._is_heard(record))

    def opinion(self, agent_id: str, incarnation: int, *, is_reached: bool) -> None:
        """Take the opinion this node asked for. One that never comes needs no call."""
        if (
            not is_reached
            and self._probes.confirmed(agent_id, incarnation)
            and self._is_in_question(agent_id, incarnation)
        ):
            self._proposals.down(agent_id, incarnation)

    def proposals(self) -> tuple[MarkDown | MarkUp, ...]:
        """Return what is to be proposed to the cluster, in batches. About twice a second.

        Nothing is kept: what isn't accepted comes up again with the next probe or heartbeat.
        """
        return self._proposals.take(is_down=self._is_in_question, is_up=self._is_to_return)

    def _changed(self, agent_id: str) -> None:
        """Note that this node's own evidence of an instance has changed."""
        if agent_id in self._state.agents:
            self._sayings.say(agent_id)
            self._again(agent_id)

    def _again(self, agent_id: str) -> None:
        """Look at an instance again, whatever may have changed of it."""
        record = self._state.agents.get(agent_id)
        if record is None:
            self._forget(agent_id)
        else:
            self._look(record)

    def _enroll(self, record: Record) -> None:
        """Take an instance as the log has it now."""
        agent_id = record.instance.agent_id
        self._probes.watch(record.instance, at=self._now)
        lease = self._leases.get(agent_id)
        if lease is None:
            return
        is_over = record.standing == "down" and lease.is_suspect
        if is_over or lease.incarnation < record.instance.incarnation:
            self._leases.forget(agent_id)
        self._sayings.say(agent_id)  # of the incarnation that holds now

    def _look(self, record: Record) -> Liveness:
        """Work out what an instance's state is now, and note what follows from a change."""
        agent_id = record.instance.agent_id
        before = self._seen.get(agent_id)
        if before is None or before.record is not record:
            self._enroll(record)
        conclusion = self._conclude(record)
        is_fall = conclusion.raw in {"suspect", "down"} and before and before.raw == "healthy"
        if is_fall and self._damper.fell(agent_id, now=self._now):
            conclusion = self._conclude(record)
        self._seen.put(agent_id, conclusion)
        liveness = conclusion.liveness
        if liveness.is_beating and liveness.home == self._me:
            self._propose_up(record)
        if liveness.state == "suspect" and not (before and before.raw == "suspect"):
            self._probes.hurry(agent_id, at=self._now)
        return liveness

    def _conclude(self, record: Record) -> Conclusion:
        agent_id = record.instance.agent_id
        seen = joined(
            record,
            (self._own(record), *self._hearsay.about(agent_id)),
            me=self._me,
            live=self._live,
            doubted=self._doubted,
        )
        liveness = held(seen) if self._damper.is_held(agent_id) else seen
        return Conclusion(record=record, raw=seen.state, liveness=liveness)

    def _own(self, record: Record) -> Sight:
        agent_id = record.instance.agent_id
        return own_sight(
            self._me,
            record.instance.incarnation,
            lease=self._leases.get(agent_id),
            watch=self._probes.get(agent_id),
        )

    def _forget(self, agent_id: str) -> None:
        self._leases.forget(agent_id)
        self._hearsay.forget(agent_id)
        self._sayings.forget(agent_id)
        self._probes.forget(agent_id)
        self._damper.forget(agent_id)
        self._proposals.forget(agent_id)
        self._seen.forget(agent_id)

    def _news(self, agent_ids: Sequence[str]) -> None:  # at once if few, else in turns
        for agent_id in agent_ids[:RECHECKS_MAX]:
            self._again(agent_id)
        self._backlog.add(agent_ids[RECHECKS_MAX:])

    def _catch_up(self) -> None:
        for agent_id in self._backlog.take(RECHECKS_MAX):
            self._again(agent_id)

    def _doubt(self) -> None:
        """Find out which homes lost so many that they are in doubt themselves."""
        tallies = {node: self._hearsay.tally(node) for node in self._hearsay.live}
        found = doubted(
            {node: (tally.suspects, tally.leases) for node, tally in tallies.items()}
            | {self._me: (self._leases.suspects_count, len(self._leases))}
        )
        turned, self._doubted = sorted(found ^ self._doubted), found
        for node in turned:
            self._backlog.add(self._leases if node == self._me else self._hearsay.of(node))

    def _is_urgent(self, agent_id: str) -> bool:
        seen = self._seen.get(agent_id)
        return seen is not None and seen.raw in {"pending", "suspect"}

    def _probers(self, agent_id: str) -> tuple[str, ...]:
        """Return who may probe an instance, first who does; a home in doubt comes last."""
        seen = self._seen.get(agent_id)
        home = seen.liveness.home if seen else None
        return ranked(agent_id, self._live, last=home if home in self._doubted else None)

    def _alone_after_seconds(self) -> float | None:
        """Return how long this node alone must see a failure; None where others must agree."""
        if any(member != self._me for member in self._state.members):
            return None
        lost, judged = self._probes.failing_count, self._probes.judged_count
        return DOUBT_SECONDS if is_mass_loss(lost, of=judged) else 0.0

    def _is_in_question(self, agent_id: str, incarnation: int) -> bool:
        """Return whether an instance may be found down: it stands, and nobody hears it."""
        record = self._state.agents.get(agent_id)
        if record is None or record.standing or record.instance.incarnation != incarnation:
            return False
        return not self._is_heard(record)

    def _is_heard(self, record: Record) -> bool:
        """Return whether it beats; when its home falls silent it has a lease to find another."""
        one = record.instance
        since = self._now - lease_ms(self._state, one.heartbeat) / 1000
        may_beat = self._hearsay.may_beat(one.agent_id, one.incarnation, since=since)
        return may_beat or self.of(record).is_beating

    def _is_to_return(self, agent_id: str, incarnation: int) -> bool:
        """Return whether an instance may be found up: it is down, and isn't flapping."""
        record = self._state.agents.get(agent_id)
        if record is None or record.instance.incarnation != incarnation:
            return False
        return record.standing == "down" and not self._damper.is_held(agent_id)

    def _propose_up(self, record: Record) -> None:
        if record.standing == "down":
            self._proposals.up(record.instance.agent_id, record.instance.incarnation)
