"""`reachnode bench`: rows of the performance page, measured beside etcd in the same run.

What is compared runs at the same time on the same machine and the same disk, and is measured
in turns, so that the neighbours' noise falls on all alike. Figures are medians of the turns.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

from sim.live.cluster import TooLate
from sim.live.contenders import Contender, Ours
from sim.live.etcd import Etcd, find_etcd
from sim.live.figures import machine, median, ms, percentile, spread
from sim.live.processes import ProcessEnded
from sim.live.timing import timed_changes, timed_failover

ROWS: Mapping[str, str] = {
    "changes": "one registry change, alone and with 64 in flight, through leader and follower",
    "failover": "a leader killed with SIGKILL, to the next accepted change",
}
IN_FLIGHT = 64
VIAS = ("leader", "follower")
LOADS = {"alone": 1, f"in_flight_{IN_FLIGHT}": IN_FLIGHT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be measured, and how thoroughly."""

    rows: Sequence[str]
    rounds: int
    """Turns of `changes`."""
    seconds: float
    """Of each measurement of `changes`."""
    runs: int
    """Leaders of each contender that `failover` kills."""
    directory: Path | None
    """Where data is kept while it runs; None is the system's place for such."""
    json: bool


def main(wish: Wish) -> int:
    """Measure and print; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="reachnode-bench-", dir=wish.directory) as name:
        directory = Path(name)
        contenders = gather(directory)
        try:
            rows = trio.run(measure, wish, contenders)
        except (TooLate, ProcessEnded, BaseExceptionGroup) as error:
            print(f"reachnode: {plain(error)}", file=sys.stderr)
            return 1
        finally:
            for contender in contenders:
                contender.end()
        said = {
            "rows": rows,
            "versions": {one.name: one.version for one in contenders},
            "machine": machine(directory),
        }
    print(json.dumps(said, indent=2) if wish.json else page(said))
    return 0


def gather(directory: Path) -> list[Contender]:
    """Return whom to compare, each with a directory of its own below one."""
    places = {name: directory / name for name in ("reachnode", "etcd")}
    for place in places.values():
        place.mkdir()
    contenders: list[Contender] = [Ours(places["reachnode"])]
    program = find_etcd()
    if program is None:
        print("bench: etcd is not installed, so there is nothing to compare with", file=sys.stderr)
    else:
        contenders.append(Etcd(program, places["etcd"]))
    return contenders


async def measure(wish: Wish, contenders: Sequence[Contender]) -> dict[str, Any]:
    """Return the results of every row."""
    for contender in contenders:
        await contender.start()
    rows: dict[str, Any] = {}
    if "changes" in wish.rows:
        rows["changes"] = await measure_changes(wish, contenders)
    if "failover" in wish.rows:
        rows["failover"] = await measure_failover(wish, contenders)
    return rows


async def measure_changes(wish: Wish, contenders: Sequence[Contender]) -> dict[str, Any]:
    """Return latency and rate of changes, and ours against theirs."""
    turns: dict[tuple[str, str, str], list[list[float]]] = {}
    for turn in range(wish.rounds):
        print(f"bench: changes, turn {turn + 1} of {wish.rounds}", file=sys.stderr, flush=True)
        for contender in turned(contenders, turn):
            leader = await contender.agreed(seconds=30.0)
            follower = next(node for node in contender.nodes if node is not leader)
            for via, node in zip(VIAS, (leader, follower), strict=True):
                for load, clients in LOADS.items():
                    took = await timed_changes(
                        contender, node.place, in_flight=clients, seconds=wish.seconds
                    )
                    turns.setdefault((contender.name, via, load), []).append(took)
    results = {
        one.name: {
            via: {load: changes_figures(turns[one.name, via, load], wish) for load in LOADS}
            for via in VIAS
        }
        for one in contenders
    }
    found: dict[str, Any] = {"rounds": wish.rounds, "seconds": wish.seconds, "results": results}
    if len(contenders) > 1:
        found["ratios"] = changes_ratios(results)
    return found


def changes_figures(turns: Sequence[Sequence[float]], wish: Wish) -> dict[str, float]:
    """Return medians over the turns."""
    return {
        "p50_ms": ms(median([percentile(took, 50) for took in turns])),
        "p99_ms": ms(median([percentile(took, 99) for took in turns])),
        "per_second": round(median([len(took) / wish.seconds for took in turns]), 1),
    }


def changes_ratios(results: Mapping[str, Any]) -> dict[str, float]:
    """Return ours divided by etcd's: latency alone, and rate with many in flight."""
    many = f"in_flight_{IN_FLIGHT}"
    ours, theirs = results["reachnode"], results["etcd"]
    found = {}
    for via in VIAS:
        latency = ours[via]["alone"]["p50_ms"] / theirs[via]["alone"]["p50_ms"]
        rate = ours[via][many]["per_second"] / theirs[via][many]["per_second"]
        found[f"{via}_alone_p50"] = round(latency, 2)
        found[f"{via}_{many}_per_second"] = round(rate, 2)
    return found


