"""`dragoman check`: would the read-only gate allow a statement? Needs no database."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from dragoman.cli.common import add_json_argument, add_source_arguments, in_our_words, read_sql
from dragoman.cli.output import put
from dragoman.config.readers import is_mapping
from dragoman.errors import DialectError, DragomanError, InternalError, ParameterError

LONGEST: Final = 1024 * 1024
"""The most bytes of a line of JSON. Escapes make a statement up to twelve times as long."""
_LINE: Final = 'Send one object in each line: {"dialect": "sqlite", "sql": "select 1"}.'
EXAMPLES = """\
examples:
  dragoman check 'select 1' --dialect sqlite
  dragoman check --dialect sqlite < query.sql
  echo '{"dialect": "sqlite", "sql": "drop table t"}' | dragoman check --jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument(
        "sql", metavar="SQL", nargs="?", default="-", help="the statement; without it or with -, stdin is read"
    )
    parser.add_argument(
        "--dialect", metavar="D", help="the dialect of the SQL; with --jsonl, of the lines that name none"
    )
    parser.add_argument("--jsonl", action="store_true", help='judge {"dialect", "sql"} lines from stdin, a line each')
    add_json_argument(parser)
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge one statement, or every line of stdin."""
    judge = Judge(arguments.dialect)
    if arguments.jsonl:
        return _judge_lines(judge)
    if arguments.dialect is None:
        raise DialectError(
            "The dialect of the SQL is missing.",
            suggestion="Add --dialect; `dragoman dialects` lists what is installed.",
        )
    judge.check_dialect(arguments.dialect)
    verdict = judge.verdict({"sql": read_sql(arguments.sql)})
    if arguments.json:
        print(json.dumps(verdict))
    elif verdict["allow"]:
        print("allowed")
    else:
        put(f"{verdict['code']}: {in_our_words(verdict['reason'])}", sys.stderr)
    return 0 if verdict["allow"] else 1


def _judge_lines(judge: Judge) -> int:
    for line in _lines(sys.stdin.buffer):
        sys.stdout.write(json.dumps(judge.line(line)) + "\n")
        sys.stdout.flush()
    return 0


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a stream; of one that is longer than any statement, its beginning."""
    while line := stream.readline(LONGEST):
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while (rest := stream.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
        yield line


class Judge:
    """Judges statements of the installed dialects."""

    def __init__(self, default: str | None) -> None:
        from dragoman.plugins import Plugins

        self._plugins = Plugins.discover()
        self._default = default

    def check_dialect(self, name: str) -> None:
        """Raise `DialectError` if there is no such dialect."""
        self._plugins.load(name)

    def line(self, line: bytes) -> dict[str, Any]:
        """Judge one line of JSON, whatever it contains."""
        if len(line) >= LONGEST:
            return _refusal(
                ParameterError(f"This line has more than {LONGEST} bytes.", suggestion="Send a shorter one.")
            )
        try:
            return self.verdict(json.loads(line))
        except (ValueError, RecursionError):
            return _refusal(ParameterError("This line is not JSON.", suggestion=_LINE))

    def verdict(self, asked: Any) -> dict[str, Any]:
        """Return `{"allow", "code", "reason"}`; never raises."""
        try:
            self._judge(asked)
        except DragomanError as error:
            return _refusal(error)
        except Exception as error:
            # Any error of a parser is a refusal, and the next line is judged all the same.
            return _refusal(InternalError(f"The gate failed on this statement ({type(error).__name__})."))
        return {"allow": True, "code": None, "reason": None}

    def _judge(self, asked: Any) -> None:
        from dragoman.validators import check_text

        if not is_mapping(asked):
            raise ParameterError("The line is not an object.", suggestion=_LINE)
        dialect, sql = asked.get("dialect", self._default), asked.get("sql")
        if not isinstance(dialect, str):
            raise ParameterError("dialect is missing or not a text.", suggestion=_LINE)
        if not isinstance(sql, str):
            raise ParameterError("sql is missing or not a text.", suggestion=_LINE)
        check_text(self._plugins.load(dialect).dialect, sql)


def _refusal(error: DragomanError) -> dict[str, Any]:
    reason = " ".join(part for part in (error.message, error.suggestion) if part)
    return {"allow": False, "code": error.code, "reason": reason}
