"""All that is tried on one script of writes: first its crash points, then flipped bits.

Trials are numbered within a script, so that one of them can be repeated.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sim.bit_flips import Flip, draw_flips, flip_fault
from sim.crash_points import CountedFiles, Point, Script, Trial
from sim.ledger import Ledger
from sim.scribe import NODE, Rooms

FLIPS_PER_SCRIPT = 100


def try_script(seed: int, number: int, rooms: Rooms = NODE) -> Mapping[str, Any]:
    """Return what all trials of a script came to, as JSON has it.

    Args:
        seed: Of all scripts.
        number: Of this one.
        rooms: Whose code is tried.
    """
    script = Script(seed=seed, number=number, rooms=rooms)
    counts: Counter[str] = Counter()
    violations: list[tuple[int, str]] = []
    points = script.points()
    for place, point in enumerate(points):
        trial = Trial()
        trial.run(script, point)
        counts.update(trial.counts)
        counts[f"at_{point.fate}"] += 1
        violations += [(place, fault) for fault in trial.faults]
    image = _at_rest(script)
    flips = _flips(script, image)
    for place, flip in enumerate(flips, start=len(points)):
        if fault := flip_fault(image, flip):
            violations.append((place, fault))
    counts["points"], counts["flips"] = len(points), len(flips)
    return {"counts": dict(counts), "violations": violations}


def repeat_trial(seed: int, number: int, place: int) -> tuple[str, list[str]]:
    """Return what one trial is, and what was violated in it.

    Raises:
        IndexError: The script has no such trial.
    """
    script = Script(seed=seed, number=number)
    points = script.points()
    image = _at_rest(script)
    trials: list[Point | Flip] = [*points, *_flips(script, image)]
    chosen = trials[place]
    if isinstance(chosen, Flip):
        fault = flip_fault(image, chosen)
        return str(chosen), [fault] if fault else []
    trial = Trial()
    trial.run(script, chosen)
    return str(chosen), trial.faults


def _at_rest(script: Script) -> Mapping[str, bytes]:
    """Return the directory at the end of a script."""
    files = CountedFiles()
    script.first_life(files, Ledger())
    return files.copy()


def _flips(script: Script, image: Mapping[str, bytes]) -> list[Flip]:
    """Return the bits of a directory that are turned over, one at a time."""
    return draw_flips(image, script.dice("flips"), FLIPS_PER_SCRIPT)
