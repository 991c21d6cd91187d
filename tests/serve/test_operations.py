"""What handlers promise."""

from typing import Any

from reachnode.errors import Internal, NoQuorum
from reachnode.serve.operations import lenient, operation


async def answer(_front: Any, _inquiry: Any) -> Any:
    """Answer something.

    And this is beside the point.
    """


def test_a_handler_becomes_an_operation() -> None:
    """The promise is read off what stands beside the handler, and off its docstring."""
    made = operation(gives={200: str}, refuses=(NoQuorum,))(answer)
    assert made.handler is answer
    assert made.summary == "Answer something."
    assert (made.query, made.headers, made.takes) == ({}, {}, None)
    assert {NoQuorum, Internal} <= set(made.refusals)


def test_a_lenient_operation_passes_over_every_query() -> None:
    """Probes append what they like."""
    assert lenient({200: str})(answer).query is None
