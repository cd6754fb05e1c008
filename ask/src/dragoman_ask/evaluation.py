"""How often questions are answered right: users' own pairs of a question and a query, run against the real database."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
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

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
SHIPPED = ("chinook", "demo")
"""Ready sets, by name."""


class Case(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A question, and the query whose rows answer it; or what should come instead: `other` rows than the query's.

    `order`: the rows must come in the same order. `tolerance`: by which numbers may differ.
    """

    question: str
    database: str | None = None
    sql: str = ""
    expect: Literal["rows", "other", "clarify", "refuse", "empty"] = "rows"
    order: bool = False
    tolerance: float = 1e-9


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case in one run. `why`: what was wrong, empty when it was right."""

    case: Case
    why: str
    sql: str
    seconds: float
    use: ModelUse | None

    @property
    def right(self) -> bool:
        """Whether the answer was what the case expects."""
        return not self.why


@dataclass(slots=True)
class Report:
    """The outcomes of all runs."""

    outcomes: list[Outcome] = field(default_factory=list[Outcome])

    @property
    def accuracy(self) -> float:
        """The share of outcomes that were right."""
        return sum(outcome.right for outcome in self.outcomes) / max(len(self.outcomes), 1)

    @property
    def use(self) -> ModelUse:
        """What all of it used of the model."""
        total = ModelUse("")
        for use in (outcome.use for outcome in self.outcomes if outcome.use):
            total.name = use.name
            total.add(use)
        return total

    def junit(self) -> bytes:
        """Return the report as JUnit's XML."""
        wrong = sum(not outcome.right for outcome in self.outcomes)
        seconds = sum(outcome.seconds for outcome in self.outcomes)
        counts = {"tests": str(len(self.outcomes)), "failures": str(wrong), "time": f"{seconds:.3f}"}
        suite = ElementTree.Element("testsuite", {"name": "dragoman eval", **counts})
        for outcome in self.outcomes:
            told = {"classname": outcome.case.database or "ask", "name": outcome.case.question}
            case = ElementTree.SubElement(suite, "testcase", {**told, "time": f"{outcome.seconds:.3f}"})
            if outcome.why:
                ElementTree.SubElement(case, "failure", {"message": outcome.why}).text = outcome.sql
        written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
        return written


def load_cases(name: str) -> list[Case]:
    """Return the cases of a YAML file, or of a ready set. Raises `ConfigurationError`, naming the entry."""
    import yaml

    shipped = name in SHIPPED and not Path(name).exists()
    file: Any = files("dragoman_ask").joinpath("evals", f"{name}.yaml") if shipped else Path(name)
    try:
        read = yaml.safe_load(file.read_text(encoding="utf-8"))
        cases = [msgspec.convert(each, Case) for each in msgspec.convert(read or [], list[dict[str, Any]])]
    except OSError as error:
        raise ConfigurationError(
            f"{name} cannot be read ({error.strerror}).", suggestion=f"A file, or one of: {', '.join(SHIPPED)}."
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(
            f"{name} is no list of cases: {error}", suggestion="Each has question, and sql or expect."
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
    same = same_rows(expected.rows, result.rows, case)
    if case.expect == "other":
        return "the rows that are known to be wrong" if same else ""
    return "" if same else _difference(expected, result)


def _difference(expected: Result, result: Result) -> str:
    shapes = [f"{each.row_count} rows of {len(each.columns)} columns" for each in (expected, result)]
    return f"other rows: expected {shapes[0]}, got {shapes[1]}"


Rows = Sequence[Sequence[Any]]


def same_rows(expected: Rows, got: Rows, case: Case) -> bool:
    """Whether two results hold the same rows; names and the order of columns do not count."""
    if len(expected) != len(got) or (expected and len(expected[0]) != len(got[0])):
        return False
    pairs = zip(_sort(expected, case), _sort(got, case), strict=True)
    return all(_close(a, b, case.tolerance) for left, right in pairs for a, b in zip(left, right, strict=True))


def _sort(rows: Rows, case: Case) -> list[list[Any]]:
    """Rows as they can be compared place by place."""
    plain = [[_plain(value) for value in row] for row in rows]
    places = _columns(plain)
    ordered = [[row[place] for place in places] for row in plain]
    return ordered if case.order else sorted(ordered, key=repr)


def _plain(value: Any) -> Any:
    """A number as a float, however the database writes it; everything else as it is."""
    if isinstance(value, str) and len(value) < 40 and _NUMBER.fullmatch(value):
        return round(float(value), 9)
    return round(float(value), 9) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _columns(rows: Rows) -> list[int]:
    """The places of columns in an order that depends on what they hold alone."""
    width = len(rows[0]) if rows else 0
    return sorted(range(width), key=lambda place: sorted(repr(row[place]) for row in rows))


def _close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return bool(one == other)
