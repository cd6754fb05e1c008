"""Every call is in the audit before its answer leaves: answered, refused, failed and cancelled ones."""

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import (
    Busy,
    ConfigurationError,
    Database,
    DragomanError,
    Gateway,
    InternalError,
    ParameterError,
    Principal,
)
from dragoman.audit import AuditFile, Record, records, verify_files
from dragoman.config import Audit, Configuration, Server
from dragoman.gateway import recording
from dragoman.kept import store
from dragoman.kept.pages import Pages
from dragoman.tools import Toolbox
from dragoman.tools.surfaces import complete

ADA = Principal("ada", issuer="https://idp.example", subject="a-1", client="agent", token="ci")


@pytest.fixture
def audited(shop: Database, tmp_path: Path) -> Callable[..., Configuration]:
    def make(**audit: Any) -> Configuration:
        return Configuration(databases={"shop": shop}, audit=Audit(path=tmp_path / "audit" / "calls.jsonl", **audit))

    return make


@pytest.fixture
async def gateway(audited: Callable[..., Configuration]) -> AsyncIterator[Gateway]:
    async with Gateway.open(audited()) as gateway:
        yield gateway


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[], list[Record]]:
    """The records of calls so far; the files must be intact."""

    def read() -> list[Record]:
        path = tmp_path / "audit" / "calls.jsonl"
        assert verify_files(path).faults == []
        return [record for record in records(path) if record.event == "call"]

    return read


async def test_a_record_says_who_asked_what_and_how_it_ended(gateway: Gateway, recorded):
    sql = "SELECT name FROM customers WHERE id = ?"
    result = await gateway.query("shop", sql, [2], principal=ADA, tool="report")
    (record,) = recorded()
    assert (record.principal, record.issuer, record.subject, record.client, record.token) == (
        "ada",
        "https://idp.example",
        "a-1",
        "agent",
        "ci",
    )
    assert (record.database, record.tool, record.hash, record.sql) == ("shop", "report", result.query_hash, sql)
    assert (record.relations, record.verdict, record.outcome) == (("customers",), "allowed", "ok")
    assert (record.rows, record.bytes, record.params) == (1, len(result.rows_json), None)
    assert record.ms > 0


FAILING = [
    ("SELECT nix FROM customers", "COLUMN_NOT_FOUND", "allowed"),
    ("DELETE FROM customers", "WRITE_OPERATION_DENIED", "refused"),
    ("SELECT load_extension('x')", "UNSAFE_SQL", "refused"),
    ("SELECT abs(-9223372036854775807 - 1)", "QUERY_ERROR", "allowed"),
]


@pytest.mark.parametrize(("sql", "outcome", "verdict"), FAILING)
async def test_refused_and_failed_calls_have_their_record(sql, outcome, verdict, gateway: Gateway, recorded):
    with pytest.raises(DragomanError):
        await gateway.query("shop", sql)
    (record,) = recorded()
    assert (record.sql, record.outcome, record.verdict) == (sql, outcome, verdict)
    assert len(record.hash) == 16


async def test_a_cancelled_call_has_its_record(gateway: Gateway, shop: Database, endless: str, running, recorded):
    task = asyncio.create_task(gateway.query("shop", endless))
    await running(shop)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [record.outcome for record in recorded()] == ["QUERY_CANCELLED"]


async def test_calls_that_find_the_queue_full_have_their_record(shop: Database, tmp_path: Path, recorded):
    audit = Audit(path=tmp_path / "audit" / "calls.jsonl")
    configuration = Configuration(databases={"shop": shop}, server=Server(max_concurrent=1), audit=audit)
    async with Gateway.open(configuration) as gateway:
        answers = await asyncio.gather(
            *(gateway.query("shop", "SELECT 1 AS one") for _ in range(4)), return_exceptions=True
        )
    refused = sum(isinstance(answer, Busy) for answer in answers)
    assert refused == 2
    assert sorted(record.outcome for record in recorded()) == ["BUSY", "BUSY", "ok", "ok"]


STATEMENTS = {
    "execute_query": {},
    "explain_query": {},
    "execute_query and keep": {"keep": "kept"},
    "execute_query and keep under a name that is refused": {"keep": "pg_kept"},
    "execute_query with parameters that are refused": {"params": 7},
    "export_result": {},
    "save_query": {"name": "saved"},
}


