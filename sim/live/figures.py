"""Percentiles, and what was measured on what."""

import math
import os
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of the values don't exceed; 0 of none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, 99th percentile and maximum in milliseconds; zeros of none."""
    return {
        "p50": ms(percentile(seconds, 50)),
        "p99": ms(percentile(seconds, 99)),
        "max": ms(max(seconds, default=0.0)),
    }


def ms(seconds: float) -> float:
    """Return milliseconds, to the microsecond."""
    return round(seconds * 1000, 3)


def median(values: Sequence[float]) -> float:
    """Return the median; 0 of none."""
    return statistics.median(values) if values else 0.0


def machine(directory: Path) -> dict[str, object]:
    """Return what figures depend on: processor, system, Python, file system.

    Args:
        directory: Where the data of the run is kept.
    """
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "file_system": file_system(directory),
        "reachnode": version("reachnode"),
        "trio": version("trio"),
        "pysyncobj": version("pysyncobj"),
    }


def processor() -> str:
    """Return the processor's name as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def file_system(directory: Path) -> str:
    """Return the type of the file system that a directory is on."""
    found = ("", "unknown")
    path = str(directory.resolve())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, *_ = line.split()
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]
