"""Kept results over a real SQLite file: whole, exact, paged, the caller's own, and gone in time."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dragoman import Gateway, Principal
from dragoman.config import Configuration, Results
from dragoman.model import LOCAL
from dragoman.tools import Toolbox

MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i, 'row ' || i AS t FROM n"
)
ADA = Principal("user", issuer="https://id", subject="ada")
EVE = Principal("user", issuer="https://id", subject="eve")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine does not make a small result a long one."""
    monkeypatch.setattr("dragoman.kept.store.SOON", 60)


@pytest.fixture
async def keeping(database, scripts, tmp_path) -> AsyncIterator[Toolbox]:
    databases = {"shop": database("shop", scripts["shop"], max_bytes=20_000)}
    async with Gateway.open(Configuration(databases=databases, results=Results(dir=tmp_path / "kept"))) as gateway:
        yield Toolbox(gateway, profile="full")


async def test_a_kept_result_is_whole_and_paged(keeping, ask):
    kept = await ask(keeping, "execute_query", sql=MANY, keep="numbers", limit=3)
    assert kept["rows"] == [[1, "row 1"], [2, "row 2"], [3, "row 3"]]
    assert kept["kept"].items() >= {"name": "numbers", "rows": 5000}.items()
    page, rows, offset = {}, [], 0
    while offset is not None:
        page = await ask(keeping, "get_result", result="numbers", offset=offset)
        assert len(json.dumps(page["rows"], separators=(",", ":"))) <= 20_000
        rows += page["rows"]
        offset = page.get("next_offset")
    assert rows == [[number, f"row {number}"] for number in range(1, 5001)]
    assert (page["status"], page["total_rows"], page["columns"]) == ("complete", 5000, ["i", "t"])


async def test_only_the_answer_of_the_statement_tells_its_hash_and_time(keeping):
    kept = await keeping.call("execute_query", {"sql": MANY, "keep": "numbers"})
    asked = await keeping.call("execute_query", {"sql": MANY})
    assert kept.meta["dragoman/query_hash"] == asked.meta["dragoman/query_hash"]
    assert kept.meta["dragoman/elapsed_ms"] > 0
    assert (await keeping.call("get_result", {"result": "numbers"})).meta == {}


async def test_a_kept_result_is_its_callers_own(keeping):
    await keeping.call("execute_query", {"sql": MANY, "keep": "mine"}, principal=ADA)
    own = await keeping.call("get_result", {"result": "mine"}, principal=ADA)
    assert not own.is_error
    answers = [
        await keeping.call(tool, {"result": name}, principal=EVE)
        for tool in ("get_result", "drop_result", "export_result")
        for name in ("mine", "never")
    ]
    told = [json.loads(answer.text)["error"] for answer in answers]
    assert {error["code"] for error in told} == {"RESULT_NOT_FOUND"}
    # Foreign and never kept read alike.
    assert len({error["message"].replace("mine", "X").replace("never", "X") for error in told}) == 1


async def test_a_deadline_that_strikes_while_rows_come_keeps_what_came(database, scripts, tmp_path, ask):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    results = Results(dir=tmp_path / "kept", timeout=1, max_rows=10**9)
    configuration = Configuration(databases={"shop": database("shop", scripts["shop"])}, results=results)
    async with Gateway.open(configuration) as gateway:
        kept = await ask(Toolbox(gateway, profile="full"), "execute_query", sql=endless, keep="part", limit=2)
    assert kept["rows"] == [[1], [2]]
    assert (kept["status"], kept["truncated"]["reason"], kept["truncated"]["limit"]) == ("complete", "timeout", 1)
    assert kept["kept"]["rows"] == kept["total_rows"] > 2


@pytest.mark.parametrize("name", ["../x", "a b", "x" * 64, "a;b", "/etc/passwd", "1"])
async def test_a_name_is_a_plain_word(keeping, fail, name):
    assert (await fail(keeping, "execute_query", {"sql": MANY, "keep": name}))["code"] == "PARAMETER_ERROR"