async def measure_failover(wish: Wish, contenders: Sequence[Contender]) -> dict[str, Any]:
    """Return how long no change was accepted after a leader was killed."""
    took: dict[str, list[float]] = {one.name: [] for one in contenders}
    for turn in range(wish.runs):
        print(f"bench: failover, run {turn + 1} of {wish.runs}", file=sys.stderr, flush=True)
        for contender in turned(contenders, turn):
            took[contender.name].append(await timed_failover(contender))
            await trio.sleep(1.0)  # What the restart left behind must not count for the next.
    results = {name: spread(found) for name, found in took.items()}
    said: dict[str, Any] = {"runs": wish.runs, "results": results}
    if len(contenders) > 1:
        theirs = results["etcd"]["p50"]
        said["ratios"] = {
            "p50": round(results["reachnode"]["p50"] / theirs, 2),
            "max_to_their_p50": round(results["reachnode"]["max"] / theirs, 2),
        }
    return said


def turned(contenders: Sequence[Contender], turn: int) -> Sequence[Contender]:
    """Return the contenders in an order that alternates."""
    return contenders if turn % 2 == 0 else contenders[::-1]


def page(said: Mapping[str, Any]) -> str:
    """Return the results for people."""
    lines = []
    changes = said["rows"].get("changes")
    if changes:
        lines.append(f"{ROWS['changes']}; medians of {changes['rounds']} turns")
        lines += [
            f"  {name:10} {via:9} {load:13} p50 {one['p50_ms']:8.2f} ms  "
            f"p99 {one['p99_ms']:8.2f} ms  {one['per_second']:8.0f}/s"
            for name, by_via in changes["results"].items()
            for via, by_load in by_via.items()
            for load, one in by_load.items()
        ]
        lines += ratios(changes)
    failover = said["rows"].get("failover")
    if failover:
        lines.append(f"{ROWS['failover']}; {failover['runs']} kills each")
        lines += [
            f"  {name:10} p50 {one['p50']:7.0f} ms  p99 {one['p99']:7.0f} ms  "
            f"max {one['max']:7.0f} ms"
            for name, one in failover["results"].items()
        ]
        lines += ratios(failover)
    lines.append(", ".join(f"{name} {version}" for name, version in said["versions"].items()))
    lines.append(", ".join(f"{name} {value}" for name, value in said["machine"].items()))
    return "\n".join(lines)


def ratios(row: Mapping[str, Any]) -> list[str]:
    """Return ours to etcd's, a line; none when there is nothing to compare with."""
    found = row.get("ratios", {})
    listed = ", ".join(f"{name} {value:g}" for name, value in found.items())
    return [f"  reachnode / etcd: {listed}"] if found else []


def plain(error: BaseException) -> BaseException:
    """Return what ended a measurement; a fault of this program is raised on.

    Raises:
        BaseException: It is one, or the user's interrupt.
    """
    inside = error
    while isinstance(inside, BaseExceptionGroup):
        inside = inside.exceptions[0]
    if not isinstance(inside, TooLate | ProcessEnded):
        raise error
    return inside
