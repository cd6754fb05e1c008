"""CSV files: what a late row has counts as much as what the first rows have."""

import csv
import random
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from dragoman import Database, Gateway, QueryTimeout
from dragoman.workers.frames import Failed, Report, Rows, Run
from dragoman_duckdb.frames import Setup
from dragoman_duckdb.worker.session import Session
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


@pytest.mark.parametrize("rows", [1, SAMPLE + 1])
@pytest.mark.parametrize("first", ["2024-12-31", "31/12/2024", "2024-12-31 10:00:00", "31/12/2024 10:00:00"])
async def test_a_date_that_is_written_in_another_way_keeps_its_meaning(lake, rows, first):
    """The second value is answered as it is written, or as the moment that it means."""
    odd = {
        **{"infinity": "9999-12-31", "-infinity": "-infinity", "epoch": "1970-01-01", "2024/02/03": "2024-02-03"},
        **{"0044-03-15 (BC)": "0044-03-15 (BC)", "12024-01-02": "12024-01-02", "03.02.2024": "03.02.2024"},
        **{"2024-02-03 10:00:00": "2024-02-03 10:00:00", "2024/02/03 10:00": "2024-02-03 10:00:00"},
    }
    for number, late in enumerate(odd):
        (lake.folder / "lake" / f"t{number}.csv").write_text(f"id,v\n{f'1,{first}{chr(10)}' * rows}2,{late}\n")
    async with Gateway.open([lake]) as gateway:
        for number, (late, moment) in enumerate(odd.items()):
            answer = await gateway.query(None, f"SELECT CAST(v AS VARCHAR) FROM t{number} WHERE id = 2")
            told = answer.rows[0][0].removesuffix("+00").removesuffix(" 00:00:00")
            assert told in (late, moment), late


async def test_a_folder_is_read_although_callers_wait_for_less_time_than_that_takes(lake):
    with (lake.folder / "lake" / "t.csv").open("w") as file:
        file.write(f"{','.join(f'c{number}' for number in range(40))}\n")
        file.write(f"{','.join(['12'] * 40)}\n" * 400_000)
    async with Gateway.open([replace(lake, timeout=0.5)]) as gateway:
        for _ in range(100):
            with suppress(QueryTimeout):
                assert (await gateway.query(None, "SELECT c0 FROM t LIMIT 1")).rows == [[12]]
                return
    pytest.fail("every call ran into its timeout")


@pytest.mark.parametrize(
    ("late", "means"),
    [
        *(('"a ""b"" c"', 'a "b" c'), ('"x;y"', "x;y"), ('"two\nlines"', "two\nlines")),
        *((text, text) for text in ('5" pipe', '"tis', '"tis" b')),
    ],
)
async def test_a_late_quote_counts_in_a_file_with_one_column(lake, late, means):
    (lake.folder / "lake" / "t.csv").write_text("v\n" + "a\n" * (SAMPLE + 1) + late + "\n")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT v FROM t WHERE v <> 'a'")).rows == [[means]]


ORDERS = ("dmy", "mdy", "ymd", "ydm", "dym", "myd")
SPELLINGS = {
    "number": lambda draw: (
        lambda: (
            draw.choice(["", "-"])
            + digits(draw, draw.choice([1, 3, 18, 25]))
            + "."
            + digits(draw, draw.choice([1, 2, 20]))
        )
    ),
    "power": lambda draw: (
        lambda: (
            f"{digits(draw, 1)}.{digits(draw, draw.choice([3, 17]))}e{draw.randint(-1, 1) * draw.choice([9, 99, 330])}"
        )
    ),
    "clock": lambda draw: lambda: f"10:{draw.randint(10, 59)}:30.{digits(draw, draw.choice([3, 6, 9]))}",
    "moment": lambda draw: lambda: f"2024-01-{draw.randint(10, 28)} 10:20:30.{digits(draw, draw.choice([3, 6, 9]))}",
    "parts": lambda draw: lambda: "-".join(str(draw.randint(1, 12)) for _ in range(3)),
    "date": lambda draw: spell_dates(draw),
}


def digits(draw: random.Random, most: int) -> str:
    return "".join(draw.choices("0123456789", k=draw.randint(1, most)))


