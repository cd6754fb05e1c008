"""Measures how often questions are answered correctly: users' questions with queries, run on the real database."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import msgspec
from dragoman.errors import AmbiguousQuery, ConfigurationError, DragomanError, Refused, Unsupported
from dragoman.gateway import Gateway
from dragoman.gateway.asking import Question
from dragoman.gateway.emptiness import is_empty
from dragoman.model import Principal, Result
from dragoman.telemetry import ModelUse
from dragoman.words import visible_lines

from dragoman_ask.comparing import EXACT, same_rows

_NOT_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
SHIPPED = ("chinook", "demo")
"""The shipped sets of questions, by name."""


class Case(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question, and the query whose rows answer it, or what is expected instead: `other` rows than the query's.

    `order`: the rows must come in the same order. `tolerance`: by how much numbers may differ.
    """

    question: str
    database: str | None = None
    sql: str = ""
    expect: Literal["rows", "other", "clarify", "refuse", "empty"] = "rows"
    order: bool = False
    tolerance: float = EXACT


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one case in one run. `why`: what was wrong; empty if it was right."""

    case: Case
    why: str
    sql: str
    seconds: float
    use: ModelUse | None

    @property
    def right(self) -> bool:
        """Whether the answer was as the case expects."""
        return not self.why


@dataclass(slots=True)
class Report:
    """The outcomes of all runs."""

    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def accuracy(self) -> float:
        """The share of correct outcomes."""
        return sum(outcome.right for outcome in self.outcomes) / max(len(self.outcomes), 1)

    @property
    def use(self) -> ModelUse:
        """The total use of the model."""
        total = ModelUse("")
        for use in (outcome.use for outcome in self.outcomes if outcome.use):
            total.name = use.name
            total.add(use)
        return total

    def junit(self) -> bytes:
        """Return the report as JUnit's XML, which some characters cannot be part of: these are spelled out."""
        wrong = sum(not outcome.right for outcome in self.outcomes)
        seconds = sum(outcome.seconds for outcome in self.outcomes)
        counts = {"tests": str(len(self.outcomes)), "failures": str(wrong), "time": f"{seconds:.3f}"}
        suite = ElementTree.Element("testsuite", {"name": "dragoman eval", **counts})
        for outcome in self.outcomes:
            told = {"classname": outcome.case.database or "ask", "name": _spell(outcome.case.question)}
            case = ElementTree.SubElement(suite, "testcase", {**told, "time": f"{outcome.seconds:.3f}"})
            if outcome.why:
                ElementTree.SubElement(case, "failure", {"message": _spell(outcome.why)}).text = _spell(outcome.sql)
        written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
        return written


def _spell(text: str) -> str:
    return _NOT_XML.sub(lambda found: ascii(found[0])[1:-1], visible_lines(text))


def load_cases(name: str) -> list[Case]:
    """Return the cases of a YAML file, or of a shipped set. Raises `ConfigurationError`, which names the entry."""
    import yaml

    shipped = name in SHIPPED and not Path(name).exists()
    file: Any = files("dragoman_ask").joinpath("evals", f"{name}.yaml") if shipped else Path(name)
    try:
        # The parser in C takes a tenth of the time, in which Python's own would slow every other call down.
        read = yaml.load(file.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        cases = [msgspec.convert(each, Case) for each in msgspec.convert(read or [], list[dict[str, Any]])]
    except OSError as error:
        raise ConfigurationError(
            f"{name} cannot be read ({error.strerror}).", suggestion=f"A file, or one of: {', '.join(SHIPPED)}."
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(
            f"{name} is not a list of cases: {error}", suggestion="Each case has question, and sql or expect."
        ) from None
    if lacking := [case.question for case in cases if case.expect in ("rows", "other") and not case.sql]:
        raise ConfigurationError(f"{name}: {lacking[0]!r} has neither sql nor expect.", suggestion="Add one of them.")
    return cases


async def evaluate(gateway: Gateway, case: Case, principal: Principal) -> Outcome:
    """Ask a case's question and judge the answer. Raises what its own query raises."""
    expected = await gateway.query(case.database, case.sql, principal=principal) if case.sql else None
    began, why, sql = time.perf_counter(), "", ""
    async with gateway.call("ask", principal, case.database) as record:
        try:
            answer = await gateway.ask(Question(text=case.question, database=case.database, principal=principal))
            sql = answer.sql
            why = _judge(case, expected, answer.result)
        except DragomanError as error:
            sql = str(error.context.get("sql", ""))
            why = "" if _expects(case, error) else f"{error.code}: {error.message}"
    return Outcome(case, why, sql, time.perf_counter() - began, record.model_use)


def _expects(case: Case, error: DragomanError) -> bool:
    kinds = {"clarify": (AmbiguousQuery,), "refuse": (Unsupported, Refused)}
    return isinstance(error, kinds.get(case.expect, ()))


def _judge(case: Case, expected: Result | None, result: Result | None) -> str:
    assert result is not None
    if case.expect == "empty":
        return "" if is_empty(result) else f"{result.row_count} rows where there should be none"
    if expected is None or case.expect in ("clarify", "refuse"):
        return f"an answer where a {'question back' if case.expect == 'clarify' else 'refusal'} was expected"
    if expected.truncated is not None:
        return f"unknown: the case's own query has more rows than the {expected.row_count} that are read"
    same = result.truncated is None and same_rows(
        expected.rows, result.rows, ordered=case.order, tolerance=case.tolerance
    )
    if case.expect == "other":
        return "the rows that are known to be wrong" if same else ""
    return "" if same else _difference(expected, result)


def _difference(expected: Result, result: Result) -> str:
    shapes = [
        f"{'more than ' if each.truncated else ''}{each.row_count} rows of {len(each.columns)} columns"
        for each in (expected, result)
    ]
    return f"other rows: expected {shapes[0]}, got {shapes[1]}"