async def test_a_refused_query_keeps_nothing(keeping, fail, tmp_path):
    assert (await fail(keeping, "execute_query", {"sql": "DELETE FROM users", "keep": "x"}))[
        "code"
    ] == "WRITE_OPERATION_DENIED"
    assert (await fail(keeping, "get_result", {"result": "x"}))["code"] == "RESULT_NOT_FOUND"


async def test_a_query_that_fails_midway_is_told_and_not_kept(keeping, fail):
    sql = f"SELECT CASE WHEN i = 4000 THEN abs(-9223372036854775808) ELSE i END FROM ({MANY})"
    assert (await fail(keeping, "execute_query", {"sql": sql, "keep": "x"}))["code"] == "QUERY_ERROR"
    assert (await fail(keeping, "get_result", {"result": "x"}))["code"] == "RESULT_NOT_FOUND"


async def test_a_name_kept_again_is_the_newer_result(keeping, ask):
    await ask(keeping, "execute_query", sql="SELECT 1 AS a", keep="x")
    await ask(keeping, "execute_query", sql="SELECT 2 AS b", keep="x")
    assert (await ask(keeping, "get_result", result="x"))["rows"] == [[2]]


async def test_a_dropped_result_is_gone_with_its_file(keeping, ask, fail, tmp_path):
    await ask(keeping, "execute_query", sql=MANY, keep="x")
    assert [path for path in tmp_path.rglob("*.rows") if path.stat().st_size]
    await ask(keeping, "drop_result", result="x")
    assert list(tmp_path.rglob("*.rows")) == []
    assert (await fail(keeping, "get_result", {"result": "x"}))["code"] == "RESULT_NOT_FOUND"


async def test_a_kept_result_is_exported(keeping, ask):
    await ask(keeping, "execute_query", sql=MANY, keep="x")
    answer = await ask(keeping, "export_result", result="x", format="csv")
    with Path(answer["file"]).open(newline="") as file:
        rows = list(csv.reader(file))
    assert (rows[0], len(rows), answer["rows"]) == (["i", "t"], 5001, 5000)
    assert Path(answer["file"]).stat().st_mode & 0o077 == 0


async def test_a_query_is_exported_whole(keeping, ask):
    answer = await ask(keeping, "export_result", sql=MANY, format="jsonl")
    assert len(Path(answer["file"]).read_text().splitlines()) == 5000


async def test_a_result_whose_query_failed_is_not_exported_as_if_it_were_whole(keeping, fail, monkeypatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0)
    sql = f"SELECT CASE WHEN i = 4000 THEN abs(-9223372036854775808) ELSE i END FROM ({MANY})"
    assert (await fail(keeping, "export_result", {"sql": sql}))["code"] == "QUERY_ERROR"


async def test_the_export_of_a_cut_result_says_so(database, scripts, tmp_path, ask):
    results = Results(dir=tmp_path / "kept", max_rows=100)
    configuration = Configuration(databases={"shop": database("shop", scripts["shop"])}, results=results)
    async with Gateway.open(configuration) as gateway:
        answer = await ask(Toolbox(gateway, profile="full"), "export_result", sql=MANY)
    assert (answer["rows"], answer["truncated"]["reason"], answer["truncated"]["limit"]) == (100, "rows", 100)


async def test_files_go_with_the_server(database, scripts, tmp_path):
    databases = {"shop": database("shop", scripts["shop"])}
    configuration = Configuration(databases=databases, results=Results(dir=tmp_path / "kept"))
    async with Gateway.open(configuration) as gateway:
        await Toolbox(gateway, profile="full").call("execute_query", {"sql": MANY, "keep": "x"})
        assert list((tmp_path / "kept").rglob("*.rows"))
    assert list((tmp_path / "kept").iterdir()) == []


