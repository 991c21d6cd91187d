"""All that is tried on one script of writes."""

import pytest

from reachnode.peers.raft.storage import Storage
from sim.bit_flips import Flip
from sim.crash_points import Script
from sim.disk_trials import FLIPS_PER_SCRIPT, repeat_trial, try_script
from sim.scribe import Rooms

SMALL = 2
"""A script with few calls."""


class Lazy(Storage):
    """Syncs nothing that it replaces."""

    def _replace(self, name: str, data: bytes) -> None:
        self.files.remove(name)
        self.files.write(name, 0, data)


def test_the_node_keeps_its_promise() -> None:
    """Every crash point and every flip of a script: counted, and nothing violated."""
    answer = try_script(0, SMALL)
    counts = answer["counts"]
    assert answer["violations"] == []
    assert counts["flips"] == FLIPS_PER_SCRIPT
    assert counts["points"] == sum(n for name, n in counts.items() if name.startswith("at_"))
    assert counts["kills"] + counts["power_losses"] == 3 * counts["points"]


def test_a_violation_names_its_trial() -> None:
    """By number, so that it can be tried again; points come first, then flips."""
    answer = try_script(0, SMALL, Rooms(storage=Lazy))
    assert answer["violations"]
    assert all(0 <= place < answer["counts"]["points"] for place, _ in answer["violations"])
    what, faults = repeat_trial(0, SMALL, 0)
    assert what.startswith("Point(call=0")
    assert faults == []


def test_flips_are_trials_too() -> None:
    """They are numbered behind the points, and there is an end."""
    points = len(Script(seed=0, number=SMALL).points())
    what, faults = repeat_trial(0, SMALL, points)
    assert what.startswith(Flip.__name__)
    assert faults == []
    with pytest.raises(IndexError):
        repeat_trial(0, SMALL, points + FLIPS_PER_SCRIPT)
