"""Nothing is ever written: each wall holds with the others taken away, proven by the bytes of the whole folder."""

import contextlib
import shutil
from pathlib import Path

import apsw
import dragoman
import pytest
from dragoman import DragomanError, UnsafeSql, WriteDenied
from dragoman.testing.corpus import cases, setup
from dragoman.workers import Run
from dragoman_sqlite.rules import LEXICON
from dragoman_sqlite.worker.authorizer import Authorizer
from dragoman_sqlite.worker.session import open_read_only
from dragoman_sqlite.worker.statement import Statement

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE INDEX by_name ON t (name);
CREATE VIEW v AS SELECT * FROM t;
CREATE TRIGGER on_view INSTEAD OF INSERT ON v BEGIN DELETE FROM t; END;
CREATE VIRTUAL TABLE docs USING fts5 (body);
CREATE VIRTUAL TABLE old USING fts4 (body);
CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1);
"""
# Statements that write by what they are: the driver itself can tell before their first step.
WRITES = [
    "INSERT INTO t VALUES (3, 'c')",
    "REPLACE INTO t VALUES (1, 'z')",
    "UPDATE t SET name = 'z'",
    "DELETE FROM t",
    "INSERT INTO v VALUES (3, 'c')",
    "INSERT INTO t VALUES (3, 'c') RETURNING id",
    "INSERT INTO t VALUES (1, 'c') ON CONFLICT (id) DO UPDATE SET name = 'z'",
    "WITH x AS (SELECT 9) INSERT INTO t SELECT 9, 'x' FROM x",
    "INSERT INTO docs VALUES ('words')",
    "INSERT INTO docs (docs) VALUES ('optimize')",
    "INSERT INTO old (old) VALUES ('rebuild')",
    "INSERT INTO boxes VALUES (1, 0, 1)",
    "DELETE FROM docs_data",
    "UPDATE boxes_node SET data = x'00'",
    "CREATE TABLE new (a)",
    "CREATE TABLE new AS SELECT * FROM t",
    "CREATE VIEW w AS SELECT 1",
    "CREATE INDEX i ON t (id)",
    "CREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE more USING fts5 (a)",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t ADD COLUMN c",
    "DROP TABLE t",
    "DROP VIEW v",
    "REINDEX",
    "ANALYZE",
    "VACUUM",
    "DELETE FROM sqlite_schema",
    "UPDATE sqlite_schema SET sql = 'x'",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 7",
    "PRAGMA schema_version = 99",
    "PRAGMA journal_mode = wal",
    "PRAGMA auto_vacuum = 1",
    "PRAGMA incremental_vacuum",
    "PRAGMA encoding = 'UTF-16'",
]
# Those that reach other files, switch guards off, or act beside the database.
REACHING = [
    "VACUUM INTO 'copy.db'",
    "ATTACH 'other.db' AS other",
    "ATTACH '' AS other",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "BEGIN IMMEDIATE",
    "BEGIN EXCLUSIVE",
    "SAVEPOINT s",
    "COMMIT",
    "PRAGMA query_only = off",
    "PRAGMA writable_schema = on",
    "PRAGMA trusted_schema = on",
    "PRAGMA locking_mode = exclusive",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA temp_store_directory = '.'",
    "PRAGMA temp_store_directory",
    "PRAGMA wal_checkpoint",
    "PRAGMA optimize",
    "PRAGMA mmap_size = 1000000000",
    "PRAGMA cache_size = 1000000",
    "PRAGMA case_sensitive_like = on",
    "SELECT * FROM pragma_query_only(0)",
    "SELECT * FROM pragma_journal_mode('wal')",
    "SELECT * FROM pragma_wal_checkpoint",
    "SELECT load_extension('evil')",
    "SELECT fts3_tokenizer('simple', x'00')",
    "SELECT optimize(old) FROM old",
    "SELECT writefile('out', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT * FROM fsdir('.')",
    "CREATE TEMP TABLE x AS SELECT * FROM t",
    "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
    "SELECT 1; DELETE FROM t",
    "SELECT 1;\nSELECT 2",
    "EXPLAIN DELETE FROM t",
]
ATTACKS = WRITES + REACHING
CASES = cases("any") + cases("sqlite")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
async def shop(shared):
    return shared.make(SCHEMA)


@pytest.fixture
def folder(shop, shared, tmp_path, monkeypatch) -> Path:
    """A copy of the shop, and the current folder, where a file of a bare name would go."""
    shutil.copy(shared.folder / "test.db", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_attack_on_the_executor_is_refused_and_changes_nothing(shared, shop, attack):
    before = snapshot(shared.folder)
    error = await shared.fails(shop, attack)
    assert snapshot(shared.folder) == before
    assert error.code in ("WRITE_OPERATION_DENIED", "UNSAFE_SQL", "INVALID_SQL", "TABLE_NOT_FOUND", "QUERY_ERROR")
    assert (await shared.ask(shop, "SELECT count(*) FROM t")).rows == [[2]]


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if "heap_limit" not in attack])  # the process's own
def test_the_engine_opened_for_reading_holds_alone(folder, attack):
    connection = open_read_only(str(folder / "test.db"), 1_000_000)
    before = snapshot(folder)
    with contextlib.suppress(apsw.Error):
        connection.execute(attack).fetchall()
    with contextlib.suppress(apsw.Error):
        connection.execute("DELETE FROM t").fetchall()  # whatever guard the attack has switched off
    connection.close(True)
    assert snapshot(folder) == before


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_authorizer_holds_alone_on_a_connection_that_may_write(folder, attack):
    connection = apsw.Connection(str(folder / "test.db"))
    Authorizer(()).guard(connection)
    before = snapshot(folder)
    with contextlib.suppress(apsw.Error):
        connection.execute(attack).fetchall()
    assert connection.total_changes() == 0
    connection.close(True)
    assert snapshot(folder) == before


@pytest.mark.parametrize("attack", [*WRITES, "SELECT 1; DELETE FROM t", "DELETE FROM t; SELECT 1"])
def test_looking_at_the_statement_holds_alone_on_a_connection_that_may_write(folder, attack):
    connection = apsw.Connection(str(folder / "test.db"))
    before = snapshot(folder)
    with contextlib.suppress(WriteDenied, UnsafeSql, apsw.Error):
        Statement(Run(attack, [], 10, 10, 1.0)).start(connection).fetchall()
    connection.close(True)
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", ["x.db?mode=rwc&y=", "x.db?mode=rw#", "file:x.db?mode=rwc", "x%2edb"])
async def test_no_path_opens_a_file_for_writing(bench, name):
    shop = bench.make("CREATE TABLE t (id)", name)
    before = snapshot(bench.folder)
    assert isinstance(await bench.fails(shop, "INSERT INTO t VALUES (1)"), WriteDenied)
    assert (await bench.inspect(shop)).tables[-1].relation.name == "t"
    connection = open_read_only(str(bench.folder / name), 1000)
    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert snapshot(bench.folder) == before


async def test_reading_a_wal_database_does_not_checkpoint_it(bench):
    shop = bench.make()
    writer = apsw.Connection(str(bench.folder / "test.db"))
    writer.execute("PRAGMA journal_mode = wal; CREATE TABLE t (id); INSERT INTO t VALUES (1)").fetchall()
    before = snapshot(bench.folder)
    assert (await bench.ask(shop, "SELECT id FROM t")).rows == [[1]]
    after = snapshot(bench.folder)
    writer.close()
    assert [after[name] for name in ("test.db", "test.db-wal")] == [before[name] for name in ("test.db", "test.db-wal")]


READING = [
    "SELECT count(*) FROM t",
    "SELECT body FROM docs WHERE docs MATCH 'x'",
    "SELECT snippet(old) FROM old WHERE old MATCH 'x'",
    "SELECT * FROM boxes WHERE x0 > 1",
    "SELECT * FROM v",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i) FROM n",
    "SELECT value FROM json_each('[1,2]')",
    "SELECT name FROM pragma_table_info('t')",
    "PRAGMA table_list",
    "PRAGMA integrity_check",
    "VALUES (1), (2)",
    "SELECT row_number() OVER (ORDER BY id), '{}' -> 'a', 'a' LIKE 'A', 'a' GLOB 'a' FROM t",
    "EXPLAIN SELECT * FROM t",
]


@pytest.mark.parametrize("sql", READING)
async def test_reading_passes_every_wall(shared, shop, sql):
    assert (await shared.ask(shop, sql)).columns


@pytest.mark.parametrize(
    "sql",
    [
        "PRAGMA database_list",
        'PRAGMA main."Database_List"',
        "EXPLAIN PRAGMA database_list",
        "EXPLAIN QUERY PLAN PRAGMA database_list",
        "SELECT * FROM pragma_database_list",
        "SELECT hex(file) FROM pragma_database_list()",
    ],
)
async def test_the_path_of_the_file_is_not_told(shared, shop, sql):
    error = await shared.fails(shop, sql)
    assert error.code in ("WRITE_OPERATION_DENIED", "UNSAFE_SQL")
    assert str(shared.folder) not in str(error.as_dict())


async def test_a_function_the_operator_allows_passes_the_authorizer(bench):
    name = "sqlite_log"
    assert isinstance(await bench.fails(bench.make(), f"SELECT {name}(1, 'x')"), UnsafeSql)
    allowed = bench.configure("test.db", allow_functions=frozenset({"SQLite_Log"}))
    assert (await bench.ask(allowed, f"SELECT {name}(1, 'x')")).rows == [[None]]


async def test_a_refusal_names_what_was_refused(shared, shop):
    told = {
        "SELECT load_extension('x')": "load_extension()",
        "PRAGMA journal_mode = wal": "PRAGMA journal_mode",
        "DELETE FROM t": "DELETE t",
        "DROP TABLE t": "sqlite_master",
    }
    for attack, name in told.items():
        error = await shared.fails(shop, attack)
        assert name in error.message
        assert error.suggestion


def test_every_failure_of_the_driver_has_its_error():
    from dragoman_sqlite.worker.failures import describe_failure

    unmapped = []
    for name in dir(apsw):
        kind = getattr(apsw, name)
        if isinstance(kind, type) and issubclass(kind, apsw.Error):
            failed = describe_failure(kind("it failed"), "SELECT 1", late=False, cancelled=False, running=True)
            if failed.error == "InternalError" or not failed.message:
                unmapped.append(name)
    assert unmapped == []


def test_dragoman_s_own_errors_pass_through():
    from dragoman_sqlite.worker.failures import describe_failure

    failed = describe_failure(UnsafeSql("two", suggestion="one"), "", late=False, cancelled=False, running=False)
    assert (failed.error, failed.message, failed.suggestion) == ("UnsafeSql", "two", "one")
    assert issubclass(UnsafeSql, DragomanError)


@pytest.fixture(scope="module")
async def corpus_shop(shared):
    return shared.make(setup("sqlite"), "corpus.db")


@pytest.mark.parametrize("case", [case for case in CASES if case.allow], ids=str)
async def test_what_the_core_allows_passes_the_executor_s_walls(shared, corpus_shop, case):
    sent = dragoman.Statement.parse(case.sql, sqlglot="sqlite", lexicon=LEXICON).text
    await shared.ask(corpus_shop, sent, max_rows=10)


async def test_what_the_core_refuses_changes_nothing_when_it_comes_through(shared, corpus_shop):
    before = snapshot(shared.folder)
    for case in CASES:
        if not case.allow:
            with contextlib.suppress(DragomanError, UnicodeEncodeError):
                await shared.ask(corpus_shop, case.sql, max_rows=10, timeout=0.5)
            assert snapshot(shared.folder) == before, case.sql
