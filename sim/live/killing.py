"""A cluster under load whose nodes are killed and started again, round by round.

A seed repeats the plan (who is killed when, what is written by whom), not the run: it happens
in real time.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import trio

from sim.live.cluster import LiveCluster, LiveNode, TooLate
from sim.live.verdict import Verdict, judge
from sim.live.writers import Confirmed, History, Writer

AGENTS_COUNT = 40
SETTLE_SECONDS = 30.0
"""For whatever must come about after the last kill."""
FAILOVER_SECONDS_MAX = 20.0
PROGRESS_EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Kills that belong together."""

    count: int
    aims_at_leader: bool
    gaps_seconds: tuple[float, ...]
    """Before each kill."""
    pauses_seconds: tuple[float, ...]
    """Before each restart."""
    rest_seconds: float
    """Before the next round."""


def plan(draw: random.Random, kills: int) -> Iterator[Round]:
    """Yield rounds that kill so many times in all; half of them aim at the leader alone."""
    left = kills
    while left > 0:
        aims_at_leader = draw.random() < 0.5
        count = 1 if aims_at_leader else draw.choices((1, 2, 3), weights=(3, 4, 3))[0]
        count = min(count, left)
        left -= count
        yield Round(
            count=count,
            aims_at_leader=aims_at_leader,
            gaps_seconds=tuple(draw.choice((0.0, draw.uniform(0, 0.3))) for _ in range(count)),
            pauses_seconds=tuple(draw.uniform(0, 0.4) for _ in range(count)),
            rest_seconds=draw.uniform(0.1, 1.2),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of a run."""

    kills: int = 100
    seed: int = 1
    seconds: float = 900.0
    """After which no more nodes are killed."""
    writers: int = 6


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run counted."""

    kills: int = 0
    leader_kills: int = 0
    all_down: int = 0
    failover_seconds: list[float] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    """Processes that ended by themselves: there should be none."""
    late: list[str] = field(default_factory=list)
    """What did not come about in its time: there should be nothing."""


class Run:
    """One run.

    Args:
        cluster: Not started.
        options: What is wanted.
    """

    def __init__(self, cluster: LiveCluster, options: Wish) -> None:
        self.cluster = cluster
        self.history = History()
        self.tally = Tally()
        self._options = options
        self._draw = random.Random(options.seed)
        self._until = 0.0

    def _writer(self, name: str, nodes: Sequence[LiveNode] | None = None) -> Writer:
        """Return a client of some nodes, or of all."""
        places = [node.place for node in nodes or self.cluster.nodes]
        draw = random.Random(f"{self._options.seed} {name}")
        return Writer(name, places, self.history, draw)

    async def run(self) -> tuple[Verdict, int]:
        """Return what is wrong, and the index at which all nodes ended.

        Raises:
            TooLate: The cluster never began, or never came to rest.
        """
        options = self._options
        await self.cluster.start()
        self._until = trio.current_time() + options.seconds
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            for number in range(options.writers):
                writer = self._writer(f"w{number}")
                nursery.start_soon(run_writer, writer, stop, float("inf"))
            await self._kill()
            self._revive()
            stop.set()
            # What is not confirmed by then is left open, and told as such.
            nursery.cancel_scope.deadline = trio.current_time() + SETTLE_SECONDS
        last = await self._confirm_last()
        tables = await self.cluster.tables(last.index, seconds=SETTLE_SECONDS)
        index = await self.cluster.equal_indexes(seconds=SETTLE_SECONDS)
        self.look_for_crashes()
        return judge(self.history, tables), index

    async def _confirm_last(self) -> Confirmed:
        """Return a change confirmed after all others have ended.

        Raises:
            TooLate: No node confirmed it.
        """
        writer = self._writer("last")
        until = trio.current_time() + SETTLE_SECONDS
        confirmed = await writer.insist(writer.next_change(["last"]), until=until)
        writer.close()
        if confirmed is None:
            raise TooLate(f"no node confirmed the last change within {SETTLE_SECONDS:g} s")
        return confirmed

    async def _kill(self) -> None:
        """Kill and restart, round by round."""
        for one in plan(self._draw, self._options.kills):
            if trio.current_time() >= self._until:
                self.tally.late.append(f"{self.tally.kills} kills are all there was time for")
                return
            before = self.tally.kills
            self._revive()
            if self.tally.crashed:
                return  # Whatever comes now would only hide what has been found.
            if one.aims_at_leader:
                await self._kill_leader(one)
            else:
                await self._kill_some(one)
            await trio.sleep(one.rest_seconds)
            if before // PROGRESS_EVERY != self.tally.kills // PROGRESS_EVERY:
                self._say_progress()

    async def _kill_leader(self, one: Round) -> None:
        """Kill the leader while the others are well; time the next change through them."""
        try:
            leader = await self.cluster.agreed(seconds=SETTLE_SECONDS)
        except TooLate as error:
            self.tally.late.append(str(error))
            return
        await trio.sleep(one.gaps_seconds[0])
        if await self.cluster.leader() is not leader:
            await self._kill_some(one)
            return
        others = [node for node in self.cluster.nodes if node is not leader]
        killed_at = trio.current_time()
        self._kill_node(leader)
        self.tally.leader_kills += 1
        took = await self._first_change(others, killed_at)
        if took is None:
            self.tally.late.append(f"no change for {FAILOVER_SECONDS_MAX:g} s after a leader died")
        else:
            self.tally.failover_seconds.append(took)
        await trio.sleep(one.pauses_seconds[0])
        leader.process.start()

    async def _first_change(self, nodes: Sequence[LiveNode], since: float) -> float | None:
        """Return seconds until one of these nodes confirms a change asked for now."""
        found: list[float] = []
        until = since + FAILOVER_SECONDS_MAX

        async def ask(node: LiveNode, name: str) -> None:
            writer = self._writer(name, [node])
            confirmed = await writer.insist(writer.next_change(["probe"]), until=until)
            writer.close()
            if confirmed is not None:
                found.append(confirmed.confirmed_at - since)

        async with trio.open_nursery() as nursery:
            for node in nodes:
                nursery.start_soon(ask, node, f"probe-{self.tally.kills}-{node.name}")
        return min(found, default=None)

    async def _kill_some(self, one: Round) -> None:
        """Kill some nodes at random, in any order, and start them in any order."""
        running = [node for node in self.cluster.nodes if node.process.is_alive]
        victims = self._draw.sample(running, min(one.count, len(running)))
        for node, gap in zip(victims, one.gaps_seconds, strict=False):
            await trio.sleep(gap)
            if node.process.is_alive:
                self._kill_node(node)
        if len(victims) == len(self.cluster.nodes):
            self.tally.all_down += 1
        self.look_for_crashes()
        self._draw.shuffle(victims)
        for node, pause in zip(victims, one.pauses_seconds, strict=False):
            await trio.sleep(pause)
            if node.process.running is None:
                node.process.start()

    def _kill_node(self, node: LiveNode) -> None:
        """Kill one node."""
        node.process.kill()
        self.tally.kills += 1

    def look_for_crashes(self) -> None:
        """Take note of processes that ended by themselves."""
        for node in self.cluster.nodes:
            status = node.process.collect()
            if status is not None:
                self.tally.crashed.append(
                    f"{node.name} ended with {status}: {node.process.log_tail()}"
                )

    def _revive(self) -> None:
        """Start whatever doesn't run."""
        self.look_for_crashes()
        for node in self.cluster.nodes:
            if node.process.running is None:
                node.process.start()

    def _say_progress(self) -> None:
        """Say on standard error how far it is."""
        tally, history = self.tally, self.history
        print(
            f"kill9: {tally.kills} of {self._options.kills} kills, "
            f"{len(history.confirmed)} changes confirmed",
            file=sys.stderr,
            flush=True,
        )


async def run_writer(writer: Writer, stop: trio.Event, until: float) -> None:
    """Let a writer change agents that others change as well."""
    agents = [f"agent-{number}" for number in range(AGENTS_COUNT)]
    await writer.run(agents, stop, until=until)
