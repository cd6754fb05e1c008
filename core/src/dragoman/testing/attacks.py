"""Ways to a relation's rows and columns, as calls of tools. None of them may show what a policy hides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman.dialect import Dialect
from dragoman.model import Table

_BY_TABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "plain": ("SELECT * FROM {t}", "SELECT count(*) FROM {t}", "SELECT 1 FROM {t}", "SELECT x.* FROM {t} AS x"),
    "whole_rows": (
        "SELECT {t} FROM {t}",
        "SELECT x FROM {t} x",
        "SELECT count({t}.*) FROM {t}",
        "SELECT rowid FROM {t}",
        "SELECT max(rowid) FROM {t}",
        "TABLE {t}",
        "SELECT DISTINCT * FROM {t}",
    ),
    "with": (
        "WITH q AS (SELECT * FROM {t}) SELECT * FROM q",
        "WITH q AS (SELECT * FROM {t}), r AS (SELECT * FROM q) SELECT count(*) FROM r",
        "WITH RECURSIVE q(n) AS (SELECT count(*) FROM {t} UNION SELECT n + 1 FROM q WHERE n < 3) SELECT n FROM q",
    ),
    "shadowing": (
        "WITH {t} AS (SELECT * FROM {t}) SELECT * FROM {t}",
        "WITH {o} AS (SELECT * FROM {t}) SELECT * FROM {o}",
        "SELECT * FROM {t}, (WITH {t} AS (SELECT 1 AS one) SELECT one FROM {t}) AS q",
        "SELECT (WITH {t} AS (SELECT 1 AS one) SELECT max(one) FROM {t}), {t}.* FROM {t}",
        "SELECT * FROM (WITH {t} AS (SELECT 1 AS one) SELECT * FROM {t}) AS q CROSS JOIN {t}",
        "SELECT * FROM {t} AS {o}",
        "SELECT {o}.* FROM {t} AS {o} CROSS JOIN {o} AS {t}",
        "SELECT q.* FROM {o} AS {t} CROSS JOIN {t} AS q",
        "WITH q AS (SELECT * FROM {t}), {t} AS (SELECT 1 AS one) SELECT * FROM q",
        "WITH RECURSIVE {t}(n) AS (SELECT count(*) FROM {t}) SELECT n FROM {t}",
        "WITH RECURSIVE {t}(n) AS (SELECT count(*) FROM {t} UNION ALL SELECT n FROM {t} WHERE n < 0) SELECT n FROM {t}",
        "WITH RECURSIVE q(n) AS (SELECT count(*) FROM {t}), {t}(n) AS (SELECT 1) SELECT n FROM q",
        "WITH {t}(n) AS (SELECT 1) SELECT n FROM (WITH q(n) AS (SELECT count(*) FROM {t}) SELECT n FROM q) AS r",
        "WITH RECURSIVE {t}(n) AS (SELECT n FROM (WITH q(n) AS (SELECT count(*) FROM {t}), {t}(n) AS (SELECT 1)"
        " SELECT n FROM q) AS r) SELECT n FROM {t}",
    ),
    "subqueries": (
        "SELECT * FROM (SELECT * FROM {t}) AS q",
        "SELECT * FROM ((SELECT * FROM {t})) AS q",
        "SELECT EXISTS (SELECT 1 FROM {t})",
        "SELECT (SELECT count(*) FROM {t})",
        "SELECT count(*) FROM {o} WHERE EXISTS (SELECT * FROM {t})",
    ),
    "sets": (
        "SELECT count(*) FROM {t} UNION ALL SELECT count(*) FROM {t} AS q",
        "SELECT * FROM {t} EXCEPT SELECT * FROM {t} WHERE 1 = 0",
        "SELECT * FROM {t} INTERSECT SELECT * FROM {t}",
        "VALUES ((SELECT count(*) FROM {t}))",
    ),
    "joins": (
        "SELECT count(*) FROM {o} LEFT JOIN {t} ON 1 = 1",
        "SELECT count(*) FROM {t} AS a CROSS JOIN {t} AS b",
        "SELECT * FROM {t} NATURAL JOIN {t} AS b",
        "SELECT count(*) FROM {t} NATURAL JOIN {o}",
    ),
}
_BY_COLUMN: Final[Mapping[str, tuple[str, ...]]] = {
    "plain": ("SELECT {c} FROM {t}", "SELECT {t}.{c} FROM {t}", 'SELECT "{n}" FROM {t}', "SELECT [{n}] FROM {t}"),
    "aliases": (
        "SELECT x.{c} FROM {t} AS x",
        "SELECT x.{c} AS harmless FROM {t} x",
        "SELECT q.harmless FROM (SELECT {c} AS harmless FROM {t}) AS q",
        "SELECT harmless FROM (SELECT * FROM {t}) AS q(harmless)",
        "SELECT {o}.{c} FROM {t} AS {o}",
    ),
    "with": ("WITH q(x) AS (SELECT {c} FROM {t}) SELECT x FROM q", "WITH q AS (SELECT {c} FROM {t}) SELECT * FROM q"),
    "shadowing": (
        "SELECT * FROM (SELECT {c} FROM {t}) AS a, (WITH {t} AS (SELECT 1 AS {c}) SELECT {c} FROM {t}) AS b",
        "SELECT (SELECT max({c}) FROM (WITH {t} AS (SELECT 1 AS one) SELECT one FROM {t}) AS q, {t}) FROM {o}",
        "SELECT 1 FROM {t}, (WITH {t} AS (SELECT 1 AS {c}) SELECT 1 FROM {t}) AS q ORDER BY {t}.{c}",
    ),
    "subqueries": (
        "SELECT (SELECT max({c}) FROM {t})",
        "SELECT count(*) FROM {o} WHERE (SELECT max({c}) FROM {t}) > 'M'",
        "SELECT count(*) FROM {t} AS a WHERE EXISTS (SELECT 1 FROM {t} AS b WHERE b.{c} > a.{c})",
        "SELECT 1 WHERE 'a***' IN (SELECT {c} FROM {t})",
    ),
    "conditions": (
        "SELECT count(*) FROM {t} WHERE {c} IS NULL",
        "SELECT count(*) FROM {t} WHERE {c} > 'm'",
        "SELECT count(*) FROM {t} WHERE {c} < 5",
        "SELECT count(*) FROM {t} WHERE {c} LIKE '%hidden%' OR 1 = 1",
        "SELECT count(*) FROM {t} GROUP BY {c}",
        "SELECT 1 FROM {t} GROUP BY 1 HAVING max({c}) > 'm'",
        "SELECT count(*) FROM {t} AS a JOIN {t} AS b USING ({c})",
        "SELECT count(*) FROM {t} AS a JOIN {t} AS b ON a.{c} < b.{c}",
        "SELECT CASE WHEN {c} > 'm' THEN 1 ELSE 0 END FROM {t}",
    ),
    "aggregates": (
        "SELECT max({c}), min({c}), count({c}), count(DISTINCT {c}) FROM {t}",
        "SELECT sum({c}) FROM {t}",
        "SELECT sum(length({c})) FROM {t}",
        "SELECT group_concat({c}) FROM (SELECT {c} FROM {t} ORDER BY 1) AS q",
        "SELECT count(*) FILTER (WHERE {c} > 'm') FROM {t}",
    ),
    "order": (
        "SELECT 1 FROM {t} ORDER BY {c}",
        "SELECT row_number() OVER (ORDER BY {c}), {k} FROM {t}",
        "SELECT {k} FROM {t} ORDER BY {c}, {k}",
        "SELECT {k} FROM {t} ORDER BY {c} LIMIT 1",
        "SELECT sum(1) OVER (PARTITION BY {c}) FROM {t}",
    ),
    "sets": ("SELECT {c} FROM {t} UNION SELECT NULL", "SELECT {c} FROM {t} EXCEPT SELECT 'x'"),
}


class Attack(NamedTuple):
    """A call of a tool."""

    family: str
    tool: str
    arguments: dict[str, Any]


FAMILIES: Final = tuple(dict.fromkeys((*_BY_TABLE, *_BY_COLUMN, "errors", "samples", "plans", "catalog", "kept")))


def list_attacks(
    tables: Sequence[Table], dialect: Dialect, failing: Sequence[str], own: Sequence[str]
) -> Iterator[Attack]:
    """Yield every attack on some relations. `failing`: conditions on `{c}` that fail for some of its values."""
    for table in tables:
        if table.system:
            continue
        names = _names(table, tables, dialect)
        yield from _of_table(table, names)
        for column in table.columns:
            quoted = {**names, "c": dialect.quote(column.name), "n": column.name}
            yield from _of_column(table, quoted, failing)
    yield from (Attack("plain", "execute_query", {"sql": sql}) for sql in own)
    yield from (Attack("catalog", tool, {}) for tool in ("list_tables", "list_schemas", "list_databases"))
    yield Attack("catalog", "search_catalog", {"query": ""})
    yield Attack("catalog", "list_tables", {"detail": "full"})


def _names(table: Table, tables: Sequence[Table], dialect: Dialect) -> dict[str, str]:
    other = next((each for each in tables if each is not table and not each.system), table)
    key = table.columns[0].name if table.columns else "id"
    return {
        "t": dialect.quote(table.relation.name),
        "o": dialect.quote(other.relation.name),
        "k": dialect.quote(key),
    }


def _of_table(table: Table, names: Mapping[str, str]) -> Iterator[Attack]:
    for family, templates in _BY_TABLE.items():
        yield from (Attack(family, "execute_query", {"sql": each.format(**names)}) for each in templates)
    every, name = "SELECT * FROM {t}".format(**names), table.relation.name
    yield Attack("samples", "get_sample_rows", {"table_name": name, "limit": 100})
    yield Attack("samples", "get_sample_rows", {"table_name": name, "where_clause": "1 = 1"})
    yield Attack("plans", "explain_query", {"sql": every})
    yield Attack("plans", "explain_query", {"sql": every, "analyze": True})
    for detail in ("compact", "full"):
        yield Attack("catalog", "describe_table", {"table_name": name, "detail": detail})
    yield Attack("catalog", "get_foreign_keys", {"table_name": name})
    yield Attack("kept", "execute_query", {"sql": every, "keep": "kept"})
    yield Attack("kept", "get_result", {"result": "kept"})


def _of_column(table: Table, names: Mapping[str, str], failing: Sequence[str]) -> Iterator[Attack]:
    for family, templates in _BY_COLUMN.items():
        yield from (Attack(family, "execute_query", {"sql": each.format(**names)}) for each in templates)
    for condition in failing:
        where = condition.format(**names)
        yield Attack("errors", "execute_query", {"sql": "SELECT {k} FROM {t} WHERE ".format(**names) + where})
        yield Attack("errors", "get_sample_rows", {"table_name": table.relation.name, "where_clause": where})
    one = {"table_name": table.relation.name, "columns": [names["n"]]}
    yield Attack("samples", "get_sample_rows", one)
    some = {"table_name": table.relation.name, "where_clause": "{c} > 'm'".format(**names)}
    yield Attack("samples", "get_sample_rows", some)
    yield Attack("plans", "explain_query", {"sql": "SELECT 1 FROM {t} WHERE {c} > 'm'".format(**names)})
    yield Attack("catalog", "search_catalog", {"query": names["n"]})
    bound = {"sql": "SELECT count(*) FROM {t} WHERE {c} > ?".format(**names), "params": ["m"]}
    yield Attack("conditions", "execute_query", bound)
