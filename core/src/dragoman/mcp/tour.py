"""A short tour of a running server, taken by a real MCP client over stdio: what an agent sees, call by call.

Nothing here knows the databases: tables, keys and queries are chosen from what the server tells, as an agent would.
Names arrive written as in SQL, so they can stand in a query as they are.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.errors import DragomanError, InternalError

_NAMING = ("name", "title", "label")

# Words of Postgres that say the same as `count(*)` and `LIMIT 5`.
_ELSEWHERE = ("count(*)::integer", "FETCH FIRST 5 ROWS ONLY")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the tour: why it was made, what was asked, what came back, in how many milliseconds."""

    title: str
    tool: str
    arguments: dict[str, Any]
    answer: dict[str, Any]
    is_error: bool
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class _Link:
    """A foreign key: table.column points to target.target_column; the target's `label` tells its rows apart."""

    table: str
    column: str
    target: str
    target_column: str
    label: str


@dataclass(slots=True)
class _Schema:
    """What the client has learned of one database."""

    database: str
    dialect: str
    links: list[_Link] = field(default_factory=list[_Link])


async def take_tour(arguments: Sequence[str]) -> AsyncGenerator[Step, None]:
    """Start `python -m dragoman` with these arguments, connect a client over stdio and yield what it sees.

    Raises `InternalError` when a call ends otherwise than it must: an error, or a write that was let through.
    """
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    server = StdioServerParameters(command=sys.executable, args=["-m", "dragoman", *arguments])
    try:
        async with Client(server) as client:
            async for step in _Guide(client).steps():
                yield step
    except ExceptionGroup as group:
        raise _cause(group) from None


def _cause(group: ExceptionGroup) -> DragomanError:
    """Return what went wrong, out of the client's task groups."""
    leaf: Exception = group
    while isinstance(leaf, ExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf if isinstance(leaf, DragomanError) else InternalError(f"The client lost the server: {leaf}")


class _Guide:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def steps(self) -> AsyncGenerator[Step, None]:
        """Yield the steps in their order."""
        databases = await self._call("Which databases are there?", "list_databases")
        yield databases
        listed = databases.answer["databases"]
        schemas = [await self._learn(each["name"], each["dialect"]) for each in listed]
        main = max(schemas, key=lambda schema: len(schema.links))
        link = _central(main)
        yield await self._call("What is in a table?", "describe_table", database=main.database, table_name=link.table)
        start, end = _far_apart(main)
        yield await self._call(
            "How do two tables join?", "find_join_path", database=main.database, from_table=start, to_table=end
        )
        yield await self._call("A question", "execute_query", database=main.database, sql=_question(link))
        yield await self._call(
            "The same question in another SQL: the server translates it, and says so",
            "execute_query",
            database=main.database,
            sql=_question(link, *_ELSEWHERE),
            from_dialect="postgres",
        )
        yield await self._call(
            "A write is refused",
            "execute_query",
            fails=True,
            database=main.database,
            sql=f"DELETE FROM {link.table}",
        )
        yield await self._call(
            "A huge result is cut, exactly, and the answer says how to get the rest",
            "execute_query",
            database=main.database,
            sql=f"SELECT a.* FROM {link.table} AS a CROSS JOIN {link.table} AS b",
            limit=3,
        )
        other = next((schema for schema in schemas if schema is not main), None)
        if other:
            yield await self._call("Where else is it? All databases at once", "search_catalog", query=link.target)

    async def _call(self, title: str, tool: str, *, fails: bool = False, **arguments: Any) -> Step:
        started = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        elapsed = (time.perf_counter() - started) * 1000
        answer: dict[str, Any] = json.loads(result.content[0].text)
        if bool(result.is_error) != fails:
            raise InternalError(f"The tour's call of {tool} ended unexpectedly: {json.dumps(answer)[:500]}")
        return Step(title, tool, arguments, answer, fails, elapsed)

    async def _learn(self, database: str, dialect: str) -> _Schema:
        listed = await self._call("", "list_tables", database=database)
        names = [name for tables in listed.answer["tables"].values() for name in tables]
        described = await self._call("", "describe_table", database=database, table_name=names, detail="full")
        tables: dict[str, dict[str, Any]] = {table["name"]: table for table in described.answer["tables"]}
        schema = _Schema(database, dialect)
        for table in tables.values():
            schema.links += _links(table, tables)
        return schema


def _links(table: dict[str, Any], tables: dict[str, dict[str, Any]]) -> list[_Link]:
    found: list[_Link] = []
    for column in table["columns"]:
        key = column.get("foreign_key")
        if key and key["referenced_table"] in tables and key["referenced_table"] != table["name"]:
            target = tables[key["referenced_table"]]
            found.append(_Link(table["name"], column["name"], target["name"], key["referenced_column"], _label(target)))
    return found


def _label(table: dict[str, Any]) -> str:
    """Return the column that tells people which row it is: a name or title, else the first."""
    names = [str(column["name"]) for column in table["columns"]]
    return next((name for word in _NAMING for name in names if word in name.lower()), names[0])


def _central(schema: _Schema) -> _Link:
    """Return a link of the table with most of them, to rows that have names if possible."""
    tables = [link.table for link in schema.links]

    def rank(link: _Link) -> tuple[bool, int]:
        return any(word in link.label.lower() for word in _NAMING), tables.count(link.table)

    return max(schema.links, key=rank)


def _far_apart(schema: _Schema) -> tuple[str, str]:
    """Return two tables that need a third one between them, if there are any."""
    for first in schema.links:
        for second in schema.links:
            if second.table == first.target and second.target != first.table:
                return first.table, second.target
    return schema.links[0].table, schema.links[0].target


def _question(link: _Link, count: str = "count(*)", first: str = "LIMIT 5") -> str:
    return (
        f"SELECT p.{link.label} AS {link.target}, {count} AS {link.table}\n"
        f"FROM {link.table} AS c JOIN {link.target} AS p ON p.{link.target_column} = c.{link.column}\n"
        f"GROUP BY 1 ORDER BY 2 DESC, 1 {first}"
    )
