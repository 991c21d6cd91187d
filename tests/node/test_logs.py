"""How log lines look."""

import io
import json
import logging
from typing import Literal

import pytest

from reachnode.model.config import NodeConfig
from reachnode.node.logs import configure_logs

pytestmark = pytest.mark.usefixtures("kept_logs")


def logged(log_format: Literal["text", "json"], log_level: Literal["info", "error"]) -> str:
    """Return what three log calls write."""
    stream = io.StringIO()
    configure_logs(NodeConfig(log_format=log_format, log_level=log_level), stream)
    logger = logging.getLogger("reachnode.some.room")
    logger.debug("not this")
    logger.info("peer %s is up", "n2")
    try:
        1 / 0  # noqa: B018 - raises, which is all it is for
    except ZeroDivisionError:
        logger.exception("it broke")
    return stream.getvalue()


def test_text_is_for_people() -> None:
    """Time in UTC, level, room and message; a traceback stands below."""
    lines = logged("text", "info").splitlines()
    assert lines[0].endswith("Z INFO    reachnode.some.room: peer n2 is up")
    assert lines[1].endswith("Z ERROR   reachnode.some.room: it broke")
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_json_is_for_programs() -> None:
    """Each line is one object, a traceback inside it."""
    first, second = (json.loads(line) for line in logged("json", "info").splitlines())
    assert first["time"].endswith("Z")
    del first["time"]
    assert first == {
        "level": "info",
        "logger": "reachnode.some.room",
        "message": "peer n2 is up",
    }
    assert "ZeroDivisionError" in second["exception"]


def test_less_important_lines_are_left_out() -> None:
    """The level of the configuration is the least that is logged."""
    assert len(logged("json", "error").splitlines()) == 1
