"""Values come out exactly as they are stored, under the types SQLite knows, within the limits."""

import dataclasses
import sqlite3
from contextlib import closing

import apsw
import pytest
from dragoman import ColumnNotFound, Gateway, ParameterError, ResultTooLarge, WriteDenied
from dragoman.testing.files import TEXT, types_in_files
from dragoman.workers.frames import Run
from dragoman_sqlite.worker.statement import Statement

SCHEMA = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(40), price DECIMAL(10, 2), sold BOOLEAN, mixed);
INSERT INTO item VALUES (1, 'cup', 1.5, 1, 1), (2, '', 2, 0, 'x'), (3, NULL, NULL, NULL, x'00');
CREATE VIEW priced AS SELECT id, name AS label, price * 2 AS twice FROM item;
CREATE TABLE latin (id INTEGER PRIMARY KEY, word TEXT);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO latin SELECT i, 'ok' FROM n;
UPDATE latin SET word = CAST(x'66fc72' AS TEXT) WHERE id = 300;
"""
FILLED = """CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO t SELECT i, 'ok' FROM n;"""
EXACT = {
    "9007199254740991": 9007199254740991,
    "9007199254740992": "9007199254740992",
    "-9007199254740992": "-9007199254740992",
    "9223372036854775807": "9223372036854775807",
    "-9223372036854775808": "-9223372036854775808",
    "0.1": 0.1,
    "1e308": 1e308,
    "5e-324": 5e-324,
    "9e999": "Infinity",
    "-9e999": "-Infinity",
    "9e999 - 9e999": None,  # SQLite makes NULL of NaN
    "x''": "",
    "x'00ff'": "AP8=",
    "''": "",
    "NULL": None,
    "'a' || char(0) || 'b'": "a\0b",
    "'größe 🙂'": "größe 🙂",
    "TRUE": 1,
    """json('{"a": 1.50}')""": '{"a":1.50}',
    "CAST(x'ff41' AS TEXT)": "/0E=",
}
TYPED = {
    "SELECT id, name, price, sold FROM item": ["integer", "varchar", "decimal(10,2)", "boolean"],
    "SELECT label, twice FROM priced WHERE id = 1": ["varchar", "real"],
    "SELECT label, twice FROM priced": ["varchar", "any"],
    "SELECT n FROM (SELECT name AS n FROM item)": ["varchar"],
    "SELECT mixed FROM item": ["any"],
    "SELECT mixed FROM item WHERE id = 2": ["text"],
    "SELECT NULL": ["any"],
    "SELECT count(*), avg(price), max(name) FROM item": ["integer", "real", "text"],
    "SELECT id, name || '' AS n FROM item WHERE 0": ["integer", "any"],
}


@pytest.fixture(scope="module")
async def shop(shared):
    return shared.make(SCHEMA)


@pytest.mark.parametrize("written", EXACT)
async def test_a_value_is_exact(shared, shop, written):
    answer = await shared.ask(shop, f"SELECT {written}")
    assert answer.rows == [[EXACT[written]]]


async def test_every_type_goes_out_to_files_and_comes_back_equal(shared, shop, tmp_path):
    """SQLite's five classes of values, the types that columns are declared with, and columns of several classes."""
    database = dataclasses.replace(shop, name="files")
    async with Gateway.open([database]) as gateway:
        written = ", ".join(f"{value} AS v{number}" for number, value in enumerate(EXACT))
        values = await gateway.query(None, f"SELECT {written}, -0.0 AS negative")
        item = await gateway.query(None, "SELECT id, name, price, sold, mixed FROM item ORDER BY id")
        seen = {"id": "int64", "name": TEXT, "price": "double", "sold": "int64", "mixed": TEXT}
        types_in_files(tmp_path, values.columns, [*values.rows, [None] * len(values.columns)])
        types = types_in_files(tmp_path, item.columns, item.rows)
        assert dict(zip((column.name for column in item.columns), types, strict=True)) == seen


