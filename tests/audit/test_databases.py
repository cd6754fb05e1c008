"""The audit in a database: every call is there before its answer leaves, nothing can change unseen, a role reads it."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import AsyncExitStack, ExitStack, closing, suppress
from typing import Any

import pytest
from dragoman import AUDIT_COLUMNS, ConnectionFailed, Database, DragomanError, Gateway, InternalError, Principal
from dragoman.audit import Record, stored_records, verify_stored
from dragoman.errors import ConfigurationError
from dragoman.tools import Toolbox
from dragoman_sqlite.audit import SQLiteAudit

from .conftest import ROLES

ANN = Principal("ann", subject="ann", groups=frozenset({"analysts"}))
OLGA = Principal("olga", subject="olga")


async def calls(store):
    assert (await verify_stored(store.lines())).faults == []
    return [record for record in await stored_records(store.lines()) if record.event == "call"]


def test_the_table_has_a_column_for_every_field():
    assert tuple(AUDIT_COLUMNS) == Record.__struct_fields__


async def test_every_call_has_its_record(configured, store):
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", "SELECT id FROM orders", principal=ANN)
        for sql in ("DELETE FROM orders", "SELECT nix FROM orders"):
            with pytest.raises(DragomanError):
                await gateway.query("shop", sql)
        async with gateway.stream("shop", "SELECT id FROM orders") as stream:
            async for _ in stream.batches:
                assert len(await calls(store)) == 3
        found = await calls(store)
    assert [(each.principal, each.outcome, each.rows) for each in found] == [
        ("ann", "ok", 2),
        ("local", "WRITE_OPERATION_DENIED", 0),
        ("local", "COLUMN_NOT_FOUND", 0),
        ("local", "ok", 2),
    ]


async def test_a_cancelled_call_has_its_record(configured, store):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    async with Gateway.open(configured()) as gateway:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await gateway.query("shop", endless)
        assert [each.outcome for each in await calls(store)] == ["QUERY_CANCELLED"]


@pytest.mark.parametrize("odd", ["SELECT 'a\x00b'", "SELECT '\ud800'", "\\u0000"])
async def test_whatever_a_caller_sends_is_recorded(odd, configured, store):
    async with Gateway.open(configured()) as gateway:
        answer = await Toolbox(gateway).call("execute_query", {"sql": odd, "params": [odd]})
        assert answer.is_error
    (record,) = await calls(store)
    assert record.outcome in {"INVALID_SQL", "PARAMETER_ERROR"}


@pytest.mark.parametrize("text", [r"\u0000", r"\\u0000", r"\\\u0000", r"\u0001"])
async def test_a_record_keeps_what_only_looks_like_an_escape(text, configured, store):
    sql = f"SELECT '{text}' AS one"
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", sql)
    assert [each.sql for each in await calls(store)] == [sql]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
@pytest.mark.parametrize("required", ["true", "false"])
@pytest.mark.parametrize("url", [""])
async def test_a_postgres_database_that_cannot_hold_every_record_is_refused(encoding, required, configured, server):
    name = await server.create(encoding=encoding)
    configuration = configured(place=server.address(name), audit=f"required = {required}")
    with pytest.raises(ConfigurationError, match=f"audit.url: .* in {encoding}"):
        async with Gateway.open(configuration):
            pass
    await server.drop(name)


async def test_gateways_that_write_at_once_share_one_chain(configured, store):
    async def ask(gateway):
        for _ in range(10):
            await gateway.query("shop", "SELECT 1 AS one")

    async with Gateway.open(configured()) as one, Gateway.open(configured()) as other:
        await asyncio.gather(*(ask(gateway) for gateway in (one, other, one, other)))
    found = await verify_stored(store.lines())
    assert (found.faults, found.records, found.head.seq) == ([], 40, 40)


LEFT = {
    "deleted": ("rm calls.db", ()),
    "deleted with its log": ("rm calls.db calls.db-wal calls.db-shm", ()),
    "moved": ("mv calls.db old.db", (1, 2, 3)),
    "moved with its log": ("for end in '' -wal -shm; do mv calls.db$end old.db$end; done", (1, 2, 3)),
    "moved with its log alone": ("for end in '' -wal; do mv calls.db$end old.db$end; done", (1, 2, 3)),
    "replaced": ("cp calls.db new.db; mv calls.db old.db; mv new.db calls.db", ()),
}


def _numbers(path):
    with closing(sqlite3.connect(path)) as connection:
        return tuple(number for (number,) in connection.execute("SELECT seq FROM calls ORDER BY seq"))


@pytest.mark.parametrize("how", LEFT)
@pytest.mark.parametrize("gateways", [1, 2])
@pytest.mark.parametrize("url", ["sqlite:///audit/calls.db"])
async def test_no_answer_leaves_whose_record_goes_to_a_file_that_was_taken_away(how, gateways, configured, tmp_path):
    command, old = LEFT[how]
    configuration, answered = configured(), 0
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(Gateway.open(configuration)) for _ in range(gateways)]
        for place in range(3):
            await opened[place % gateways].query("shop", "SELECT 1 AS one")
        subprocess.run(command, shell=True, check=True, cwd=tmp_path / "audit")
        for place in range(8):
            with suppress(InternalError):
                await opened[place % gateways].query("shop", "SELECT 1 AS one")
                answered += 1
    assert answered >= 6, "those who had the old file open find that it is another one"
    found = _numbers(tmp_path / "audit" / "calls.db")
    if how != "replaced":
        assert len(found) == answered
        assert min(found) > 1, "the number shows that records are missing"
    if old:
        assert _numbers(tmp_path / "audit" / "old.db") == old


@pytest.mark.parametrize("url", ["sqlite:///audit/calls.db"])
async def test_a_moved_file_has_all_records_when_no_other_comes(configured, tmp_path):
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", "SELECT 1 AS one")
        (tmp_path / "audit" / "calls.db").rename(tmp_path / "audit" / "old.db")
    assert _numbers(tmp_path / "audit" / "old.db") == (1,)


@pytest.mark.parametrize("ends", ["with the next record", "with the gateway"])
@pytest.mark.parametrize("url", ["sqlite:///audit/calls.db"])
async def test_a_file_that_is_moved_while_somebody_reads_it_gets_all_its_records(ends, configured, tmp_path):
    file = tmp_path / "audit" / "calls.db"
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", "SELECT 1 AS one")
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT max(seq) FROM calls").fetchone() == (1,)
            await gateway.query("shop", "SELECT 1 AS one")
            file.rename(tmp_path / "audit" / "old.db")
            await gateway.query("shop", "SELECT 1 AS one")
        if ends == "with the next record":
            await gateway.query("shop", "SELECT 1 AS one")
            assert _numbers(tmp_path / "audit" / "old.db") == (1, 2)
    assert _numbers(tmp_path / "audit" / "old.db") == (1, 2)
    assert min(_numbers(file)) == 3


async def test_a_full_disk_is_told_as_such(tmp_path):
    audit: Any = SQLiteAudit(Database(name="audit", dialect="sqlite", database=str(tmp_path / "calls.db")))
    await audit.open()
    audit._connection.execute("PRAGMA max_page_count = 4")
    with pytest.raises(ConnectionFailed, match="full"):
        await audit.append(lambda _: [(1, json.dumps({"sql": "x" * 50_000}))])
    audit._connection.execute("PRAGMA max_page_count = 4000")
    await audit.append(lambda _: [(1, "{}")])
    assert [number async for number, _ in audit.lines()] == [1]
    await audit.aclose()


ASKING = """
import asyncio, sys
from dragoman import Gateway, InternalError
async def ask():
    async with Gateway.open(sys.argv[1]) as gateway:
        for _ in sys.stdin:
            try:
                await gateway.query("shop", "SELECT 1 AS one")
                print("answered", flush=True)
            except InternalError as error:
                print(error, flush=True)
