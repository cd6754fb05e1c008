"""Queries that pry: random ones of an engine's whole syntax, in which hidden names stand anywhere and in any spelling.

Names are used again for other things on purpose: those of tables for members of WITH, columns and aliases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any, TypeVar

from interference import HIDDEN, NUMBERS, TEXTS

T = TypeVar("T")
VISIBLE = {table: (*NUMBERS[table], *TEXTS[table]) for table in NUMBERS}
SECRETS = (*chain.from_iterable(HIDDEN.values()), "amount")
TABLES = (*VISIBLE, *VISIBLE, "salaries")
MEMBERS = (*VISIBLE, "salaries", "q", "r")


@dataclass(frozen=True)
class Syntax:
    """What an engine's SQL has of its own.

    In templates, {t} is a table, {a} what FROM calls one, {c} a column, {n} a name of a column, and {q} a query.

    - `schemas`: what may stand before a table.
    - `relations`: what may stand in FROM. Each gets an alias.
    - `values`: expressions.
    - `bodies`: whole queries.
    - `joins`: kinds of joins, each before `JOIN`.
    - `lateral`: the word by which a query in FROM sees what stands before it; empty: it never does.
    - `materialized`: words behind AS in WITH.
    - `lists`: an alias in FROM may name columns.
    - `groups`: what may stand in GROUP BY.

    What depends on the order of rows is left out: without ORDER BY, that may follow what is hidden.
    """

    schemas: tuple[str, ...]
    relations: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    joins: tuple[str, ...] = ("", "LEFT ", "RIGHT ", "FULL ")
    lateral: str = "LATERAL "
    materialized: tuple[str, ...] = ("",)
    lists: bool = True
    groups: tuple[str, ...] = ("{c}", "1", "ROLLUP ({c})", "GROUPING SETS (({c}), ())")

    def call(self, seed: int) -> tuple[str, dict[str, Any]]:
        """Return the name of a tool and its arguments."""
        prying = Prying(seed, self)
        return prying.pick(*["execute_query"] * 9, "explain_query"), {"sql": prying.query()}


@dataclass
class Scope:
    """What names mean: of FROM, with their columns. `outer`: of the query around it."""

    names: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    outer: Scope | None = None


class Prying:
    """Makes queries, the same ones for the same seed."""

    def __init__(self, seed: int, syntax: Syntax) -> None:
        self.random = Random(seed)
        self.syntax = syntax
        self.made = 0
        # Some look for what is hidden everywhere, and others mostly at what they see: more of these run.
        self.share = self.pick(0.0, 0.02, 0.1)

    def query(self) -> str:
        """Return one query."""
        order = self.pick("", "", "", " ORDER BY 1", f" ORDER BY {self.pick(*SECRETS)}")
        return self.inner(self.pick(1, 2, 2, 3)) + order

    def inner(self, depth: int, outer: Scope | None = None) -> str:
        """Return a query that may stand in others. `depth`: how many may stand inside one another in it."""
        head = self.members(depth - 1) if depth > 0 and self.chance(0.25) else ""
        body = self.body(depth, outer)
        while self.chance(0.12):
            body += f" {self.pick('UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT')} {self.body(depth - 1, outer)}"
        return head + body

    def members(self, depth: int) -> str:
        made = [self.member(depth) for _ in range(self.pick(1, 1, 2))]
        return f"WITH {self.pick('', '', 'RECURSIVE ')}{', '.join(made)} "

    def member(self, depth: int) -> str:
        name, word = self.pick(*MEMBERS), self.pick(*self.syntax.materialized)
        columns = self.pick("", "", "", f" ({', '.join(self.columns())})")
        return f"{self.spell(name)}{columns} AS {word}({self.inner(depth)})"

    def body(self, depth: int, outer: Scope | None) -> str:
        if self.syntax.bodies and self.chance(0.2):
            return self.fill(self.pick(*self.syntax.bodies), depth, Scope({}, outer))
        if self.chance(0.05):
            return f"({self.inner(depth - 1, outer)})" if depth > 0 else "VALUES (1, 'a')"
        return self.select(depth, outer)

    def select(self, depth: int, outer: Scope | None) -> str:
        scope = Scope({}, outer)
        source = self.source(depth, scope)
        items = ", ".join(self.item(depth, scope) for _ in range(self.pick(1, 1, 2)))
        where = f" WHERE {self.condition(depth, scope)}" if self.chance(0.5) else ""
        group = ""
        if self.chance(0.12):
            by = self.column(scope)
            items = f"{by}, {self.pick('count(*)', 'count({c})', 'max({c})', 'min({c})').format(c=self.column(scope))}"
            group = f" GROUP BY {self.pick(*self.syntax.groups).replace('{c}', by)}"
            group += f" HAVING max({self.column(scope)}) IS NOT NULL" if self.chance(0.3) else ""
        return f"SELECT {self.pick('', '', '', 'DISTINCT ')}{items} FROM {source}{where}{group}"

    def item(self, depth: int, scope: Scope) -> str:
        name = self.pick(*scope.names) if scope.names else "x"
        alias = self.pick("", "", "", f" AS {self.spell(self.pick(*SECRETS, *self.columns()))}")
        return self.pick("*", f"{self.spell(name)}.*", *[self.value(depth, scope) + alias for _ in range(5)])

    # What stands in FROM

    def source(self, depth: int, scope: Scope) -> str:
        text = self.relation(depth, scope)
        while self.chance(0.3):
            text = self.join(text, depth, scope)
        return text

    def join(self, left: str, depth: int, scope: Scope) -> str:
        right = self.relation(depth, scope)
        kind = self.pick(*self.syntax.joins)
        return self.pick(
            f"{left}, {right}",
            f"{left} CROSS JOIN {right}",
            f"{left} NATURAL {kind}JOIN {right}",
            f"{left} {kind}JOIN {right} USING ({self.spell(self.pick('id', 'id', 'email', 'born', *SECRETS))})",
            f"{left} {kind}JOIN {right} ON {self.column(scope)} = {self.column(scope)}",
            f"({left} {kind}JOIN {right} USING (id))",
        )

    def relation(self, depth: int, scope: Scope) -> str:
        chance = self.random.random()
        alias = self.alias()
        if depth > 0 and chance < 0.2:
            outer = scope if self.syntax.lateral and self.chance(0.3) else None
            text = f"{self.syntax.lateral if outer else ''}({self.inner(depth - 1, outer)})"
            return self.name(text, alias, (), scope)
        if chance < 0.35 and self.syntax.relations:
            text = self.fill(self.pick(*self.syntax.relations), depth, scope)
            return self.name(text, alias, (), scope)
        table = self.pick(*TABLES, "q") if self.chance(2 * self.share) else self.pick(*VISIBLE)
        text = self.table(table)
        columns = VISIBLE.get(table, ("id", "amount"))
        if self.chance(0.4):
            scope.names[table] = columns
            return text
        return self.name(text, alias, columns, scope)

    def name(self, text: str, alias: str, columns: tuple[str, ...], scope: Scope) -> str:
        if self.syntax.lists and self.chance(0.12):
            columns = self.columns()
            scope.names[alias] = columns
            return f"{text} AS {self.spell(alias)} ({', '.join(map(self.spell, columns))})"
        scope.names[alias] = columns or (*VISIBLE["orders"], "name", "email")
        return f"{text} AS {self.spell(alias)}"

    def alias(self) -> str:
        self.made += 1
        return self.pick(f"x{self.made}", f"x{self.made}", f"x{self.made}", self.pick(*MEMBERS, *SECRETS))

    def table(self, table: str) -> str:
        return f"{self.pick(*self.syntax.schemas)}{self.spell(table)}" if self.chance(0.3) else self.spell(table)

    # Expressions

    def value(self, depth: int, scope: Scope) -> str:
        chance = self.random.random()
        if chance < 0.6:
            return self.column(scope)
        if chance < 0.85 and self.syntax.values:
            return self.fill(self.pick(*self.syntax.values), depth, scope)
        if chance < 0.95 and depth > 0:
            inner = self.inner(depth - 1, scope)
            return self.pick(f"({inner})", f"EXISTS ({inner})", f"(SELECT {self.column(scope)})")
        return f"coalesce({self.column(scope)}, {self.column(scope)})"

    def condition(self, depth: int, scope: Scope) -> str:
        value = self.value(depth, scope)
        forms = [f"{value} IS NOT NULL", f"{value} = {self.column(scope)}", f"{value} LIKE 'zyx%'", f"{value} > '0'"]
        if depth > 0:
            inner = self.inner(depth - 1, scope)
            forms += [f"{value} IN ({inner})", f"EXISTS ({inner})", f"{value} = (SELECT max({self.pick(*SECRETS)}))"]
        return self.pick(*forms)

    def column(self, scope: Scope) -> str:
        """Return a column of the scope, or what could be a hidden one."""
        around = scope
        while around.outer is not None and self.chance(0.2):
            around = around.outer
        name = self.pick(*around.names) if around.names else "x"
        known = around.names.get(name) or ("id",)
        column = self.pick(*SECRETS) if self.chance(self.share) else self.pick(*known)
        spelled = self.spell(column)
        if self.chance(self.share / 2):
            return f"{self.table(self.pick(*TABLES))}.{spelled}"
        return spelled if self.chance(0.25) else f"{self.spell(name)}.{spelled}"

    # Parts

    def fill(self, template: str, depth: int, scope: Scope) -> str:
        """Return a template with its places filled."""
        text = template
        for place, make in (
            ("{t}", lambda: self.table(self.pick(*TABLES))),
            ("{a}", lambda: self.spell(self.pick(*scope.names, *TABLES[:3]))),
            ("{c}", lambda: self.column(scope)),
            ("{n}", lambda: self.spell(self.pick(*SECRETS, *self.columns()))),
            ("{q}", lambda: self.inner(depth - 1) if depth > 0 else f"SELECT * FROM {self.table(self.pick(*TABLES))}"),
        ):
            while place in text:
                text = text.replace(place, make(), 1)
        return text

    def columns(self) -> tuple[str, ...]:
        return tuple(self.pick("id", "note", "a", "b", *SECRETS) for _ in range(self.pick(1, 1, 2, 3)))

    def spell(self, name: str) -> str:
        if self.chance(0.88):
            return name
        return self.pick(f'"{name}"', name.upper(), f'"{name.upper()}"', name.title())

    def pick(self, *among: T) -> T:
        return self.random.choice(among)

    def chance(self, share: float) -> bool:
        return self.random.random() < share


SQLITE = Syntax(
    schemas=(
        "main.",
        '"main".',
    ),
    relations=(
        "json_each({c})",
        "(VALUES ({c}, 2))",
        "(WITH q AS ({q}) SELECT * FROM q)",
    ),
    values=(
        "{a}.rowid",
        "rowid",
        "_rowid_",
        "{a}.oid",
        "({c}, {c}) = ({c}, {c})",
        "json_object('k', {c})",
        "rank() OVER (PARTITION BY {c} ORDER BY {c})",
        "iif({c} IS NULL, 1, {c})",
        "max({c}, {c})",
        "count(*) FILTER (WHERE {c} IS NOT NULL)",
        "CAST({c} AS TEXT) COLLATE NOCASE",
        "{c} IN {t}",
        "printf('%s', {c})",
        "'{n}'",
        '"{n}"',
        "[ssn]",
        "`pin`",
    ),
    bodies=(
        "SELECT * FROM {t}",
        "SELECT {n} FROM {t}",
        "VALUES ((SELECT {n} FROM {t}), 2)",
        "SELECT count(*), {n} FROM {t} GROUP BY {n}",
        "SELECT {c} FROM {t} WINDOW w AS (ORDER BY {n})",
        "SELECT * FROM ({q}) JOIN ({q}) USING ({n})",
    ),
    joins=(
        "",
        "LEFT ",
        "INNER ",
        "RIGHT ",
        "FULL ",
    ),
    lateral="",
    materialized=(
        "",
        "",
        "MATERIALIZED ",
        "NOT MATERIALIZED ",
    ),
    lists=False,
    groups=(
        "{c}",
        "1",
    ),
)
DUCKDB = Syntax(
    schemas=("main.", '"main".'),
    relations=(
        "unnest([{c}, {c}])",
        "(FROM {t})",
        "(FROM {t} SELECT {n})",
        "(SUMMARIZE {t})",
        "(DESCRIBE {t})",
        "(PIVOT {t} ON {n})",
        "(PIVOT {t} ON {n} USING count(*))",
        "(UNPIVOT {t} ON {n}, {n})",
        "(UNPIVOT {t} ON COLUMNS(*))",
        "range(3)",
        "(VALUES ({c}))",
        "{t} TABLESAMPLE 100%",
        "(SELECT * EXCLUDE ({n}) FROM {t})",
        "(SELECT * REPLACE (1 AS {n}) FROM {t})",
        "(SELECT COLUMNS('.*') FROM {t})",
        "(SELECT * RENAME ({n} AS z) FROM {t})",
        "query_table('salaries')",
        "query_table('orders')",
        "(TABLE {t})",
        "(SHOW TABLES)",
    ),
    values=(
        "{a}",
        "{a}::VARCHAR",
        "struct_pack(k := {c})",
        "to_json({a})",
        "[x FOR x IN [{c}]]",
        "list_transform([1], lambda v: {c})",
        "row({c}, {c})",
        "{c}.{n}",
        "({a}).{n}",
        "{a}['ssn']",
        "struct_extract({a}, 'pin')",
        "unnest({a})",
        "COLUMNS('s.*')",
        "COLUMNS(*)",
        "COLUMNS(c -> c LIKE '%s%')",
        "*COLUMNS(*)",
        "#1",
        "{c}::VARCHAR",
        "max({c}) OVER (PARTITION BY {c})",
        "max({c}) FILTER ({c} IS NOT NULL)",
        "alias({c})",
        "TRY({c})",
        "{c} COLLATE NOCASE",
        "hash({a})",
        "row_to_json({a})",
        "struct_values({a})",
        "getvariable('x')",
        "rowid",
        "{a}.rowid",
        "length({a}::VARCHAR)",
    ),
    bodies=(
        "FROM {t}",
        "FROM {t} SELECT {n}",
        "FROM {t} SELECT * EXCLUDE ({n})",
        "FROM ({q})",
        "FROM {t} AS a JOIN {t} AS b USING ({n})",
        "SELECT * FROM {t} AS a ASOF JOIN {t} AS b USING (id)",
        "SELECT * FROM {t} AS a SEMI JOIN {t} AS b USING ({n})",
        "SELECT * FROM {t} AS a ANTI JOIN {t} AS b USING ({n})",
        "PIVOT {t} ON {n}",
        "UNPIVOT {t} ON {n}",
        "SUMMARIZE {t}",
        "DESCRIBE {t}",
        "TABLE {t}",
        "SELECT {n}, count(*) FROM {t} GROUP BY ALL",
        "SELECT * FROM {t} ORDER BY ALL",
        "SELECT {c} AS z FROM {t} WHERE z IS NOT NULL",
        "SELECT t.* LIKE '%s%' FROM {t} AS t",
        "SELECT * LIKE 's%' FROM {t}",
        "SELECT * SIMILAR TO 's.*' FROM {t}",
        "SELECT ({q}) FROM {t}",
        "({q}) UNION BY NAME ({q})",
        "SELECT * FROM {t}, LATERAL (SELECT {n}) AS l",
        "SELECT * FROM histogram('customers', 'ssn')",
        "SELECT id FROM {t} USING SAMPLE 100%",
        "WITH RECURSIVE q(id) USING KEY (id) AS (SELECT id FROM {t} UNION SELECT id FROM q) FROM q",
    ),
    joins=(
        "",
        "LEFT ",
        "RIGHT ",
        "FULL ",
        "ANTI ",
        "SEMI ",
    ),
    materialized=(
        "",
        "",
        "MATERIALIZED ",
        "NOT MATERIALIZED ",
    ),
)
POSTGRES = Syntax(
    schemas=(
        "public.",
        '"public".',
    ),
    relations=(
        "generate_series(1, 3)",
        "unnest(ARRAY[{c}])",
        "(VALUES ({c}))",
        "(TABLE {t})",
        "json_each_text(to_json({a}))",
        "jsonb_object_keys(to_jsonb({a}))",
        "ROWS FROM (generate_series(1, 2), generate_series(1, 3))",
        "(SELECT ({a}).* FROM {t})",
        "(WITH q AS ({q}) TABLE q)",
    ),
    values=(
        "{a}",
        "{a}::text",
        "({a}).{n}",
        "({a}).*",
        "to_jsonb({a})",
        "row_to_json({a})",
        "to_jsonb({a}) ->> 'ssn'",
        "ROW({c}, {c})",
        "ROW({a}.*)",
        "ARRAY(SELECT {c} FROM {t})",
        "{n}({a})",
        "{a} IS NOT NULL",
        "{a} = {a}",
        "{c}::text",
        "CAST({a} AS text)",
        "rank() OVER (PARTITION BY {c} ORDER BY {c})",
        "count(*) FILTER (WHERE {c} IS NOT NULL)",
        "count({a})",
        "count(DISTINCT {a})",
        "max({c}) OVER ()",
        "{c} = ANY (SELECT {n} FROM {t})",
        "({c}, {c}) IN (SELECT {n}, {n} FROM {t})",
        '{c} COLLATE "C"',
        "ctid",
        "{a}.tableoid",
        "{a}.xmin",
        'U&"{n}"',
        "greatest({c}, {c})",
        "format('%s', {a})",
        "concat({a})",
        "pg_typeof({c})",
        "num_nulls({a}.*)",
        "jsonb_build_object('k', {a})",
        "to_tsvector({c}::text)",
    ),
    bodies=(
        "TABLE {t}",
        "SELECT * FROM {t}",
        "SELECT {n} FROM {t}",
        "SELECT {a} FROM {t}",
        "VALUES ((SELECT {n} FROM {t}), 2)",
        "SELECT * FROM ONLY {t}",
        "SELECT * FROM {t} * ",
        "SELECT count({n}) FROM {t} GROUP BY CUBE ({n})",
        "SELECT {n} FROM {t} FETCH FIRST 100 ROWS ONLY",
        "SELECT * FROM {t} TABLESAMPLE SYSTEM (100)",
        "SELECT id, {n} FROM {t} WINDOW w AS (ORDER BY {n})",
        "SELECT l.* FROM {t} AS t, LATERAL (SELECT {n}) AS l",
        "SELECT l.* FROM {t} AS t, LATERAL (SELECT t.*) AS l",
        "SELECT (t).{n} FROM {t} AS t",
        "SELECT t.{n} FROM (SELECT t FROM {t} AS t) AS t",
        "SELECT (t.t).{n} FROM (SELECT t FROM {t} AS t) AS t",
        "SELECT j.* FROM ({t} AS a JOIN {t} AS b USING (id)) AS j",
        "SELECT u.{n} FROM {t} AS a JOIN {t} AS b USING ({n}) AS u",
        "SELECT * FROM ({q}) a JOIN ({q}) b USING ({n})",
        "SELECT * FROM {t} WHERE ({c}) = ALL (SELECT {n} FROM {t})",
        "WITH RECURSIVE q AS (SELECT id FROM {t} UNION SELECT id FROM q) SEARCH DEPTH FIRST BY id SET o TABLE q",
    ),
    materialized=(
        "",
        "",
        "MATERIALIZED ",
        "NOT MATERIALIZED ",
    ),
)
TRINO = Syntax(
    schemas=("",),  # errors show a part of a statement: one twin's schema may be cut there
    relations=(
        "UNNEST(ARRAY[{c}, {c}])",
        "(VALUES ({c}))",
        "(TABLE {t})",
        "TABLE(sequence(1, 3))",
        "{t} TABLESAMPLE BERNOULLI (100)",
        "(WITH q AS ({q}) TABLE q)",
        "UNNEST(ARRAY[ROW({c}, 2)])",
    ),
    values=(
        "{a}",
        "ROW({c}, {c})",
        "CAST(ROW({c}) AS ROW({n} varchar)).{n}",
        "transform(ARRAY[1], x -> {c})",
        "rank() OVER (PARTITION BY {c} ORDER BY {c})",
        "count(*) FILTER (WHERE {c} IS NOT NULL)",
        "TRY({c})",
        "IF({c} IS NULL, 1, 2)",
        "CAST({c} AS varchar)",
        "json_object('k': CAST({c} AS varchar))",
        "{c} = ANY (SELECT {n} FROM {t})",
        "({c}, {c}) IN (SELECT {n}, {n} FROM {t})",
        "max({c}) OVER ()",
        "greatest({c}, {c})",
        "typeof({c})",
        "count(DISTINCT {c})",
        "format('%s', {c})",
    ),
    bodies=(
        "TABLE {t}",
        "SELECT * FROM {t}",
        "SELECT {n} FROM {t}",
        "VALUES (1, (SELECT max({n}) FROM {t}))",
        "SELECT t.* AS (a, b, c, d, e) FROM {t} AS t",
        "SELECT l.* FROM {t} AS t CROSS JOIN LATERAL (SELECT {n}) AS l",
        "SELECT l.* FROM {t} AS t CROSS JOIN LATERAL (SELECT t.*) AS l",
        "SELECT count({n}) FROM {t} GROUP BY CUBE ({n})",
        "SELECT * FROM ({q}) a JOIN ({q}) b USING ({n})",
        "SELECT * FROM {t} MATCH_RECOGNIZE (MEASURES A.{n} AS z PATTERN (A) DEFINE A AS A.{n} IS NOT NULL)",
        "SELECT * FROM TABLE(exclude_columns(TABLE({t}), DESCRIPTOR({n})))",
        "SELECT {n}, count(*) FROM {t} GROUP BY AUTO",
    ),
)
