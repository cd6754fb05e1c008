"""Completes the errors of statements that are not in the database's SQL with what their writer may have meant."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from dragoman.catalog import Catalog, did_you_mean, quote_name
from dragoman.dialect import Dialect
from dragoman.errors import ColumnNotFound, DragomanError, InvalidSql, UnsafeSql
from dragoman.gateway.offload import Offload
from dragoman.model import Relation
from dragoman.sql import Statement
from dragoman.validators import ReadOnly, read

SOURCES: Final = ("postgres", "sqlite", "duckdb", "trino", "tsql", "mysql", "snowflake", "bigquery")
"""The SQLs that are tried, as `from_dialect` names them: those whose translation is tested come first."""
FEW: Final = 3
"""The most relations that are named as having a column."""
SHOWN: Final = 3
"""The most near names that are shown."""
LONGEST: Final = 2000
"""The most characters of a statement that is tried. An agent's first attempts are short."""
PATIENCE: Final = 2.0
"""Seconds that an error waits for its hint, or for near names. They are not worth more."""
STARTING: Final = 5.0
"""Seconds that it waits for the SQL that a statement is written in: the first time, a process must start."""
_FENCE: Final = "```"
_WORD: Final = re.compile(r"(\w+)")
_AFTER_COMMA: Final = frozenset({")", "from"})
_QUOTED: Final = re.compile(r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*""")
_PLACEHOLDER: Final = re.compile(
    r"(?<=[\s=<>(,])(?::[a-z_]\w*|@[a-z_]\w*|%s\b|%\(\w+\)s|[$#]?\{\{?\s*\w+\s*\}?\})(?![\w:.])", re.IGNORECASE
)
"""A parameter as drivers and templates write it: `:name`, `@name`, `%s`, `%(name)s`, `{name}`, `${name}`, `#{name}`."""
_LIMIT: Final = re.compile(r"\blimit\s+(\d+)\s*,\s*(\d+)", re.IGNORECASE)
_AT_COMMA: Final = re.compile(r"near [\"'],[\"']|: , is not expected|LIMIT #,#")
"""What databases say of a comma that they cannot parse."""
_UNPARSED: Final = re.compile(r"syntax error|parser error|error in your sql syntax|mismatched input", re.IGNORECASE)
_NEAR: Final = re.compile(r"""\bnear ["'](\w+)""")


async def advise(
    error: DragomanError, sql: str, catalog: Catalog, dialect: Dialect, seconds: float, offload: Offload | None
) -> DragomanError:
    """Return the error about a statement that was refused, with what its writer may have meant, if that is known.

    `seconds`: how long the writer waits. `offload`: finds the SQL that the statement is written in; None if its writer
    cannot name one.
    """
    if not isinstance(error, InvalidSql | UnsafeSql):
        return error
    if sql.lstrip().startswith(_FENCE):
        return error.replace(suggestion=f"Send the statement alone, without Markdown's {_FENCE}.")
    if found := await find_slip(error, sql, catalog):
        return found
    source = None if offload is None else await _find_source(sql, dialect, seconds, offload)
    hint = f'It reads as {source}: pass `from_dialect` "{source}" to have it translated.'
    return error if source is None else error.replace(suggestion=f"{hint} {error.suggestion}".strip())


async def _find_source(sql: str, dialect: Dialect, seconds: float, offload: Offload) -> str | None:
    if len(sql) > LONGEST:
        return None
    # Always in a process: grammars are not made for threads, and eight translations take long.
    return await offload.attempt(min(seconds, STARTING), find_source, sql, dialect)


async def find_slip(error: DragomanError, sql: str, catalog: Catalog) -> DragomanError | None:
    """Return the error of a statement that does not parse, with what to change in it. None if that is not known."""
    if not isinstance(error, InvalidSql):
        return None
    if named := await _name_keyword(error, sql, catalog):
        return named
    dialect = catalog.namespace.dialect
    slip = _find_comma(sql, dialect, error.offset or 0) or _find_parameter(sql, dialect) or _find_limit(error, sql)
    return error.replace(suggestion=slip) if slip else None


def does_not_parse(error: DragomanError) -> bool:
    """Return whether a database says that a statement does not parse: for dialects whose grammar reads more than it."""
    return isinstance(error, InvalidSql) and _UNPARSED.search(error.message) is not None


async def _name_keyword(error: InvalidSql, sql: str, catalog: Catalog) -> DragomanError | None:
    """Return the error of a keyword that was meant as the name of a relation or column. None for any other error."""
    found = _find_word(error, sql)
    if found is None:
        return None
    try:
        async with asyncio.timeout(PATIENCE):
            snapshot = await catalog.snapshot()
            if found not in snapshot.dialect.reserved:
                return None
            # In a thread: 10,000 relations may have 500,000 columns, which are sorted by name at the first time.
            stored = await asyncio.to_thread(snapshot.find_word, found)
    except (DragomanError, TimeoutError):
        return None
    if stored is None:
        return None
    quoted = snapshot.dialect.quote(stored)
    return error.replace(suggestion=f"{found} is a keyword. To use it as a name, write {quoted}.")


def _find_comma(sql: str, dialect: Dialect, offset: int) -> str | None:
    """Return what to do about a comma that nothing follows. sqlglot reads over it, as few databases do.

    `offset`: what stands before it, the database could read.
    """
    if len(sql) > LONGEST:
        return None
    try:
        tokens = Statement.parse(sql, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon).tokens
    except DragomanError:
        return None
    for each, after in pairwise(tokens):
        if after.end < offset:
            continue
        if each.text == after.text == ",":
            return "Remove one of the two commas that follow each other."
        if each.text == "," and after.text.lower() in _AFTER_COMMA:
            return f"Remove the comma before {after.text}."
    return "Remove the comma at the end." if tokens and tokens[-1].text == "," else None


def _find_parameter(sql: str, dialect: Dialect) -> str | None:
    """Return how to write a parameter, if one stands there in a way that another driver takes."""
    plain = _QUOTED.sub("''", sql[:LONGEST])
    if "?::" in plain and dialect.placeholder == "?":  # an operator to sqlglot
        return "Write CAST(? AS type) where a parameter is cast."
    found = _PLACEHOLDER.search(plain)
    return f"Write {dialect.placeholder} in place of {found[0]}, and pass the value in params." if found else None


def _find_limit(error: DragomanError, sql: str) -> str | None:
    """Return how to write `LIMIT 5, 10`, if the statement does not parse at this."""
    found = _LIMIT.search(_QUOTED.sub("''", sql[:LONGEST]))
    return f"Write LIMIT {found[2]} OFFSET {found[1]}." if found and _AT_COMMA.search(error.message) else None


def _find_word(error: DragomanError, sql: str) -> str | None:
    """Return the word of a statement at which it does not parse, in lower case."""
    at = _WORD.match(sql, error.offset) if error.offset is not None else _NEAR.search(error.message)
    return at[1].lower() if at else None


async def find_column(error: ColumnNotFound, catalog: Catalog, relations: Sequence[Relation]) -> str:
    """Return what was meant by a column that a statement over these relations does not find; empty if that is unknown.

    These are near names, or the relations that have a column of this name.
    """
    name, snapshot = error.identifier or "", await catalog.snapshot()
    # In a thread: 10,000 relations may have 500,000 columns, which are sorted by name at the first time.
    having = await asyncio.to_thread(snapshot.relations_with, name, relations)
    names = [quote_name(snapshot.namespace.name(each)) for each in having[: FEW + 1]]
    if any(each in relations for each in having):
        return f"{names[0]} has this column, but not here: write its alias before it, or select it in the subquery."
    near = await catalog.near_columns(name, relations) if relations or not having else []
    if near or not 0 < len(names) <= FEW:
        return did_you_mean(near[:SHOWN])
    which = f"{names[0]} has this column: join it." if len(names) == 1 else f"Join one of {', '.join(names)}."
    return f"{which} find_join_path shows how."


def explain_column(error: ColumnNotFound, sql: str) -> str:
    """Return what is wrong with a column that the statement names elsewhere in another sense; empty if nothing is."""
    written = error.identifier
    if not written:
        return ""
    *qualifiers, name = written.rsplit(".", 2)
    if qualifiers and f'"{written}"' not in sql:
        table = qualifiers[-1]
        is_named = re.search(rf"\b{re.escape(table)}\b(?![\"`\]]?\s*\.)", sql, re.IGNORECASE)
        hint = f"{quote_name(table)} is not in FROM: join it. find_join_path shows how."
        return "" if is_named else hint
    if re.search(rf"\bas\s+[\"`\[]?{re.escape(name)}\b", sql, re.IGNORECASE):
        return f"{quote_name(name)} names an output: write its expression here, or use the name in an outer query."
    return ""


def find_source(sql: str, dialect: Dialect) -> str | None:
    """Return the first SQL from which a text can be translated to the dialect's, if it is not one of its queries."""
    from dragoman.sql.translate import translate  # slow to import

    if _is_query(sql, dialect):
        return None
    for source in SOURCES:
        try:
            done = translate(
                sql, source=source, target=dialect.sqlglot, rewrite=dialect.rewrite, placeholder=dialect.placeholder
            )
            if _is_query(done.sql, dialect):
                return source
        except Exception:  # whatever fails, the error is told without a hint
            continue
    return None


def _is_query(sql: str, dialect: Dialect) -> bool:
    """Return whether a text is a query that the dialect's rules allow, whatever the database has."""
    try:
        statement = Statement.parse(sql, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon)
        ReadOnly(dialect, None).judge(read(dialect, statement))
    except DragomanError:
        return False
    return True