async def test_a_negative_zero_keeps_its_sign(shared, shop):
    assert str((await shared.ask(shop, "SELECT -0.0")).rows) == "[[-0.0]]"


@pytest.mark.parametrize("sql", TYPED)
async def test_a_column_has_its_declared_type_else_the_one_seen(shared, shop, sql):
    assert (await shared.ask(shop, sql)).types == TYPED[sql]


async def test_an_empty_result_has_its_columns(shared, shop):
    answer = await shared.ask(shop, "SELECT id, name FROM item WHERE id > 9")
    assert (answer.columns, answer.rows) == (["id", "name"], [])


async def test_columns_of_one_name_all_survive(shared, shop):
    answer = await shared.ask(shop, "SELECT id, id, name AS id FROM item WHERE id = 1")
    assert (answer.columns, answer.rows) == (["id", "id", "id"], [[1, 1, "cup"]])


async def test_as_many_columns_as_sqlite_allows(shared, shop):
    answer = await shared.ask(shop, f"SELECT {', '.join(map(str, range(2000)))}")
    assert answer.rows == [list(range(2000))]


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
async def test_a_utf_16_database_reads_the_same(bench, encoding):
    shop = bench.make(
        f"""PRAGMA encoding = '{encoding}'; CREATE TABLE "größe" (wort TEXT); INSERT INTO "größe" VALUES ('größe 🙂')"""
    )
    assert (await bench.ask(shop, 'SELECT * FROM "größe"')).rows == [["größe 🙂"]]
    half = "00d8" if encoding.endswith("le") else "d800"  # of a surrogate pair, in the byte order of the file
    answer = await bench.ask(shop, f"""SELECT wort, CAST(x'{half}' AS TEXT) FROM "größe\"""")
    assert answer.rows == [["größe 🙂", "7aCA"]]
    assert len(answer.notices) == 1


async def test_broken_text_beyond_the_first_batch_is_base64_with_a_notice(shared, shop):
    answer = await shared.ask(shop, "SELECT id, word FROM latin ORDER BY id;")
    assert [row[0] for row in answer.rows] == list(range(1, 301))
    assert answer.rows[298:] == [[299, "ok"], [300, "Zvxy"]]
    assert answer.types == ["integer", "text"]
    assert answer.notices == ["Column 'word' has text that is not valid in its encoding; it is given as base64."]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, word FROM latin ORDER BY random()",
        "SELECT id, word FROM latin ORDER BY hex(RandomBlob(4))",
        "WITH r AS (SELECT *, random() AS r FROM latin) SELECT id, word FROM r ORDER BY r",
        "SELECT id, word, row_number() OVER (ORDER BY random()) FROM latin",
    ],
)
async def test_each_row_comes_once_where_chance_decides_the_order_of_broken_texts(shared, shop, sql):
    answer = await shared.ask(shop, sql)
    assert sorted(row[0] for row in answer.rows) == list(range(1, 301))
    assert sorted({row[1] for row in answer.rows}) == ["Zvxy", "ok"]
    assert answer.types[:2] == ["integer", "text"]


@pytest.mark.parametrize("other", ["NULL", "7", "x'00ff'"])
async def test_chance_decides_once_what_type_a_value_has(shared, shop, other):
    answer = await shared.ask(shop, f"SELECT iif(random() > 0, 'text', {other}) FROM latin")
    assert len({str(row) for row in answer.rows}) == 2
    assert ["text"] in answer.rows


async def test_a_view_in_which_chance_decides_fails_rather_than_to_answer_rows_twice(bench):
    broken = "UPDATE t SET word = CAST(x'66fc72' AS TEXT) WHERE id > 150"
    view = "CREATE VIEW shuffled AS SELECT * FROM t WHERE random() IS NOT NULL"
    shop = bench.make(f"{FILLED} {broken}; {view}")
    for _ in range(3):  # a compiled statement that is remembered tells nobody what it calls
        error = await bench.fails(shop, "SELECT id, word FROM shuffled ORDER BY word = 'ok' DESC")
        assert "encoding" in error.message


