"""The tools of the toolset `ask`."""

from __future__ import annotations

from typing import Any

from dragoman.catalog import drop_empty
from dragoman.gateway.asking import AskAnswer, Question
from dragoman.telemetry import ModelUse
from dragoman.tools.answer import Body
from dragoman.tools.context import ToolCall
from dragoman.tools.querying import rows_body


async def ask(call: ToolCall) -> Body:
    """Answer a question in plain words."""
    question = Question(
        text=call["question"],
        database=call["database"],
        return_type=call["return_type"],
        limit=call["limit"],
        principal=call.principal,
        report=call.progress,
    )
    async with call.gateway.call("ask", call.principal, question.database) as record:
        answer = await call.gateway.ask(question)
        return answer_body(answer, question, record.model_use, several=len(call.gateway.names) > 1)


async def rate_answer(call: ToolCall) -> Body:
    """Mark an answer that the caller received."""
    await call.gateway.announce_change(f"answer marked by {call.principal.name}")
    return Body({"kept": await call.gateway.asker().rate(call.principal, call["question"], right=call["right"])})


def answer_body(answer: AskAnswer, question: Question, use: ModelUse | None, *, several: bool) -> Body:
    """Return an answer as agents get it: a result, and how it was found."""
    body = rows_body(answer.result) if answer.result else Body({})
    body.facts.pop("sql", None)
    told: dict[str, Any] = {"explanation": answer.explanation, "confidence": answer.confidence}
    told |= drop_empty({"assumptions": list(answer.assumptions), "reason": answer.reason})
    told |= {"attempts": answer.attempts}
    told |= {"sql": answer.sql} if question.return_type != "result" else {}
    told |= {"database": answer.database} if several and question.database is None else {}
    return Body({**body.facts, **told}, {**body.meta, "dragoman/sql": answer.sql, **describe_use(use)})


def describe_use(use: ModelUse | None) -> dict[str, Any]:
    """Return what a call used of a language model, for `_meta`. A failed call reports it too."""
    if use is None:
        return {}
    facts = {"model": use.name, "calls": use.calls, "input_tokens": use.input_tokens}
    facts |= {"output_tokens": use.output_tokens, **({"cost": round(use.cost, 6)} if use.cost else {})}
    return {"dragoman/model_use": facts}
