"""Files over HTTP: at signed addresses, for their owner, for a while, and as long as the result lives."""

import asyncio
import json
import os
import random
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from dragoman import Database, Gateway, Principal, QueryTimeout, ResultNotFound
from dragoman.auth.tokens import hash_token
from dragoman.config import Configuration, Results, Server
from dragoman.config.settings import StaticToken
from dragoman.gateway.exporting import SECONDS, Exports, origin
from dragoman.mcp.http import http_app
from dragoman.tools import Toolbox

ADA = Principal("ada", token="ada")
TOKENS = {name: f"dragoman-{name}-0123456789abcdef" for name in ("ada", "eve")}
ROWS = b"id,total\r\n1,12.50\r\n2,0.10\r\n"

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Field:
    """A gateway with a kept result of ADA's, its clock, and a client of its server."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.now = 1_000_000.0
        gateway.kept.exports = Exports(gateway, lambda owner, more=0: True, lambda: self.now)
        self.toolbox = Toolbox(gateway, profile="full")
        transport = httpx2.ASGITransport(http_app(self.toolbox, gateway.configuration.server))
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://localhost:8080")
        origin.set("http://localhost:8080")

    async def ask(self, tool: str, **arguments):
        answer = json.loads((await self.toolbox.call(tool, arguments, principal=ADA)).text)
        assert "error" not in answer, answer
        return answer

    async def export(self, form: str = "csv") -> str:
        return (await self.ask("export_result", result="orders", format=form))["url"]

    async def status(self, url: str, **headers: str) -> int:
        response = await self.client.get(url, headers=headers)
        if response.status_code != 200:
            assert response.json() == {
                "error": "not_found",
                "message": "There is nothing at this address, or it is no longer valid.",
            }
        return response.status_code


@pytest.fixture
def configuration(tmp_path) -> Configuration:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(
            "CREATE TABLE orders (id INTEGER, total TEXT); INSERT INTO orders VALUES (1, '12.50'), (2, '0.10')"
        )
    connection.close()
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)
    tokens = tuple(StaticToken(name=name, hash=hash_token(token)) for name, token in TOKENS.items())
    server = Server(transport="http", tokens=tokens)
    return Configuration(databases={"shop": shop}, results=Results(dir=tmp_path / "kept"), server=server)


@asynccontextmanager
async def opened(configuration: Configuration) -> AsyncIterator[Field]:
    async with Gateway.open(configuration) as gateway:
        field = Field(gateway)
        await field.ask("execute_query", sql="SELECT id, total FROM orders", keep="orders")
        async with field.client:
            yield field


async def test_an_address_gives_the_file_and_nothing_else(configuration):
    async with opened(configuration) as field:
        answer = await field.ask("export_result", result="orders")
        assert set(answer) == {"url", "expires", "format", "rows", "bytes"}
        assert answer["expires"] == SECONDS
        response = await field.client.get(answer["url"])
        assert (response.status_code, response.content) == (200, ROWS)
        assert response.headers["content-disposition"] == 'attachment; filename="orders.csv"'
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "no-store" in response.headers["cache-control"]
        assert (await field.client.head(answer["url"])).headers["content-length"] == str(len(ROWS))
        assert (await field.client.post(answer["url"])).status_code == 405
        by_query = await field.ask("export_result", sql="SELECT 1 AS n", format="jsonl")
        assert (await field.client.get(by_query["url"])).content == b'{"n":1}\n'


async def test_who_has_kept_results_learns_whether_the_server_is_ready(configuration):
    async with opened(configuration) as field:
        ready = await field.client.get("/ready", headers={"authorization": f"Bearer {TOKENS['ada']}"})
        assert ready.json() == {"status": "ready", "databases": {"shop": "ready"}}


async def test_no_changed_address_gives_anything(configuration):
    chance = random.Random(17)
    async with opened(configuration) as field:
        urls = [await field.export(form) for form in ("csv", "jsonl")]
        queries = [{key: value for key, [value] in parse_qs(urlsplit(url).query).items()} for url in urls]
        for attempt in range(1000):
            query, other = dict(queries[attempt % 2]), queries[1 - attempt % 2]
            key = chance.choice(list(query))
            match attempt % 6:
                case 0:
                    place = chance.randrange(len(query[key]))
                    changed = chance.choice("0123456789abcdef".replace(query[key][place].lower(), ""))
                    query[key] = query[key][:place] + changed + query[key][place + 1 :]
                case 1:
                    query |= {"expires": str(int(query["expires"]) + chance.randrange(1, 10**6))}
                case 2:
                    del query[key]
                case 3:
                    changed_key = chance.choice(["file", "signature"])
                    query[changed_key] = other[changed_key]
                case 4:
                    query[key] = chance.choice(["", "../lock", "é", "0" * 64, query[key] + "0", query[key][:-1], "\0"])
                case _:
                    query = {name: f"{chance.getrandbits(128):032x}" for name in query}
            assert await field.status(f"/exports?{urlencode(query)}") == 404, query
        assert [await field.status(url) for url in urls] == [200, 200]


async def test_an_address_ends_in_time(configuration):
    async with opened(configuration) as field:
        url = await field.export()
        field.now += SECONDS - 1
        assert await field.status(url) == 200
        field.now += 1
        assert await field.status(url) == 404


async def test_an_address_ends_in_time_although_the_clock_is_set_back(configuration, monkeypatch):
    async with opened(configuration) as field:
        url = await field.export()
        steady = time.monotonic
        field.now -= 3600
        assert await field.status(url) == 200
        monkeypatch.setattr(time, "monotonic", lambda: steady() + SECONDS)
        assert await field.status(url) == 404
        field.now += 3600
        assert await field.status(url) == 404


@pytest.mark.parametrize("end", ["drop", "replace", "expire"])
async def test_an_address_ends_with_its_result(configuration, end, monkeypatch):
    async with opened(configuration) as field:
        url = await field.export()
        if end == "drop":
            await field.ask("drop_result", result="orders")
        elif end == "replace":
            await field.ask("execute_query", sql="SELECT 7 AS n", keep="orders")
            await field.export()
        else:
            monkeypatch.setattr("dragoman.kept.store.Store.is_expired", lambda store, kept: True)
        assert await field.status(url) == 404


async def test_an_address_is_its_owner_s_for_whoever_signs_in(configuration):
    async with opened(configuration) as field:
        url = await field.export()
        assert await field.status(url, authorization=f"Bearer {TOKENS['ada']}") == 200
        for other in (f"Bearer {TOKENS['eve']}", "Bearer nobody-has-this", "bearer x", "Bearer"):
            assert await field.status(url, authorization=other) == 404, other
        assert await field.status(url, authorization="Basic ZXZlOng=") == 200, "what a proxy asked for is no token"


async def test_an_address_ends_when_the_query_may_not_run_any_more(configuration):
    async with opened(configuration) as field:
        url = await field.export()
        other = replace(configuration.databases["shop"], name="other")
        await field.gateway.reload(replace(configuration, databases={"other": other}))
        assert await field.status(url) == 404
        await field.gateway.reload(configuration)
        assert await field.status(url) == 200


async def test_an_address_ends_with_the_token_that_its_owner_signed_in_with(configuration):
    ada, eve = configuration.server.tokens
    async with opened(configuration) as field:
        url = await field.export()
        assert await field.status(url) == 200
        for tokens, status in (
            ((eve,), 404),
            ((ada, eve), 200),
            ((replace(ada, hash=hash_token("another")), eve), 404),
            ((replace(ada, hash=hash_token("another")), ada, eve), 200),
            ((replace(ada, expires=datetime.fromtimestamp(field.now, UTC)), eve), 404),
            ((replace(ada, expires=datetime.fromtimestamp(field.now + 1, UTC)), eve), 200),
        ):
            await field.gateway.reload(replace(configuration, server=replace(configuration.server, tokens=tokens)))
            assert await field.status(url) == status


async def test_a_file_is_written_in_time_or_not_at_all(configuration):
    async with opened(configuration) as field:
        kept = await field.gateway.kept.find("orders", ADA)
        with pytest.raises(QueryTimeout, match="written in time"):
            await field.gateway.kept.exports.write(kept, "csv", ADA, -1.0)
        assert [path.suffix for path in configuration.results.dir.glob("process-*/*") if path.is_file()] in (
            [".rows", ""],
            ["", ".rows"],
        )


async def test_nothing_is_left_of_a_file_whose_caller_was_cancelled(configuration, monkeypatch):
    begun, cancelled, written = threading.Event(), threading.Event(), threading.Event()

    def export(path: Path, *_: object, check: object) -> tuple[str, ...]:
        begun.set()
        cancelled.wait(30)
        path.write_bytes(b"made at the end, as pictures are")
        written.set()
        return ()

    monkeypatch.setattr("dragoman.gateway.exporting.export", export)
    async with opened(configuration) as field:
        kept = await field.gateway.kept.find("orders", ADA)
        writing = asyncio.create_task(field.gateway.kept.exports.write(kept, "svg", ADA, 60))
        assert await asyncio.to_thread(begun.wait, 30)
        writing.cancel()
        await asyncio.wait({writing})
        assert writing.cancelled()
        cancelled.set()
        assert await asyncio.to_thread(written.wait, 30)
        # The thread has written; the event loop hears of it a moment later.
        async with asyncio.timeout(30):
            while [path for path in configuration.results.dir.glob("process-*/*") if ".svg" in path.name]:
                await asyncio.sleep(0)


async def test_a_pipe_in_the_place_of_a_file_is_not_opened(configuration):
    async with opened(configuration) as field:
        url = await field.export()
        [path] = (configuration.results.dir or Path()).rglob("*.csv")
        path.unlink()
        os.mkfifo(path)
        assert await field.status(url) == 404
        with pytest.raises(ResultNotFound):
            await field.gateway.kept.exports.read("orders", "csv", ADA)


LARGE = "SELECT hex(zeroblob(60000)) AS text"
"""A row of 120,000 characters."""


@pytest.mark.parametrize("removal", ["drop", "replace", "export"])
async def test_a_removed_file_counts_in_its_owners_share_while_it_is_read(configuration, removal):
    results = replace(configuration.results, max_bytes_per_caller=700_000)
    async with Gateway.open(replace(configuration, results=results)) as gateway:
        toolbox = Toolbox(gateway, profile="full")

        async def ask(tool: str, **arguments):
            return json.loads((await toolbox.call(tool, arguments, principal=ADA)).text)

        async def export():
            if removal != "export" or not read:
                await ask("execute_query", sql=LARGE, keep="large")
            return await ask("export_result", result="large")

        answer, read = dict[str, Any](), []
        for _ in range(5):
            answer = await export()
            if "error" in answer:
                break
            query = {key: value for key, [value] in parse_qs(urlsplit(answer["url"]).query).items()}
            read.append((await gateway.kept.exports.open(query, None))[1])
            if removal == "drop":
                await ask("drop_result", result="large")
        assert answer["error"]["code"] == "BUSY"
        assert [len(file.read(10**6, 0)) for file in read] == [120_008] * len(read)
        for file in read:
            file.close()
        assert "url" in await export()
