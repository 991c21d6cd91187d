"""Percentiles, and what a figure is worth nothing without."""

from pathlib import Path

from sim.live.figures import machine, median, percentile, spread


def test_a_percentile_is_one_of_the_values() -> None:
    """Worked by hand; the hundredth is the largest, and of nothing it is 0."""
    values = [float(number) for number in range(1, 11)]
    assert [percentile(values, share) for share in (1, 50, 90, 99, 100)] == [1, 5, 9, 10, 10]
    assert percentile([3.0], 50) == 3.0
    assert percentile([], 99) == 0.0


def test_a_spread_is_in_milliseconds() -> None:
    """Seconds in, milliseconds out; zeros where nothing was measured."""
    assert spread([0.1, 0.2, 0.3]) == {"p50": 200.0, "p99": 300.0, "max": 300.0}
    assert spread([]) == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    assert median([]) == 0.0


def test_the_machine_is_told(tmp_path: Path) -> None:
    """Processor, cores, file system and versions are all there."""
    said = machine(tmp_path)
    assert {"processor", "cores", "file_system", "python", "pysyncobj"} <= said.keys()
    assert all(said.values())
    assert machine(Path("/proc"))["file_system"] == "proc"
