"""`reachnode sim kill9`: three real processes under load, killed with SIGKILL again and again.

Writers register agents over HTTP, each change until it is confirmed. Meanwhile nodes are
killed, one, two or all three at a time, in any order, and started again. In the end every
confirmed change must be there, none twice, on every node alike.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio

from sim.live.cluster import LiveCluster, TooLate
from sim.live.figures import machine, spread
from sim.live.killing import Run, Wish
from sim.live.processes import ProcessEnded
from sim.live.verdict import Verdict


def report(run: Run, verdict: Verdict, seed: int) -> dict[str, Any]:
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
        "seed": seed,
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
        wish = Wish(
            kills=options.kills,
            seed=options.seed,
            seconds=options.seconds,
            writers=options.writers,
        )
        run = Run(cluster, wish)
        try:
            verdict, index = trio.run(run.run)
        except (TooLate, ProcessEnded, BaseExceptionGroup) as error:
            run.look_for_crashes()
            for one in (why(error), *run.tally.crashed):
                print(f"kill9: {one}", file=sys.stderr)
            options.keep_dir = True
            return 1
        finally:
            cluster.end()
        said = {
            **report(run, verdict, wish.seed),
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
