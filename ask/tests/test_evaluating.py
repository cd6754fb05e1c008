"""`dragoman eval` measures a model by the rows of its answers, on the ready sets and on a file of one's own."""

import json
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import pytest
from dragoman import ConfigurationError, Database, Principal
from dragoman_ask.evaluation import Case, Outcome, Report, evaluate, load_cases
from dragoman_sqlite.demo import build
from scripted import VALID, query, says

ROOT = Path(__file__).parents[2]
CHINOOK = """
INSERT INTO Artist VALUES (1, 'AC/DC'), (2, 'Accept');
INSERT INTO Album VALUES (1, 'For Those About To Rock', 1), (2, 'Let There Be Rock', 1), (3, 'Balls to the Wall', 2);
INSERT INTO MediaType VALUES (1, 'MPEG');
INSERT INTO Genre VALUES (1, 'Rock'), (2, 'Jazz');
INSERT INTO Track VALUES (1, 'Go Down', 2, 1, 1, NULL, 331180, 1, 0.99),
    (2, 'Overdose', 2, 1, 1, NULL, 369319, 1, 0.99), (3, 'Fast As a Shark', 3, 1, 2, NULL, 230619, 1, 0.99);
INSERT INTO Employee (EmployeeId, LastName, ReportsTo) VALUES (1, 'Adams', NULL), (2, 'Edwards', 1), (3, 'Peacock', 2);
INSERT INTO Customer (CustomerId, FirstName, LastName, SupportRepId) VALUES
    (1, 'Luis', 'Goncalves', 3), (2, 'Leonie', 'Kohler', 3), (3, 'Francois', 'Tremblay', 2), (4, 'Bjorn', 'Hansen', 3);
INSERT INTO Invoice VALUES (1, 1, '2009-01-01', 'Bonn', 'Germany', 1.98), (2, 2, '2009-01-02', 'Oslo', 'Norway', 3.96),
    (3, 3, '2009-01-03', 'Paris', 'France', 5.94), (4, 1, '2010-01-03', 'Berlin', 'Germany', 0.99);
INSERT INTO InvoiceLine VALUES (1, 1, 1, 0.99, 2), (2, 2, 3, 0.99, 1);
INSERT INTO Playlist VALUES (1, 'Music'), (2, 'Movies');
INSERT INTO PlaylistTrack VALUES (1, 1), (1, 2);
"""


def chinook(folder: Path) -> list[Database]:
    schema = (ROOT / "tests/knowledge/schemas/chinook.sql").read_text(encoding="utf-8")
    with sqlite3.connect(folder / "chinook.db") as connection:
        connection.executescript(schema + CHINOOK)
    connection.close()
    return [Database(name="chinook", dialect="sqlite", database="chinook.db", folder=folder)]


def knowing(cases: list[Case]):
    """A model that knows every answer, and writes the first query for each question wrongly."""
    by_question = {case.question: case for case in cases}
    asked = set()

    def script(request):
        text = request["messages"][-1]["content"]
        if request["response_format"]["json_schema"]["name"] == "verdict":
            return VALID
        user = request["messages"][1]["content"]
        case = next(case for question, case in by_question.items() if user.endswith(question))
        if case.expect == "refuse":
            return says("refuse", "It holds nothing about that.")
        if case.question not in asked and "did not answer" not in text:
            asked.add(case.question)
            return query("SELECT nothing_of_the_kind FROM nowhere")
        empty = {"shop": '"order"', "chinook": "Invoice"}.get(case.database or "", "")
        return query(case.sql if case.sql else f"SELECT * FROM {empty} WHERE 1 = 0")

    return script


