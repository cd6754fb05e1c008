"""A server that runs answers as one that has just started, whatever the database's owner changes meanwhile."""

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import apsw
import asyncpg
import duckdb
import pytest
from dragoman import Database, Gateway, QueryError, TableNotFound
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.gateway import queries
from dragoman.model import Principal
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server, installations

ANN = Principal("ann", subject="ann")
MARK = "zyxmark"
"""Stands in what is hidden, and nowhere else."""
VIEWS = ("va", "vb", "vc")
NAMES = ("u", "t", "xt", *VIEWS)
Run = Callable[..., Awaitable[None]]


@dataclass(frozen=True)
class Flavour:
    """What differs between engines. `replace`: replaces a view `{name}` by a `{query}`."""

    schema: str
    text: str
    replace: tuple[str, ...]
    drop: str = "DROP {kind} {name}"
    generated: str | None = None
    keyed: str = " PRIMARY KEY"


SQLITE = Flavour(
    schema="main",
    text="TEXT",
    replace=("DROP VIEW IF EXISTS {name}", "CREATE VIEW {name} AS {query}"),
    generated="ALTER TABLE u ADD COLUMN g TEXT GENERATED ALWAYS AS ({made}) VIRTUAL",
)
POSTGRES = Flavour(
    schema="public",
    text="text",
    replace=("CREATE OR REPLACE VIEW {name} AS {query}",),
    drop="DROP {kind} {name} CASCADE",
    generated="ALTER TABLE u ADD COLUMN g text GENERATED ALWAYS AS ({made}) STORED",
)
DUCKDB = Flavour(schema="main", text="VARCHAR", replace=("CREATE OR REPLACE VIEW {name} AS {query}",))
TRINO = Flavour(schema="{schema}", text="varchar", replace=("CREATE OR REPLACE VIEW {name} AS {query}",), keyed="")


class Owner:
    """Changes a schema at random. `hid` and `u.secret` are hidden by the role, and stay."""

    def __init__(self, flavour: Flavour, seed: int) -> None:
        self._flavour = flavour
        self._random = Random(seed)
        self._xt = "TABLE"
        self._made = False

    def begin(self) -> Iterator[str]:
        text, keyed = self._flavour.text, self._flavour.keyed
        yield f"CREATE TABLE u (id INTEGER{keyed}, pub {text}, secret {text})"
        yield f"INSERT INTO u VALUES (1, 'pub', '{MARK}'), (2, 'more', '{MARK}')"
        for name, told in (("t", "plain"), ("xt", "table"), ("hid", MARK)):
            yield f"CREATE TABLE {name} (id INTEGER{keyed}, pub {text})"
            yield f"INSERT INTO {name} VALUES (1, '{told}'), (3, '{told}')"
        for name in VIEWS:
            yield from self._replace(name, "SELECT id, pub FROM t")

    def change(self) -> Iterator[str]:
        kinds = [self._change_view, self._change_view, self._turn]
        yield from self._random.choice([*kinds, self._generate] if self._flavour.generated else kinds)()

    def _replace(self, name: str, query: str) -> Iterator[str]:
        for statement in self._flavour.replace:
            yield statement.format(name=name, query=query)

    def _change_view(self) -> Iterator[str]:
        name = self._random.choice(VIEWS)
        yield from self._replace(name, self._query(["u", "t", "t", "xt", "hid", *VIEWS[: VIEWS.index(name)]]))

    def _turn(self) -> Iterator[str]:
        """Make a table a view of the same name, or the other way round."""
        yield self._flavour.drop.format(kind=self._xt, name="xt")
        self._xt = "VIEW" if self._xt == "TABLE" else "TABLE"
        columns = f"(id INTEGER{self._flavour.keyed}, pub {self._flavour.text})"
        yield f"CREATE VIEW xt AS {self._query(['t', 'hid'])}" if self._xt == "VIEW" else f"CREATE TABLE xt {columns}"
        for name in VIEWS:  # which may have gone with it
            if "CASCADE" in self._flavour.drop:
                yield from self._replace(name, self._query(["u", "t", "t", "xt", "hid"]))

    def _generate(self) -> Iterator[str]:
        """Add a column that is made of a hidden or of a visible one, or drop it."""
        if self._made:
            yield "ALTER TABLE u DROP COLUMN g"
        else:
            made = self._random.choice(("secret || '!'", "pub || '!'"))
            yield str(self._flavour.generated).format(made=made)
        self._made = not self._made

    def _query(self, sources: list[str]) -> str:
        one, other = self._random.choice(sources), self._random.choice(sources)
        return self._random.choice(
            (
                f"SELECT id, pub FROM {one}",
                f"SELECT id, pub FROM {one} WHERE id > 0",
                "SELECT id, secret AS pub FROM u",
                f"SELECT id, pub FROM {one} UNION ALL SELECT id, pub FROM {other}",
                f"SELECT a.id, b.pub FROM {one} a JOIN {other} b ON a.id = b.id",
                f"SELECT id, (SELECT max(pub) FROM {other}) AS pub FROM {one}",
            )
        )


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "list_tables", {}
    yield "describe_table", {"table_names": ["u", "xt", "va"]}
    for name in (*NAMES, "hid"):
        yield "execute_query", {"sql": f"SELECT * FROM {name} ORDER BY id"}
        yield "get_sample_rows", {"table_name": name}
    for name in VIEWS:
        yield "execute_query", {"sql": f"SELECT pub FROM {name} WHERE id = 1 ORDER BY 1"}
    yield "execute_query", {"sql": "SELECT a.pub, b.pub FROM va a JOIN vb b ON a.id = b.id ORDER BY 1, 2"}


