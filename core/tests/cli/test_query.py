import csv
import io
import json
from pathlib import Path

import pytest
from dragoman.cli.output import csv_lines, markdown_lines, plain_table, record_lines
from dragoman.cli.query import parameter

from .conftest import Dragoman

pytestmark = pytest.mark.usefixtures("configured")


def test_a_query_prints_an_aligned_table(dragoman: Dragoman) -> None:
    outcome = dragoman("query", "shop", "SELECT id, name, NULL AS missing FROM customers ORDER BY id")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "id  name        missing",
        "--  ----------  -------",
        " 1  Ada         NULL",
        ' 2  Grace, "G"  NULL',
    ]


def test_json_carries_time_and_hash_and_exact_values(dragoman: Dragoman) -> None:
    for option in (("--format", "json"), ("--json",)):
        outcome = dragoman("query", "shop", "SELECT id, total FROM orders WHERE id = 3", *option)
        answer = json.loads(outcome.out)
        assert answer["columns"] == ["id", "total"]
        assert answer["rows"] == [[3, "9007199254740993"]]
        assert answer["row_count"] == 1
        assert answer["elapsed_ms"] > 0
        assert len(answer["query_hash"]) == 16


def test_csv_tells_null_from_an_empty_text(dragoman: Dragoman) -> None:
    outcome = dragoman(
        "query", "shop", "SELECT id, note, name FROM orders JOIN customers USING (id)", "--format", "csv"
    )
    assert outcome.out.splitlines() == ["id,note,name", "1,,Ada", '2,"","Grace, ""G"""']


def test_markdown_survives_pipes_and_line_breaks(dragoman: Dragoman) -> None:
    outcome = dragoman("query", "shop", "SELECT note FROM orders WHERE id = 3", "--format", "markdown")
    assert outcome.out.splitlines() == ["| note |", "| --- |", "| a\\|b<br>\\u001b |"]


def test_no_control_character_of_a_value_reaches_the_terminal(dragoman: Dragoman) -> None:
    outcome = dragoman("query", "shop", "SELECT note FROM orders WHERE id = 3")
    assert "a|b\\u000a\\u001b" in outcome.out
    assert "\x1b" not in outcome.out


def test_parameters_are_bound_as_json_or_text(dragoman: Dragoman) -> None:
    outcome = dragoman(
        "query",
        "shop",
        "SELECT typeof(?), typeof(?), typeof(?)",
        "--json",
        "--param",
        "1",
        "--param",
        "x",
        "--param",
        "null",
    )
    assert json.loads(outcome.out)["rows"] == [["integer", "text", "null"]]


PARAMETERS = [
    ("5", 5),
    ('"5"', "5"),
    ("abc", "abc"),
    ("null", None),
    ("[1,2]", [1, 2]),
    ("NaN", "NaN"),
    ("[" * 5000, "[" * 5000),
]


@pytest.mark.parametrize(("text", "value"), PARAMETERS, ids=[text[:9] for text, _ in PARAMETERS])
def test_a_parameter_is_json_else_text(text: str, value: object) -> None:
    assert parameter(text) == value


def test_a_cut_result_says_so_on_stderr_and_keeps_stdout_clean(dragoman: Dragoman) -> None:
    outcome = dragoman("query", "shop", "SELECT id FROM orders ORDER BY id", "--limit", "2", "--format", "csv")
    assert outcome.out.splitlines() == ["id", "1", "2"]
    assert "cut at 2 rows" in outcome.err


def test_a_result_of_more_than_an_agents_bytes_is_whole(dragoman: Dragoman) -> None:
    outcome = dragoman("query", "shop", "SELECT hex(zeroblob(100000)) AS x", "--json")
    answer = json.loads(outcome.out)
    assert len(answer["rows"][0][0]) == 200_000
    assert "truncated" not in answer


def test_sql_comes_from_stdin_when_it_is_a_dash(dragoman: Dragoman) -> None:
    assert dragoman("query", "shop", "-", "--format", "csv", stdin=b"SELECT 1 AS a").out == "a\n1\n"


def test_the_database_may_be_a_url(dragoman: Dragoman, configured: Path) -> None:
    configured.unlink()
    assert dragoman("query", "sqlite:///shop.db", "SELECT 1 AS a", "--format", "csv").out == "a\n1\n"
    assert dragoman("query", "other", "SELECT 1 AS a", "--url", "other=sqlite:///shop.db", "--format", "csv").code == 0


