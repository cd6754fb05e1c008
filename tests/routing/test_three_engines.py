"""Three engines behind one gateway: what docs/three-databases.md shows, in one session, in parallel, and one down."""

import asyncio
import json
import re
import runpy
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from dragoman import Gateway
from dragoman.tools import Toolbox
from dragoman_postgres.testing.server import Server as Postgres
from dragoman_postgres.testing.server import installations
from dragoman_trino.testing.fixtures import trino_server
from dragoman_trino.testing.server import free_port

__all__ = ["trino_server"]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "three-databases.md").read_text(encoding="utf-8")
SHOWN = re.compile(r"^`(\w+) (\{[^\n]*\})`\n\n```json\n(.*?)\n```", re.DOTALL | re.MULTILINE)
DESK = """
CREATE TYPE status AS ENUM ('open', 'waiting', 'closed');
CREATE TABLE agent (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE ticket (
  id bigint PRIMARY KEY,
  customer_id bigint NOT NULL,
  agent_id bigint REFERENCES agent (id),
  status status NOT NULL,
  opened timestamptz NOT NULL
);
COMMENT ON COLUMN ticket.customer_id IS 'customer.id of the shop';
INSERT INTO agent VALUES (1, 'Nia'), (2, 'Tom');
INSERT INTO ticket VALUES
  (1, 1, 1, 'open', '2026-11-01 09:00+00'),
  (2, 1, 2, 'closed', '2026-11-02 10:30+00'),
  (3, 3, NULL, 'open', '2026-11-03 08:15+00')
"""
LAKE = (
    "CREATE TABLE visitors (id bigint NOT NULL, customer_id bigint, email varchar(80))",
    "CREATE TABLE visits (visitor bigint NOT NULL, at timestamp(3) NOT NULL, page varchar(200), tags array(varchar))",
    "COMMENT ON TABLE visits IS 'Page views, one row each'",
    "INSERT INTO visitors VALUES (7, 1, 'ada@example.com'), (8, NULL, 'bo@example.com')",
    "INSERT INTO visits VALUES (7, TIMESTAMP '2026-11-01 08:59:59.123', '/', ARRAY['new']),"
    " (7, TIMESTAMP '2026-11-01 09:00:02.000', '/help', NULL), (8, TIMESTAMP '2026-11-02 12:00:00.500', '/', ARRAY[])",
)


@pytest.fixture(scope="module")
async def lake(trino_server, anyio_backend):
    """The URL of the lake: a catalog of that name, with one schema."""
    await trino_server.run("DROP CATALOG IF EXISTS lake", "CREATE CATALOG lake USING memory", "CREATE SCHEMA lake.web")
    await trino_server.run(*LAKE, schema="lake.web")
    yield trino_server.url("lake", "web")
    await trino_server.run("DROP CATALOG lake")


@pytest.fixture(scope="module")
async def desk(anyio_backend):
    """A server of our own, since it is stopped, and the desk's URL."""
    if not installations():
        pytest.skip("no PostgreSQL server: install dragoman-postgres[embedded]")
    server = Postgres.start()
    await server.create(DESK, name="desk")
    yield server, server.address("desk")
    server.stop()