async def test_texts_are_read_again_as_bytes_from_the_same_state_of_the_file(bench):
    """Another program deletes the rows that were sent already, while the statement is read again."""
    broken = "UPDATE t SET word = CAST(x'66fc72' AS TEXT) WHERE id = 200"
    bench.make(f"PRAGMA journal_mode = wal; {FILLED} {broken}")
    path = str(bench.folder / "test.db")
    statement = Statement(Run("SELECT id, word FROM t ORDER BY id", [], 1000, 10**6, 30))
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        seen = []
        with pytest.raises(UnicodeDecodeError):
            seen.extend(statement.rows(connection))
        with closing(apsw.Connection(path)) as writer:
            writer.execute("DELETE FROM t WHERE id < 150")
        again = list(statement.read_as_bytes(connection, skip=len(seen)))
        statement.close()
    assert [row[0] for row in [*seen, *again]] == list(range(1, 301))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT word, word AS word, x'66fc' AS raw FROM latin WHERE id = 300",
        "WITH w AS (SELECT word, word, x'66fc' FROM latin WHERE id = 300) SELECT * FROM w",
        "SELECT word, word, x'66fc' FROM latin UNION SELECT 'a', 'b', 'c' ORDER BY 1 LIMIT 1 OFFSET 1",
        "SELECT * FROM (VALUES (CAST(x'66fc72' AS TEXT), CAST(x'66fc72' AS TEXT), x'66fc'))",
    ],
)
async def test_broken_text_is_read_whatever_the_query(shared, shop, sql):
    assert (await shared.ask(shop, sql)).rows == [["Zvxy", "Zvxy", "Zvw="]]


async def test_broken_text_in_more_columns_than_can_be_rescued_is_named(shared, shop):
    columns = ", ".join(["word"] * 1001)
    error = await shared.fails(shop, f"SELECT {columns} FROM latin WHERE id = 300")
    assert (error.code, "encoding" in error.message) == ("QUERY_ERROR", True)


@pytest.mark.parametrize("beyond", [0, 1, 5])
async def test_one_row_beyond_the_limit_is_sent_so_that_the_cut_is_exact(shared, shop, beyond):
    limit = 300 - beyond
    answer = await shared.ask(shop, "SELECT id FROM latin", max_rows=limit)
    assert len(answer.rows) == min(300, limit + 1)


async def test_a_result_that_is_cut_tells_the_types_it_has_seen(shared):
    async with Gateway.open([shared.make(name="cut.db")]) as gateway:
        result = await gateway.query(None, "SELECT 1 + 0.5 AS half UNION ALL SELECT 2.5 UNION ALL SELECT 3.5", limit=2)
    assert result.truncated is not None
    assert [column.type for column in result.columns] == ["real"]


async def test_reading_stops_soon_after_the_byte_limit(shared, shop):
    wide = "SELECT hex(zeroblob(50000)) FROM latin"
    assert len((await shared.ask(shop, wide, max_bytes=100_000)).rows) < 10


async def test_a_value_beyond_the_configured_size_is_refused(bench):
    shop = bench.make(options={"max_value_kb": 16})
    assert (await bench.ask(shop, "SELECT length(zeroblob(16000))")).rows == [[16000]]
    assert isinstance(await bench.fails(shop, "SELECT zeroblob(17000)"), ResultTooLarge)


