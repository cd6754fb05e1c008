"""Logs on stderr, one line each: JSON for machines, text for people. Fields come from `extra=`."""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import time
from typing import Any, Final, TextIO

from dragoman.telemetry import origin
from dragoman.words import visible, visible_lines

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


PATIENCE: Final = 1.0
"""Seconds that a line waits while nobody reads a full stderr. Further lines are left out until somebody does."""
_LEFT_OUT = {"name": __name__, "levelno": logging.WARNING, "levelname": "WARNING"}


def log_to_stderr(log_format: str, level: str) -> None:
    """Send the logs of this process to stderr; `log_format` is json or text."""
    handler = Lines(sys.stderr) if hasattr(select, "poll") and _has_number(sys.stderr) else logging.StreamHandler()
    handler.addFilter(_is_shown)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _has_number(stream: TextIO) -> bool:
    """Return whether a stream is one of the operating system's."""
    try:
        return stream.fileno() >= 0
    except OSError:
        return False


class Lines(logging.Handler):
    """Writes records to a pipe, terminal or file. A pipe that nobody reads does not stop the process for long.

    Some MCP clients start a server and never read its stderr. The first line after a pause tells how many are missing.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._number = stream.fileno()
        self._encoding = stream.encoding
        self._poll = select.poll()
        self._poll.register(self._number, select.POLLOUT)
        self._is_full = False
        self._begun = b""
        self._missing = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or count it as missing."""
        try:
            line = self.format(record)
        except Exception:
            self.handleError(record)
            return
        try:
            if self._write_begun() and self._tell_missing():
                self._write(line)
            else:
                self._missing += 1
        except OSError:  # the reader has left
            self._begun = b""

    def _tell_missing(self) -> bool:
        if not self._missing:
            return True
        told = f"{self._missing} lines are left out here: nobody read stderr"
        self._missing = 0
        return self._write(self.format(logging.makeLogRecord({**_LEFT_OUT, "msg": told})))

    def _write(self, line: str) -> bool:
        """Begin a line. Return whether it was written to its end."""
        self._begun = f"{line}\n".encode(self._encoding, "backslashreplace")
        return self._write_begun()

    def _write_begun(self) -> bool:
        while self._begun:
            self._is_full = not self._poll.poll(0 if self._is_full else PATIENCE * 1000)
            if self._is_full:
                return False
            # A pipe that takes anything takes so much without waiting.
            self._begun = self._begun[os.write(self._number, self._begun[: select.PIPE_BUF]) :]
        return True


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
