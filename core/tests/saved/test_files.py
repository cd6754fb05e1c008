"""What a file of a saved query says, and what is told of a wrong one."""

from __future__ import annotations

import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from dragoman import ConfigurationError, ParameterError
from dragoman.saved import Parameter, SavedQueries, SavedQuery, write
from dragoman.saved.files import parse, parse_text
from dragoman.saved.queries import REQUIRED, TYPES, front_matter
from hypothesis import given
from hypothesis import strategies as st

REVENUE = """\
-- name: revenue
-- description: Revenue per status since a day
-- database: shop
-- param: since date = 2026-01-01 "First day"
-- param: status text "Order \\"status\\""
-- param: most integer = 10
-- expose: tool
-- Cancelled orders count, as finance wants it.
SELECT status, sum(total) FROM orders WHERE placed >= :since AND status = :status LIMIT :most;
"""


def test_a_file_gives_a_query_with_typed_parameters():
    query = parse_text(REVENUE, "file")
    assert (query.name, query.database, query.is_tool) == ("revenue", "shop", True)
    assert query.sql.startswith("SELECT")
    assert query.sql.endswith(":most")
    assert query.parameters == (
        Parameter("since", "date", "2026-01-01", "First day"),
        Parameter("status", "text", REQUIRED, 'Order "status"'),
        Parameter("most", "integer", 10),
    )


def test_a_file_that_begins_with_a_byte_order_mark_has_its_front_matter(tmp_path):
    path = tmp_path / "other.sql"
    path.write_text(REVENUE, encoding="utf-8-sig")
    assert parse(path) == replace(parse_text(REVENUE, "other"), path=path)


def test_a_file_without_front_matter_is_named_after_itself():
    assert parse_text("SELECT 1", "one") == SavedQuery(name="one", sql="SELECT 1")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("-- param: since daet\nSELECT 1", 1, "no type daet"),
        ("-- name: x\n-- param: since date = tomorrow\nSELECT 1", 2, "the default of since must be a date"),
        ("-- param: region text = 'north'\nSELECT 1", 1, "the default of region is in single quotes"),
        ("-- descripton: x\nSELECT 1", 1, "no key descripton"),
        ("-- name: 9lives\nSELECT 1", 1, "cannot be named"),
        ("-- name: a\n-- name: b\nSELECT 1", 2, "given twice"),
        ("-- param: a text\n-- param: a text\nSELECT 1", 2, "second parameter"),
        ("-- param: only\nSELECT 1", 1, "not a parameter"),
        ("-- expose: table\nSELECT 1", 1, "exposed"),
        ("-- name: a\n-- nothing else\n", 3, "no SQL"),
    ],
)
def test_a_wrong_file_is_told_by_line(tmp_path, text, line, words):
    (tmp_path / "broken.sql").write_text(text)
    (tmp_path / "fine.sql").write_text("SELECT 1")
    saved = SavedQueries.read(tmp_path)
    assert list(saved.queries) == ["fine"]
    assert (saved.problems[0].file, saved.problems[0].line) == ("broken.sql", line)
    assert words in str(saved.problems[0])


@pytest.mark.parametrize("written", ["null", "NULL", "Null"])
def test_null_is_a_default_in_any_case(written):
    assert parse_text(f"-- param: region text = {written}\nSELECT :region", "r").examples() == {"region": None}


def test_two_files_of_one_name_are_a_problem(tmp_path):
    for file in ("a", "b"):
        (tmp_path / f"{file}.sql").write_text("-- name: same\nSELECT 1")
    assert "second query" in str(SavedQueries.read(tmp_path).problems[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "needs the parameter status"),
        ({"status": 1}, "status must be text"),
        ({"status": "paid", "since": "2026-02-30"}, "since must be a date"),
        ({"status": "paid", "most": "ten"}, "most must be a whole number"),
        ({"stauts": "paid"}, "no parameter 'stauts'"),
    ],
)
def test_values_are_checked_by_type(given, words):
    with pytest.raises(ParameterError, match=words):
        parse_text(REVENUE, "revenue").values(given)