asyncio.run(ask())
"""


@pytest.mark.parametrize(
    ("how", "linked"), [*((how, False) for how in LEFT), ("deleted", True)], ids=[*LEFT, "deleted behind a link"]
)
@pytest.mark.parametrize("url", ["sqlite:///audit/calls.db"])
def test_processes_that_share_a_file_go_on_with_another_when_it_is_taken_away(how, linked, configured, tmp_path):
    configured()
    folder = tmp_path / ("elsewhere" if linked else "audit")
    folder.mkdir()
    if linked:
        (tmp_path / "audit").mkdir()
        (tmp_path / "audit" / "calls.db").symlink_to(folder / "calls.db")
    command = [sys.executable, "-c", ASKING, tmp_path / "dragoman.toml"]
    with ExitStack() as stack:
        asking = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(3)
        ]

        def ask(place):
            print(file=asking[place % 3].stdin, flush=True)
            return asking[place % 3].stdout.readline().strip()

        assert [ask(place) for place in range(3)] == ["answered"] * 3
        subprocess.run(LEFT[how][0], shell=True, check=True, cwd=folder)
        found = [ask(place) for place in range(9)]
    assert found == ["answered"] * 9
    if how != "replaced":
        numbers = _numbers(folder / "calls.db")
        assert len(numbers) == 9
        assert numbers[0] > 1, "the number shows that records are missing"
    if LEFT[how][1]:
        assert _numbers(folder / "old.db") == LEFT[how][1]


FORGED = {
    "edited": ("UPDATE calls SET line = replace(line, 'SELECT 2', 'SELECT 7') WHERE seq = 2", 2),
    "dropped": ("DELETE FROM calls WHERE seq = 2", 3),
    "swapped": (
        "UPDATE calls SET seq = 99 WHERE seq = 2; UPDATE calls SET seq = 2 WHERE seq = 3;"
        " UPDATE calls SET seq = 3 WHERE seq = 99",
        2,
    ),
}


@pytest.mark.parametrize("how", FORGED)
async def test_what_is_edited_dropped_or_swapped_is_found(how, configured, store, run):
    async with Gateway.open(configured()) as gateway:
        for number in range(1, 5):
            await gateway.query("shop", f"SELECT {number}")
    head = (await verify_stored(store.lines())).head
    sql, place = FORGED[how]
    await run(sql)
    faults = (await verify_stored(store.lines())).faults
    assert faults[0].line == place
    await run("DELETE FROM calls WHERE seq >= 2")
    cut = await verify_stored(store.lines())
    assert (cut.faults, cut.records) == ([], 1)
    assert (await verify_stored(store.lines(), [head])).faults != []


async def test_no_record_no_answer(configured, store, run):
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", "SELECT 1 AS one")
        await run("DROP TABLE calls")
        with pytest.raises(InternalError, match="could not be recorded"):
            await gateway.query("shop", "SELECT 1 AS one")
    async with Gateway.open(configured(audit="required = false")) as gateway:
        await run("DROP TABLE calls")
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]


async def test_a_database_without_the_audit_keeps_no_change_out_of_the_file(configured, run, tmp_path):
    audit = f'required = false\npath = "{tmp_path / "calls.jsonl"}"'
    async with Gateway.open(configured(audit=audit)) as gateway:
        await run("DROP TABLE calls")
        await gateway.announce_change("database more added by ann")
    written = [path.read_text() for path in tmp_path.glob("calls*.jsonl")]
    assert any("database more added by ann" in text for text in written)


_FUNCTION = "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {} END'"
_TRIGGER = "CREATE TRIGGER change BEFORE INSERT ON calls FOR EACH ROW EXECUTE FUNCTION change()"
NOT_STORED = [
    ("sqlite", "CREATE TRIGGER skip BEFORE INSERT ON calls BEGIN SELECT raise(IGNORE); END"),
    ("postgres", f"{_FUNCTION.format('RETURN NULL;')}; {_TRIGGER}"),
    ("postgres", f"{_FUNCTION.format('NEW.line = chr(123) || chr(125); RETURN NEW;')}; {_TRIGGER}"),
    ("postgres", "CREATE RULE skip AS ON INSERT TO calls DO INSTEAD NOTHING"),
]


@pytest.mark.parametrize(("url", "sql"), NOT_STORED, indirect=["url"])
async def test_a_record_that_the_database_skips_or_changes_is_no_record(sql, configured, store, run):
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", "SELECT 1 AS one")
        await run(sql)
        with pytest.raises(InternalError, match="could not be recorded"):
            await gateway.query("shop", "SELECT 2")
    assert (await verify_stored(store.lines())).records == 1


@pytest.mark.parametrize(("cut", "begins"), [("seq >= 2", 1), ("seq > 0", 4)])
async def test_records_that_are_removed_while_a_gateway_runs_leave_a_gap(cut, begins, configured, store, run):
    async with Gateway.open(configured()) as gateway:
        for number in range(3):
            await gateway.query("shop", f"SELECT {number}")
        await run(f"DELETE FROM calls WHERE {cut}")
        await gateway.query("shop", "SELECT 3")
    found = await verify_stored(store.lines())
    assert (found.begins, found.head.seq, bool(found.faults)) == (begins, 4, begins == 1)


async def test_a_table_that_was_dropped_is_created_again_and_shows_that_others_are_missing(configured, store, run):
    async with Gateway.open(configured()) as gateway:
        await gateway.query("shop", "SELECT 1")
        await run("DROP TABLE calls")
        with pytest.raises(InternalError, match="could not be recorded"):
            await gateway.query("shop", "SELECT 2")
        await gateway.query("shop", "SELECT 3")
    found = await verify_stored(store.lines())
    assert (found.begins, found.head.seq, found.faults) == (2, 2, [])


async def test_a_database_that_cannot_keep_it_stops_the_start(configured, tmp_path):
    (tmp_path / "file").touch()
    text = (configured() and (tmp_path / "dragoman.toml")).read_text()
    url = text.partition('[audit]\nurl = "')[2].partition('"')[0]
    for wrong in ("sqlite:///file/calls.db", "postgresql://nobody@127.0.0.1:1/none"):
        (tmp_path / "dragoman.toml").write_text(text.replace(url, wrong))
        with pytest.raises(ConfigurationError, match=r"audit\.url"):
            async with Gateway.open(tmp_path / "dragoman.toml"):
                pass


async def test_only_a_role_that_lists_it_reads_the_audit(configured):
    async with Gateway.open(configured(ROLES)) as gateway:
        toolbox = Toolbox(gateway)

        async def ask(principal, sql, **more):
            answer = await toolbox.call("execute_query", {"sql": sql, **more}, principal=principal)
            return json.loads(answer.text)

        assert (await ask(ANN, "SELECT count(*) FROM orders"))["rows"] == [[2]]
        assert (await ask(ANN, "SELECT 1", database="audit"))["error"]["code"] == "UNKNOWN_DATABASE"
        told = await ask(OLGA, "SELECT principal, tool, outcome, rows FROM calls WHERE outcome = 'ok'")
        assert told["rows"] == [["ann", "execute_query", "ok", 1]]
        described = await toolbox.call("describe_table", {"table_name": "calls"}, principal=OLGA)
        assert "principal text" in described.text.lower()
        assert (await ask(OLGA, "DELETE FROM calls"))["error"]["code"] == "WRITE_OPERATION_DENIED"


async def test_without_a_role_that_lists_it_nobody_sees_the_audit(configured):
    async with Gateway.open(configured()) as gateway:
        assert gateway.names == ("shop",)
