"""Fixtures of every test, and how Hypothesis searches.

Runs repeat: the same code gives the same examples, on any machine and however slow.
`pytest --hypothesis-profile explore` looks for new ones.
"""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

from tests import requirements

settings.register_profile(
    "repeat",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("repeat")


@pytest.fixture(name="require")
def require_fixture() -> Callable[[str], str]:
    """Give `require(thing)`: the path of a program, or the test is skipped with a reason."""
    return requirements.require