async def answers(toolbox: Toolbox, asked: Iterable[tuple[str, dict[str, Any]]] = ()) -> dict[str, Any]:
    """What every call is answered, without what differs from run to run."""
    told = {}
    for tool, arguments in asked or calls():
        answer = json.loads((await toolbox.call(tool, arguments, principal=ANN)).text)
        answer.pop("elapsed_ms", None)
        told[f"{tool} {arguments}"] = answer
    return told


async def stream(gateway: Gateway, sql: str) -> None:
    async with gateway.stream("shop", sql, principal=ANN) as rows:
        assert [batch async for batch in rows.batches] == []


WAITING: dict[str, Callable[[Gateway], Any]] = {
    "query": lambda gateway: gateway.query("shop", "SELECT * FROM va", principal=ANN),
    "sample": lambda gateway: gateway.sample("shop", "va", principal=ANN),
    "stream": lambda gateway: stream(gateway, "SELECT * FROM va"),
    "plan": lambda gateway: gateway.explain("shop", "SELECT * FROM va", principal=ANN),
    "translation": lambda gateway: gateway.query(
        "shop", "SELECT id::text FROM va FETCH FIRST 3 ROWS ONLY", from_dialect="postgres", principal=ANN
    ),
}
"""Calls that read a view."""


def configure(database: Database, schema: str) -> Configuration:
    grant = Grant(
        database="shop",
        tables=(f"{schema}.*",),
        deny=(f"{schema}.hid",),
        deny_columns=("secret",),
        key="roles.r.grants.0",
    )
    role = Role(name="r", principals=frozenset({"*"}), grants=(grant,))
    return Configuration(databases={"shop": database}, roles={"r": role})


async def check(flavour: Flavour, configuration: Configuration, run: Run, seeds: range, steps: int) -> None:
    """Change a schema step by step, and compare a server that runs on with one that begins after each step."""
    hidden, shown = 0, 0
    for seed in seeds:
        owner = Owner(flavour, seed)
        await run(*owner.begin())
        async with Gateway.open(configuration) as gateway:
            running = Toolbox(gateway)
            await answers(running)
            for step in range(steps):
                await run(*owner.change())
                async with Gateway.open(configuration) as started:
                    expected = await answers(Toolbox(started))
                told = await answers(running)
                assert MARK not in json.dumps(expected), (seed, step)
                assert told == expected, (seed, step)
                hidden += sum("error" in answer for answer in expected.values())
                shown += sum("error" not in answer for asked, answer in expected.items() if "pub FROM v" in asked)
    assert hidden > steps * len(seeds) * 2  # `hid` alone makes two: some of the views were hidden, too
    assert shown > 0


async def check_on_sqlite(folder: Path, seeds: range, steps: int) -> None:
    file = folder / "shop.db"

    async def run(*statements: str) -> None:
        if any(each.startswith("CREATE TABLE u") for each in statements):
            file.unlink(missing_ok=True)
        with closing(apsw.Connection(str(file))) as connection:
            for statement in statements:
                connection.execute(statement)

    database = Database(name="shop", dialect="sqlite", database="shop.db", folder=folder)
    await check(SQLITE, configure(database, "main"), run, seeds, steps)


