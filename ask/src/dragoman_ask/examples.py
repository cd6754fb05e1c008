"""Answers that somebody marked: right ones are examples for later questions, wrong ones are cases for `dragoman eval`.

Both are YAML lists that people can read and change, `NAME.yaml` and `NAME.wrong.yaml` in the configured folder, in the
form that `dragoman eval` takes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dragoman.catalog.search import words
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.gateway.opened import OpenDatabase

from dragoman_ask.evaluation import Case, load_cases
from dragoman_ask.session import Session

_log = logging.getLogger(__name__)
SHOWN = 3
_K, _B = 1.2, 0.75
"""BM25's usual constants."""


def add(folder: Path, database: str, question: str, sql: str, *, right: bool) -> str:
    """Add a marked answer to its file; return the file's name. Raises `ConfigurationError` where that fails."""
    import yaml

    name = f"{database}.yaml" if right else f"{database}.wrong.yaml"
    entry = {"question": question, "database": database, "sql": sql, **({} if right else {"expect": "other"})}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=120))
    except OSError as error:
        raise ConfigurationError(f"model.examples_dir cannot be written ({error.strerror}).") from None
    return name


def find(folder: Path, database: str, question: str) -> list[Case]:
    """Return the examples of a database that are nearest to a question, best first."""
    file = folder / f"{database}.yaml"
    if not file.is_file():
        return []
    try:
        cases = load_cases(str(file))
    except ConfigurationError as error:
        _log.warning("examples are not used: %s", error.message)
        return []
    return rank(question, [case for case in cases if case.expect == "rows"])[:SHOWN]


def rank(question: str, cases: Sequence[Case]) -> list[Case]:
    """Return the cases that share words with a question, best first, by BM25."""
    texts = [Counter(words(case.question)) for case in cases]
    average = sum(text.total() for text in texts) / max(len(texts), 1) or 1
    wanted = set(words(question))
    known = {word: sum(word in text for text in texts) for word in wanted}
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in known.items()}

    def score(text: Counter[str]) -> float:
        length = _K * (1 - _B + _B * text.total() / average)
        return sum(weights[word] * text[word] * (_K + 1) / (text[word] + length) for word in wanted)

    scored = sorted(((score(text), -place) for place, text in enumerate(texts)), reverse=True)
    return [cases[-place] for points, place in scored if points > 0]


async def tell(session: Session, opened: OpenDatabase, folder: Path | None) -> str:
    """Return the examples that fit the question, as the model is told them; only those that the caller may run now."""
    if folder is None:
        return ""
    found = await asyncio.to_thread(find, folder, opened.config.name, session.question.text)
    cases = [case for case in found if await _runs(session, opened, case.sql)]
    if not cases:
        return ""
    told = "\n\n".join(f"Question: {case.question}\nQuery: {case.sql.strip()}" for case in cases)
    fenced = session.fence.around(told, "examples")
    return f"Questions that were answered right before:\n\n{fenced}"


async def _runs(session: Session, opened: OpenDatabase, sql: str) -> bool:
    """Whether the caller may run a query, and the database would: what it names may be gone, or not be theirs."""
    try:
        await session.gateway.query(opened.config.name, sql, limit=1, principal=session.question.principal, tool="ask")
    except DragomanError:
        return False
    return True
