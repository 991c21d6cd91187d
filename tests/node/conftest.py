"""Fixtures of this room's tests."""

from tests.node.kept_logs import kept_logs_fixture

__all__ = ["kept_logs_fixture"]