@pytest.mark.usefixtures("at_once")
async def test_a_sqlite_file_that_is_changed_is_answered_as_it_is(tmp_path: Path) -> None:
    await check_on_sqlite(tmp_path, range(2), 6)


@pytest.mark.usefixtures("at_once")
async def test_a_view_that_is_replaced_between_two_looks_of_one_call_is_not_read(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "shop.db"))) as connection:
        for statement in Owner(SQLITE, 0).begin():
            connection.execute(statement)
        database = Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)
        async with Gateway.open(configure(database, "main")) as gateway:
            opened = gateway.for_principal(ANN).database("shop")
            assert opened.confiner is not None
            judged = await opened.judge.judge("SELECT * FROM va", "execute_query", ANN)
            assert await opened.confiner.confine(judged) is None
            connection.execute("DROP VIEW va")
            connection.execute("CREATE VIEW va AS SELECT id, pub FROM hid")
            with pytest.raises(TableNotFound):
                await opened.confiner.confine(judged)


async def check_on_duckdb(folder: Path, seeds: range, steps: int) -> None:
    """The file is replaced by a changed one, since nobody else may write it while it is open."""
    file, changed = folder / "shop.duckdb", folder / "changed.duckdb"

    async def run(*statements: str) -> None:
        if any(each.startswith("CREATE TABLE u") for each in statements):
            file.unlink(missing_ok=True)
        else:
            shutil.copyfile(file, changed)
        with duckdb.connect(changed) as connection:
            for statement in statements:
                connection.execute(statement)
        changed.replace(file)

    database = Database(name="shop", dialect="duckdb", database=file.name, folder=folder)
    await check(DUCKDB, configure(database, "main"), run, seeds, steps)


class Files:
    """Changes the files of a lake at random: their columns, depth and number, in place or by another file."""

    WHERE = ("a.parquet", "b/x.parquet", "b/y.parquet", "c/day=1/x.parquet", "c/day=2/x.parquet", "d.csv")
    COLUMNS = ("id", "pub", "secret", "other", "day")

    def __init__(self, lake: Path, seed: int) -> None:
        self._lake, self._random = lake, Random(seed)

    def begin(self) -> None:
        for name in self.WHERE:
            self._write(name, ("id", "pub"))
        self._write("hid.parquet", ("id", "pub", "secret"))
        self._write("kept.parquet", ("id", "secret"))

    def change(self) -> None:
        name = self._random.choice(self.WHERE)
        path = self._lake / name
        if path.exists() and self._random.random() < 0.2:
            path.unlink()
        else:
            self._write(name, self._random.sample(self.COLUMNS, self._random.randint(1, 3)))

    def _write(self, name: str, columns: Sequence[str]) -> None:
        """Write a file of two rows; half of the time over the one that is there, at the time that it had."""
        path, fresh = self._lake / name, self._lake.parent / "fresh"
        path.parent.mkdir(parents=True, exist_ok=True)
        hides = name.startswith("hid")
        values = ", ".join(f"'{MARK if hides or each == 'secret' else each}' AS {each}" for each in columns)
        form = "(FORMAT parquet)" if path.suffix == ".parquet" else "(FORMAT csv)"
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT {values} FROM range(2)) TO '{fresh}' {form}")
        if path.exists() and self._random.random() < 0.5:
            status = path.stat()
            path.write_bytes(fresh.read_bytes())
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            fresh.replace(path)


def ask_lake() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "list_tables", {"detail": "full"}
    for name in ("a", "b", "c", "d", "hid"):
        yield "describe_table", {"table_name": name}
        yield "get_sample_rows", {"table_name": name}
        for what in ("*", "id", "pub", "secret", "count(*)", name, "COLUMNS('.*')"):
            yield "execute_query", {"sql": f"SELECT {what} FROM {name}"}


async def check_lake(folder: Path, seeds: range, steps: int) -> None:
    shown = 0
    for seed in seeds:
        lake = folder / f"lake{seed}"
        files = Files(lake, seed)
        files.begin()
        configuration = configure(Database(name="shop", dialect="duckdb", database=lake.name, folder=folder), "main")
        async with Gateway.open(configuration) as gateway:
            running = Toolbox(gateway)
            await answers(running, ask_lake())
            for step in range(steps):
                files.change()
                async with Gateway.open(configuration) as started:
                    expected = await answers(Toolbox(started), ask_lake())
                told = await answers(running, ask_lake())
                assert MARK not in json.dumps(expected), (seed, step)
                assert told == expected, (seed, step)
                shown += sum("rows" in answer for answer in expected.values())
    assert shown > steps * len(seeds)