def spell_dates(draw: random.Random):
    """Return a function that writes dates in one order, with one mark and one length of years."""
    order, mark, whole, clock = draw.choice(ORDERS[:4]), draw.choice("/.-"), draw.random() < 0.5, draw.random() < 0.3
    most = draw.choice([12, 28])

    def spell() -> str:
        year = draw.randint(1999, 2031)
        fields = {"y": str(year) if whole else f"{year % 100:02}"}
        fields |= {"m": f"{draw.randint(1, 12):02}", "d": f"{draw.randint(1, most):02}"}
        return mark.join(fields[field] for field in order) + " 10:20:30" * clock

    return spell


@pytest.mark.parametrize("seed", range(4))
async def test_a_column_is_what_its_texts_say_and_a_text_where_they_may_say_two_things(lake, seed):
    draw, columns = random.Random(seed), dict[str, list[str]]()
    for number in range(40):
        spell = SPELLINGS[draw.choice([*SPELLINGS])](draw)
        texts = columns[f"t{number}"] = [spell() for _ in range(draw.choice([1, 4]))]
        lines = (f"{at},{text}\n" for at, text in enumerate(texts))
        (lake.folder / "lake" / f"t{number}.csv").write_text(f"id,v\n{''.join(lines)}")
    async with Gateway.open([lake]) as gateway:
        for name, texts in columns.items():
            answer = await gateway.query(None, f"SELECT v FROM {name} ORDER BY id")
            told = [value for (value,) in answer.rows]
            assert told == texts or [*map(read, told)] == read_all(texts), (answer.columns[0].type, texts, told)


def read(value: object) -> object:
    """Return the number or the moment of an answer."""
    return Decimal(str(value)) if is_number(value) else read_moment(str(value))


def read_moment(text: str) -> datetime | time:
    if text[2] == ":":
        return time.fromisoformat(text)
    return datetime.fromisoformat(re.sub("[/.]", "-", text[:10]) + text[10:])


def is_number(value: object) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", str(value)) is not None


def read_all(texts: list[str]) -> list[object]:
    """Return the numbers or moments of a column; nothing if the dates may be read in several ways."""
    if all(map(is_number, texts)):
        return [Decimal(text) for text in texts]
    if any(re.search(r"\.\d{6}\d*[1-9]", text) for text in texts):
        return []  # a moment of ours has microseconds
    if all(re.match(r"\d{4}\D|\d\d:", text) for text in texts):
        return [*map(read_moment, texts)]
    readings = [found for order in ORDERS if (found := [date_of(text, order) for text in texts]) and all(found)]
    return readings[0] if len(readings) == 1 else []


def date_of(text: str, order: str) -> object:
    day, _, clock = text.partition(" ")
    fields = dict(zip(order, re.split("[/.-]", day), strict=False))
    if set(fields) != set("dmy") or not all(field.isdigit() for field in fields.values()):
        return None
    year, month, day = (int(fields[field]) for field in "ymd")
    if max(map(len, (fields["m"], fields["d"]))) > 2 or len(fields["y"]) not in (2, 4):
        return None
    year += 0 if len(fields["y"]) == 4 else 1900 if year >= 69 else 2000
    with suppress(ValueError):
        return datetime.combine(date(year, month, day), time.fromisoformat(clock) if clock else time())
    return None