@pytest.fixture
def opened(tmp_path, monkeypatch, desk, lake):
    """Open the page's configuration; `lake` may be somewhere else."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DOCS / "examples" / "make_shop.py"))
    config = tmp_path / "dragoman.toml"
    config.write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0], encoding="utf-8")

    @asynccontextmanager
    async def open_page(url=lake):
        monkeypatch.setenv("DESK_URL", desk[1])
        monkeypatch.setenv("LAKE_URL", url)
        async with Gateway.open(config) as gateway:
            yield Toolbox(gateway)

    return open_page


async def ask(toolbox, tool, **arguments):
    answer = await toolbox.call(tool, arguments)
    return json.loads(answer.text)


async def test_the_page_shows_what_is_answered(opened):
    async with opened() as toolbox:
        for tool, arguments, shown in SHOWN.findall(PAGE):
            assert await ask(toolbox, tool, **json.loads(arguments)) == json.loads(shown), (tool, arguments)
    assert len(SHOWN.findall(PAGE)) == 7


async def test_a_question_in_another_dialect_is_translated(opened):
    async with opened() as toolbox:
        sql = "SELECT email FROM visitors WHERE email ILIKE 'ADA%'"
        answer = await ask(toolbox, "execute_query", database="lake", sql=sql, from_dialect="postgres")
    assert answer["rows"] == [["ada@example.com"]]
    assert "ILIKE" not in answer["sql"]


async def test_three_engines_are_listed_as_ready(opened):
    async with opened() as toolbox:
        # A catalog that takes longer than a moment to load is answered without; here all are to be seen.
        await asyncio.gather(*(ask(toolbox, "list_tables", database=name) for name in ("shop", "desk", "lake")))
        told = {one["name"]: one for one in (await ask(toolbox, "list_databases"))["databases"]}
    assert {name: (one["dialect"], one["status"], one["schemas"]) for name, one in told.items()} == {
        "shop": ("sqlite", "ready", ["main"]),
        "desk": ("postgres", "ready", ["public"]),
        "lake": ("trino", "ready", ["lake.web"]),
    }
    assert all(one["version"][0].isdigit() for one in told.values())


async def test_they_are_asked_at_once_and_each_answers_its_own(opened):
    async with opened() as toolbox:
        asked = [(name, number) for number in range(20) for name in ("shop", "desk", "lake")]
        answers = await asyncio.gather(
            *(ask(toolbox, "execute_query", database=name, sql=f"SELECT '{name}', {number}") for name, number in asked)
        )
        assert [tuple(answer["rows"][0]) for answer in answers] == asked
        counts = await asyncio.gather(
            ask(toolbox, "execute_query", database="shop", sql="SELECT count(*) FROM customer"),
            ask(toolbox, "execute_query", database="desk", sql="SELECT count(*) FROM ticket"),
            ask(toolbox, "execute_query", database="lake", sql="SELECT count(*) FROM visits"),
            ask(toolbox, "list_tables", database="lake"),
            ask(toolbox, "search_catalog", query="email"),
            ask(toolbox, "describe_table", database="desk", table_name="ticket"),
        )
    assert [count["rows"] for count in counts[:3]] == [[[3]], [[3]], [[3]]]
    assert counts[3]["tables"] == {"lake.web": ["visitors", "visits"]}


async def test_a_slow_query_of_one_holds_up_no_other(opened):
    async with opened() as toolbox:
        for name in ("shop", "desk", "lake"):
            await ask(toolbox, "execute_query", database=name, sql="SELECT 1")
        waiting = asyncio.create_task(ask(toolbox, "execute_query", database="desk", sql="SELECT pg_sleep(60)"))
        bomb = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        busy = asyncio.create_task(ask(toolbox, "execute_query", database="shop", sql=bomb, timeout_ms=20_000))
        answer = await ask(toolbox, "execute_query", database="lake", sql="SELECT 1")
        assert answer["rows"] == [[1]]
        assert not busy.done()
        for task in (waiting, busy):
            task.cancel()
        await asyncio.gather(waiting, busy, return_exceptions=True)


async def test_one_that_is_down_is_said_to_be_and_the_others_answer_until_it_is_back(opened, desk):
    server, _ = desk
    async with opened() as toolbox:
        assert (await ask(toolbox, "execute_query", database="desk", sql="SELECT 1"))["rows"] == [[1]]
        server.halt()
        try:
            failed = (await ask(toolbox, "execute_query", database="desk", sql="SELECT 1"))["error"]
            assert failed["code"] == "CONNECTION_ERROR"
            assert (await ask(toolbox, "execute_query", database="shop", sql="SELECT 1"))["rows"] == [[1]]
            assert (await ask(toolbox, "execute_query", database="lake", sql="SELECT 1"))["rows"] == [[1]]
            states = {one["name"]: one["status"] for one in (await ask(toolbox, "list_databases"))["databases"]}
            assert states == {"shop": "ready", "desk": "unreachable", "lake": "ready"}
        finally:
            server.resume()
        assert (await ask(toolbox, "execute_query", database="desk", sql="SELECT 1"))["rows"] == [[1]]


async def test_a_lake_that_is_down_from_the_start_keeps_nobody_from_the_others(opened):
    async with opened(f"trino://agents@127.0.0.1:{free_port()}/lake/web") as toolbox:
        found = await ask(toolbox, "search_catalog", query="customer")
        assert {one["database"] for one in found["results"]} == {"shop", "desk"}
        assert [notice.startswith("lake was not searched") for notice in found["notices"]] == [True]
        failed = (await ask(toolbox, "describe_table", database="lake", table_name="visits"))["error"]
        assert failed["code"] == "CONNECTION_ERROR"
        assert "127.0.0.1" not in json.dumps([found, failed])