@pytest.mark.full
@pytest.mark.usefixtures("at_once")
async def test_a_duckdb_file_that_is_replaced_is_answered_as_it_is(tmp_path: Path) -> None:
    await check_on_duckdb(tmp_path, range(1), 4)


@pytest.mark.usefixtures("at_once")
async def test_a_lake_whose_files_change_is_answered_as_it_is(tmp_path: Path) -> None:
    await check_lake(tmp_path, range(1), 3)


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.usefixtures("at_once")
async def test_duckdb_files_that_change_often_are_answered_as_they_are(tmp_path: Path) -> None:
    await check_on_duckdb(tmp_path, range(1, 9), 12)
    await check_lake(tmp_path, range(1, 21), 12)


REPLACED = "DROP VIEW va; CREATE VIEW va AS SELECT id, pub FROM hid"


@asynccontextmanager
async def opened_alone(folder: Path) -> AsyncIterator[tuple[apsw.Connection, Gateway]]:
    """Yield its owner's connection to a SQLite file, and a gateway that opens it once."""
    with closing(apsw.Connection(str(folder / "shop.db"))) as connection:
        for statement in Owner(SQLITE, 0).begin():
            connection.execute(statement)
        database = Database(name="shop", dialect="sqlite", database="shop.db", folder=folder, pool_size=1)
        async with Gateway.open(configure(database, "main")) as gateway:
            yield connection, gateway


@pytest.mark.parametrize("call", WAITING)
@pytest.mark.usefixtures("at_once")
async def test_a_statement_that_waited_for_its_turn_is_judged_again(
    tmp_path: Path, monkeypatch: Any, call: str
) -> None:
    monkeypatch.setattr(queries, "CONFIRMED", 0.0)
    async with opened_alone(tmp_path) as (connection, gateway):
        slots = gateway.database("shop").limiter
        await slots.acquire("bob")
        waiting = asyncio.create_task(WAITING[call](gateway))
        while not slots.turns.waiting:
            await asyncio.sleep(0)
        connection.execute(REPLACED)
        slots.turns.give_back("bob")
        with pytest.raises(TableNotFound):
            await waiting


