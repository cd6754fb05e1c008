"""`dragoman query`: run one query through the gateway, as for an agent."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from dragoman.cli.common import (
    add_caller_argument,
    add_database_argument,
    add_param_argument,
    add_source_arguments,
    load_configuration,
    read_sql,
    resolve_database,
    run_async,
    start_logging,
    warn,
)
from dragoman.config import Configuration

if TYPE_CHECKING:
    from dragoman.model import Result

MAX_BYTES = 10_000_000
"""The answer for a person may be larger than what fits into a model."""

EXAMPLES = """\
examples:
  dragoman query shop 'select count(*) from orders'
  dragoman query shop 'select * from orders where id = ?' --param 7 --format json
  dragoman query sqlite:///shop.db 'select now()' --from-dialect postgres
  dragoman query shop - --format csv < report.sql
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    add_database_argument(parser)
    parser.add_argument("sql", metavar="SQL", help="the query; with -, stdin is read")
    add_source_arguments(parser)
    add_caller_argument(parser)
    add_param_argument(parser)
    parser.add_argument("--limit", metavar="N", type=int, help="at most this many rows")
    parser.add_argument("--timeout", metavar="S", type=float, help="end the query after so many seconds")
    parser.add_argument("--from-dialect", metavar="D", help="the dialect the SQL is written in; it is translated")
    parser.add_argument(
        "--format", choices=["table", "json", "csv", "markdown"], default="table", help="how rows are printed"
    )
    parser.add_argument(
        "--plot",
        action="store_true",
        help="draw the rows below the table as bars, a line, points or a histogram, depending on one or two columns",
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")


def run(arguments: argparse.Namespace) -> int:
    """Run the query and print its result."""
    database = resolve_database(arguments)
    configuration = load_configuration(arguments)
    start_logging(configuration)
    result = run_async(_query(configuration, database, arguments))
    print_result(result, arguments.format)
    if arguments.plot and arguments.format == "table":
        _plot(result)
    return 0


def _plot(result: Result) -> None:
    from dragoman.cli.output import put
    from dragoman.cli.plots import FEWEST, MOST_BARS, plot

    lines = plot(result.columns, result.rows)
    for line in lines:
        put(line)
    if not lines:
        warn(
            f"nothing is drawn: select one column of numbers, or a name, a time or a number and then a number, and at"
            f" least {FEWEST} rows. Bars are drawn for at most {MOST_BARS} names and no negative number."
        )


async def _query(configuration: Configuration, database: str, arguments: argparse.Namespace) -> Result:
    from dragoman.gateway import Gateway

    async with Gateway.open(configuration) as gateway:
        return await gateway.query(
            database,
            read_sql(arguments.sql),
            [parameter(value) for value in arguments.param],
            limit=arguments.limit,
            timeout=arguments.timeout,
            max_bytes=MAX_BYTES,
            from_dialect=arguments.from_dialect,
            principal=arguments.principal,
        )


def parameter(text: str) -> Any:
    """Return a value to bind: the JSON value of the text, or else the text itself."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def print_result(result: Result, form: str) -> None:
    """Print a result as a table, JSON, CSV or Markdown. Notes go to stderr."""
    from dragoman.cli import output

    if form == "json":
        output.put(as_json(result))
        return
    columns = [column.name for column in result.columns]
    match form:
        case "csv":
            output.put("\n".join(output.csv_lines(columns, result.rows)))
        case "markdown":
            output.put("\n".join(output.markdown_lines(columns, result.rows)))
        case _:
            output.print_table(columns, result.rows)
            if sys.stdout.isatty():
                print(f"{result.row_count} {'row' if result.row_count == 1 else 'rows'}, {result.elapsed_ms:.1f} ms")
    if result.truncated:
        cut = result.truncated
        warn(f"cut at {cut.limit} {'seconds' if cut.reason == 'timeout' else cut.reason}. {cut.hint}")
    for notice in result.notices:
        warn(notice)
    if result.sql:
        warn(f"ran as: {result.sql}")


def as_json(result: Result) -> str:
    """Return a result as one JSON object, without encoding its rows again."""
    head = {"columns": [column.name for column in result.columns], "types": [column.type for column in result.columns]}
    tail: dict[str, Any] = {"row_count": result.row_count}
    if cut := result.truncated:
        tail["truncated"] = {"reason": cut.reason, "limit": cut.limit, "hint": cut.hint}
    tail |= {"notices": list(result.notices)} if result.notices else {}
    tail |= {"sql": result.sql} if result.sql else {}
    tail |= {"elapsed_ms": round(result.elapsed_ms, 3), "query_hash": result.query_hash}
    return f'{_dumps(head)[:-1]},"rows":{result.rows_json.decode()},{_dumps(tail)[1:]}'


def _dumps(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
