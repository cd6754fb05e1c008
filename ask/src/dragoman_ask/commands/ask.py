"""`dragoman ask`: a question in plain words, the query that answers it, and its rows."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from dragoman.cli import output
from dragoman.cli.common import (
    add_caller_argument,
    add_source_arguments,
    load_configuration,
    resolve_database,
    run_async,
    start_logging,
    warn,
)
from dragoman.cli.plots import plot
from dragoman.cli.query import as_json, print_result
from dragoman.config import Configuration
from dragoman.errors import ConfigurationError

if TYPE_CHECKING:
    from dragoman.gateway import Gateway
    from dragoman.gateway.asking import AskAnswer, Question

EXAMPLES = """\
examples:
  dragoman ask 'Which five customers bought most last year?'
  dragoman ask shop 'How many orders are open?' --explain
  dragoman ask shop 'Revenue by month' --sql
  dragoman ask shop --chat
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument(
        "words",
        metavar="[DATABASE] QUESTION",
        nargs="*",
        help="the question; before it, the database it is about, else one is chosen",
    )
    add_source_arguments(parser)
    add_caller_argument(parser)
    parser.add_argument("--chat", action="store_true", help="then read more questions from stdin, one a line")
    parser.add_argument("--chart", action="store_true", help="draw the rows too, as in a terminal")
    parser.add_argument("--limit", metavar="N", type=int, help="at most this many rows")
    parser.add_argument("--sql", action="store_true", help="print the query and do not run it")
    parser.add_argument("--explain", action="store_true", help="show the plan too, and what the model used")
    parser.add_argument(
        "--format", choices=["table", "json", "csv", "markdown"], default="table", help="how rows are printed"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")


def run(arguments: argparse.Namespace) -> int:
    """Answer the question: data goes to stdout, the query and its description to stderr."""
    named, text = _split(arguments)
    arguments.database = named
    database = resolve_database(arguments) if named else None
    configuration = load_configuration(arguments)
    start_logging(configuration)
    run_async(_ask(configuration, database, text, arguments))
    return 0


def _split(arguments: argparse.Namespace) -> tuple[str | None, str]:
    """Return the database, if one is named, and the question, which is empty if a conversation begins without one."""
    words: list[str] = arguments.words
    if len(words) > 2:
        raise ConfigurationError("There are more words than a database and a question.", suggestion="Quote it.")
    if len(words) == 2:
        return words[0], words[1]
    if not words and not arguments.chat:
        raise ConfigurationError("There is no question.", suggestion="dragoman ask [DATABASE] QUESTION, or --chat.")
    # With --chat, a single word without a blank is a database.
    if arguments.chat and words and " " not in words[0]:
        return words[0], ""
    return None, words[0] if words else ""


async def _ask(configuration: Configuration, database: str | None, text: str, arguments: argparse.Namespace) -> None:
    from dragoman.gateway import Gateway
    from dragoman.gateway.asking import Question

    question = Question(
        text=text,
        database=database,
        return_type="sql" if arguments.sql else "both",
        limit=arguments.limit,
        principal=arguments.principal,
        report=_report if sys.stderr.isatty() else None,
    )
    async with Gateway.open(configuration) as gateway:
        if arguments.chat:
            from dragoman_ask.commands.chat import chat

            await chat(gateway, question, arguments, answer)
        else:
            await answer(gateway, question, arguments)


async def answer(gateway: Gateway, question: Question, arguments: argparse.Namespace) -> AskAnswer:
    """Ask a question and print its answer; return the answer."""
    async with gateway.call("ask", question.principal, question.database) as record:
        found = await gateway.ask(question)
    print_answer(found, question, arguments.format)
    if found.result is not None and arguments.format == "table" and (arguments.chart or sys.stdout.isatty()):
        for line in plot(found.result.columns, found.result.rows):
            output.put(line)
    use = record.model_use
    if arguments.explain:
        if found.plan is not None and found.plan.plan is not None:
            output.put(str(found.plan.plan), sys.stderr)
        if use is not None:
            cost = f", {use.cost:.4f} in money" if use.cost else ""
            calls = "1 call" if use.calls == 1 else f"{use.calls} calls"
            warn(f"{use.name}: {calls}, {use.input_tokens} tokens in, {use.output_tokens} out{cost}")
    return found


async def _report(done: float, total: float | None, message: str | None) -> None:
    output.put(f"... {message}", sys.stderr)


def print_answer(found: AskAnswer, question: Question, form: str) -> None:
    """Print an answer: its query and explanation to stderr, its rows to stdout."""
    if form == "json":
        output.put(_as_json(found))
        return
    if found.result is None:
        output.put(found.sql)
    else:
        output.put(found.sql, sys.stderr)
    output.put(found.explanation, sys.stderr)
    if question.database is None and found.reason:
        warn(f"database {found.database}: {found.reason}")
    for assumption in found.assumptions:
        warn(assumption)
    if found.confidence != "high" or found.attempts > 1:
        tries = f" after {found.attempts} queries" if found.attempts > 1 else ""
        warn(f"confidence: {found.confidence}{tries}")
    if found.result is not None:
        print_result(found.result, form)


def _as_json(found: AskAnswer) -> str:
    facts = {
        "database": found.database,
        "sql": found.sql,
        "explanation": found.explanation,
        "assumptions": list(found.assumptions),
        "confidence": found.confidence,
        "attempts": found.attempts,
        "reason": found.reason,
    }
    told = json.dumps({key: value for key, value in facts.items() if value}, ensure_ascii=False, separators=(",", ":"))
    return told if found.result is None else f"{told[:-1]},{as_json(found.result)[1:]}"