async def test_a_callers_share_of_the_disk_is_bounded(database, scripts, tmp_path, ask):
    databases = {"shop": database("shop", scripts["shop"])}
    results = Results(dir=tmp_path / "kept", max_bytes_per_caller=600_000)
    async with Gateway.open(Configuration(databases=databases, results=results)) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        long = MANY.replace("'row ' || i", "hex(zeroblob(500))")
        kept = await ask(toolbox, "execute_query", sql=long, keep="x", limit=1)
        assert kept["truncated"]["reason"] == "bytes"
        assert kept["kept"]["bytes"] <= 600_000


async def test_a_whole_result_is_told_as_whole_where_no_other_page_fits(database, scripts, tmp_path, ask, monkeypatch):
    monkeypatch.setattr("dragoman.kept.store.LEAST_FREE", 2**62)  # as on a disk that is full but for a little
    databases = {"shop": database("shop", scripts["shop"])}
    async with Gateway.open(Configuration(databases=databases, results=Results(dir=tmp_path / "kept"))) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        kept = await ask(toolbox, "execute_query", sql=f"{MANY} LIMIT 10", keep="x")
        assert kept["total_rows"] == 10
        assert "truncated" not in kept
        kept = await ask(toolbox, "execute_query", sql=MANY.replace("5000", "500000"), keep="y", limit=1)
        assert kept["truncated"]["reason"] == "bytes"
        assert kept["kept"]["rows"] < 500_000


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "xlsx"])
async def test_a_file_takes_no_more_than_its_callers_share(database, scripts, tmp_path, form):
    """Names of columns stand in every row of some files: one page of rows makes many megabytes."""
    most = 3_000_000
    wide = "SELECT " + ", ".join(f"i AS {'n' * 55}{place}" for place in range(300)) + f" FROM ({MANY})"
    databases = {"shop": database("shop", scripts["shop"])}
    results = Results(dir=tmp_path / "kept", max_bytes_per_caller=most, max_rows=1000)
    async with Gateway.open(Configuration(databases=databases, results=results)) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        await toolbox.call("execute_query", {"sql": wide, "keep": "x"})
        (kept,) = gateway.kept.of(LOCAL)
        assert kept.pages.rows == 1000
        answer = await toolbox.call("export_result", {"result": "x", "format": form})
        if form in ("jsonl", "xlsx"):  # a sheet is large until it is compressed
            error = json.loads(answer.text)["error"]
            assert (error["code"], error["message"]) == ("BUSY", "There is no room for the file.")
            assert kept.size == kept.pages.size
            assert [path for path in kept.pages.path.parent.iterdir() if form in path.name] == []
        else:
            assert not answer.is_error
        assert kept.size <= most


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        (MANY.replace("'row ' || i", "hex(zeroblob(500))"), "jsonl"),  # rows and file are more than the caller's share
        ("SELECT 'a' AS x, 'b' AS y", "svg"),  # no numbers to draw
        ("SELECT 1 AS a, 2 AS b LIMIT 0", "png"),
        ("SELECT abs(-9223372036854775808)", "csv"),  # fails among its rows
        ("SELECT nothing", "csv"),
        (MANY, "nothing"),
    ],
)
async def test_an_export_that_fails_leaves_nothing_behind(database, scripts, tmp_path, sql, form):
    """Its caller is told no name by which to drop the rows that were kept for it."""
    databases = {"shop": database("shop", scripts["shop"])}
    results = Results(dir=tmp_path / "kept", max_bytes_per_caller=1_000_000)
    async with Gateway.open(Configuration(databases=databases, results=results)) as gateway:
        answer = await Toolbox(gateway, profile="full").call("export_result", {"sql": sql, "format": form})
        assert answer.is_error
        assert gateway.kept.of(LOCAL) == ()
        assert list((tmp_path / "kept").rglob("*.rows")) == []


async def test_an_export_whose_caller_leaves_leaves_nothing_behind(database, scripts, tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0.05)
    databases = {"shop": database("shop", scripts["shop"])}
    async with Gateway.open(Configuration(databases=databases, results=Results(dir=tmp_path / "kept"))) as gateway:
        waiting = asyncio.Event()
        monkeypatch.setattr(gateway.kept.exports, "write", lambda *_: waiting.set() or asyncio.Event().wait())
        toolbox = Toolbox(gateway, profile="full")
        export = asyncio.create_task(toolbox.call("export_result", {"sql": ENDLESS, "format": "csv"}))
        await waiting.wait()
        assert len(gateway.kept.of(LOCAL)) == 1
        export.cancel()
        with pytest.raises(asyncio.CancelledError):
            await export
        assert gateway.kept.of(LOCAL) == ()


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


