"""Files as they are met: oddly named, missing, broken, locked, replaced. Never a path in what is said about them."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import apsw
import pytest
from dragoman import ConnectionFailed, DragomanError, Gateway, QueryError, TableNotFound
from dragoman.errors import NotFound
from dragoman.gateway.breaker import FAILURES
from dragoman_sqlite.inspector import SQLiteInspector
from dragoman_sqlite.worker.failures import describe_failure

SCHEMA = "CREATE TABLE t (a); INSERT INTO t VALUES (1)"
NAMES = [
    "with space.db",
    "x?mode=rwc&y=.db",
    "x#y.db",
    "100%.db",
    "%20.db",
    "ünï 🙂.db",
    "q'u\"o.db",
    "a;b.db",
    "file:a.db",
    ":memory:",
    "noextension",
]


@pytest.mark.parametrize("name", NAMES)
async def test_a_file_is_read_whatever_its_name(bench, name):
    shop = bench.make(SCHEMA, "plain.db")
    shutil.copy(bench.folder / "plain.db", bench.folder / name)
    shop = bench.configure(name)
    assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1]]
    assert (await bench.table(shop, "t")).columns[0].name == "a"
    assert sorted(file.name for file in bench.folder.iterdir()) == sorted({"plain.db", name})


async def test_an_empty_file_is_an_empty_database(bench):
    (bench.folder / "empty.db").touch()
    empty = bench.configure("empty.db")
    assert [table for table in (await bench.inspect(empty)).tables if not table.system] == []
    assert (await bench.ask(empty, "SELECT 1")).rows == [[1]]
    assert isinstance(await bench.fails(empty, "SELECT * FROM t"), TableNotFound)
    assert (bench.folder / "empty.db").stat().st_size == 0


@pytest.mark.parametrize("rows", ["INSERT INTO t VALUES {}", "-- no rows {}"])
async def test_a_table_that_was_replaced_is_told_as_it_is(bench, rows):
    shop = bench.make("CREATE TABLE t (a INT, old INT); " + rows.format("(1, 2)"))
    replaced = {"a text, fresh text": "('x', 'y')", "fresh text": "('z')", "c int, b text, a real": "(1, 'b', 0.5)"}
    assert (await bench.ask(shop, "SELECT * FROM t")).columns == ["a", "old"]
    for columns, values in replaced.items():
        with closing(sqlite3.connect(bench.folder / "test.db")) as writer:
            writer.executescript(f"DROP TABLE t; CREATE TABLE t ({columns}); {rows.format(values)}")
        result = await bench.ask(shop, "SELECT * FROM t")
        assert [" ".join(each) for each in zip(result.columns, result.types, strict=True)] == columns.split(", ")
        assert [len(row) for row in result.rows] == [len(result.columns)] * rows.startswith("INSERT")


async def test_a_link_is_followed(bench):
    bench.make(SCHEMA)
    (bench.folder / "link.db").symlink_to("test.db")
    assert (await bench.ask(bench.configure("link.db"), "SELECT a FROM t")).rows == [[1]]


def spoilt(folder, name: str) -> None:
    """Make a file of some kind that cannot be read."""
    path, good = folder / "bad.db", (folder / "test.db").read_bytes()
    match name:
        case "a folder":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "a link to nothing":
            path.symlink_to("nothing")
        case "a link to itself":
            path.symlink_to("bad.db")
        case "text":
            path.write_text("no database " * 1000)
        case "a short header":
            path.write_bytes(good[:50])
        case "a broken header":
            path.write_bytes(good[:16] + b"\xff" * 84 + good[100:])
        case "a broken schema":
            path.write_bytes(good.replace(b"CREATE TABLE t", b"CREATE TABLX t"))
        case "an unfinished write":
            killed_while_writing(path)


def killed_while_writing(path) -> None:
    script = """
import os, sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("PRAGMA cache_size = 1")
c.execute("CREATE TABLE t (a)")
c.commit()
c.executemany("INSERT INTO t VALUES (?)", [("x" * 1000,)] * 500)
os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script, str(path)]).returncode == -signal.SIGKILL


BAD = [
    "nothing",
    "a folder",
    "a pipe",
    "a link to nothing",
    "a link to itself",
    "text",
    "a short header",
    "a broken header",
    "a broken schema",
    "an unfinished write",
]


@pytest.mark.parametrize("kind", BAD)
async def test_a_file_that_is_no_database_is_a_clear_error_without_its_path(bench, kind):
    bench.make(SCHEMA)
    spoilt(bench.folder, kind)
    bad = bench.configure("bad.db")
    inspector = SQLiteInspector(bad, bench.executor(bad))
    errors = [await bench.fails(bad, "SELECT a FROM t")]
    for question in (inspector.version, lambda: bench.inspect(bad)):
        try:
            await question()
        except DragomanError as error:
            errors.append(error)
    assert len(errors) >= 2
    for error in errors:
        assert isinstance(error, ConnectionFailed)
        assert "'shop'" in error.message
        assert error.suggestion
        assert "bad.db" not in str(error.as_dict())
        assert str(bench.folder) not in str(error.as_dict())
    assert len({error.suggestion for error in errors}) == 1  # the catalog's error names the same cause


