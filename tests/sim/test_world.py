"""A run out of one seed: the same each time, and judged."""

import os
import subprocess
import sys

import pytest

from sim.circumstances import Circumstances, draw_circumstances
from sim.world import World, run_seed

SEED = 6
SHORT_SECONDS = 8.0


def report_in_another_process(hash_seed: str) -> list[str]:
    """Return trace hash and result digest of a run in a fresh interpreter."""
    code = (
        "from sim.world import run_seed\n"
        f"report = run_seed({SEED}, chaos_seconds={SHORT_SECONDS})\n"
        "print(report.trace_hash, report.result_digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_two_processes_run_a_seed_alike() -> None:
    """A seed is enough to replay a run: two processes agree, whatever their hash seeds."""
    first = report_in_another_process("0")
    assert first == report_in_another_process("0")
    assert first == report_in_another_process("4242")


def test_seeds_differ() -> None:
    """Another seed is another run."""
    hashes = {run_seed(seed, chaos_seconds=2.0, voters=3).trace_hash for seed in range(3)}
    assert len(hashes) == 3


def test_a_quiet_cluster_takes_every_change() -> None:
    """Without faults each change is applied, and nothing is violated."""
    world = World(1, Circumstances(chaos_seconds=5.0, fault_every_seconds=1e9))
    report = world.run()
    assert report.violations == ()
    assert report.acknowledged > 10
    assert report.fates == {"applied": report.acknowledged}
    assert report.faults == {}


@pytest.mark.parametrize("voters", [1, 3, 5])
def test_clusters_of_every_size_outlive_chaos(voters: int) -> None:
    """One, three or five members under all faults: nothing is violated."""
    report = run_seed(
        SEED, voters=voters, chaos_seconds=15.0, wipes=True, full_disks=True, sync_errors=True
    )
    assert report.violations == ()
    assert report.faults
    assert report.acknowledged


def test_a_cluster_is_founded_though_members_die_meanwhile() -> None:
    """Crashes amid the founding neither prevent it nor make a second cluster."""
    interrupted = 0
    for seed in range(8):
        world = World(seed, draw_circumstances(seed, early_crashes=True))
        assert world.found(), world.judge.violations
        interrupted += world.rare["founding_interrupted"]
    assert interrupted


def test_the_trace_tells_what_happened() -> None:
    """Whoever wants to read a run gets a line for each message and each turn of events."""
    lines: list[str] = []
    circumstances = draw_circumstances(SEED, chaos_seconds=2.0)
    told = World(SEED, circumstances, tell=lines.append).run()
    assert any("Append(" in line for line in lines)
    assert any(" role n" in line for line in lines)
    assert told.trace_hash == World(SEED, circumstances).run().trace_hash


def test_a_cluster_that_is_not_founded_is_a_violation() -> None:
    """A run that can't begin is not a run without faults."""
    world = World(1, Circumstances())
    world.network.cut([("n1", "n2")], 1e6)
    report = world.run()
    assert [one.partition(":")[0] for one in report.violations] == ["no progress"]