async def test_long_queries_that_are_kept_leave_the_database_to_others(database, scripts, tmp_path, ask, monkeypatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0.05)
    databases = {"shop": database("shop", scripts["shop"], pool_size=2)}
    async with Gateway.open(Configuration(databases=databases, results=Results(dir=tmp_path / "kept"))) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for name in "abcd":
            kept = await ask(toolbox, "execute_query", sql=ENDLESS, keep=name)
            assert kept["status"] == "running"
        assert (await ask(toolbox, "execute_query", sql="SELECT 1"))["rows"] == [[1]]


async def test_a_timeout_of_the_callers_holds_for_a_kept_query_too(keeping, fail):
    arguments = {"sql": ENDLESS, "keep": "x", "timeout_ms": 100}
    assert (await fail(keeping, "execute_query", arguments))["code"] == "QUERY_TIMEOUT"


# The same statement again


COUNTED = "SELECT id, email FROM users WHERE id >= ? ORDER BY id"


@pytest.fixture
async def reusing(database, scripts, tmp_path) -> AsyncIterator[Toolbox]:
    databases = {"shop": database("shop", scripts["shop"])}
    results = Results(dir=tmp_path / "kept", reuse=300)
    async with Gateway.open(Configuration(databases=databases, results=results)) as gateway:
        yield Toolbox(gateway, profile="full")


def is_reused(answer: dict[str, Any]) -> bool:
    return any("Answered from the kept result mine" in notice for notice in answer.get("notices", ()))


async def test_the_same_statement_is_answered_from_what_is_kept_and_says_so(reusing, ask):
    first = await ask(reusing, "execute_query", sql=COUNTED, params=[1], keep="mine")
    again = await ask(reusing, "execute_query", sql=COUNTED, params=[1])
    assert is_reused(again)
    assert (again["rows"], again["types"], "truncated" in again) == (first["rows"], first["types"], False)
    fewer = await ask(reusing, "execute_query", sql=COUNTED, params=[1], limit=1)
    assert is_reused(fewer)
    assert (fewer["rows"], fewer["truncated"]["reason"], fewer["truncated"]["limit"]) == (first["rows"][:1], "rows", 1)


async def test_what_a_translation_says_is_said_once_of_a_statement_that_is_not_asked_again(reusing, ask):
    sql = "SELECT id::text AS id FROM users"
    first = await ask(reusing, "execute_query", sql=sql, from_dialect="postgres", keep="mine")
    again = await ask(reusing, "execute_query", sql=sql, from_dialect="postgres")
    assert is_reused(again)
    assert again["notices"][:-1] == first["notices"] != []


async def test_another_statement_caller_or_parameter_is_asked_anew(reusing, ask):
    await ask(reusing, "execute_query", sql=COUNTED, params=[1], keep="mine")
    for sql, params in ((COUNTED, [2]), (COUNTED, ["1"]), (COUNTED.replace("email", "email AS e"), [1])):
        assert not is_reused(await ask(reusing, "execute_query", sql=sql, params=params))
    foreign = await reusing.call("execute_query", {"sql": COUNTED, "params": [1]}, principal=EVE)
    assert not is_reused(json.loads(foreign.text))
    await reusing.gateway.reload(reusing.gateway.configuration)
    assert not is_reused(await ask(reusing, "execute_query", sql=COUNTED, params=[1]))


async def test_nothing_is_answered_from_what_is_kept_unless_configured(keeping, ask):
    await ask(keeping, "execute_query", sql=COUNTED, params=[1], keep="mine")
    assert not is_reused(await ask(keeping, "execute_query", sql=COUNTED, params=[1]))
