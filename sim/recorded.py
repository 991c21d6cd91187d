"""`reachnode sim linear`: histories of simulated runs, searched for an order that explains them.

The witness check of every run believes the log. Here nobody is believed: the operations on
one key, as clients saw them, either fit some order that respects real time, or they don't.
A run is cut into histories of at most 200 operations; a cut is made only where nothing is
under way and no outcome is unknown, so that what went before is one known value.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from sim.circumstances import draw_circumstances
from sim.crew import Crew, Job
from sim.histories import FAULTS, main_self_check
from sim.linear import (
    OPERATIONS_MAX,
    Operation,
    Value,
    Verdict,
    by_key,
    search,
    to_porcupine_json,
)
from sim.printing import Progress
from sim.world import World

HISTORIES_DEFAULT = 200
GIVEN_UP_SHARE_MAX = 0.001
PLANTED_EACH = 25
"""Made-up histories of each fault that the search must reject."""
OPERATIONS_WANTED = 40
"""A history is cut at the first place that allows it, from so many operations on."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe what the command takes."""
    parser.add_argument(
        "--histories",
        type=int,
        default=HISTORIES_DEFAULT,
        help=f"How many to search (default {HISTORIES_DEFAULT}).",
    )
    parser.add_argument("--seed", type=int, default=0, help="The first seed (default 0).")
    parser.add_argument("--workers", type=int, default=0, help="Processes (default: one a core).")
    parser.add_argument("--export", metavar="DIR", help="Write each history for Porcupine.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object.")


def run(args: argparse.Namespace) -> int:
    """Record and search; return the exit status."""
    directory = Path(args.export) if args.export else None
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    verdicts: Counter[str] = Counter()
    operations, illegal = 0, []
    for history in _histories(args, exports=directory is not None):
        verdicts[history["verdict"]] += 1
        operations += history["operations"]
        if history["verdict"] == Verdict.ILLEGAL:
            illegal.append(history["name"])
        if directory is not None:
            path = directory / f"{history['name']}.json"
            path.write_text(history["porcupine"], encoding="utf-8")
    given_up = verdicts[Verdict.GIVEN_UP]
    total = verdicts.total()
    planted, rejected = self_check(args.seed)
    answer = {
        "histories": total,
        "operations": operations,
        "illegal": len(illegal),
        "given_up": given_up,
        "illegal_histories": illegal,
        "planted": planted,
        "rejected": rejected,
    }
    if args.json:
        print(json.dumps(answer, indent=2))
    else:
        print(f"{total} histories of {operations:,} operations: {len(illegal)} illegal,", end=" ")
        print(f"{given_up} given up")
        print(f"self-check: {rejected} of {planted} histories with a planted fault are rejected")
        for name in illegal:
            print(f"  illegal: {name}")
    is_blind = rejected < planted
    return 1 if illegal or is_blind or given_up > GIVEN_UP_SHARE_MAX * total else 0


def self_check(seed: int, histories: int = PLANTED_EACH) -> tuple[int, int]:
    """Return how many illegal histories were made up, and how many the search rejects.

    Legal ones are made up beside them; if one of those is rejected, nothing counts.
    """
    tallies = main_self_check(histories, random.Random(f"planted {seed}"))
    planted = histories * len(FAULTS)
    if tallies["legal"].rejected:
        return planted, 0
    return planted, sum(tallies[fault].rejected for fault in FAULTS)


def _histories(args: argparse.Namespace, *, exports: bool) -> Iterator[Mapping[str, Any]]:
    """Yield so many histories with their verdicts."""
    progress, done = Progress(), 0
    jobs: Iterator[Job] = (
        ("linear", {"seed": seed, "exports": exports}) for seed in count(args.seed)
    )
    with Crew(args.workers) as crew:
        for histories in crew.answers(jobs):
            for history in histories[: args.histories - done]:
                done += 1
                yield history
            progress.say(f"{done} histories")
            if done >= args.histories:
                break
    progress.end()


def searched(seed: int, *, exports: bool = False) -> list[Mapping[str, Any]]:
    """Return the histories of one run, each with its verdict."""
    world = World(seed, draw_circumstances(seed))
    world.run()
    found: list[Mapping[str, Any]] = []
    for key, operations in sorted(by_key(world.judge.operations()).items()):
        for number, history in enumerate(cut(operations)):
            found.append(
                {
                    "name": f"seed-{seed}-{key}-{number}",
                    "operations": len(history),
                    "verdict": search(history),
                    "porcupine": to_porcupine_json(history) if exports else "",
                }
            )
    return found


def cut(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Return the operations on one key in histories that can be searched apart.

    The next one begins with a write of the value that was held, done before anything else.
    What a history can't take any more, because nothing could be cut, is left out together
    with all that follows. What was under way then may have seen it, so its answers are left
    out as well.
    """
    histories: list[list[Operation]] = []
    current: list[Operation] = []
    ends_at = float("-inf")
    for one in sorted(operations, key=lambda one: one.invoked_at):
        if len(current) >= OPERATIONS_MAX:
            current = _until(current, one.invoked_at)
            break
        held = _held(current)
        if len(current) >= OPERATIONS_WANTED and held is not None and ends_at < one.invoked_at:
            histories.append(current)
            current = [_write(one, value=held, before=one.invoked_at)]
        current.append(one)
        ends_at = max(ends_at, one.returned_at if one.returned_at is not None else float("inf"))
    return [*histories, current] if current else histories


def _until(history: Sequence[Operation], time: float) -> list[Operation]:
    """Return what was known of a history at a time: no answer that came later."""
    known = []
    for one in history:
        if one.returned_at is not None and one.returned_at < time:
            known.append(one)
        elif one.kind != "read":
            known.append(replace(one, returned_at=None, index=None))
    return known


def _held(history: Sequence[Operation]) -> Value:
    """Return the value that a register must hold after a history, None when that isn't plain.

    It is plain when the last thing that happened, by itself, was an acknowledged write or a
    read.
    """
    if not history or any(one.returned_at is None for one in history):
        return None
    last = max(history, key=lambda one: one.invoked_at)
    others = [one for one in history if one is not last]
    if any((one.returned_at or 0.0) >= last.invoked_at for one in others):
        return None
    if last.kind == "read":
        return last.result
    return last.argument if not isinstance(last.argument, tuple) else None


def _write(one: Operation, *, value: Value, before: float) -> Operation:
    """Return a write that put a value there before a time."""
    return replace(
        one,
        client="before",
        kind="write",
        argument=value,
        result=None,
        invoked_at=before - 2e-6,
        returned_at=before - 1e-6,
        index=None,
    )
