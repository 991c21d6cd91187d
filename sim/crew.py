"""Worker processes, one per core, that do jobs and answer in the order they were asked.

A worker is a fresh interpreter with PYTHONHASHSEED set, so what it does can be replayed
whatever the hash seed of the process that asks.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import msgspec

Job = tuple[str, Mapping[str, Any]]
"""Its name and its arguments."""

AHEAD = 2
"""Jobs per worker that are asked for before their turn, so that none stands idle."""


class JobFailed(Exception):
    """A job raised; the message holds its traceback."""


class Worker:
    """One worker process; asked from one thread at a time."""

    def __init__(self, hash_seed: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sim.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )

    def ask(self, job: Job) -> Any:
        """Return the answer to a job.

        Raises:
            JobFailed: It raised, or the process died.
        """
        name, arguments = job
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = msgspec.json.encode({"job": name, "arguments": arguments})
        try:
            self._process.stdin.write(request + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise JobFailed(f"the worker died at {name} {dict(arguments)}")
        answer = msgspec.json.decode(line)
        if "failed" in answer:
            raise JobFailed(f"{name} {dict(arguments)}\n{answer['failed']}")
        return answer["result"]

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # What it was still to be asked.
                    pipe.close()


class Crew:
    """As many workers as there are cores, or as are asked for."""

    def __init__(self, workers: int = 0, *, hash_seed: str = "0") -> None:
        self.size = workers or len(os.sched_getaffinity(0))
        self._hash_seed = hash_seed
        self._threads = ThreadPoolExecutor(self.size)
        self._of_thread = threading.local()
        self._workers: list[Worker] = []
        self._is_ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_ended = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._send_home()
        self._threads.shutdown(wait=True)
        self._send_home()  # One may have been hired meanwhile.

    def _send_home(self) -> None:
        """End every worker there is."""
        while self._workers:
            self._workers.pop().end()

    def answers(self, jobs: Iterable[Job]) -> Iterator[Any]:
        """Yield the answers in the order of the jobs; what is left over is not waited for."""
        waiting: deque[Future[Any]] = deque()
        try:
            for job in jobs:
                waiting.append(self._threads.submit(self._ask, job))
                if len(waiting) >= self.size * AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _ask(self, job: Job) -> Any:
        """Ask this thread's own worker."""
        worker: Worker | None = getattr(self._of_thread, "worker", None)
        if worker is None:
            worker = self._of_thread.worker = Worker(self._hash_seed)
            self._workers.append(worker)
        if self._is_ended:
            raise JobFailed("the crew has been sent home")
        return worker.ask(job)