@pytest.mark.parametrize(
    ("kind", "given", "bound"),
    [
        *[("number", text, 5) for text in ("5", " 5 ", "+5")],
        *[("number", text, 0.1) for text in ("0.1", ".1", "1e-1", "0.10")],
        *[("number", text, int(text)) for text in ("9223372036854775807", "-9223372036854775808")],
        *[("number", text, text) for text in ("9223372036854775809", "12345678901234567890", "9" * 5000)],
        ("number", "100000000000000000000", 1e20),
        ("number", "0.12345678901234567890", "0.12345678901234567890"),
        *[("date", text, "2026-01-05") for text in ("2026-01-05", "20260105", "2026-W02-1")],
        *[("timestamp", text, "2026-01-05T12:00:00") for text in ("20260105T120000", "2026-W02-1T12", "2026-01-05T12")],
        *[("timestamp", text, text) for text in ("2026-01-05", "2026-01-05 12:00", "2026-01-05T12:00:00.5+02:00")],
    ],
)
def test_a_value_is_bound_as_engines_without_its_type_compare_it(kind, given, bound):
    value = Parameter("p", kind).read(given)
    assert (type(value), value) == (type(bound), bound)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1_000", "0x10", "1e99999", "", ".", "１２"])
def test_a_text_that_is_no_number_is_refused(text):
    with pytest.raises(ParameterError, match="must be a number"):
        Parameter("p", "number").read(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**9), max_value=10**9))
def test_a_number_given_as_text_keeps_its_value(number):
    assert Decimal(str(Parameter("p", "number").read(str(number)))) == number


def test_a_near_name_is_suggested():
    with pytest.raises(ParameterError) as caught:
        parse_text(REVENUE, "revenue").values({"stauts": "paid"})
    assert caught.value.suggestion == "Did you mean status?"


_NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,10}", fullmatch=True)
_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=20)
_DEFAULTS = {
    "text": _WORDS,
    "integer": st.integers(-(10**12), 10**12),
    "boolean": st.booleans(),
    "date": st.dates().map(str),
    "timestamp": st.datetimes().map(lambda moment: moment.isoformat()),
    "number": st.integers(-(10**9), 10**9),
}


def _parameters(name: str) -> st.SearchStrategy[Parameter]:
    def typed(kind: str) -> st.SearchStrategy[Parameter]:
        default = st.just(REQUIRED) | st.none() | _DEFAULTS[kind]
        return st.builds(Parameter, st.just(name), st.just(kind), default, _WORDS)

    return st.sampled_from(sorted(TYPES)).flatmap(typed)


@given(st.lists(_NAMES, unique=True, max_size=4).flatmap(lambda names: st.tuples(*map(_parameters, names))), _WORDS)
def test_what_is_written_is_read_again(parameters, description):
    query = SavedQuery(name="q", sql="SELECT 1", description=description.strip(), parameters=parameters, is_tool=True)
    assert parse_text(f"{front_matter(query)}\n{query.sql}\n", "other") == query


def test_a_query_is_written_once(tmp_path: Path):
    query = SavedQuery(name="revenue", sql="SELECT 1")
    path = write(tmp_path, query, {}.__contains__)
    assert path.read_text() == "-- name: revenue\nSELECT 1\n"
    for name in ("revenue", "REVENUE"):
        with pytest.raises(ParameterError, match="already named"):
            write(tmp_path, SavedQuery(name=name, sql="SELECT 2"), {}.__contains__)
    assert [each.name for each in tmp_path.iterdir()] == ["revenue.sql"]


def test_nothing_is_left_of_a_query_that_cannot_be_written(tmp_path: Path):
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path, SavedQuery(name="q", sql="SELECT '\udc80'"), {}.__contains__)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write(tmp_path, SavedQuery(name="q" * 250, sql="SELECT 1"), {}.__contains__)  # no file has so long a name
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "a.sql")
    (problem,) = SavedQueries.read(tmp_path).problems
    assert "not a file" in str(problem)


def test_hidden_files_of_editors_are_no_queries_and_no_problems(tmp_path: Path):
    (tmp_path / "one.sql").write_text("SELECT 1")
    (tmp_path / "._one.sql").write_bytes(b"\x00\xff")
    (tmp_path / ".#one.sql").symlink_to("somebody@somewhere.1")
    saved = SavedQueries.read(tmp_path)
    assert list(saved.queries) == ["one"]
    assert not saved.problems
