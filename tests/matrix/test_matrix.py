"""SQL of one engine asked of another: the same answer, or a refusal with its reason; never another answer."""

from __future__ import annotations

import itertools

import pytest
from comparing import rounds, same
from dragoman import Unsupported
from tpch import QUESTIONS, render

ENGINES = ("postgres", "sqlite", "trino")
PAIRS = [pair for pair in itertools.product(ENGINES, ENGINES) if pair[0] != pair[1]]
LIMITS = {"limit": 10_000, "max_bytes": 10_000_000}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def answers() -> dict[tuple[str, str], list[list[object]]]:
    """What engines answered to their own SQL, asked once."""
    return {}


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-to-".join(pair) for pair in PAIRS])
@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_of_tpch_has_one_answer(gateway, answers, question, source, target):
    sql = render(QUESTIONS[question], source)
    if (source, question) not in answers:
        answers[source, question] = (await gateway.query(source, sql, **LIMITS)).rows
    own = answers[source, question]
    result = await gateway.query(target, sql, from_dialect=source, **LIMITS)
    binary = "sqlite" in (source, target)
    assert same(own, result.rows, binary=binary), (result.sql, own[:3], result.rows[:3])
    assert binary or not rounds(own, result.rows) or any("round" in notice for notice in result.notices)
