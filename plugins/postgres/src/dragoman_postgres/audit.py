"""The audit's records in a table of a Postgres database. Any number of processes may write to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from dragoman import AUDIT_COLUMNS, AuditStore, ConfigurationError, ConnectionFailed, Database, Sealing

from dragoman_postgres.connecting import Connector
from dragoman_postgres.driver import Connection
from dragoman_postgres.encodings import SAME
from dragoman_postgres.failures import translate_errors
from dragoman_postgres.spelling import quote

Work = Callable[[Connection], Awaitable[None]]
PATIENCE = 10.0
"""Seconds that a transaction may take, and connecting to the server."""
_CHUNK = 1000
_LOCK = 0x6472616F6761
"""The advisory lock that admits one writer at a time."""
_VALUES = {
    "text": "line::json->>'{}'",
    "integer": "coalesce((line::json->>'{}')::bigint, 0)",
    "number": "(line::json->>'{}')::float8",
    "list": "(line::json->'{}')::jsonb",
    "json": "(line::json->'{}')::jsonb",
}
_TYPES = {"text": "text", "integer": "bigint", "number": "float8", "list": "jsonb", "json": "jsonb"}


def _column(name: str, kind: str) -> str:
    value = _VALUES[kind].format(name)
    if name == "event":
        value = f"coalesce({value}, 'call')"
    return f'"{name}" {_TYPES[kind]} GENERATED ALWAYS AS ({value}) STORED'


_COLUMNS = ", ".join(_column(name, kind) for name, kind in AUDIT_COLUMNS.items())


class PostgresAudit(AuditStore):
    """The table in the configured schema, by default `public`. Connects when it is used."""

    def __init__(self, database: Database) -> None:
        self._name = database.name
        self._connector = Connector(database)
        self._table = f"{quote(database.schema or 'public')}.calls"
        self._connection: Connection | None = None

    async def open(self) -> None:
        """Create the table if it does not exist. If it exists, the role needs no right to create tables.

        Raises `ConfigurationError` for a database that cannot hold every record.
        """
        with translate_errors(self._name):
            connection = await self._connect()
            _check_encoding(await connection.fetchval("SHOW server_encoding"))
            if await connection.fetchval("SELECT to_regclass($1)", self._table) is None:
                await self._write(connection, self._create)

    async def append(self, seal: Sealing) -> None:
        """Add the records that `seal` returns, in one transaction."""

        async def add(connection: Connection) -> None:
            last = await connection.fetchrow(f"SELECT seq, line FROM {self._table} ORDER BY seq DESC LIMIT 1")
            rows = seal((last["seq"], last["line"]) if last else None)
            added = await connection.fetch(
                f"INSERT INTO {self._table} (seq, line) SELECT * FROM unnest($1::bigint[], $2::text[])"
                " RETURNING seq, line",
                *map(list, zip(*rows, strict=True)),
            )
            if [tuple(row) for row in added] != list(rows):  # a trigger of the table may skip or change them
                raise ConnectionFailed("The audit's table did not store the records as they were sent.")

        with translate_errors(self._name):
            await self._write(await self._connect(), add)

    async def lines(self) -> AsyncIterator[tuple[int, str]]:
        """Yield every record, ordered by number."""
        text = f"SELECT seq, line FROM {self._table} WHERE seq > $1 ORDER BY seq LIMIT {_CHUNK}"
        last = 0
        while True:
            with translate_errors(self._name):
                rows = await (await self._connect()).fetch(text, last)
            for row in rows:
                yield row["seq"], row["line"]
                last = row["seq"]
            if not rows:
                return

    async def aclose(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with translate_errors(self._name):
                await connection.close(timeout=PATIENCE)

    async def _create(self, connection: Connection) -> None:
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} (seq bigint PRIMARY KEY, line text NOT NULL, {_COLUMNS})"
        )

    async def _connect(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connector.connect(PATIENCE)
        return self._connection

    async def _write(self, connection: Connection, work: Work) -> None:
        """Do some work in a transaction of its own. A connection on which that fails is closed."""
        try:
            await connection.execute(f"BEGIN READ WRITE; SELECT pg_advisory_xact_lock({_LOCK})")
            await work(connection)
            await connection.execute("COMMIT")
        except BaseException:
            connection.abort()
            self._connection = None
            raise


def _check_encoding(encoding: str) -> None:
    # Anywhere else a character of one caller would fail its record, and all that are written together with it.
    if encoding != SAME:
        raise ConfigurationError(
            f"The audit's database is in {encoding}, which cannot hold every record.",
            suggestion="Name a database in UTF8: CREATE DATABASE audit ENCODING 'UTF8' TEMPLATE template0.",
        )
