"""From a question to its answer: the database, its schema, a query, its result, and a better query if necessary."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Coroutine, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.config import ModelSettings
from dragoman.errors import AmbiguousQuery, ConfigurationError, ParameterError, Unsupported
from dragoman.gateway import Gateway
from dragoman.gateway.asking import AskAnswer, Confidence, Question
from dragoman.gateway.calls import CallRecord, Limiter
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Principal
from dragoman.words import display

from dragoman_ask.budgets import Budgets
from dragoman_ask.choosing import choose
from dragoman_ask.comparing import ballot
from dragoman_ask.examples import PATIENCE, add
from dragoman_ask.models import Message, Model
from dragoman_ask.prompts import Prompts
from dragoman_ask.providers import make_model
from dragoman_ask.replies import Verdict, Written
from dragoman_ask.session import Session
from dragoman_ask.trying import Tried, describe_findings, problem_of, try_query
from dragoman_ask.writing import Conversation, begin, write

WAIT = 30.0
"""Seconds that a question waits for others before it."""
LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")
REMEMBERED = 1_000
"""The number of answers that can be marked right or wrong. The oldest is dropped first."""
MARKS = 100
"""The number of marks that wait for the one that is being written: it may wait for another process, in a thread."""
LONGEST = 1_000
"""The most characters of the model's text for people."""


class ModelAsker:
    """Answers questions with the configured model; see `dragoman.gateway.asking.Asker`.

    `model`: replaces the configured one. Raises `ConfigurationError` for a provider that cannot be used.
    """

    def __init__(self, settings: ModelSettings, prompts_dir: Path | None = None, model: Model | None = None) -> None:
        self._settings = settings
        self._model = model or make_model(settings)
        self._prompts = Prompts(prompts_dir)
        self._budgets = Budgets(settings)
        self._answers: OrderedDict[tuple[tuple[str, str, str], str], AskAnswer] = OrderedDict()
        self._limiter = Limiter("Questions are answered", settings.max_concurrent, 2 * settings.max_concurrent)
        self._marks = Limiter("Marks are written", 1, MARKS)

    async def ask(self, gateway: Gateway, record: CallRecord, question: Question) -> AskAnswer:
        """Answer a question with the gateway as its principal sees it."""
        spending = self._budgets.begin(question.principal)
        record.model_use = spending.use
        session = Session(gateway, record, question, self._model, self._prompts, spending)
        async with record.admission.lend():
            await self._limiter.acquire(question.principal.identity, WAIT)
        try:
            answer = await self._answer(session)
            self._remember(question, answer)
            return answer
        finally:
            self._limiter.turns.give_back(question.principal.identity)

    async def _answer(self, session: Session) -> AskAnswer:
        name, reason = await choose(session)
        session.record.database = name
        return await _Loop(session, session.gateway.database(name), self._settings, reason).run()

    def _remember(self, question: Question, answer: AskAnswer) -> None:
        self._answers[question.principal.identity, question.text] = answer
        if len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)

    async def rate(self, principal: Principal, question: str, *, right: bool) -> str:
        """Mark the answer to a question of a caller; return the name of the file it was added to.

        Raises `ParameterError` if there was no recent one, `ConfigurationError` without a folder of examples, `Busy`.
        """
        answer = self._answers.get((principal.identity, question))
        if self._settings.examples_dir is None:
            raise ConfigurationError("No folder keeps marked answers.", suggestion="Set model.examples_dir.")
        if answer is None:
            raise ParameterError("You had no answer to that question lately.", suggestion="Send the question as asked.")
        folder = self._settings.examples_dir
        await self._marks.acquire(principal.identity, PATIENCE)
        writing = asyncio.ensure_future(
            asyncio.to_thread(add, folder, answer.database, question, answer.sql, right=right)
        )
        writing.add_done_callback(partial(self._end_mark, principal.identity))
        await asyncio.wait([writing])
        return writing.result()

    def _end_mark(self, caller: Hashable, writing: asyncio.Future[str]) -> None:
        """Let the next mark begin. If the caller went away, the thread went on, and nobody else asks how it ended."""
        self._marks.turns.give_back(caller)
        if not writing.cancelled():
            writing.exception()

    async def aclose(self) -> None:
        """Close the connections to the model."""
        await self._model.aclose()