FAILURES = [
    (["query", "shop", "DELETE FROM orders"], 1, "WRITE_OPERATION_DENIED"),
    (["query", "shop", "SELECT load_extension('x')"], 1, "UNSAFE_SQL"),
    (["query", "shop", "SELECT 1; SELECT 2"], 1, "UNSAFE_SQL"),
    (["query", "shop", "SELECT FROM WHERE"], 1, "INVALID_SQL"),
    (["query", "shop", "SELECT * FROM ordres"], 1, "TABLE_NOT_FOUND"),
    (["query", "shop", "SELECT 1", "--limit", "0"], 1, "PARAMETER_ERROR"),
    (["query", "gone", "SELECT 1", "--url", "gone=sqlite:///gone.db"], 1, "CONNECTION_ERROR"),
    (["query", "shup", "SELECT 1"], 2, "UNKNOWN_DATABASE"),
    (["query", "shop", "SELECT 1", "--config", "no.toml"], 2, "CONFIGURATION_ERROR"),
    (["query", "x", "SELECT 1", "--url", "x=nodialect://h/x"], 2, "DIALECT_ERROR"),
    (["query", "x", "SELECT 1", "--url", "nonsense"], 2, "CONFIGURATION_ERROR"),
    (["query", "shop"], 2, "usage:"),
    (["query", "shop", "SELECT 1", "--format", "xml"], 2, "usage:"),
    (["quer"], 2, "usage:"),
]


@pytest.mark.parametrize(("argv", "code", "words"), FAILURES, ids=[" ".join(argv) for argv, _, _ in FAILURES])
def test_a_failure_has_its_exit_code_and_tells_what_to_do(
    dragoman: Dragoman, argv: list[str], code: int, words: str
) -> None:
    outcome = dragoman(*argv)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(words)
    assert len(outcome.err.splitlines()) >= 2
    assert "Traceback" not in outcome.err


def test_a_timeout_ends_the_query_with_its_code(dragoman: Dragoman) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    outcome = dragoman("query", "shop", endless, "--timeout", "0.2")
    assert outcome.code == 1
    assert outcome.err.startswith("QUERY_TIMEOUT")


def test_csv_read_back_is_what_was_written() -> None:
    rows = [["a,b", 'q"uote', " space ", "line\nbreak"], ["x", 1, True, [1, {"k": None}]]]
    read = list(csv.reader(io.StringIO("\n".join(csv_lines(["a", "b", "c", "d"], rows)) + "\n")))
    assert read[1:] == [["a,b", 'q"uote', " space ", "line\nbreak"], ["x", "1", "true", '[1,{"k":null}]']]


def test_tables_of_no_rows_still_have_their_columns() -> None:
    assert list(plain_table(["a", "bc"], [])) == ["a  bc", "-  --"]
    assert list(markdown_lines(["a"], [])) == ["| a |", "| --- |"]
    assert list(csv_lines(["a"], [])) == ["a"]
    assert list(csv_lines(["a"], [[None], [1]])) == ["a", '""', "1"]


def test_a_mistake_is_shown_where_it_is(dragoman: Dragoman) -> None:
    lines = dragoman("query", "shop", "SELECT * fro orders").err.splitlines()
    assert lines[1] == "SELECT * fro orders"
    assert lines[2].strip() == "^"


@pytest.mark.parametrize("place", ["shop.db", "./shop.db", "sqlite:///shop.db"])
def test_the_path_of_a_file_is_a_database(dragoman: Dragoman, place: str) -> None:
    assert dragoman("query", place, "SELECT count(*) AS n FROM orders", "--format", "csv").out == "n\n3\n"


def test_a_file_that_is_not_there_is_named_with_the_nearest(dragoman: Dragoman, folder: Path) -> None:
    outcome = dragoman("query", "shopp.db", "SELECT 1")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"There is no file {folder / 'shopp.db'}." in outcome.err
    assert "Did you mean shop.db?" in outcome.err
    assert not (folder / "shopp.db").exists()


@pytest.mark.usefixtures("configured")
def test_no_hidden_file_is_suggested_for_one_that_is_missing(dragoman: Dragoman, folder: Path) -> None:
    (folder / ".debug").touch()
    assert "debug" not in dragoman("query", "x.db", "SELECT 1").err


def test_a_row_too_wide_for_a_table_is_a_record_of_its_own() -> None:
    lines = list(record_lines(["id", "a long name"], [[1, "x"], [2, None]]))
    assert lines == [
        "-- row 1 -------",
        "id           1",
        "a long name  x",
        "-- row 2 -------",
        "id           2",
        "a long name  NULL",
    ]


def test_exact_numbers_that_json_carries_as_text_stand_to_the_right() -> None:
    assert list(plain_table(["total"], [["12.50"], ["9007199254740993"]]))[2] == "           12.50"
    assert list(plain_table(["zip"], [["01234"], ["9"]]))[2] == "01234"