@pytest.mark.parametrize("sql", ["DROP TABLE orders", "SELECT * FROM nowhere", "SELECT 1", "no SQL"])
@pytest.mark.parametrize("way", STATEMENTS)
async def test_every_tool_that_takes_a_statement_has_it_on_record(
    way: str, sql: str, audited: Callable[..., Configuration], recorded, tmp_path: Path
):
    tool, sent = way.split()[0], {**STATEMENTS[way], "sql": sql}
    (tmp_path / "queries").mkdir()
    server = Server(queries_dir=tmp_path / "queries", save_queries=True)
    async with Gateway.open(replace(audited(), server=server)) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        takers = {each.name for each in toolbox.tools if "sql" in each.input_schema["properties"]}
        assert takers == {way.split()[0] for way in STATEMENTS}
        await toolbox.call(tool, sent, principal=ADA)
    assert all(sql in record.sql and record.hash for record in recorded())


async def test_a_kept_query_that_never_began_is_on_record(
    audited: Callable[..., Configuration], shop: Database, endless: str, recorded, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store, "SOON", 0.05)
    configuration = replace(audited(), databases={"shop": replace(shop, pool_size=2)})
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for name, sql in (("first", endless), ("second", "SELECT 'waits'")):
            await toolbox.call("execute_query", {"sql": sql, "keep": name}, principal=ADA)
        for name in ("second", "first"):
            await toolbox.call("drop_result", {"result": name}, principal=ADA)
    assert "SELECT 'waits'" in [record.sql for record in recorded()]


async def test_a_kept_query_that_a_full_disk_ends_has_the_outcome_that_its_caller_is_told(
    audited: Callable[..., Configuration], recorded, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Pages, "add", full)
    async with Gateway.open(audited()) as gateway:
        keeping = {"sql": "SELECT 1 AS one", "keep": "one"}
        assert "disk" in (await Toolbox(gateway, profile="full").call("execute_query", keeping, principal=ADA)).text
    assert {record.outcome for record in recorded()} == {Busy.code}


async def test_a_tool_without_sql_is_recorded_with_its_arguments(gateway: Gateway, recorded):
    await Toolbox(gateway).call("describe_table", {"table_name": "orders"}, principal=ADA)
    await Toolbox(gateway).call("describe_table", {"nonsense": "orders"})
    first, second = recorded()
    assert (first.tool, first.arguments, first.outcome) == ("describe_table", {"table_name": "orders"}, "ok")
    assert (second.tool, second.outcome) == ("describe_table", "PARAMETER_ERROR")


@pytest.mark.parametrize(
    ("settings", "sql", "hashed", "params"),
    [
        ({"text": "full", "values": True}, "SELECT ? AS v", True, ["hush"]),
        ({"text": "hash"}, "", True, None),
        ({"text": "off"}, "", False, None),
    ],
)
async def test_what_is_kept_of_a_statement_is_a_setting(settings, sql, hashed, params, audited, recorded):
    async with Gateway.open(audited(**settings)) as gateway:
        await gateway.query("shop", "SELECT ? AS v", ["hush"])
        await Toolbox(gateway).call("execute_query", {"sql": "SELECT ? AS v", "params": ["hush"]})
    for record in recorded():
        assert (record.sql, bool(record.hash), record.params) == (sql, hashed, params)
    assert settings.get("values") or "hush" not in str(recorded())


def full(*_: object) -> int:
    raise OSError(28, "No space left on device")