@pytest.mark.usefixtures("at_once")
async def test_a_statement_that_waited_for_its_turn_is_recorded_as_it_was_sent(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """A query hash leads from the answer and the audit to the text that the caller wrote, comments and all."""
    monkeypatch.setattr(queries, "CONFIRMED", 0.0)
    sent = "SELECT id FROM va -- all of them\n;"
    async with opened_alone(tmp_path) as (_, gateway):
        async with gateway.call("execute_query", ANN, "shop") as record:
            answer = await gateway.query("shop", sent, principal=ANN)
        assert answer.query_hash == record.hash == hashlib.sha256(sent.encode()).hexdigest()[:16]
        assert len(record.relations) == 1


@pytest.mark.parametrize("call", ["query", "sample", "stream"])
@pytest.mark.usefixtures("at_once")
async def test_a_statement_that_waited_for_abandoned_work_is_judged_again(
    tmp_path: Path, monkeypatch: Any, call: str
) -> None:
    monkeypatch.setattr(queries, "CONFIRMED", 0.0)
    async with opened_alone(tmp_path) as (connection, gateway):
        await gateway.query("shop", "SELECT * FROM va", principal=ANN)
        abandoned = asyncio.Event()
        slots = vars(gateway.database("shop")._own_executor)["_pool"]._slots
        await slots.acquire()
        waiting = asyncio.create_task(WAITING[call](gateway))
        while not slots._waiters:
            await asyncio.sleep(0)
        connection.execute(REPLACED)
        slots.release_after([asyncio.ensure_future(abandoned.wait())])
        abandoned.set()
        with pytest.raises(TableNotFound):
            await waiting


BEGUN = """
CREATE TABLE t (id int, pub text); INSERT INTO t VALUES (1, 'one');
CREATE TABLE hid (id int, pub text); INSERT INTO hid VALUES (1, 'zyxmark'); CREATE TABLE u (id int, secret text);
CREATE VIEW va AS SELECT id, pub FROM t;
"""


CHANGES = {
    "a view over a denied table": "CREATE OR REPLACE VIEW va AS SELECT id, pub FROM hid",
    "a view whose error quotes a value": "CREATE OR REPLACE VIEW va AS SELECT id, (pub::numeric)::text AS pub FROM hid",
}
"""What the owner of a database does in a transaction that others wait for."""


@asynccontextmanager
async def waiting_for_its_owner(
    change: str, ask: Callable[[Gateway], Any], *, warm: str, max_cost: float | None = None
) -> AsyncIterator[asyncio.Task[Any]]:
    """Yield a call that waited on Postgres for a transaction of the database's owner, which has just been committed."""
    if not installations():
        pytest.skip("no PostgreSQL server can be started here")
    server = Server.start()
    try:
        database = server.configure(await server.create(BEGUN), name="shop")
        before = configure(database, "public")
        role = replace(before.roles["r"], max_cost=max_cost)
        owner, other = [await asyncpg.connect(server.address(database.database or "")) for _ in range(2)]
        async with Gateway.open(replace(before, roles={"r": role})) as gateway:
            await gateway.query("shop", warm, principal=ANN)
            transaction = owner.transaction()
            await transaction.start()
            await owner.execute(change)
            waiting = asyncio.create_task(ask(gateway))
            while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
                assert not waiting.done()
            await transaction.commit()
            yield waiting
        for each in (owner, other):
            await each.close()
    finally:
        server.stop()


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("max_cost", [None, 1e9], ids=["run", "estimated"])
@pytest.mark.parametrize("call", ["query", "stream", "sample"])
@pytest.mark.usefixtures("at_once")
async def test_a_statement_that_waited_in_the_database_is_judged_again(
    monkeypatch: Any, call: str, max_cost: float | None, changes: str
) -> None:
    """It, or the estimate of its cost, waits for the owner's transaction, after which the view reads a denied table."""
    monkeypatch.setattr(queries, "CONFIRMED", 0.0)
    change, ask = CHANGES[changes], WAITING[call]
    async with waiting_for_its_owner(change, ask, warm="SELECT * FROM va", max_cost=max_cost) as waiting:
        with pytest.raises(TableNotFound) as told:
            await waiting
        assert "zyxmark" not in str(vars(told.value))


@pytest.mark.parametrize("call", ["query", "stream"])
@pytest.mark.usefixtures("at_once")
async def test_a_column_that_came_while_a_statement_waited_is_not_shown(monkeypatch: Any, call: str) -> None:
    monkeypatch.setattr(queries, "CONFIRMED", 0.0)
    change, sql = "ALTER TABLE t ADD COLUMN secret text DEFAULT 'zyxmark'", "SELECT * FROM t"

    def ask(gateway: Gateway) -> Any:
        return stream(gateway, sql) if call == "stream" else gateway.query("shop", sql, principal=ANN)

    async with waiting_for_its_owner(change, ask, warm=sql) as waiting:
        with pytest.raises(QueryError, match="was changed while it ran"):
            await waiting


@pytest.mark.full
@pytest.mark.usefixtures("at_once")
async def test_a_sqlite_file_that_is_changed_often_is_answered_as_it_is(tmp_path: Path) -> None:
    await check_on_sqlite(tmp_path, range(2, 6), 8)


@pytest.mark.full
@pytest.mark.usefixtures("at_once")
async def test_a_postgres_database_that_is_changed_is_answered_as_it_is() -> None:
    server = Server.start()
    try:
        database = server.configure(await server.create("SELECT"), name="shop")
        connection = await asyncpg.connect(
            host=database.host, port=database.port, user=database.user, database=database.database
        )

        async def run(*statements: str) -> None:
            if any(each.startswith("CREATE TABLE u") for each in statements):
                await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
            for statement in statements:
                await connection.execute(statement)

        await check(POSTGRES, configure(database, "public"), run, range(2), 6)
        await connection.close()
    finally:
        server.stop()


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
@pytest.mark.usefixtures("at_once")
async def test_a_schema_of_trino_that_is_changed_is_answered_as_it_is(trino_server: Any) -> None:
    async with trino_server.schema() as schema:

        async def run(*statements: str) -> None:
            await trino_server.run(*statements, schema=schema)

        database = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
        await check(TRINO, configure(database, schema), run, range(2), 6)
