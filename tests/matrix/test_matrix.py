"""SQL of one engine asked of another: the same answer, or a refusal with its reason; never another answer."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from comparing import comparable, dated, rounds, same
from dragoman import DragomanError, Encoded, Gateway, Result, Unsupported
from report import LOOSE, PAGE, Outcome, Outcomes, counts, page, questions_table
from tpch import QUESTIONS, render

ENGINES = ("postgres", "sqlite", "trino")
PAIRS = [pair for pair in itertools.product(ENGINES, ENGINES) if pair[0] != pair[1]]
LIMITS: dict[str, Any] = {"limit": 10_000, "max_bytes": 10_000_000}
ROUNDED = "decimal places"
"""What a notice says when the target keeps fewer decimal places than the source."""
DATED = "date"
"""What a notice says when one engine has a date where the other has the timestamp of its midnight."""

pytestmark = pytest.mark.full


def constructs(engine: str) -> list[str]:
    """The lines of an engine's files; an expression becomes a query."""
    files = ["sqlite"] if engine == "sqlite" else ["standard", engine]
    folder = Path(__file__).with_name("constructs")
    lines = [line for name in files for line in (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()]
    starts = ("select ", "with ", "values ", "table ")
    return [line if line.startswith(starts) else f"select {line}" for line in lines if line and line[0] != "#"]


CONSTRUCTS = [(source, target, sql) for source, target in PAIRS for sql in constructs(source)]
SAMPLE = [case for case in CONSTRUCTS if crc32("".join(case).encode()) % 5 == 0]
"""One in five, the same in every run. The nightly lane asks all of them."""

Answers = dict[tuple[str, str], Result | None]


@pytest.fixture(scope="session")
def answers() -> Answers:
    """What engines answered to their own SQL, asked once; None where it was no SQL of theirs."""
    return {}


async def own_answer(gateway: Gateway, answers: Answers, source: str, sql: str) -> Result:
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


def check_helpful(refusal: Unsupported) -> None:
    assert refusal.suggestion


async def outcome(gateway: Gateway, target: str, sql: str, source: str, other: Result) -> Outcome:
    """Whether an answer came with more notices than that of its translation.

    An answer with nothing in it also says why, where time allows; a stream of the same rows does not.
    """
    notices = other.notices
    if not other.rows or other.rows in ([[0]], [[None]]):
        async with gateway.stream(target, sql, from_dialect=source, **LIMITS) as stream:
            streamed = 0
            async for batch in stream.batches:
                assert isinstance(batch, Encoded)
                streamed += batch.count
            assert streamed == len(other.rows)
            notices = stream.notices
    return "told" if len(notices) > 1 else "right"


# What one engine decides by the values it finds, and another by the types of columns a translation does not see.
REFUSED_QUESTIONS = {("Q8", "sqlite", "trino")}


async def ask_question(gateway: Gateway, answers: Answers, question: str, source: str, target: str) -> Outcome:
    """Ask a question of TPC-H of both engines and compare."""
    sql = render(QUESTIONS[question], source)
    own = await own_answer(gateway, answers, source, sql)
    if (question, source, target) in REFUSED_QUESTIONS:
        with pytest.raises(Unsupported):
            await gateway.query(target, sql, from_dialect=source, **LIMITS)
        return "refused"
    other = await gateway.query(target, sql, from_dialect=source, **LIMITS)
    check_same(own, other, "sqlite" in (source, target))
    return await outcome(gateway, target, sql, source, other)


async def ask_construct(gateway: Gateway, answers: Answers, source: str, target: str, sql: str) -> Outcome:
    """Ask a construct of both engines and compare."""
    own = await own_answer(gateway, answers, source, sql)
    try:
        other = await gateway.query(target, sql, from_dialect=source, **LIMITS)
    except Unsupported as refusal:
        check_helpful(refusal)
        return "refused"
    check_same(own, other, "sqlite" in (source, target))
    return await outcome(gateway, target, sql, source, other)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=["-to-".join(pair) for pair in PAIRS])
@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_of_tpch_has_one_answer(gateway, answers, question, source, target):
    await ask_question(gateway, answers, question, source, target)


@pytest.mark.parametrize(("source", "target", "sql"), SAMPLE)
async def test_a_construct_has_one_answer_or_is_refused(gateway, answers, source, target, sql):
    await ask_construct(gateway, answers, source, target, sql)


@pytest.mark.nightly
@pytest.mark.timeout(3_000)
async def test_the_page_tells_what_becomes_of_every_construct(gateway, answers, subtests):
    outcomes = Outcomes()
    for question, (source, target) in itertools.product(QUESTIONS, PAIRS):
        with subtests.test(question, source=source, target=target):
            outcomes.questions[question, source, target] = await ask_question(
                gateway, answers, question, source, target
            )
    for source, target, sql in CONSTRUCTS:
        with subtests.test(sql, source=source, target=target):
            outcomes.constructs[source, target, sql] = await ask_construct(gateway, answers, source, target, sql)
    check_page(outcomes)