@dataclass(slots=True)
class _Loop:
    """Writes queries for one question on one database, until one answers it.

    `agreed`: the share of candidates that agree.
    """

    session: Session
    opened: OpenDatabase
    settings: ModelSettings
    reason: str
    agreed: float = 1.0

    async def run(self) -> AskAnswer:
        """Return the answer. Raises what the last query raised, or why there is no answer."""
        await self.session.report(1, "reading the schema")
        conversation = await begin(self.session, self.opened, self.settings)
        attempt = 0
        while True:
            attempt += 1
            tried = await self._next(conversation, attempt)
            problem = await self._problem(tried)
            if not problem or attempt == self.settings.max_attempts:
                return self._make_answer(tried, attempt, problem)
            sent = self.session.fence.around(problem, "problem")
            conversation.add_reply(tried.written)
            conversation.messages.append(Message("user", self.session.fill("repair", problem=sent)))

    async def _next(self, conversation: Conversation, attempt: int) -> Tried:
        await self.session.report(2, "writing a query" if attempt == 1 else "writing a better query")
        if attempt > 1 or self.settings.candidates == 1:
            return await self._try(await write(self.session, conversation))
        return await self._elect(conversation)

    async def _try(self, written: Written) -> Tried:
        await self.session.report(3, "running the query")
        _check_kind(written, self.opened.config.name)
        return await try_query(self.session, self.opened, written, self.settings)

    async def _elect(self, conversation: Conversation) -> Tried:
        """Return one of several queries: one whose result most of them agree on."""
        number = self.settings.candidates
        written = await _finish(write(self.session, conversation.copy()) for _ in range(number))
        queries = [each for each in written if each.kind == "query"]
        if len(queries) * 2 < number:
            _check_kind(next(each for each in written if each.kind != "query"), self.opened.config.name)
        tried = [await self._try(each) for each in queries]
        votes = Counter(_ballot(each) for each in tried if each.error is None)
        if not votes:
            return tried[0]
        winner, count = votes.most_common(1)[0]
        self.agreed = count / number
        return next(each for each in tried if each.error is None and _ballot(each) == winner)

    async def _problem(self, tried: Tried) -> str:
        """Return what is wrong with a query's answer, for the model; empty if it answers the question."""
        if tried.error is not None:
            return problem_of(tried, self.settings.send)
        if tried.result is None or not (tried.is_empty or self.settings.check == "always"):
            return ""
        await self.session.report(4, "checking the answer")
        fence = self.session.fence
        prompt = self.session.fill(
            "check",
            sql=fence.around(tried.written.sql, "query"),
            found=fence.around(describe_findings(tried.result, self.settings.send), "result"),
        )
        verdict = await self.session.ask([Message("user", prompt)], Verdict)
        return "" if verdict.valid else verdict.reason or "It does not fit the question."

    def _make_answer(self, tried: Tried, attempts: int, doubt: str) -> AskAnswer:
        if tried.error is not None:
            raise tried.error.replace(context={**tried.error.context, "sql": tried.written.sql, "attempts": attempts})
        assumptions = [display(each, LONGEST) for each in tried.written.assumptions[:10]]
        return AskAnswer(
            database=self.opened.config.name,
            sql=tried.written.sql,
            result=tried.result,
            explanation=display(tried.written.text, LONGEST),
            assumptions=(
                *assumptions,
                *([f"The model doubts this answer: {display(doubt, LONGEST)}"] if doubt else []),
            ),
            confidence=self._confidence(tried, attempts, doubt),
            attempts=attempts,
            reason=self.reason,
            plan=tried.plan,
        )

    def _confidence(self, tried: Tried, attempts: int, doubt: str) -> Confidence:
        """Return the model's own confidence, lowered by evidence against the answer."""
        level = LEVELS.index(tried.written.confidence)
        level -= (attempts > 1) + tried.is_empty + (self.agreed <= 0.5)
        return LEVELS[0 if doubt else max(level, 0)]


async def _finish(writing: Iterable[Coroutine[Any, Any, Written]]) -> list[Written]:
    """Return the replies of all works. If one fails, the others end, since the model would be paid for them."""
    tasks = [asyncio.ensure_future(each) for each in writing]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _check_kind(written: Written, database: str) -> None:
    """Raise `AmbiguousQuery` or `Unsupported` if the model wrote no query."""
    text = display(written.text, LONGEST)
    if written.kind == "refuse":
        raise Unsupported(text, suggestion="Ask about data in the database; describe_table shows it.")
    if written.kind == "clarify":
        raise AmbiguousQuery(text, context={"ask": text, "database": database})
    if written.kind == "look":
        raise Unsupported("The model found no tables that answer this.", suggestion="Ask in other words.")


def _ballot(tried: Tried) -> str:
    """Return a text that is equal for queries with the same rows; if none ran, their text."""
    if tried.result is None:
        return tried.written.sql
    return ballot(tried.result.rows)
