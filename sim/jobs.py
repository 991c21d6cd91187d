"""What a worker process can be asked for: each job is a name, its arguments, and an answer.

Everything is JSON on the way in and out, so that a process of another Python or with
another hash seed can do it.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from reachnode.peers.raft.safeguards import ALL_ON
from reachnode.registry.apply import apply_batch
from reachnode.registry.snapshot import digest_of, dump
from reachnode.registry.state import genesis
from sim.circumstances import Circumstances, draw_circumstances
from sim.disk_trials import try_script
from sim.recorded import searched
from sim.trials import TRIALS
from sim.world import REQUESTS_MAX, World

Answer = Mapping[str, Any]


def circumstances_of(
    seed: int, fixed: Mapping[str, Any] | None = None, off: list[str] | None = None
) -> Circumstances:
    """Return a seed's circumstances.

    Args:
        seed: Draws what is not fixed.
        fixed: What overrules the draw, by field.
        off: Safeguards to switch off.
    """
    known = {field.name for field in fields(Circumstances)}
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in (fixed or {}).items()
    }
    assert given.keys() <= known, f"unknown circumstances: {sorted(given.keys() - known)}"
    safeguards = replace(ALL_ON, **dict.fromkeys(off or [], False))
    return draw_circumstances(seed, **given, safeguards=safeguards)


def run(seed: int, fixed: Mapping[str, Any] | None = None, off: list[str] | None = None) -> Answer:
    """Return the report of one run."""
    return asdict(World(seed, circumstances_of(seed, fixed, off)).run())


def hunt(seed: int, fixed: Mapping[str, Any], off: list[str]) -> Answer:
    """Return the first violation of a run, None if there is none; an exception is one."""
    try:
        violations = run(seed, fixed, off)["violations"]
    except Exception as error:  # noqa: BLE001 - a node that raises is noticed, whatever it raises
        return {"violation": f"raised: {type(error).__name__}: {error}"}
    return {"violation": violations[0] if violations else None}


def attempt(trial: str, seed: int, off: list[str]) -> Answer:
    """Return the first violation of a trial, None if there is none; an exception is one."""
    safeguards = replace(ALL_ON, **dict.fromkeys(off, False))
    try:
        violations = TRIALS[trial](seed, safeguards)
    except Exception as error:  # noqa: BLE001 - a node that raises is noticed, whatever it raises
        return {"violation": f"raised: {type(error).__name__}: {error}"}
    return {"violation": violations[0] if violations else None}


def digest(cluster_id: str, founders: Mapping[str, str], log: list[tuple[int, str]]) -> Answer:
    """Return the digest of the state that a recorded log makes."""
    state = genesis(cluster_id, founders, requests_max=REQUESTS_MAX)
    for index, command in log:
        data = b64decode(command)
        if data[:1] == b"\x00":
            state, _ = apply_batch(state, index, data[1:])
    return {"digest": digest_of(dump(state))}


JOBS: Mapping[str, Callable[..., Answer | list[Answer]]] = {
    "run": run,
    "hunt": hunt,
    "try": attempt,
    "digest": digest,
    "disk": try_script,
    "linear": searched,
}
"""Every job by its name."""
