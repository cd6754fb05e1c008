"""SQL of one engine asked of another: the same answer, or a refusal with its reason; never another answer."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from comparing import comparable, dated, rounds, same
from dragoman import DragomanError, Gateway, Result, Unsupported
from tpch import QUESTIONS, render

ENGINES = ("postgres", "sqlite", "trino")
PAIRS = [pair for pair in itertools.product(ENGINES, ENGINES) if pair[0] != pair[1]]
LIMITS: dict[str, Any] = {"limit": 10_000, "max_bytes": 10_000_000}
ROUNDED = "decimal places"
"""What a notice says when the target keeps fewer decimal places than the source."""
DATED = "date"
"""What a notice says when one engine has a date where the other has the timestamp of its midnight."""

pytestmark = pytest.mark.slow


def constructs(engine: str) -> list[str]:
    """The lines of an engine's files; an expression becomes a query."""
    files = ["sqlite"] if engine == "sqlite" else ["standard", engine]
    folder = Path(__file__).with_name("constructs")
    lines = [line for name in files for line in (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()]
    starts = ("select ", "with ", "values ", "table ")
    return [line if line.startswith(starts) else f"select {line}" for line in lines if line and line[0] != "#"]


CONSTRUCTS = [(source, target, sql) for source, target in PAIRS for sql in constructs(source)]


@pytest.fixture(scope="session")
def answers() -> dict[tuple[str, str], Result | None]:
    """What engines answered to their own SQL, asked once; None where it was no SQL of theirs."""
    return {}


async def own_answer(gateway: Gateway, answers: dict[tuple[str, str], Result | None], source: str, sql: str) -> Result:
    if (source, sql) not in answers:
        try:
            answers[source, sql] = await gateway.query(source, sql, **LIMITS)
        except DragomanError:
            answers[source, sql] = None
    answer = answers[source, sql]
    if answer is None:
        pytest.skip(f"{source} itself has no answer to it")
    return answer


def check_same(own: Result, other: Result, binary: bool) -> None:
    left, right = comparable(own, other), comparable(other, own)
    assert same(left, right, binary=binary), (other.sql, own.rows[:3], other.rows[:3])
    assert not rounds(left, right) or any(ROUNDED in notice for notice in other.notices)
    assert binary or not dated(own, other) or any(DATED in notice for notice in other.notices[1:])


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-to-".join(pair) for pair in PAIRS])
@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_of_tpch_has_one_answer(gateway, answers, question, source, target):
    sql = render(QUESTIONS[question], source)
    own = await own_answer(gateway, answers, source, sql)
    check_same(own, await gateway.query(target, sql, from_dialect=source, **LIMITS), "sqlite" in (source, target))


@pytest.mark.parametrize(("source", "target", "sql"), CONSTRUCTS)
async def test_a_construct_has_one_answer_or_is_refused(gateway, answers, source, target, sql):
    own = await own_answer(gateway, answers, source, sql)
    try:
        other = await gateway.query(target, sql, from_dialect=source, **LIMITS)
    except Unsupported as error:
        refusal: Unsupported | None = error
    else:
        refusal = None
        check_same(own, other, "sqlite" in (source, target))
    assert refusal is None or refusal.suggestion