@pytest.mark.parametrize("name", ["a\0b.db", "a\udcff.db", "x" * 300])
async def test_a_path_that_no_file_can_have_is_a_clear_error(bench, name):
    error = await bench.fails(bench.configure(name), "SELECT 1")
    assert isinstance(error, ConnectionFailed)
    assert name not in error.message


async def test_a_database_answers_as_soon_as_its_file_is_there(bench):
    shop = bench.configure("later.db")
    assert isinstance(await bench.fails(shop, "SELECT a FROM t"), ConnectionFailed)
    (bench.folder / "later.db").write_text("not yet" * 100)
    assert isinstance(await bench.fails(shop, "SELECT a FROM t"), ConnectionFailed)
    (bench.folder / "later.db").unlink()
    bench.make(SCHEMA, "later.db")
    assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1]]


async def test_a_broken_page_fails_only_the_queries_that_need_it(bench):
    shop = bench.make(f"{SCHEMA}; CREATE TABLE broken (a); INSERT INTO broken VALUES (1)")
    path = bench.folder / "test.db"
    good = path.read_bytes()
    path.write_bytes(good[:-4096] + b"\xff" * 4096)
    assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1]]
    assert isinstance(await bench.fails(shop, "SELECT a FROM broken"), QueryError)
    inspection = await bench.inspect(shop)
    assert [len(table.columns) for table in inspection.tables if not table.system] == [1, 1]
    assert "rows is not known" in inspection.notices[0]


async def test_a_file_that_was_replaced_is_read_anew(bench):
    shop = bench.make(SCHEMA)
    assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1]]
    bench.make("CREATE TABLE t (a); INSERT INTO t VALUES (2)", "new.db")
    (bench.folder / "new.db").replace(bench.folder / "test.db")
    assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[2]]
    (bench.folder / "test.db").unlink()
    assert isinstance(await bench.fails(shop, "SELECT a FROM t"), ConnectionFailed)
    bench.make("CREATE TABLE t (a); INSERT INTO t VALUES (3)")
    assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[3]]


async def test_a_damaged_virtual_table_hides_no_other_table(bench):
    shop = bench.make(f"{SCHEMA}; CREATE VIRTUAL TABLE words USING fts5 (body)")
    with closing(sqlite3.connect(bench.folder / "test.db")) as writer, writer:
        writer.execute("PRAGMA writable_schema = on")
        writer.execute("DELETE FROM sqlite_schema WHERE name = 'words_data'")
    assert (await bench.table(shop, "t")).columns[0].name == "a"


def copy_over(source, target):
    """Write a copy over a file, as `cp` does, until its time of change says so."""
    before = target.stat().st_ctime_ns
    while target.stat().st_ctime_ns == before:
        shutil.copyfile(source, target)


@pytest.mark.parametrize("schema", ["(a, b)", "(b, a)"])
async def test_a_file_over_which_another_was_copied_is_read_anew(bench, schema):
    """SQLite's own counts of changes, of all and of those of the schema, are the same in both."""
    shop = bench.make("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2)", pool_size=1)
    assert (await bench.ask(shop, "SELECT * FROM t")).rows == [[1, 2]]
    bench.make(f"CREATE TABLE t {schema}; INSERT INTO t VALUES (3, 4)", "new.db")
    copy_over(bench.folder / "new.db", bench.folder / "test.db")
    answer = await bench.ask(shop, "SELECT * FROM t")
    assert (answer.columns, answer.rows) == (schema.strip("()").split(", "), [[3, 4]])


async def test_changes_by_another_process_are_seen_at_once(bench):
    shop = bench.make(SCHEMA, pool_size=1)
    path = bench.folder / "test.db"
    changes = {
        "INSERT INTO t VALUES (2)": "SELECT count(*) FROM t",
        "ALTER TABLE t ADD COLUMN b DEFAULT 2": "SELECT max(b) FROM t",
        "CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1)": "SELECT count(*) + 2 FROM boxes",
        "CREATE VIRTUAL TABLE docs USING fts5 (body)": "SELECT count(*) + 2 FROM docs WHERE docs MATCH 'x'",
        "CREATE VIRTUAL TABLE more USING rtree (id, x0, x1)": "SELECT count(*) + 2 FROM more, boxes",
    }
    assert (await bench.ask(shop, "SELECT count(*) FROM t")).rows == [[1]]
    for change, question in changes.items():
        with closing(sqlite3.connect(path)) as writer, writer:
            writer.execute(change)
        assert (await bench.ask(shop, question)).rows == [[2]]


