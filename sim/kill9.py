"""`reachnode sim kill9`: three real processes under load, killed with SIGKILL again and again.

Writers register agents over HTTP, each change until it is confirmed. Meanwhile nodes are
killed, one, two or all three at a time, in any order, and started again. In the end every
confirmed change must be there, none twice, on every node alike.

A seed repeats the plan (who is killed when, by whom what is written), not the run: it
happens in real time.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from sim.live.cluster import LiveCluster, LiveNode, TooLate
from sim.live.figures import machine, spread
from sim.live.processes import ProcessEnded
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
        options: What the command line said.
    """

    def __init__(self, cluster: LiveCluster, options: argparse.Namespace) -> None:
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
        give_up_at = self._until + SETTLE_SECONDS
        async with trio.open_nursery() as nursery:
            for number in range(options.writers):
                writer = self._writer(f"w{number}")
                nursery.start_soon(run_writer, writer, stop, give_up_at)
            await self._kill()
            self._revive()
            stop.set()
        last = await self._confirm_last()
        tables = await self.cluster.tables(last.index, seconds=SETTLE_SECONDS)
        index = await self.cluster.equal_indexes(seconds=SETTLE_SECONDS)
        self._look_for_crashes()
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
        self._look_for_crashes()
        self._draw.shuffle(victims)
        for node, pause in zip(victims, one.pauses_seconds, strict=False):
            await trio.sleep(pause)
            if node.process.running is None:
                node.process.start()

    def _kill_node(self, node: LiveNode) -> None:
        """Kill one node."""
        node.process.kill()
        self.tally.kills += 1

    def _look_for_crashes(self) -> None:
        """Take note of processes that ended by themselves."""
        for node in self.cluster.nodes:
            status = node.process.collect()
            if status is not None:
                self.tally.crashed.append(
                    f"{node.name} ended with {status}: {node.process.log_tail()}"
                )

    def _revive(self) -> None:
        """Start whatever doesn't run."""
        self._look_for_crashes()
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


def report(run: Run, verdict: Verdict, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of a run, and whatever is wrong in words."""
    tally, history = run.tally, run.history
    return {
        "kills": tally.kills,
        "acknowledged": len(history.confirmed),
        "lost": len(verdict.lost),
        "doubled": len(verdict.doubled),
        "failed_idempotent": len(history.open) + len(history.refused),
        "failover_ms": spread(tally.failover_seconds),
        "unequal": len(verdict.unequal),
        "disordered": len(verdict.disordered),
        "crashed": len(tally.crashed),
        "late": len(tally.late),
        "leader_kills": tally.leader_kills,
        "all_down": tally.all_down,
        "attempts": history.attempts_count,
        "repeats": history.repeats_count,
        "seed": options.seed,
        "problems": problems(run, verdict),
    }


def problems(run: Run, verdict: Verdict) -> list[str]:
    """Return everything that is wrong, a sentence each."""
    return [
        *verdict.lost,
        *verdict.doubled,
        *verdict.unequal,
        *verdict.disordered,
        *run.history.refused,
        *(f"{key} was left open" for key in run.history.open),
        *run.tally.crashed,
        *run.tally.late,
    ]


def parser() -> argparse.ArgumentParser:
    """Return the command's options."""
    made = argparse.ArgumentParser(
        prog="reachnode sim kill9",
        description="Kill real nodes with SIGKILL under load; nothing confirmed may be lost.",
        allow_abbrev=False,
    )
    made.add_argument("--kills", type=positive, default=100, help="Kills in all. Default: 100.")
    made.add_argument("--seed", type=int, default=1, help="Which plan is followed. Default: 1.")
    made.add_argument(
        "--seconds", type=positive, default=900, help="End the run after this. Default: 900."
    )
    made.add_argument("--writers", type=positive, default=6, help="Clients at once. Default: 6.")
    made.add_argument(
        "--snapshot-entries",
        type=positive,
        default=200,
        help="Entries between snapshots, so that kills fall into them. Default: 200.",
    )
    made.add_argument("--dir", type=Path, default=None, help="Where the data is kept.")
    made.add_argument("--keep-dir", action="store_true", help="Leave data and logs behind.")
    made.add_argument("--json", action="store_true", help="Answer in JSON.")
    return made


def positive(text: str) -> int:
    """Return a whole number above 0.

    Raises:
        ValueError: It is none.
    """
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


@contextmanager
def place(options: argparse.Namespace) -> Iterator[Path]:
    """Give a new directory, removed in the end unless it is to be kept."""
    made = Path(tempfile.mkdtemp(prefix="reachnode-kill9-", dir=options.dir))
    try:
        yield made
    finally:
        if options.keep_dir:
            print(f"kill9: data and logs are in {made}", file=sys.stderr)
        else:
            shutil.rmtree(made, ignore_errors=True)


def main(argv: Sequence[str]) -> int:
    """Run the command; return 0 when every promise was kept, else 1."""
    options = parser().parse_args(argv)
    with place(options) as directory:
        environment = {"REACHNODE_CLUSTER__SNAPSHOT_ENTRIES": str(options.snapshot_entries)}
        cluster = LiveCluster(directory, environment=environment)
        run = Run(cluster, options)
        try:
            verdict, index = trio.run(run.run)
        except (TooLate, ProcessEnded, BaseExceptionGroup) as error:
            print(f"kill9: {why(error)}", file=sys.stderr)
            options.keep_dir = True
            return 1
        finally:
            cluster.end()
        said = {
            **report(run, verdict, options),
            "index": index,
            "snapshot_index": newest_snapshot(directory),
            "machine": machine(directory),
        }
        options.keep_dir = options.keep_dir or bool(said["problems"])
    print(json.dumps(said, indent=2) if options.json else summary(said))
    return 1 if said["problems"] else 0


def newest_snapshot(directory: Path) -> int:
    """Return the highest index of a snapshot that a node made; 0 when there is none."""
    names = (path.name.removeprefix("snapshot-") for path in directory.glob("n*/snapshot-*"))
    return max((int(name) for name in names if name.isdecimal()), default=0)


def why(error: BaseException) -> BaseException:
    """Return what ended a run: what didn't come about; anything else is raised on.

    Raises:
        BaseException: It is a fault of this program, or the user's interrupt.
    """
    inside = error
    while isinstance(inside, BaseExceptionGroup):
        inside = inside.exceptions[0]
    if not isinstance(inside, TooLate | ProcessEnded):
        raise error
    return inside


def summary(said: dict[str, Any]) -> str:
    """Return the figures for people."""
    failover = said["failover_ms"]
    on = said["machine"]
    lines = [
        (
            f"{said['kills']} kills, {said['leader_kills']} of a leader, "
            f"{said['all_down']} times all three at once; seed {said['seed']}"
        ),
        (
            f"{said['acknowledged']} changes acknowledged: {said['lost']} lost, "
            f"{said['doubled']} doubled, {said['failed_idempotent']} never settled"
        ),
        (
            f"leader killed to next change: p50 {failover['p50']:g} ms, "
            f"p99 {failover['p99']:g} ms, max {failover['max']:g} ms"
        ),
        (
            f"reachnode {on['reachnode']} on {on['cores']} cores of {on['processor']}, "
            f"{on['file_system']}, Python {on['python']}"
        ),
    ]
    lines += [f"WRONG: {one}" for one in said["problems"]]
    return "\n".join(lines)
