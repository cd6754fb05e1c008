"""Sends a query of the model through the gateway: judged, explained, run. And describes the result for the model."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dragoman.config import ModelSettings
from dragoman.dialect import Capability
from dragoman.errors import (
    CostExceeded,
    DragomanError,
    InvalidSql,
    NotFound,
    ParameterError,
    QueryError,
    QueryTimeout,
    Refused,
    ResultTooLarge,
    UnknownDatabase,
    Unsupported,
)
from dragoman.gateway.emptiness import is_empty
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Plan, Result

from dragoman_ask.linking import Send
from dragoman_ask.replies import Written
from dragoman_ask.session import Session

REPAIRABLE = (
    NotFound, InvalidSql, Refused, QueryError, QueryTimeout, ResultTooLarge, ParameterError, Unsupported, CostExceeded,
)  # fmt: skip
"""Errors that another query may avoid. All other errors go to the caller at once."""
SHOWN_ROWS = 5
SHOWN_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Tried:
    """A query that was tried, and its outcome. `ran`: it passed the checks and started to run."""

    written: Written
    plan: Plan | None = None
    result: Result | None = None
    error: DragomanError | None = None
    ran: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it found nothing, or only a zero or NULL that says so."""
        return self.result is not None and is_empty(self.result)


async def try_query(session: Session, opened: OpenDatabase, written: Written, settings: ModelSettings) -> Tried:
    """Judge, explain and run a query. Raises errors that no other query could avoid."""
    plan: Plan | None = None
    result: Result | None = None
    ran, outcome = False, "ok"
    try:
        plan = await explain(session, opened, written.sql, settings.max_plan_cost)
        if session.question.return_type != "sql":
            ran = True
            result = await session.gateway.query(
                opened.config.name,
                written.sql,
                limit=session.question.limit,
                principal=session.question.principal,
                tool="ask",
            )
            _check_whole(result)
        return Tried(written, plan, result, ran=ran)
    except DragomanError as error:
        outcome = error.code
        if not isinstance(error, REPAIRABLE) or isinstance(error, UnknownDatabase):
            raise
        return Tried(written, plan, None, error, ran)
    finally:
        session.spending.use.attempts.append((written.sql, outcome))


def _check_whole(result: Result) -> None:
    """Raise `QueryTimeout` for rows that came before a deadline: they do not answer a question."""
    if result.truncated is not None and result.truncated.reason == "timeout":
        raise QueryTimeout("The query ran into its deadline; only a part of its rows came.")


async def explain(session: Session, opened: OpenDatabase, sql: str, max_cost: float | None = None) -> Plan | None:
    """Judge a query and return its plan; None if the dialect has none.

    Raises the refusal, the database's error, and `CostExceeded` for a plan above `max_cost`. A plan without a cost
    passes.
    """
    principal = session.question.principal
    if Capability.EXPLAIN not in opened.dialect.capabilities:
        await opened.judge.judge(sql, "ask", principal)
        return None
    return await session.gateway.explain(opened.config.name, sql, max_cost=max_cost, principal=principal, tool="ask")


def problem_of(tried: Tried, send: Send) -> str:
    """Return the description of a failed query for the model; of errors in rows, only what may be sent."""
    error = tried.error
    assert error is not None
    if send != "rows" and (isinstance(error, QueryError) or (tried.ran and not isinstance(error, QueryTimeout))):
        return f"{error.code}: the database raised an error while it ran."
    lines = [f"{error.code}: {error.message}", str(error.context.get("position", "")), error.suggestion]
    return "\n".join(line for line in lines if line)[:SHOWN_CHARACTERS]


def describe_findings(result: Result, send: Send) -> str:
    """Return the description of a query's result for the model: rows and values only if they may be sent."""
    names = ", ".join(column.name for column in result.columns)
    if send == "rows":
        rows = [json.dumps(row, ensure_ascii=False)[:1_000] for row in result.rows[:SHOWN_ROWS]]
        lines = [f"Columns: {names}", f"{result.row_count} rows, of which the first are:", *rows, *result.notices]
        return "\n".join(lines)[:SHOWN_CHARACTERS]
    told = "It found nothing." if is_empty(result) else f"It found rows. Columns: {names}"
    return "\n".join([told, *(result.notices if send == "values" else ())])[:SHOWN_CHARACTERS]
