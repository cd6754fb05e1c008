"""Logs on stderr, one line each: JSON for machines, text for people. Fields come from `extra=`."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from dragoman.telemetry import origin
from dragoman.words import visible, visible_lines

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def log_to_stderr(log_format: str, level: str) -> None:
    """Send the logs of this process to stderr; `log_format` is json or text."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_is_shown)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _is_shown(record: logging.LogRecord) -> bool:
    """Leave out the details of other libraries: some log whole answers, with values and signed addresses."""
    return record.levelno >= logging.INFO or record.name.startswith("dragoman")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    where = origin()
    return {**fields, "trace": where.trace} if where is not None and where.trace else fields


def _moment(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, message, the record's own fields and, after a bug, the traceback."""
        line = {"time": _moment(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage()} | _fields(record)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, separators=(",", ":"))


class TextLines(logging.Formatter):
    """Formats a record as time, level, message and fields, for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and after a bug its traceback."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        line = visible(f"{_moment(record)} {record.levelname.lower():7} {record.getMessage()}{fields}")
        return f"{line}\n{visible_lines(self.formatException(record.exc_info))}" if record.exc_info else line