BOUND = "SELECT name FROM customers WHERE name = ?"
SAVED = """-- name: by_name
-- database: shop
-- param: name text
-- expose: tool
SELECT name FROM customers WHERE name = :name
"""


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_query", {"sql": BOUND, "params": ["hush"]}),
        ("execute_query", {"sql": BOUND, "params": ["hush"], "keep": "mine"}),
        ("explain_query", {"sql": BOUND, "params": ["hush"]}),
        ("export_result", {"sql": BOUND, "params": ["hush"], "format": "csv"}),
        ("get_row", {"table_name": "customers", "key": "hush"}),
        ("run_query", {"name": "by_name", "params": {"name": "hush"}}),
        ("by_name", {"name": "hush"}),
        ("by_name", {"nam": "hush"}),
        # Written wrong, so that they are no arguments of the tool, or not of their kind.
        ("execute_query", {"sql": BOUND, "parameters": ["hush"]}),
        ("execute_query", {"sql": BOUND, "database": {"name": "hush"}}),
        ("get_row", {"table_name": "customers", "keys": "hush"}),
        ("get_row", {"table_name": ["customers", {"key": "hush"}], "key": 1}),
        ("run_query", {"name": "by_name", "arguments": {"name": "hush"}}),
    ],
)
async def test_a_value_is_kept_if_the_configuration_says_so(tool, arguments, values, audited, recorded, tmp_path: Path):
    (tmp_path / "by_name.sql").write_text(SAVED)
    server = Server(tools=("full",), queries_dir=tmp_path)
    async with Gateway.open(replace(audited(values=values), server=server)) as gateway:
        answer = await Toolbox(gateway, profile="full").call(tool, arguments)
    assert values or "hush" not in str(recorded())
    assert not values or answer.is_error or "hush" in str(recorded())


async def test_without_a_record_there_is_no_answer(gateway: Gateway, monkeypatch):
    monkeypatch.setattr(AuditFile, "append", full)
    with pytest.raises(InternalError, match="could not be recorded"):
        await gateway.query("shop", "SELECT 1 AS one")
    answer = await Toolbox(gateway).call("list_tables", {})
    assert answer.is_error
    assert "could not be recorded" in answer.text


async def test_a_query_that_cannot_be_recorded_is_not_saved(audited, monkeypatch, tmp_path: Path):
    server = Server(queries_dir=tmp_path / "queries", save_queries=True)
    (tmp_path / "queries").mkdir()
    query = {"name": "one", "sql": "SELECT 1 AS one"}
    async with Gateway.open(replace(audited(), server=server)) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        with monkeypatch.context() as broken:
            broken.setattr(AuditFile, "append", full)
            assert "could not be recorded" in (await toolbox.call("save_query", query)).text
        assert list((tmp_path / "queries").iterdir()) == []
        assert (await toolbox.call("save_query", query)).structured == {"saved": "one"}


Said = Callable[[Toolbox], Awaitable[object]]
BESIDE_TOOLS: dict[str, Said] = {
    "list_resources": lambda toolbox: toolbox.surfaces.resources(ADA),
    "read_resource": lambda toolbox: toolbox.surfaces.read("databases://list", ADA),
    "get_prompt": lambda toolbox: toolbox.surfaces.fill_prompt("explore", {"database": "hush"}, ADA),
    "an unknown prompt": lambda toolbox: toolbox.surfaces.fill_prompt("nothing", {}, ADA),
    "complete": lambda toolbox: complete(toolbox.surfaces, ADA, "table", "ord", {"database": "shop"}, None),
    "complete with no match": lambda toolbox: complete(
        toolbox.surfaces, ADA, "table", "hush", {"database": "shop"}, None
    ),
    "complete in vain": lambda toolbox: complete(toolbox.surfaces, ADA, "table", "", {"database": "nothing"}, None),
    "complete what is no argument": lambda toolbox: complete(toolbox.surfaces, ADA, "hush", "", {}, None),
    "complete for what is no address": lambda toolbox: complete(toolbox.surfaces, ADA, "table", "", {}, "hush"),
    "an unknown tool": lambda toolbox: toolbox.refuse("nothing", ADA),
}


@pytest.mark.parametrize("said", BESIDE_TOOLS)
async def test_what_is_said_beside_tools_has_a_record_too(said, gateway: Gateway, recorded):
    with suppress(ParameterError):
        await BESIDE_TOOLS[said](Toolbox(gateway))
    (record,) = recorded()
    assert record.principal == "ada"
    assert record.outcome == {
        "an unknown prompt": "PARAMETER_ERROR",
        "complete in vain": "UNKNOWN_DATABASE",
        "an unknown tool": "PERMISSION_DENIED",
    }.get(said, "ok")
    assert "hush" not in str(record)
    assert (record.bytes > 0) == (said in ("list_resources", "read_resource", "get_prompt", "complete"))


@pytest.mark.parametrize("said", BESIDE_TOOLS)
async def test_nothing_is_said_without_a_record_beside_tools(said, gateway: Gateway, monkeypatch):
    monkeypatch.setattr(AuditFile, "append", full)
    with pytest.raises(InternalError, match="could not be recorded"):
        await BESIDE_TOOLS[said](Toolbox(gateway))