def answer_while(folder: Path, monkeypatch, change, order: Run) -> list[Report]:
    """Return what a process sends if its folder changes after it was looked at, and before the statement runs."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("dragoman_duckdb.worker.texts._KNOWN", {})
    monkeypatch.setattr(Session, "_check", lambda *_: change(folder))
    (folder / "t.csv").write_text("id,c\n1,5\n")
    sent: list[Report] = []
    Session(Setup(path=str(folder), memory=100, threads=1)).run(order, sent.append)
    return sent


def replace_table(folder: Path) -> None:
    (folder / "new").write_text("c,id\n7,1\n")
    (folder / "new").replace(folder / "t.csv")


def replace_table_twice(folder: Path) -> None:
    """The file system may give the second one the number of the first."""
    replace_table(folder)
    replace_table(folder)


def write_table_over(folder: Path) -> None:
    """The number stays the same, as it may if a file is replaced twice."""
    (folder / "t.csv").write_text("c,id\n7,1\n7,1\n")


def grow_table(folder: Path) -> None:
    with (folder / "t.csv").open("a") as file:
        file.write("2,8\n")


@pytest.mark.parametrize("reads", [[("T",)], [("main", "t")], None])
@pytest.mark.parametrize("sql", ["SELECT id FROM t", "SELECT id FROM t WHERE id = 5", "SELECT c FROM t WHERE c = 7"])
@pytest.mark.parametrize("change", [replace_table, replace_table_twice, write_table_over])
def test_no_row_of_a_file_that_another_one_replaces_meanwhile_is_answered(tmp_path, monkeypatch, change, sql, reads):
    """The other one has its columns in another order, and DuckDB would take them for those of the first."""
    sent = answer_while(tmp_path, monkeypatch, change, Run(sql, [], 10, 1000, 10, reads=reads))
    assert not any(isinstance(each, Rows) for each in sent)
    assert isinstance(sent[-1], Failed)
    assert sent[-1].error == "Busy"


def test_a_name_with_a_quote_is_found_in_the_text_of_a_statement(tmp_path, monkeypatch):
    (tmp_path / 'A"b.csv').write_text("id,c\n1,5\n")

    def replace_odd(folder: Path) -> None:
        (folder / "new").write_text("c,id\n7,1\n")
        (folder / "new").replace(folder / 'A"b.csv')

    sent = answer_while(tmp_path, monkeypatch, replace_odd, Run('SELECT id FROM "a""b"', [], 10, 1000, 10, reads=None))
    assert not any(isinstance(each, Rows) for each in sent)


class Counting(dict[str, object]):
    """Counts how often all of what it knows is gone through."""

    times = 0

    def items(self):
        self.times += 1
        return super().items()


def test_many_rows_ask_once_which_files_their_statement_reads(tmp_path, monkeypatch):
    """A folder may have thousands of files, and an answer thousands of batches."""
    known = Counting()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman_duckdb.worker.texts._KNOWN", known)
    (tmp_path / "t.csv").write_text("id\n" + "1\n" * 100_000)
    sent: list[Report] = []
    order = Run("SELECT id FROM t", [], 100_000, 10**9, 60, reads=[("t",)])
    Session(Setup(path=str(tmp_path), memory=100, threads=1)).run(order, sent.append)
    assert sum(isinstance(each, Rows) for each in sent) > 1
    assert known.times == 1


@pytest.mark.parametrize(("change", "reads"), [(grow_table, [("t",)]), (replace_table, [("other",)])])
def test_a_file_that_grows_and_one_that_is_not_read_refuse_nothing(tmp_path, monkeypatch, change, reads):
    sent = answer_while(tmp_path, monkeypatch, change, Run("SELECT count(*) > 0 FROM t", [], 10, 1000, 10, reads=reads))
    assert [each.json for each in sent if isinstance(each, Rows)] == [b"[true]"]


@pytest.mark.parametrize("comes", ["t.parquet", "t.csv"])
async def test_a_file_that_has_gone_keeps_nobody_from_the_one_that_came(lake, comes):
    folder = lake.folder / "lake"
    (folder / "t.csv").write_text("id\n1\n")
    async with Gateway.open([replace(lake, pool_size=1)]) as gateway:
        assert (await gateway.query(None, "SELECT id FROM t")).rows == [[1]]
        (folder / "t.csv").unlink()
        duckdb.sql(f"COPY (SELECT 2 AS id) TO '{folder / comes}'")
        assert (await gateway.query(None, "SELECT id FROM t")).rows == [[2]]


def test_what_was_found_out_of_a_file_is_forgotten_when_the_file_is_too_large(tmp_path, monkeypatch):
    """Otherwise every query of it would be refused, since it is another file."""
    order = Run("SELECT c FROM t", [], 10, 1000, 10, reads=[("t",)])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman_duckdb.worker.texts._KNOWN", {})
    (tmp_path / "t.csv").write_text("id,c\n1,5\n")
    session = Session(Setup(path=str(tmp_path), memory=100, threads=1))
    monkeypatch.setattr(find_small, "__defaults__", (0,))
    replace_table(tmp_path)
    sent: list[Report] = []
    session.run(order, sent.append)
    assert [each.json for each in sent if isinstance(each, Rows)] == [b'["7"]']