async def test_a_new_rtree_can_be_described_and_explained_first(bench):
    from dragoman import ExplainOptions, Request

    shop = bench.make(SCHEMA, pool_size=1)
    await bench.ask(shop, "SELECT 1")
    bench.make("CREATE VIRTUAL TABLE one USING rtree (id, x0, x1)")
    columns = await bench.executor(shop).describe(Request(statement="SELECT * FROM one"))
    assert [column.name for column in columns] == ["id", "x0", "x1"]
    bench.make("CREATE VIRTUAL TABLE two USING rtree (id, x0, x1)")
    plan = await bench.executor(shop).explain(Request(statement="SELECT * FROM two"), ExplainOptions())
    assert plan.plan.startswith("SCAN two VIRTUAL TABLE")


@pytest.mark.parametrize("change", ["DROP TABLE t", "ALTER TABLE t RENAME TO gone", "ALTER TABLE t RENAME a TO gone"])
async def test_what_is_only_compiled_is_compiled_as_the_file_is_now(bench, change):
    from dragoman import ExplainOptions, Request

    shop, request = bench.make(SCHEMA, pool_size=1), Request(statement="SELECT a FROM t")
    executor = bench.executor(shop)
    for compile in (executor.describe, executor.prepare, lambda request: executor.explain(request, ExplainOptions())):
        await compile(request)
        with closing(sqlite3.connect(bench.folder / "test.db")) as writer:
            writer.execute(change)
        with pytest.raises(NotFound):
            await compile(request)
        with closing(sqlite3.connect(bench.folder / "test.db")) as writer:
            writer.executescript("DROP TABLE IF EXISTS t; DROP TABLE IF EXISTS gone; CREATE TABLE t (a);")


async def test_rows_still_in_the_log_of_a_wal_database_are_read(bench):
    shop = bench.make(SCHEMA)
    with closing(sqlite3.connect(bench.folder / "test.db")) as writer, writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert (bench.folder / "test.db-wal").stat().st_size > 0
        assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1], [2]]
        assert (await bench.table(shop, "t")).row_estimate == 2


async def test_a_writer_and_readers_do_not_hinder_each_other_in_wal_mode(bench):
    shop = bench.make(f"PRAGMA journal_mode = wal; {SCHEMA}")
    with closing(sqlite3.connect(bench.folder / "test.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO t VALUES (2)")
        assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1]]
        writer.execute("COMMIT")
        assert (await bench.ask(shop, "SELECT a FROM t")).rows == [[1], [2]]


async def test_no_lock_is_kept_between_statements(bench):
    shop = bench.make(SCHEMA)
    await bench.ask(shop, "SELECT a FROM t")
    await bench.inspect(shop)
    with closing(sqlite3.connect(bench.folder / "test.db", isolation_level=None, timeout=0)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("INSERT INTO t VALUES (2)")
        writer.execute("COMMIT")
    assert (await bench.ask(shop, "SELECT count(*) FROM t")).rows == [[2]]


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (apsw.CantOpenError, "-shm"),
        (apsw.PermissionsError, "permissions"),
        (apsw.BusyError, "finished writing"),
        (apsw.NotADBError, "configured"),
        (apsw.ReadOnlyError, "may write"),
    ],
)
def test_what_cannot_be_brought_about_here_has_its_remedy_too(kind, hint):
    failed = describe_failure(kind("it failed"), "SELECT 1", late=False, cancelled=False, running=False)
    assert failed.error == "ConnectionFailed"
    assert hint in failed.suggestion


async def test_a_damaged_virtual_table_keeps_nobody_from_the_others(bench):
    """SQLite reads it when a statement is compiled, where a damaged file is met as well."""
    shop = bench.make(f"{SCHEMA}; CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1)")
    with closing(sqlite3.connect(bench.folder / "test.db")) as writer, writer:
        writer.execute("DELETE FROM boxes_node")
    async with Gateway.open([shop]) as gateway:
        for _ in range(2 * FAILURES):
            with pytest.raises(ConnectionFailed, match="its file is damaged"):
                await gateway.query(None, "SELECT * FROM boxes")
            assert gateway.database().health.known.state != "unreachable"
        assert (await gateway.query(None, "SELECT a FROM t")).rows == [[1]]


async def test_a_name_in_another_encoding_keeps_nobody_from_the_others(bench):
    """Python cannot decode SQLite's message about it."""
    shop = bench.make(f"{SCHEMA}; CREATE VIEW broken AS SELECT a FROM cafqqqq")
    file = bench.folder / "test.db"
    file.write_bytes(file.read_bytes().replace(b"cafqqqq", b"caf\xe9\xe9\xe9\xe9"))
    async with Gateway.open([shop]) as gateway:
        snapshot = await gateway.database().catalog.snapshot()
        assert "t" in {table.relation.name for table in snapshot.visible}
        assert any("broken" in notice for notice in snapshot.notices)
        with pytest.raises(DragomanError) as refused:
            await gateway.query(None, "SELECT * FROM broken")
        assert refused.value.code not in ("INTERNAL_ERROR", "DIALECT_ERROR")
        assert (await gateway.query(None, "SELECT a FROM t")).rows == [[1]]
