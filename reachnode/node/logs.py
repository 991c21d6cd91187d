"""How log lines look and where they go: standard error, as text or as JSON. Set here alone.

A line never holds a secret: rooms log ids, addresses and reasons, no bodies and no headers.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

from reachnode.model.config import NodeConfig


class TextLines(logging.Formatter):
    """Lines for people: time, level, room, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, with the traceback below it where there is one."""
        line = f"{moment(record)} {record.levelname:7} {record.name}: {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class JsonLines(logging.Formatter):
    """Lines for programs: one JSON object each."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one object on one line."""
        content = {
            "time": moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            content["exception"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=False)


def configure_logs(config: NodeConfig, stream: TextIO | None = None) -> None:
    """Send log lines of all rooms and libraries to `stream`, standard error when None."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if config.log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.log_level.upper())


def moment(record: logging.LogRecord) -> str:
    """Return when a line was logged, UTC with milliseconds."""
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
