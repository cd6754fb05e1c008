"""`dragoman eval`: how often questions are answered correctly, what that costs, and which were wrong."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.cli import output
from dragoman.cli.common import (
    add_caller_argument,
    add_source_arguments,
    load_configuration,
    run_async,
    start_logging,
)
from dragoman.config import Configuration
from dragoman.errors import ConfigurationError

from dragoman_ask.evaluation import Case, Outcome, Report, evaluate, load_cases

EXAMPLES = """\
examples:
  dragoman eval questions.yaml
  dragoman eval questions.yaml --runs 5 --junit report.xml --at-least 0.95
  dragoman eval chinook --url chinook=sqlite:///Chinook_Sqlite.sqlite
  dragoman eval questions.yaml --record exchanges.jsonl
  dragoman eval questions.yaml --replay exchanges.jsonl

A file is a YAML list:
  - question: How many orders are open?
    database: shop
    sql: SELECT count(*) FROM orders WHERE status = 'open'
  - question: Who is the best customer?
    expect: clarify            # or refuse, or empty
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="a YAML list of questions, or a shipped set: chinook, demo")
    add_source_arguments(parser)
    add_caller_argument(parser)
    parser.add_argument("--runs", metavar="N", type=int, default=1, help="ask each question so many times")
    parser.add_argument("--junit", metavar="FILE", help="write the outcomes as JUnit XML too")
    parser.add_argument(
        "--at-least",
        metavar="SHARE",
        type=float,
        default=1.0,
        help="the share that must be right for exit code 0 (1.0)",
    )
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--record", metavar="FILE", help="add what the model is sent and replies to a file")
    kept.add_argument(
        "--replay", metavar="FILE", help="take the replies from such a file; no model and no key is needed"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask all questions and print the outcomes. Return 1 if fewer are right than required."""
    cases = load_cases(arguments.file)
    configuration = _keep(load_configuration(arguments), arguments)
    start_logging(configuration)
    report = run_async(_evaluate(configuration, cases, arguments))
    if arguments.junit:
        Path(arguments.junit).write_bytes(report.junit())
    output.put(json.dumps(_facts(report), ensure_ascii=False) if arguments.json else _words(report))
    return 0 if report.accuracy >= arguments.at_least else 1


def _keep(configuration: Configuration, arguments: argparse.Namespace) -> Configuration:
    """Return a configuration whose model is recorded or replayed, if the command line says so.

    Raises `ConfigurationError` if there is no model.
    """
    model = configuration.model
    if model is None:
        raise ConfigurationError("No model is configured.", suggestion='Add [model] with name = "provider:model".')
    files = [Path(each).absolute() if each else None for each in (arguments.record, arguments.replay)]
    if files == [None, None]:
        return configuration
    return replace(configuration, model=replace(model, record=files[0], replay=files[1]))


async def _evaluate(configuration: Configuration, cases: Sequence[Case], arguments: argparse.Namespace) -> Report:
    from dragoman.gateway import Gateway

    report = Report()
    async with Gateway.open(configuration) as gateway:
        for _ in range(max(arguments.runs, 1)):
            for case in cases:
                report.outcomes.append(await evaluate(gateway, case, arguments.principal))
                if sys.stderr.isatty():
                    output.put(_line(report.outcomes[-1]), sys.stderr)
    return report


def _line(outcome: Outcome) -> str:
    told = f"{'right' if outcome.right else 'WRONG'}  {outcome.case.question}"
    return told if outcome.right else f"{told}\n       {outcome.why}\n       {outcome.sql}"


def _words(report: Report) -> str:
    use, number = report.use, len(report.outcomes)
    right = sum(outcome.right for outcome in report.outcomes)
    lines = [_line(outcome) for outcome in report.outcomes if not outcome.right or not sys.stderr.isatty()]
    cost = f", {use.cost:.4f} in money" if use.cost else ""
    tokens = f"{use.calls} calls, {use.input_tokens} tokens in, {use.output_tokens} out{cost}"
    return "\n".join([*lines, f"{right} of {number} right ({report.accuracy:.1%}); {use.name}: {tokens}"])


def _facts(report: Report) -> dict[str, object]:
    use = report.use
    outcomes = [
        {"question": each.case.question, "right": each.right, "why": each.why, "sql": each.sql}
        for each in report.outcomes
    ]
    facts = {"calls": use.calls, "input_tokens": use.input_tokens, "output_tokens": use.output_tokens}
    return {"accuracy": report.accuracy, **facts, "cost": use.cost, "outcomes": outcomes}
