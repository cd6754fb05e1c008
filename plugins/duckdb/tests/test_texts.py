"""CSV files: what a late row has counts as much as what the first rows have."""

import csv
import random
from datetime import UTC, datetime

import duckdb
import pytest
from dragoman import Database, Gateway
from dragoman_duckdb.worker.texts import find_small, write_call

SAMPLE = 20_480
"""Rows that DuckDB looks at by itself."""
FIRST = {
    "whole": "1",
    "decimal": "1.5",
    "date": "2024-01-01",
    "moment": "2024-01-01 10:00:00",
    "clock": "10:00:00",
    "truth": "true",
    "word": "x",
}
LATE = [
    *("1.5", "-.5", "1e-3", "007", "+5", "9223372036854775808", "2024-01-02 10:00:00", "2024-01-02T23:59:59+05:00"),
    *("2024-02-30", "10:00:00+05:00", "24:00:00", "yes", "0", "N/A", "a, b", 'say "hi"', "two\nlines", "it's", ""),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


@pytest.fixture
def lake(tmp_path) -> Database:
    (tmp_path / "lake").mkdir()
    return Database(name="lake", dialect="duckdb", database="lake", folder=tmp_path)


def write(path, columns, early, late) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([columns, *[early] * (SAMPLE + 1), late])


@pytest.mark.parametrize("first", FIRST)
async def test_a_late_row_means_what_it_means_among_the_first(lake, first):
    """Every late value, each in a file of its own, beside the same value in a file that DuckDB looks at as a whole."""
    folder = lake.folder / "lake"
    for number, late in enumerate(LATE):
        write(folder / f"late{number}.csv", ["id", "v"], ["1", FIRST[first]], ["2", late])
        with (folder / f"early{number}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["id", "v"], ["1", FIRST[first]], ["2", late]])
    async with Gateway.open([lake]) as gateway:
        for number, late in enumerate(LATE):
            answered = [
                (await gateway.query(None, f"SELECT DISTINCT id, v FROM {name}{number} ORDER BY id")).rows
                for name in ("late", "early")
            ]
            late_means, early_means = ([(who, meaning(v)) for who, v in rows] for rows in answered)
            assert late_means == early_means, late


def meaning(value):
    """What a value says, whether it is answered as a date, as a moment, or as the text of one."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return moment.replace(tzinfo=moment.tzinfo or UTC)


@pytest.mark.parametrize("seed", range(3))
async def test_the_last_row_of_a_long_file_keeps_its_values(lake, seed):
    draw = random.Random(seed)
    names = [f"c{number}" for number in range(6)]
    late = [draw.choice(LATE) for _ in names]
    write(lake.folder / "lake" / "t.csv", names, [draw.choice([*FIRST.values()]) for _ in names], late)
    as_text = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
    async with Gateway.open([lake]) as gateway:
        answer = await gateway.query(None, f"SELECT {as_text} FROM t OFFSET {SAMPLE + 1}")
    assert [means(seen, value) for seen, value in zip(answer.rows[0], late, strict=True)] == [True] * len(names)


def means(seen, value) -> bool:
    """Whether a text is that of a CSV file, or of the number or the truth value that it spells."""
    if seen is None or value == "":
        return seen is None and value == ""
    if value in ("yes", "0") and seen in ("true", "false"):
        return (seen == "true") == (value == "yes")
    try:
        return seen == value or float(seen) == float(value)
    except ValueError:
        return False


def test_the_smallest_files_are_those_that_are_looked_at(tmp_path):
    for name, size in (("a", 30), ("b", 10), ("c", 20)):
        (tmp_path / name).write_bytes(bytes(size))
    paths = [str(tmp_path / name) for name in "abcd"]
    assert find_small(paths, 30) == {paths[1], paths[2]}
    assert find_small(paths, 9) == frozenset()
    assert find_small(paths) == set(paths[:3])


def test_columns_of_a_file_that_is_too_large_are_exact_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "large.csv", ["id", "v"], ["1", "1"], ["007", 'a, "b"'])
    assert duckdb.execute(f"FROM {write_call('large.csv')} WHERE id <> '1'").fetchall() == [("007", 'a, "b"')]