def check_page(outcomes: Outcomes) -> None:
    """Compare the page with a run, or write it where DRAGOMAN_MATRIX_PAGE is set."""
    if "DRAGOMAN_MATRIX_PAGE" in os.environ:
        PAGE.write_text(page(outcomes), encoding="utf-8")
    told = counts(PAGE.read_text(encoding="utf-8"))
    assert told.keys() == set(PAIRS)
    for pair, numbers in told.items():
        now = outcomes.counted(*pair)
        assert all(abs(a - b) <= LOOSE for a, b in zip(numbers, now, strict=True)), (pair, numbers, now)
    assert questions_table(outcomes) in PAGE.read_text(encoding="utf-8")


_MOMENTS = """(select timestamp '2024-01-31 23:59:59.5' as x, timestamp '2024-02-29 00:00:00' as y
    union all select timestamp '2024-02-29 00:00:00', timestamp '2024-03-31 00:00:00') q"""

# These were once answered otherwise, without a word.
EDGES = [
    (
        "postgres",
        "select l_quantity % 7, mod(l_extendedprice, 10), l_linenumber % 2 from lineitem where l_orderkey < 4",
    ),
    ("postgres", "select extract(month from o_orderdate) / 4 from orders where o_orderkey < 8"),
    ("postgres", "select ceil((extract(month from o_orderdate) - 1) / 3) from orders where o_orderkey < 8"),
    ("postgres", "select 12 / (extract(dow from o_orderdate) + 1) from orders where o_orderkey < 8"),
    ("postgres", f"select y - interval '1 year 1 month', y + interval '1 year 11 months' from {_MOMENTS}"),
    ("postgres", f"select extract(epoch from y - x) from {_MOMENTS}"),
    ("postgres", "select time '10:00' - time '09:30'"),
    ("postgres", f"select count(*) from {_MOMENTS} where y <= date '2024-02-29'"),
    ("postgres", f"select count(*) from {_MOMENTS} where y between '2024-02-29' and date '2024-03-31'"),
    ("postgres", "select count(*) from orders where o_orderdate > timestamp '1995-01-01 00:00:00'"),
    ("postgres", "select count(*) from orders where o_orderdate in (timestamp '1995-01-01 00:00:00')"),
    ("postgres", "select -n_nationkey as n_nationkey, n_name from nation order by -n_nationkey limit 3"),
    ("sqlite", "select -n_nationkey as n_nationkey, n_name from nation order by -n_nationkey limit 3"),
    ("postgres", "select substr(n.n_name, 1, 1) as n_name, count(*) from nation n group by n_name order by 1"),
    ("sqlite", "select substr(n.n_name, 1, 1) as n_name, count(*) from nation n group by n_name order by 1"),
    ("sqlite", "select cast(n_nationkey as numeric) / 4 from nation"),
    ("sqlite", "select datetime(x), unixepoch(x), date(x, '+1 hour') from (select '2024-01-31 23:59:59.5' as x) q"),
    ("sqlite", "select strftime('%Y-%m', x), strftime('%s', x) from (select '2024-01-31 23:59:59.5' as x) q"),
    ("sqlite", "select julianday(x) - julianday('2024-01-01') from (select '2024-01-31 23:59:59.5' as x) q"),
    ("sqlite", "select strftime('%Y', 'no date')"),
    ("trino", "select max(n_nationkey, 2) from nation"),
    ("trino", "select -n_nationkey as n_nationkey, n_name from nation order by -n_nationkey limit 3"),
    ("trino", "select mod(l_extendedprice, 10), l_linenumber % 2 from lineitem where l_orderkey < 4"),
    ("trino", f"select count(*) from {_MOMENTS} where date_trunc('month', y) = date '2024-02-01'"),
    ("trino", "select count(*) from orders where date_trunc('month', o_orderdate) = date '1995-01-01'"),
]


@pytest.mark.parametrize("target", ENGINES)
@pytest.mark.parametrize(("source", "sql"), EDGES)
async def test_an_edge_has_one_answer_or_is_refused(gateway, answers, source, target, sql):
    await ask_construct(gateway, answers, source, target, sql)


# The answer hangs on the types of columns, which a translation does not see; a notice says what to write instead.
TOLD = [
    ("postgres", "trino", "select sum(n_nationkey) / 7 from nation", "sum() of bigint"),
    ("postgres", "trino", "select l_receiptdate - l_shipdate from lineitem where l_orderkey = 1", "::date"),
    ("postgres", "trino", "select avg(l_discount)::numeric(10, 4) from lineitem", "decimal places"),
    ("postgres", "trino", """select '{"a": {"b": 1}}'::jsonb ->> 'a'""", "Objects and lists"),
    ("sqlite", "trino", """select json_extract('{"a": [1, 2]}', '$.a')""", "Objects and lists"),
    ("sqlite", "trino", "select round(l_extendedprice * 0.1, 2) from lineitem where l_orderkey = 1", "round()"),
    ("sqlite", "trino", "select group_concat(distinct n_regionkey) from nation", "without an order"),
]


@pytest.mark.parametrize(("source", "target", "sql", "words"), TOLD)
async def test_a_difference_that_hangs_on_types_is_told(gateway, source, target, sql, words):
    own = await gateway.query(source, sql, **LIMITS)
    other = await gateway.query(target, sql, from_dialect=source, **LIMITS)
    assert comparable(own, other) != comparable(other, own), "right by now: no longer to be told"
    assert any(words in notice for notice in other.notices[1:])