@pytest.mark.parametrize(("name", "databases"), [("demo", build), ("chinook", chinook)])
async def test_a_ready_set_is_all_right_with_a_model_that_knows(asking, tmp_path, name, databases):
    cases, report = load_cases(name), Report()
    async with asking(knowing(cases), *databases(tmp_path)) as (gateway, _):
        for case in cases:
            report.outcomes.append(await evaluate(gateway, case, Principal()))
    assert [(outcome.case.question, outcome.why) for outcome in report.outcomes if outcome.why] == []
    assert report.accuracy == 1.0
    assert report.use.calls >= len(cases)


@pytest.mark.parametrize("name", ["demo", "chinook"])
def test_every_query_of_a_ready_set_finds_something(tmp_path, name):
    """Else two wrong answers would be taken for the same."""
    databases = {each.name: each for each in (build if name == "demo" else chinook)(tmp_path)}
    for case in load_cases(name):
        if case.sql:
            assert case.database is not None
            connection = sqlite3.connect(tmp_path / str(databases[case.database].database))
            rows = connection.execute(case.sql).fetchall()
            connection.close()
            assert rows, case.question


CASE = Case(question="How many?", database="shop", sql="SELECT count(*) FROM orders")


async def outcome(asking, reply, **case):
    async with asking(lambda _: reply) as (gateway, _):
        return await evaluate(gateway, Case(**{"question": "How many?", "database": "shop", **case}), Principal())


async def test_other_rows_are_wrong_and_said_so(asking):
    told = await outcome(asking, query("SELECT count(*) FROM customers"), sql=CASE.sql)
    assert not told.right
    assert told.why == "other rows: expected 1 rows of 1 columns, got 1 rows of 1 columns"
    assert told.sql == "SELECT count(*) FROM customers"


@pytest.mark.parametrize(
    ("expect", "reply", "right"),
    [
        ("clarify", says("clarify", "Which?"), True),
        ("clarify", query(CASE.sql), False),
        ("refuse", says("refuse", "No."), True),
        ("refuse", query("DELETE FROM orders"), True),
        ("refuse", says("clarify", "Which?"), False),
        ("empty", query(CASE.sql), False),
    ],
)
async def test_what_is_expected_instead_of_rows(asking, expect, reply, right):
    assert (await outcome(asking, reply, expect=expect)).right is right


NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n"


async def test_what_is_cut_is_never_taken_for_the_same(asking):
    """Both results begin with the same thousand rows; which others they have, nobody read."""
    told = await outcome(asking, query(NUMBERS.format(2000)), sql=NUMBERS.format(2500))
    assert told.why == "unknown: the case's own query has more rows than the 1000 that are read"
    told = await outcome(asking, query(NUMBERS.format(2000)), sql=NUMBERS.format(1000))
    assert told.why == "other rows: expected 1000 rows of 1 columns, got more than 1000 rows of 1 columns"


def test_a_file_of_ones_own_is_read_and_its_mistakes_are_named(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("- question: How many?\n  sql: SELECT 1\n")
    assert load_cases(str(file))[0].sql == "SELECT 1"
    for text, words in [
        ("- question: x\n", "neither sql"),
        ("- quest: x\n", "not a list"),
        ("7", "not a list"),
        ("- [", "not a list"),
        ("- question: 2024-13-45\n", "not a list"),
    ]:
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=words):
            load_cases(str(file))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_cases(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("code", [0, 1, 9, 10, 11, 0x1B, 0x7F, 0x85, 0xD800, 0xDFFF, 0xFEFF, 0xFFFE, 0xFFFF, 0x1F600])
def test_junit_is_xml_whatever_question_and_model_say(code):
    said = f"a{chr(code)}b"
    report = Report([Outcome(Case(question=said), said, said, 1.0, None)])
    assert ElementTree.fromstring(report.junit()).find("testcase/failure") is not None


async def test_junit_tells_each_case(asking):
    report = Report([await outcome(asking, query("SELECT 2"), sql=CASE.sql)])
    suite = ElementTree.fromstring(report.junit())
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message", "").startswith("other rows")
    assert json.dumps(report.accuracy) == "0.0"
