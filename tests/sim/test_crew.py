"""Workers answer in the order they were asked, and say so when they fail."""

from collections.abc import Iterator

import pytest

from sim.crew import Crew, Job, JobFailed

QUICK = {"seed": 3, "fixed": {"chaos_seconds": 0.5}}


def test_answers_come_in_the_order_of_the_jobs() -> None:
    """Whichever worker is faster, the first answer belongs to the first job."""
    jobs: list[Job] = [("run", {**QUICK, "seed": seed}) for seed in (5, 1, 3)]
    with Crew(2) as crew:
        assert [answer["seed"] for answer in crew.answers(jobs)] == [5, 1, 3]


def test_endless_jobs_are_asked_for_little_ahead() -> None:
    """Whoever has enough answers stops, and the rest is not done."""
    asked: list[int] = []

    def jobs() -> Iterator[Job]:
        for seed in range(1000):
            asked.append(seed)
            yield "run", {**QUICK, "seed": seed}

    with Crew(1) as crew:
        answers = crew.answers(jobs())
        assert next(answers)["seed"] == 0
    assert len(asked) <= 3


def test_a_job_that_raises_is_told_with_its_traceback() -> None:
    """A fault of the simulator is not swallowed by a worker."""
    with Crew(1) as crew, pytest.raises(JobFailed, match="unknown circumstances"):
        list(crew.answers([("run", {"seed": 1, "fixed": {"weather": "bad"}})]))