async def test_where_the_audit_is_not_required_the_answer_comes_and_the_log_tells(audited, monkeypatch, caplog):
    async with Gateway.open(audited(required=False)) as gateway:
        monkeypatch.setattr(AuditFile, "append", full)
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]
    assert "could not be written" in caplog.text


@pytest.fixture
def locked(gateway: Gateway, tmp_path: Path) -> Iterator[int]:
    """The audit's folder, locked as by another process; let go of in the end, should the event loop wait for it."""
    folder = os.open(tmp_path / "audit", os.O_RDONLY)
    last = threading.Timer(20, fcntl.flock, (folder, fcntl.LOCK_UN))
    last.start()
    fcntl.flock(folder, fcntl.LOCK_EX)
    yield folder
    last.cancel()
    last.join()
    os.close(folder)


async def test_a_process_that_keeps_the_files_locked_holds_up_calls_and_not_the_server(gateway, locked, recorded):
    calls = asyncio.gather(*(gateway.query("shop", f"SELECT {number} AS one") for number in range(8)))
    asyncio.get_running_loop().call_later(0.3, fcntl.flock, locked, fcntl.LOCK_UN)
    async with asyncio.timeout(10):
        assert sorted(result.rows[0][0] for result in await calls) == list(range(8))
    assert len(recorded()) == 8


async def test_files_that_stay_locked_are_files_that_cannot_be_written(gateway: Gateway, locked, monkeypatch):
    monkeypatch.setattr(recording, "PATIENCE", 0.2)
    async with asyncio.timeout(10):
        with pytest.raises(InternalError, match="could not be recorded"):
            await gateway.query("shop", "SELECT 1 AS one")
    fcntl.flock(locked, fcntl.LOCK_UN)
    assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]


async def test_files_that_stay_locked_stop_the_start(audited, gateway: Gateway, locked):
    with pytest.raises(ConfigurationError, match="another process keeps the files locked"):
        async with Gateway.open(audited()):
            pass


async def test_the_log_names_the_place_of_the_record(gateway: Gateway, lines, tmp_path: Path):
    from dragoman.audit import Link

    await gateway.query("shop", "SELECT 1 AS one")
    number, _, seal = lines()[0]["audit"].partition(":")
    assert verify_files(tmp_path / "audit" / "calls.jsonl", [Link(int(number), seal)]).faults == []


@pytest.mark.parametrize("odd", ["\ud800", {"a": {"b": {1: float("inf")}}}, "x" * 10**6, object()])
async def test_whatever_a_caller_sends_is_recorded(odd, gateway: Gateway, recorded):
    await Toolbox(gateway).call("execute_query", {"sql": odd, odd if isinstance(odd, str) else "x": odd})
    (record,) = recorded()
    assert record.outcome != "ok"


async def test_half_a_character_in_a_claim_changes_nothing_else_of_a_record(gateway: Gateway, recorded):
    for half in ("a", "\ud800a"):
        principal = Principal(name=half, issuer="https://idp", subject=half, client=half)
        arguments = {"sql": "SELECT 1 AS one", "limit": 1}
        await Toolbox(gateway).call("execute_query", arguments, principal=principal)
    whole, spelled = recorded()
    assert (spelled.principal, spelled.subject, spelled.client) == ("\\ud800a",) * 3
    same = {name: getattr(whole, name) for name in ("sql", "arguments", "relations", "outcome", "database")}
    assert {name: getattr(spelled, name) for name in same} == same


async def test_half_a_character_in_an_administrators_name_stops_no_change(gateway: Gateway, tmp_path: Path):
    await gateway.announce_change("database more added by \ud800ann")
    [file] = (tmp_path / "audit").glob("calls-*.jsonl")
    assert "added by \\\\ud800ann" in file.read_text()


async def test_a_path_that_cannot_be_written_stops_the_start(shop: Database, tmp_path: Path):
    (tmp_path / "file").touch()
    configuration = Configuration(databases={"shop": shop}, audit=Audit(path=tmp_path / "file" / "audit.jsonl"))
    with pytest.raises(ConfigurationError, match="cannot be written"):
        async with Gateway.open(configuration):
            pass
