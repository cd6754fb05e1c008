"""The base executor on SQLite, through a blocking and through an asynchronous driver."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from dragoman import (
    Busy,
    ColumnNotFound,
    ConnectionFailed,
    DragomanError,
    InvalidSql,
    Lexicon,
    Limits,
    ParameterError,
    QueryError,
    QueryTimeout,
    Request,
    TableNotFound,
    WriteDenied,
)
from dragoman.sqlalchemy import session
from dragoman.sqlalchemy.failures import translate_errors
from dragoman.sqlalchemy.parameters import bind
from sqlalchemy.exc import OperationalError, ProgrammingError

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SECONDS = 30


async def ask(executor, statement: str, *parameters, timeout: float = SECONDS):
    request = Request(statement=statement, parameters=parameters, limits=Limits(timeout=timeout))
    async with executor.open(request) as stream:
        rows = [row async for batch in stream.batches for row in batch]
    return [column.name for column in stream.columns], rows


async def test_rows_come_with_their_columns(executor):
    assert await ask(executor, "SELECT id, name FROM customers ORDER BY id") == (
        ["id", "name"],
        [(1, "Zoë"), (2, 'it\'s "odd" 100%')],
    )


async def test_two_columns_of_one_name_both_survive(executor):
    assert await ask(executor, "SELECT 1 AS a, 2 AS a") == (["a", "a"], [(1, 2)])


async def test_an_empty_result_has_its_columns(executor):
    assert await ask(executor, "SELECT id, total FROM orders WHERE id < 0") == (["id", "total"], [])


async def test_rows_stream_in_batches_and_nothing_is_lost_between_them(executor):
    _, rows = await ask(executor, "SELECT id FROM orders ORDER BY id")
    assert [row[0] for row in rows] == list(range(1, 2001))


async def test_colons_and_percent_signs_in_texts_are_left_alone(executor):
    _, rows = await ask(executor, "SELECT ' :b %s ? $1', name FROM customers WHERE name LIKE ?", "%100\\%%")
    assert rows == []
    _, rows = await ask(executor, "SELECT ' :b %s ? $1', id FROM customers WHERE id = ?", 2)
    assert rows == [(" :b %s ? $1", 2)]


async def test_values_are_bound_and_not_pasted(executor):
    assert await ask(executor, "SELECT id FROM customers WHERE name = $1", "' OR 1=1 --") == (["id"], [])


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [("SELECT ?", ()), ("SELECT ?", (1, 2)), ("SELECT ?, $2", (1, 2)), ("SELECT $0", (1,)), ("SELECT 1", (1,))],
)
async def test_values_that_do_not_fit_the_placeholders_are_refused(executor, statement, parameters):
    with pytest.raises(ParameterError):
        await ask(executor, statement, *parameters)


async def test_numbered_placeholders_take_their_value_in_any_order(executor):
    assert (await ask(executor, "SELECT $2, $1, $2", "one", "two"))[1] == [("two", "one", "two")]


@pytest.mark.parametrize(
    ("statement", "error", "identifier"),
    [
        ("SELECT * FROM nowhere", TableNotFound, "nowhere"),
        ("SELECT colour FROM orders", ColumnNotFound, "colour"),
        ("SELECT FROM WHERE", InvalidSql, None),
        ("INSERT INTO customers VALUES (3, 'x')", WriteDenied, None),
    ],
)
async def test_the_driver_s_errors_are_ours(executor, statement, error, identifier):
    with pytest.raises(error) as caught:
        await ask(executor, statement)
    assert caught.value.identifier == identifier
    assert caught.value.suggestion


async def test_a_failed_statement_spoils_nothing(executor):
    for _ in range(5):
        with pytest.raises(TableNotFound):
            await ask(executor, "SELECT * FROM nowhere")
    assert (await ask(executor, "SELECT count(*) FROM customers"))[1] == [(2,)]


async def test_a_write_is_rolled_back_even_where_the_engine_lets_it_pass(executor, shop: Path, monkeypatch):
    monkeypatch.setattr(type(executor), "prelude", lambda self, request: ())
    await ask(executor, "DELETE FROM orders")
    with sqlite3.connect(shop) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (2000,)
    connection.close()


async def test_the_deadline_ends_the_work_in_the_database(executor):
    started = time.monotonic()
    with pytest.raises(QueryTimeout, match=r"0\.3 seconds"):
        await ask(executor, ENDLESS, timeout=0.3)
    assert time.monotonic() - started < SECONDS
    assert await idle()


async def test_a_cancelled_query_is_ended_in_the_database_and_the_connection_serves_again(executor):
    for _ in range(3):  # more often than there are connections
        query = asyncio.create_task(ask(executor, ENDLESS, timeout=60))
        await asyncio.wait({query}, timeout=0.2)
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
    assert await idle()
    assert (await ask(executor, "SELECT 1"))[1] == [(1,)]


@pytest.mark.parametrize("turns", range(1, 12))
async def test_a_query_cancelled_while_it_connects_keeps_no_connection(shop: Path, lite, turns: int):
    executor = lite(f"sqlite+aiosqlite:///{shop}", pool_size=1)
    before = threading.active_count()
    query = asyncio.create_task(ask(executor, "SELECT 1"))
    for _ in range(turns):
        await asyncio.sleep(0)
    query.cancel()
    await asyncio.wait({query})
    async with asyncio.timeout(SECONDS):
        assert (await ask(executor, "SELECT 1"))[1] == [(1,)]
        while threading.active_count() > before + 1:  # each connection of this driver has a thread
            await asyncio.sleep(0.01)
    await executor.aclose()


async def test_leaving_a_stream_early_frees_its_connection(executor):
    for _ in range(5):
        async with executor.open(Request(statement="SELECT a.id FROM orders a, orders b")) as stream:
            assert len(await anext(stream.batches)) > 0
    assert (await ask(executor, "SELECT 1"))[1] == [(1,)]


async def test_more_queries_than_connections_wait_their_turn(executor):
    answers = await asyncio.gather(*(ask(executor, "SELECT ?", number) for number in range(20)))
    assert [rows for _, rows in answers] == [[(number,)] for number in range(20)]


async def test_closing_leaves_no_thread_behind(executor):
    before = threading.active_count()
    await asyncio.gather(*(ask(executor, "SELECT 1") for _ in range(5)))
    await executor.aclose()
    deadline = time.monotonic() + SECONDS
    while threading.active_count() > before and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert threading.active_count() <= before


async def test_a_database_that_is_not_there_is_named_and_its_address_is_not(tmp_path: Path, lite):
    executor = lite(f"sqlite:///{tmp_path}/no/such/folder/x.db", name="gone")
    with pytest.raises(ConnectionFailed) as caught:
        await ask(executor, "SELECT 1")
    assert "'gone'" in caught.value.message
    assert str(tmp_path) not in repr(caught.value) + caught.value.message
    await executor.aclose()


async def test_a_driver_that_is_not_installed_is_an_error_of_ours(lite):
    executor = lite("nosuchdriver://secret:secret@host/x")
    with pytest.raises(DragomanError) as caught:
        await ask(executor, "SELECT 1")
    assert "secret" not in caught.value.message


def test_the_core_does_not_import_sqlalchemy():
    code = "import sys, dragoman, dragoman.gateway, dragoman.plugins; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_statement_runs_beside_one_that_holds_the_only_connection(shop: Path, lite):
    executor = lite(f"sqlite+aiosqlite:///{shop}", pool_size=1)
    async with executor.open(Request(statement="SELECT id FROM orders")):
        await executor.beside("SELECT 1")
        with pytest.raises(OperationalError):
            await executor.beside("SELECT * FROM nowhere")
    await executor.aclose()


async def test_who_waits_in_vain_for_a_connection_is_told_that_all_are_busy(shop: Path, lite):
    executor = lite(f"sqlite+aiosqlite:///{shop}", pool_size=1)
    hurried = Request(statement="SELECT 1", limits=Limits(timeout=0.01))
    async with executor.open(Request(statement="SELECT id FROM orders")):
        with pytest.raises(Busy, match="All 1 connections"):
            await executor.open(hurried).__aenter__()
    await executor.aclose()


async def test_before_the_first_connection_there_is_nothing_to_be_beside(tmp_path: Path, lite):
    executor = lite(f"sqlite:///{tmp_path}/none.db")
    await executor.beside("SELECT 1")
    assert not (tmp_path / "none.db").exists()


async def test_a_dialect_may_send_a_statement_in_a_way_of_its_own(executor, monkeypatch):
    monkeypatch.setattr(
        type(executor), "bind", lambda self, request, style: (f"SELECT * FROM ({request.statement})", None)
    )
    assert await ask(executor, "SELECT 1 AS a") == (["a"], [(1,)])


def test_what_a_driver_raises_in_a_hook_is_translated_by_the_same_patterns():
    with (
        pytest.raises(InvalidSql, match=r"^Parser Error: near \*\*\*$"),
        translate_errors("shop", ((r"^Parser Error", InvalidSql),), ("/data/shop.db",)),
    ):
        raise RuntimeError("Parser Error: near /data/shop.db")
    with pytest.raises(QueryError, match=r"RuntimeError\.$"), translate_errors("shop", (), ()):
        raise RuntimeError("/data/shop.db is odd")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('No table kit_trak!\nDid you mean "kit_track"?', "No table kit_trak!"),
        ("Unknown identifier 'a'. Maybe you meant: ['secret']", "Unknown identifier 'a'."),
        ('"titel" was not found\nCandidate bindings: "title", "ssn"', '"titel" was not found'),
        ("No function abs(VARCHAR)\n\tCandidate functions:\n\tabs(BIGINT)",
         "No function abs(VARCHAR) Candidate functions: abs(BIGINT)"),
    ],
)  # fmt: skip
def test_names_that_the_database_proposes_are_not_shown(said: str, told: str):
    with pytest.raises(DragomanError) as caught, translate_errors("shop", (), ()):
        raise ProgrammingError("SELECT", None, Exception(said))
    assert caught.value.message == told


def test_the_number_before_a_message_is_not_shown():
    driver_error = ProgrammingError("SELECT", None, Exception(1146, "Table 'x.y' doesn't exist"))
    patterns = ((r"^\(1146, .*'(?:\w+\.)?(?P<name>\w+)'", TableNotFound),)
    with pytest.raises(TableNotFound) as caught, translate_errors("shop", patterns, ()):
        raise driver_error
    assert (caught.value.message, caught.value.identifier) == ("Table 'x.y' doesn't exist", "y")


def test_the_fields_of_a_server_s_message_are_not_shown_as_a_dict():
    fields = {"S": "ERROR", "C": "42P01", "M": 'relation "x.y" does not exist', "F": "parse_relation.c"}
    patterns = ((r'^relation "(?:\w+\.)?(?P<name>\w+)" does not exist$', TableNotFound),)
    for given, name in ((patterns, "y"), ((), None)):
        with pytest.raises(TableNotFound) as caught, translate_errors("shop", given, ()):
            raise ProgrammingError("SELECT", None, Exception(fields))
        told = caught.value
        assert (told.message, told.identifier, told.context) == (fields["M"], name, {"sqlstate": "42P01"})


@pytest.mark.parametrize(
    ("percents_in_quotes", "text"),
    [(True, """SELECT n %% 2, '10%%', "a%%" WHERE n = %s"""), (False, """SELECT n %% 2, '10%', "a%" WHERE n = %s""")],
)
def test_percent_signs_are_doubled_where_the_driver_reads_them(percents_in_quotes: bool, text: str):
    statement = """SELECT n % 2, '10%', "a%" WHERE n = ?"""
    assert bind(statement, [1], Lexicon(), "format", percents_in_quotes=percents_in_quotes) == (text, (1,))


async def idle() -> bool:
    """Whether this process stops computing within a few seconds."""
    for _ in range(SECONDS * 5):
        before = time.process_time()
        await asyncio.sleep(0.2)
        if time.process_time() - before < 0.1:
            return True
    return False


@pytest.mark.parametrize("missed", [1, 2, 3])
async def test_an_interruption_that_the_database_misses_comes_again(executor, missed: int, monkeypatch):
    """As it does one of a statement that it has received and not begun. Nothing else would end it here."""
    monkeypatch.setattr(session, "GRACE", 1000.0)
    interrupt, asked = executor.interrupt, 0

    async def miss(connection) -> None:
        nonlocal asked
        asked += 1
        if asked > missed:
            await interrupt(connection)

    executor.interrupt = miss
    with pytest.raises(QueryTimeout):
        await asyncio.wait_for(ask(executor, ENDLESS, timeout=0.1), SECONDS)
    assert await idle()
    assert asked == missed + 1


async def test_a_place_is_free_only_when_what_cannot_be_interrupted_has_ended(shop: Path, lite):
    executor = lite(f"sqlite+pysqlite:///{shop}", pool_size=1)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> int:
        held.set()
        return int(let_go.wait(SECONDS))

    await executor.run(lambda connection: connection.connection.driver_connection.create_function("hold", 0, hold))
    query = asyncio.create_task(ask(executor, "SELECT hold()"))
    while not held.is_set():
        await asyncio.sleep(0)
    for _ in range(3):
        query.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await query
    with pytest.raises(Busy, match="1 of them wait for abandoned work to end"):
        await ask(executor, "SELECT 1", timeout=0.05)
    let_go.set()
    assert (await ask(executor, "SELECT 1"))[1] == [(1,)]
    await executor.aclose()
