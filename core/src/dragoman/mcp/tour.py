"""A short tour of a running server by a real MCP client over stdio: what an agent sees, call by call.

Nothing here knows the databases. Tables, keys and queries are chosen from the server's answers, as an agent would.
Names are written as in SQL, so they can be used in a query unchanged.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dragoman.errors import DragomanError, InternalError

_REFUSAL = "A write is refused"
_NAMING = ("name", "title", "label")

# Words of Postgres that mean the same as `count(*)` and `LIMIT 5`.
_ELSEWHERE = ("count(*)::integer", "FETCH FIRST 5 ROWS ONLY")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the tour: its purpose, its arguments, its answer, and its duration in milliseconds."""

    title: str
    tool: str
    arguments: dict[str, Any]
    answer: dict[str, Any]
    is_error: bool
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class _Link:
    """A foreign key of one column to target.target_column. The target's `label` distinguishes its rows."""

    table: str
    column: str
    target: str
    target_column: str
    label: str


async def take_tour(arguments: Sequence[str], folder: Path, environ: Mapping[str, str]) -> AsyncGenerator[Step, None]:
    """Start `python -m dragoman` with these arguments there, connect a client over stdio and yield what it sees.

    Raises `InternalError` if a call ends unexpectedly: an error, or a write that was allowed.
    """
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters

    program = ["-m", "dragoman", *arguments]
    server = StdioServerParameters(command=sys.executable, args=program, cwd=folder, env=dict(environ))
    try:
        async with Client(server) as client:
            async for step in _Guide(client).steps():
                yield step
    except ExceptionGroup as group:
        raise _cause(group) from None


def _cause(error: Exception) -> DragomanError:
    """Return the original error, out of the client's task groups."""
    if isinstance(error, ExceptionGroup):
        return _cause(cast("ExceptionGroup[Exception]", error).exceptions[0])
    return error if isinstance(error, DragomanError) else InternalError(f"The client lost the server: {error}")


class _Guide:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def steps(self) -> AsyncGenerator[Step, None]:
        """Yield the steps in their order."""
        databases = await self._call("Which databases are there?", "list_databases")
        yield databases
        ready = [each["name"] for each in databases.answer["databases"] if each["status"] == "ready"]
        links = {name: await self._links(name) for name in ready}
        main = max(ready, key=lambda name: len(links[name]), default=None)
        if main is None or not links[main]:
            return
        for title, tool, arguments in _script(links[main]):
            yield await self._call(title, tool, database=main, **arguments)
        others = {name: links[name] for name in ready if name != main and links[name]}
        if others:
            name, link = _elsewhere(_central(links[main]), others)
            title = "The same question, of another database on the same server"
            yield await self._call(title, "execute_query", database=name, sql=_question(link))

    async def _call(self, title: str, tool: str, **arguments: Any) -> Step:
        started = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        elapsed = (time.perf_counter() - started) * 1000
        answer: dict[str, Any] = json.loads(result.content[0].text)
        refused = bool(result.is_error)
        if refused != (title == _REFUSAL):
            raise InternalError(f"The tour's call of {tool} ended unexpectedly: {json.dumps(answer)[:500]}")
        return Step(title, tool, arguments, answer, refused, elapsed)

    async def _links(self, database: str) -> list[_Link]:
        listed = await self._call("", "list_tables", database=database)
        names = [name for tables in listed.answer["tables"].values() for name in tables]
        if not names:
            return []
        described = await self._call("", "describe_table", database=database, table_name=names, detail="full")
        tables: dict[str, dict[str, Any]] = {table["name"]: table for table in described.answer["tables"]}
        return [link for table in tables.values() for link in _links(table, tables)]


def _script(links: Sequence[_Link]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what is shown of one database: titles, tools and their arguments."""
    link = _central(links)
    start, end = _far_apart(links)
    many = f"SELECT a.* FROM {link.table} AS a CROSS JOIN {link.table} AS b"
    elsewhere = {"sql": _question(link, *_ELSEWHERE), "from_dialect": "postgres"}
    return [
        ("What is in a table?", "describe_table", {"table_name": link.table}),
        ("How do two tables join?", "find_join_path", {"from_table": start, "to_table": end}),
        ("A question", "execute_query", {"sql": _question(link)}),
        ("The same question in another SQL: translated, and the answer says so", "execute_query", elsewhere),
        (_REFUSAL, "execute_query", {"sql": f"DELETE FROM {link.table}"}),
        ("A huge result is cut, and the answer says how to get more", "execute_query", {"sql": many, "limit": 3}),
    ]


def _links(table: dict[str, Any], tables: dict[str, dict[str, Any]]) -> list[_Link]:
    found: list[_Link] = []
    for key in table.get("constraints", []):
        target = tables.get(key.get("referenced_table", ""))
        if target and target is not table and len(key["columns"]) == 1:
            ends = key["columns"][0], target["name"], key["referenced_columns"][0]
            found.append(_Link(table["name"], *ends, _label(target)))
    return found


def _label(table: dict[str, Any]) -> str:
    """Return the column that identifies a row for people.

    It is a name or title, else the first text, else the first column.
    """
    columns = table["columns"]
    named = (c for word in _NAMING for c in columns if word in c["name"].lower())
    texts = (c for c in columns if any(word in c["data_type"].lower() for word in ("char", "text")))
    return str(next(named, next(texts, columns[0]))["name"])


def _central(links: Sequence[_Link]) -> _Link:
    """Return a link of the table with most links, to rows that have names if possible."""
    tables = [link.table for link in links]

    def rank(link: _Link) -> tuple[bool, int]:
        return any(word in link.label.lower() for word in _NAMING), tables.count(link.table)

    return max(links, key=rank)


def _elsewhere(asked: _Link, others: Mapping[str, Sequence[_Link]]) -> tuple[str, _Link]:
    """Return another database and a link in it to rows of the same thing, or of any thing if there is none."""
    same = ((name, link) for name, links in others.items() for link in links if link.target == asked.target)
    name = next(iter(others))
    return next(same, (name, _central(others[name])))


def _far_apart(links: Sequence[_Link]) -> tuple[str, str]:
    """Return two tables that need a third one between them, if there are any."""
    for first in links:
        for second in links:
            if second.table == first.target and second.target != first.table:
                return first.table, second.target
    return links[0].table, links[0].target


def _question(link: _Link, count: str = "count(*)", first: str = "LIMIT 5") -> str:
    return (
        f"SELECT p.{link.label} AS {link.target}, {count} AS {link.table}\n"
        f"FROM {link.table} AS c JOIN {link.target} AS p ON p.{link.target_column} = c.{link.column}\n"
        f"GROUP BY 1 ORDER BY 2 DESC, 1 {first}"
    )
