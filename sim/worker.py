"""A worker process: takes one job a line from its standard input, answers one line each.

Run as `python -m sim.worker` by `sim.crew`, with PYTHONHASHSEED set. Garbage is collected
between jobs instead of amid them, which a tenth of the time would go to.
"""

import gc
import sys
import traceback
from typing import Any

import msgspec

from sim.jobs import JOBS


def answer(line: bytes) -> bytes:
    """Return the answer to one job: what came out of it, or how it failed."""
    job = msgspec.json.decode(line)
    try:
        result: dict[str, Any] = {"result": JOBS[job["job"]](**job["arguments"])}
    except Exception:  # noqa: BLE001 - whatever it is, whoever asked must be told
        result = {"failed": traceback.format_exc()}
    return msgspec.json.encode(result)


def main() -> None:
    """Answer until there is nobody who asks."""
    gc.disable()
    gc.freeze()  # What was imported stays, and need not be looked at again.
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(answer(line) + b"\n")
        sys.stdout.buffer.flush()
        gc.collect()


if __name__ == "__main__":
    main()
