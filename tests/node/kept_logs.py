"""A fixture for tests that configure logs: what they change is put back."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(name="kept_logs")
def kept_logs_fixture() -> Iterator[None]:
    """Put the root logger back after a test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