BOUND = [
    ("SELECT ?, ?", (1, "a"), [1, "a"]),
    ("SELECT ?2, ?1", (1, "a"), ["a", 1]),
    ("SELECT $2, $1, $2", (1, "a"), ["a", 1, "a"]),
    ('SELECT \'$3\', "$4", $1 FROM (SELECT 1 AS "$4")', ("a",), ["$3", 1, "a"]),
    ("SELECT :a, @b", (1, 2), [1, 2]),
    ("SELECT ?, ?, ?", (True, False, None), [1, 0, None]),
    ("SELECT ?, ?", ([1, {"a": "ü"}], {}), ['[1,{"a":"ü"}]', "{}"]),
    ("SELECT ?, typeof(?1)", (9223372036854775807,), ["9223372036854775807", "integer"]),
    ("SELECT ?, typeof(?1)", (1.5,), [1.5, "real"]),
    ("SELECT typeof(?)", (b"\0",), ["blob"]),
    ("SELECT ?", ("'; DROP TABLE item; --",), ["'; DROP TABLE item; --"]),
    ("SELECT name FROM item WHERE id = ?", ("1 OR 1=1",), None),
]
UNFIT = [
    ("SELECT ?", ()),
    ("SELECT ?", (1, 2)),
    ("SELECT 1", (1,)),
    ("SELECT $1, $3", (1, 2, 3)),
    ("SELECT $2", (1, 2)),
    ("SELECT $1, ?", (1, 2)),
    ("SELECT ?", (2**63,)),
    ("SELECT ?", (-(2**63) - 1,)),
    ("SELECT ?", (10**40,)),
    ("SELECT ?", ("\ud800",)),
    ("SELECT ?", ({"a": "\udfff"},)),
    ("SELECT ?", (object(),)),
]


@pytest.mark.parametrize(("sql", "parameters", "row"), BOUND)
async def test_parameters_are_values(shared, shop, sql, parameters, row):
    assert (await shared.ask(shop, sql, *parameters)).rows == ([row] if row else [])


@pytest.mark.parametrize(("sql", "parameters"), UNFIT)
async def test_parameters_that_do_not_fit_are_named_and_cost_no_process(shared, shop, sql, parameters):
    assert isinstance(await shared.fails(shop, sql, *parameters), ParameterError)
    assert (await shared.ask(shop, "SELECT 1")).rows == [[1]]


async def test_pragmas_and_plans_are_rows_too(shared, shop):
    told = await shared.ask(shop, "PRAGMA table_info(item)")
    assert [row[1] for row in told.rows] == ["id", "name", "price", "sold", "mixed"]
    assert (await shared.ask(shop, "EXPLAIN QUERY PLAN SELECT * FROM item")).rows[0][-1] == "SCAN item"
    assert (await shared.ask(shop, "EXPLAIN SELECT 1")).columns[:2] == ["addr", "opcode"]


async def test_the_journal_mode_is_read_and_not_set(shared, shop):
    assert (await shared.ask(shop, " PRAGMA main.journal_mode")).rows == [["delete"]]
    assert isinstance(await shared.fails(shop, "PRAGMA journal_mode = wal"), WriteDenied)


async def test_an_old_view_with_texts_in_double_quotes_is_read(bench):
    shop = bench.make("CREATE TABLE t (state); INSERT INTO t VALUES ('open'), ('shut')")
    with closing(sqlite3.connect(bench.folder / "test.db")) as old:
        old.execute('CREATE VIEW v AS SELECT state, "it is" AS said FROM t WHERE state = "open"')
    assert (await bench.ask(shop, "SELECT * FROM v")).rows == [["open", "it is"]]
    for misspelt in ('SELECT "stat" FROM t', 'SELECT * FROM t WHERE state = "open"', 'SELECT "stat" FROM v'):
        assert isinstance(await bench.fails(shop, misspelt), ColumnNotFound)


async def test_columns_are_described_without_running_the_query(shared, shop):
    from dragoman import Request

    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, name FROM n, item ORDER BY 1"
    columns = await shared.executor(shop).describe(Request(statement=endless))
    assert [(column.name, column.type) for column in columns] == [("i", "any"), ("name", "varchar")]


async def test_newer_sqlite_than_python_s_runs_the_queries(shared, shop):
    assert (await shared.ask(shop, "SELECT sqlite_version()")).rows == [[apsw.sqlite_lib_version()]]
