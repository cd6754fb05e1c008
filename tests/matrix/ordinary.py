"""Random ordinary queries: what analysts write, in the SQL of one engine, over a few tables that every engine has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

TABLES: Mapping[str, Mapping[str, str]] = {
    "staff": {
        "id": "int", "name": "text", "dept": "int", "salary": "dec", "score": "real", "active": "bool",
        "hired": "date", "seen": "time", "boss": "int",
    },
    "dept": {"dept": "int", "title": "text", "city": "text", "budget": "dec", "opened": "date"},
    "visit": {"id": "int", "day": "date", "minutes": "int", "note": "text", "paid": "bool", "price": "dec"},
}  # fmt: skip
"""The tables: by column, the kind of its values."""

TYPES = {
    "int": "integer", "text": "varchar(40)", "dec": "decimal(10,2)", "real": "double precision", "bool": "boolean",
    "date": "date", "time": "timestamp",
}  # fmt: skip
"""The declared type of each kind of value, in every engine."""

ROWS: Mapping[str, Sequence[Sequence[object]]] = {
    "staff": [
        (1, "Ada", 10, "4100.50", 1.5, True, "2019-01-31", "2024-02-29 23:59:59", None),
        (2, "bob", 10, "2999.99", -0.25, False, "2020-02-29", "2024-01-01 00:00:00", 1),
        (3, "Zoë", 20, None, None, None, "2021-12-31", None, 1),
        (4, "élan", None, "0.05", 2.5, True, None, "2023-12-31 12:30:15", 2),
        (5, "", 30, "-17.25", 3.5, False, "2024-03-31", "2024-03-10 02:30:00", 2),
        (6, "a_b%c", 20, "4100.50", 1e6, True, "2019-01-31", "2024-02-29 00:00:00", None),
        (7, None, 99, "1234567.89", 0.1, None, "1999-07-04", "1969-12-31 23:59:59", 3),
        (8, "Bob ", 10, "2.50", -2.5, True, "2024-02-29", "2024-12-30 08:00:01", 5),
    ],
    "dept": [
        (10, "Sales", "Rome", "100000.00", "2001-01-01"),
        (20, "sales", None, "20.20", "2010-06-15"),
        (30, "R&D", "oslo", None, "2020-12-31"),
        (40, "Ops", "Rome", "0.00", None),
        (None, "none", "Bern", "-5.50", "2020-02-29"),
    ],
    "visit": [
        (1, "2024-01-01", 30, "first", True, "10.00"),
        (1, "2024-02-29", -7, None, False, "0.10"),
        (2, "2024-12-31", 0, "10", None, "3.33"),
        (3, None, 45, "It's", True, None),
        (9, "2023-01-01", None, "", False, "99.99"),
        (4, "2024-03-31", 7, "9", True, "-1.50"),
    ],
}


def declarations(dialect: str) -> list[str]:
    """Return the statements that make the tables with their rows."""
    made: list[str] = []
    for table, columns in TABLES.items():
        typed = ", ".join(f"{name} {_declared(kind, dialect)}" for name, kind in columns.items())
        made.append(f"CREATE TABLE {table} ({typed})")
        rows = (
            ", ".join(_written(value, kind, dialect) for value, kind in zip(row, columns.values(), strict=True))
            for row in ROWS[table]
        )
        made.append(f"INSERT INTO {table} VALUES " + ", ".join(f"({row})" for row in rows))
    return made


def _declared(kind: str, dialect: str) -> str:
    return "double" if kind == "real" and dialect == "trino" else TYPES[kind]


def _written(value: object, kind: str, dialect: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value)) if dialect == "sqlite" else str(value).upper()
    if kind in ("text", "date", "time"):
        quoted = "'" + str(value).replace("'", "''") + "'"
        keyword = {"date": "date ", "time": "timestamp "}.get(kind, "") if dialect != "sqlite" else ""
        return keyword + quoted
    return f"{value:.2f}e0" if kind == "real" else str(value)


Forms = Mapping[str, Sequence[str]]
"""By letters of engines (s: SQLite, p: Postgres, d: DuckDB, t: Trino), forms of expressions. {kind} is an expression of
this kind, {#} a small number, and a word in brackets another choice (see `_CHOICES`)."""

_INTS: Forms = {
    "spdt": (
        "{#}", "{int} + {int}", "{int} - {int}", "{int} * {#}", "{int} / {#}", "{int} % {#}", "-({int})", "abs({int})",
        "length({text})", "CASE WHEN {bool} THEN {int} ELSE {int} END", "coalesce({int}, {int})", "nullif({int}, {#})",
        "CASE WHEN {bool} THEN {int} END", "CASE {int} WHEN {#} THEN {int} WHEN {#} THEN {int} END", "({int})",
        "cast({real} AS integer)", "cast({dec} AS integer)", "cast({bool} AS integer)", "cast('{#}' AS integer)",
        "{int} / {int}", "{int} % {int}",
    ),
    "spd": ("cast(note AS integer)", "{int} & {#}", "{int} | {#}", "{int} << {#}"),
    "pdt": (
        "extract({part} FROM {date})", "extract({part} FROM {time})", "extract(hour FROM {time})",
        "position({short} IN {text})", "strpos({text}, {short})", "greatest({int}, {int})", "least({int}, {int})",
        "mod({int}, {#})", "char_length({text})", "sign({int})", "floor({real})", "ceil({dec})", "round({dec})",
        "cast(trunc({real}) AS integer)",
    ),
    "pd": (
        "{int}::integer", "({real})::int", "{date} - {date}", "date_part({'part'}, {date})", "ascii({text})",
        "'{#}'::int", "extract(dow FROM {date})", "extract(epoch FROM {time})", "{bool}::int",
        "div({int}, {#})", "extract(isodow FROM {date})", "extract(week FROM {date})",
    ),
    "d": ("{int} // {#}", "datediff('month', {date}, {date})", "date_diff('day', {date}, {date})",
          "instr({text}, {short})",
          "year({date})", "dayofweek({date})", "len({text})", "strlen({text})"),
    "t": (
        "date_diff('day', {date}, {date})", "date_diff('month', {date}, {date})", "year({date})", "day_of_week({date})",
        "day_of_year({date})", "week({date})", "codepoint('A')", "bitwise_and({int}, {#})", "quarter({date})",
        "if({bool}, {int}, {int})", "try_cast({text} AS integer)", "truncate({real})",
        "cardinality(ARRAY[{int}, {int}])",
        "hour({time})", "month({time})", "date_diff('hour', {time}, {time})", "try({int} / {int})",
    ),
    "s": (
        "instr({text}, {short})", "cast(strftime('%Y', {date}) AS integer)", "max({int}, {int})", "min({int}, {int})",
        "cast({text} AS integer)", "unicode({text})", "iif({bool}, {int}, {int})", "ifnull({int}, {int})",
        "cast(julianday({date}) - julianday({date}) AS integer)", "cast(strftime('%w', {date}) AS integer)", "{bool}",
        "{bool} + {int}", "total({int})" , "unixepoch({time})", "cast(strftime('%j', {date}) AS integer)",
        "sign({int})", "cast({date} AS integer)",
    ),
}  # fmt: skip
_DECS: Forms = {
    "spdt": (
        "{dec} + {dec}", "{dec} * {#}", "{dec} - {dec}", "{dec} / {#}", "round({dec}, 1)", "round({dec} / {#}, 2)",
        "0.5",
        "coalesce({dec}, 0)", "abs({dec})", "-{dec}", "CASE WHEN {bool} THEN {dec} ELSE 0 END", "{int} * 1.5",
        "cast({int} AS decimal(10, 2))", "nullif({dec}, 0)", "{int} / 2.0", "round({dec})",
        "cast({dec} AS decimal(12, 1))",
        "{dec} % {#}", "{int} + 0.5",
    ),
    "pdt": ("greatest({dec}, {dec})", "least({dec}, 1)", "ceil({dec})", "floor({dec})", "mod({dec}, {#})",
            "cast('1.25' AS decimal(10, 2))", "round({dec}, -1)"),
    "pd": ("{dec}::numeric(10, 1)", "trunc({dec}, 1)", "({int})::numeric / {#}", "{text}::numeric"),
    "t": ("truncate({dec}, 1)", "if({bool}, {dec}, {dec})"),
    "s": ("ifnull({dec}, 0)", "max({dec}, {int})", "cast({text} AS numeric)"),
}  # fmt: skip
_REALS: Forms = {
    "spdt": (
        "{real} * {#}", "{real} / {#}", "{real} + {int}", "round({real})", "sqrt(abs({real}))", "abs({real})", "1.5e0",
        "power({#}, {#})", "coalesce({real}, 0)", "-{real}", "{real} / {real}", "{real} * {dec}", "exp({#})", "ln({#})",
    ),
    "pdt": ("cast({int} AS double precision) / {#}", "cast({dec} AS double precision)", "floor({real})",
            "log(10, {#})"),
    "pd": ("{real}::float8", "{int}::double precision / {#}", "log({#})", "cbrt({real})", "{#} ^ {#}"),
    "t": ("cast({int} AS double) / {#}", "cast({dec} AS double)", "log10({#})", "log2({#})", "cbrt({real})"),
    "s": ("cast({int} AS real) / {#}", "cast({text} AS real)", "julianday({date})", "log({#})", "{int} * 1.0"),
}  # fmt: skip
_TEXTS: Forms = {
    "spdt": (
        "'x'", "{text} || {text}", "upper({text})", "lower({text})", "substr({text}, 2)", "substr({text}, 1, {#})",
        "trim({text})", "replace({text}, 'a', 'b')", "coalesce({text}, '?')", "{text} || '!'", "'It''s'",
        "CASE WHEN {bool} THEN 'yes' ELSE 'no' END", "nullif({text}, '')", "ltrim({text})", "rtrim({text})",
        "cast({int} AS varchar)", "cast({dec} AS varchar)", "cast({date} AS varchar)",
        "CASE WHEN {bool} THEN {text} END",
        "substr({text}, {int}, {#})", "cast({text} AS varchar(2))", "substr({text}, -2)",
    ),
    "spd": ("cast({int} AS text)", "concat({text}, {text})", "cast({dec} AS text)"),
    "pdt": (
        "substring({text} FROM 2 FOR {#})", "concat({text}, {text})", "lpad({text}, {#}, '*')", "reverse({text})",
        "rpad({text}, 5, '*')", "trim(leading 'A' FROM {text})", "split_part({text}, 'a', 1)",
        "concat({text}, '-', {text})",
        "cast({bool} AS varchar)", "cast({time} AS varchar)", "cast({real} AS varchar)", "trim(both 'b' FROM {text})",
        "replace({text}, 'b')", "translate({text}, 'ab', 'x')", "greatest({text}, {text})", "chr(65 + {#})",
        "concat_ws('-', {text}, {text})", "regexp_replace({text}, '[ab]', 'X')", "cast({text} AS char(3))",
        "position('b' IN {text}) || ''",
    ),
    "pd": ("left({text}, {#})", "right({text}, {#})", "initcap({text})", "repeat({text}, 2)", "{int}::text",
           "{date}::text", "{bool}::text", "{int} || {text}", "{text} || {int}", "left({text}, -1)", "md5({text})",
           "string_agg({text}, ',') OVER ()", "{time}::text", "{dec}::text", "{real}::text"),
    "p": ("to_char({date}, 'YYYY-MM')", "to_char({time}, 'DD.MM.YYYY HH24:MI')", "to_char({date}, 'Mon DD')",
          "to_char({dec}, 'FM999990.00')", "format('%s-%s', {text}, {int})", "E'a\\tb'",
          "overlay({text} placing 'Z' from 2)",
          "split_part({text}, 'a', -1)", "substring({text} from '[a-z]+')", "to_char({date}, 'Day')",
          "to_char({int}, '999')"),
    "d": ("strftime({date}, '%Y-%m')", "{text}[1]", "{text}[1:2]", "format('{}-{}', {text}, {int})",
          "monthname({date})", "if({bool}, {text}, {text})", "list_aggregate([{text}, {text}], 'string_agg', ',')"),
    "t": ("date_format({date}, '%Y-%m')", "format_datetime({time}, 'yyyy-MM')", "concat({text}, {text}, {text})",
          "array_join(ARRAY[{text}, {text}], ',')", "regexp_extract({text}, '[a-z]+')", "if({bool}, {text})",
          "date_format({time}, '%d.%m.%Y %H:%i')", "split({text}, 'a')[1]", "json_extract_scalar('{\"a\": 1}', '$.a')"),
    "s": ("strftime('%Y-%m', {date})", "printf('%d', {int})", "date({date}, '+1 month')", "{int} || ''", "{dec} || ''",
          "datetime({time})", "char(65 + {#})", "typeof({int})", "quote({text})", "strftime('%d.%m.%Y', {date})",
          "trim({text}, 'b')", "iif({bool}, {text}, {text})", "ifnull({text}, '?')", "{real} || ''",
          "json_extract('{\"a\": \"b\"}', '$.a')", "'{\"a\": 1.50}' ->> 'a'", "date({time})", "time({time})",
          "datetime({date}, '+1 day')", "date({date}, 'start of month')", "hex({text})", "{bool} || ''"),
}  # fmt: skip
_BOOLS: Forms = {
    "spdt": (
        "{int} > {int}", "{int} = {int}", "{int} <> {#}", "{text} = {text}", "{text} < {text}", "{dec} >= {dec}",
        "{text} LIKE {pattern}", "{text} NOT LIKE {pattern}", "{int} IN ({#}, {#}, NULL)", "{int} NOT IN ({#}, {#})",
        "{text} IS NULL", "{int} IS NOT NULL", "({bool} AND {bool})", "({bool} OR {bool})", "NOT ({bool})",
        "{int} BETWEEN {#} AND {int}", "{date} > {day}", "{date} = {day}", "{date} BETWEEN {day} AND {day}",
        "{int} IS DISTINCT FROM {int}", "{text} IN ('Ada', 'bob', 'Rome')", "{real} < {#}", "{dec} = {#}",
        "({int}, {text}) = ({int}, {text})", "{date} < {date}", "{time} < {time}", "{text} LIKE '%!_%' ESCAPE '!'",
        "{int} = (SELECT max(dept) FROM dept)", "EXISTS (SELECT 1 FROM visit v WHERE v.id = {int})",
        "{int} IN (SELECT dept FROM dept)", "{int} NOT IN (SELECT dept FROM dept)", "{int} > {real}", "{dec} > {real}",
        "{int} NOT IN (SELECT dept FROM dept WHERE dept IS NOT NULL)", "TRUE", "{bool} = {bool}", "{bool} IS NULL",
        "{int} = (SELECT count(*) FROM visit v WHERE v.id = {int})", "{text} > 'b'", "{text} BETWEEN 'A' AND 'b'",
        "({int}, {int}) IN ((1, 2), (1, NULL))", "{text} = 'bob'", "{int} < '5'", "{date} >= '2020-02-29'",
        "{time} >= '2024-01-01'", "{time} {cmp} {odd}", "{date} {cmp} {odd}",
        "{time} BETWEEN '2024-01-01' AND {odd}", "{date} IN ({odd}, '2024-02-29')", "{int} {cmp} {int} = {bool}",
        "{bool} IS TRUE", "{bool} IS NOT TRUE", "{bool} IS FALSE", "{bool} <> {bool}",
        "{time} > {date}", "coalesce({bool}, FALSE)", "{text} LIKE {text}", "({int}, {int}) < ({int}, {int})",
        "{text} = {int}",
    ),
    "pd": ("{text} ILIKE {pattern}", "{text} ~ '^[a-b]'", "{text} ~* 'B'", "{text} SIMILAR TO '(A|b)%'",
           "{int} = ANY (ARRAY[1, 2])",
           "{date} > {day}::timestamp", "starts_with({text}, 'b')", "{text} !~ 'a'"),
    "pdt": ("{int} > ALL (SELECT dept FROM dept WHERE dept < 20)", "{int} = ANY (SELECT dept FROM dept)",
            "{date} < current_date - interval '1' day", "{int} = ANY (SELECT boss FROM staff)"),
    "t": ("regexp_like({text}, '^[a-b]')", "contains(ARRAY[1, 2], {int})", "starts_with({text}, 'b')"),
    "s": ("{text} GLOB 'b*'", "{int}", "{text} = 'BOB' COLLATE NOCASE", "{int} IS {int}", "{text} == 'bob'",
          "{bool} = 1",
          "{text} IS NOT 'bob'", "date({date}) > '2020-01-01'", "{int} > '2'", "{dec}"),
}  # fmt: skip
_DATES: Forms = {
    "spdt": ("coalesce({date}, {day})", "CASE WHEN {bool} THEN {date} END", "{day}", "nullif({date}, {day})"),
    "pdt": ("cast({time} AS date)", "{date} + interval '1' month", "{date} - interval '1' day",
            "date_trunc('month', {date})",
            "date_trunc('week', {date})", "greatest({date}, {day})", "date '2024-01-31' + interval '1' month",
            "date_trunc('year', {date})", "date_trunc('quarter', {date})", "{date} + interval '1' year"),
    "pd": ("{date} + {#}", "{date} - {#}", "{time}::date", "'2024-02-29'::date", "{date} + interval '1 month 2 days'",
           "make_date(2024, {#}, {#})"),
    "d": ("last_day({date})", "date_add({date}, interval 1 month)"),
    "t": ("date_add('month', {#}, {date})", "date_add('day', -{#}, {date})", "last_day_of_month({date})",
          "date({time})"),
    "s": ("date({date}, '+1 day')", "date({date}, '-1 month')", "date({date}, 'start of year')", "date({time})",
          "date({date}, 'weekday 0')", "date({date}, 'start of month', '+1 month', '-1 day')"),
}  # fmt: skip
_TIMES: Forms = {
    "spdt": ("coalesce({time}, {time})", "CASE WHEN {bool} THEN {time} END"),
    "pdt": ("date_trunc('hour', {time})", "{time} + interval '90' minute", "timestamp '2024-02-29 12:00:00'",
            "date_trunc('day', {time})", "cast({date} AS timestamp)", "{time} - interval '1' month"),
    "pd": ("{date}::timestamp", "{time} + interval '1 day 2 hours'"),
    "t": ("date_add('hour', {#}, {time})", "from_unixtime({int})"),
    "s": ("datetime({time}, '+90 minutes')", "datetime({date})"),
}  # fmt: skip
FORMS: Mapping[str, Forms] = {
    "int": _INTS, "dec": _DECS, "real": _REALS, "text": _TEXTS, "bool": _BOOLS, "date": _DATES, "time": _TIMES,
}  # fmt: skip

AGGREGATES: Mapping[str, Forms] = {
    "int": {
        "spdt": ("count(*)", "count({int})", "count(DISTINCT {int})", "sum({int})", "min({int})", "max({int})",
                 "count({text})", "count(DISTINCT {text})", "sum(CASE WHEN {bool} THEN 1 ELSE 0 END)",
                 "count(*) FILTER (WHERE {bool})", "count(CASE WHEN {bool} THEN 1 END)", "sum(DISTINCT {int})",
                 "sum({int}) / count(*)", "max({int}) - min({int})", "count(*) * 2", "sum({int}) % 7", "count(*) / 2",
                 "sum({int}) FILTER (WHERE {bool})"),
        "t": ("count_if({bool})", "approx_distinct({int})", "max_by({int}, id)", "min_by({int}, id)"),
        "d": ("count_if({bool})", "arg_max({int}, id)"),
        "s": ("sum({bool})", "total({int})", "max({int}, {int})"),
        "pd": ("sum({bool}::int)", "bit_and({int})"),
    },
    "dec": {
        "spdt": ("sum({dec})", "avg({dec})", "avg({int})", "min({dec})", "max({dec})", "round(avg({dec}), 2)",
                 "sum({dec} * {#})", "sum({dec}) / count(*)", "round(avg({int}), 1)", "sum({dec}) / sum({int})",
                 "coalesce(sum({dec}), 0)", "100.0 * count({int}) / count(*)"),
    },
    "real": {
        "spdt": ("avg({real})", "sum({real})", "max({real})"),
        "pdt": ("stddev({int})", "var_pop({real})", "stddev_pop({dec})", "corr({real}, {int})", "variance({int})"),
        "pd": ("percentile_cont(0.5) WITHIN GROUP (ORDER BY {int})",
               "percentile_disc(0.5) WITHIN GROUP (ORDER BY {int})",
               "mode() WITHIN GROUP (ORDER BY {int})"),
        "d": ("median({int})", "quantile_cont({int}, 0.5)"),
        "t": ("approx_percentile({int}, 0.5)", "geometric_mean({#})"),
    },
    "text": {
        "spdt": ("min({text})", "max({text})", "coalesce(max({text}), '-')"),
        "pd": ("string_agg({text}, ',' ORDER BY {key})", "string_agg(DISTINCT {text}, ',' ORDER BY {text})" ,
               "string_agg({text}, '; ' ORDER BY {key})", "array_agg({int} ORDER BY {key})",
               "array_agg({text} ORDER BY {key})"),
        "t": ("listagg({text}, ',') WITHIN GROUP (ORDER BY {key})", "array_agg({int} ORDER BY {key})",
              "array_join(array_agg({text} ORDER BY {key}), ',')"),
        "s": ("group_concat({text}, ',' ORDER BY {key})", "group_concat({text})", "string_agg({text}, ',')"),
    },
    "bool": {
        "pdt": ("bool_and({bool})", "bool_or({bool})", "every({bool})"),
        "s": ("max({bool})", "min({bool})"),
    },
    "date": {"spdt": ("min({date})", "max({date})")},
}  # fmt: skip

WINDOWS: Mapping[str, Forms] = {
    "int": {
        "spdt": ("row_number() OVER (ORDER BY {key})", "rank() OVER (ORDER BY {int})", "count(*) OVER ()",
                 "dense_rank() OVER (PARTITION BY {int} ORDER BY {int} DESC)", "sum({int}) OVER (ORDER BY {key})",
                 "lag({int}) OVER (ORDER BY {key})", "lead({int}, 2, 0) OVER (ORDER BY {key})",
                 "ntile(3) OVER (ORDER BY {key})",
                 "first_value({int}) OVER (ORDER BY {int}, {key})", "last_value({int}) OVER (ORDER BY {key})",
                 "sum({int}) OVER (ORDER BY {key} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                 "count({int}) OVER (PARTITION BY {bool})", "max({int}) OVER (ORDER BY {int})",
                 "sum({int}) OVER (ORDER BY {int})", "rank() OVER (ORDER BY {text})", "rank() OVER (ORDER BY {date})",
                 "sum({int}) OVER (ORDER BY {key} RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
                 "nth_value({int}, 2) OVER (ORDER BY {key})", "rank() OVER (ORDER BY {int} NULLS LAST)",
                 "sum({int}) OVER (ORDER BY {int} DESC ROWS UNBOUNDED PRECEDING)", "rank() OVER (ORDER BY {int} DESC)",
                 "count(*) OVER (ORDER BY {int} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
                 "sum({int}) OVER w", "row_number() OVER (PARTITION BY {text} ORDER BY {key})"),
    },
    "dec": {"spdt": ("avg({dec}) OVER (PARTITION BY {int})", "sum({dec}) OVER (ORDER BY {key})", "max({dec}) OVER ()")},
    "real": {"spdt": ("percent_rank() OVER (ORDER BY {int})", "cume_dist() OVER (ORDER BY {int})")},
    "text": {"spdt": ("lag({text}, 1, '-') OVER (ORDER BY {key})", "first_value({text}) OVER (ORDER BY {key} DESC)")},
}  # fmt: skip

_CHOICES: Mapping[str, Sequence[str]] = {
    "#": ("1", "2", "3", "4", "5", "7", "10", "20"),
    "part": ("year", "month", "day", "quarter"),
    "'part'": ("'year'", "'month'", "'day'"),
    "pattern": ("'A%'", "'%b%'", "'_ob'", "'%'", "'bob'", "'%\\_%'", "'a_b%%c'", "'%o'", "''"),
    "cmp": ("=", "<>", "<", "<=", ">", ">="),
    "odd": (
        "'2024-02-29'",
        "'2024-2-29'",
        "'2024-02-29 00:00:00'",
        "'2024-02-29 00:00'",
        "'2019-01-31'",
        "'2024-02-29T00:00:00'",
        "'2024-02-29 23:59:59'",
    ),
    "short": ("'a'", "'o'", "'ob'", "''", "'%'"),
}
_HOLE = re.compile(r"\{([a-z]+|#|'part')\}")
_LETTERS = {"sqlite": "s", "postgres": "p", "duckdb": "d", "trino": "t"}


@dataclass(frozen=True)
class Made:
    """A query, and the places of the outputs that ORDER BY fixes in full, if it does."""

    sql: str
    ordered: bool
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """What stands in FROM: its text, its columns by kind as they are written, and the one that numbers its rows."""

    text: str
    columns: Sequence[tuple[str, str]]
    key: str


@dataclass
class Maker:
    """Makes queries in the SQL of `dialect`."""

    random: Random
    dialect: str
    depth: int = 2
    scope: Sequence[tuple[str, str]] = ()
    key: str = "1"
    loose: bool = False
    """Whether operands stand without parentheses, so that the engine's order of operators decides."""

    @property
    def letter(self) -> str:
        """The letter of the dialect in the forms."""
        return _LETTERS[self.dialect]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def make(self) -> Made:
        """Return a query."""
        shape = self.random.choice((
            self.plain, self.plain, self.grouped, self.grouped, self.windowed, self.united, self.starred,
            self.with_, self.rolled, self.nested, self.distinct, self.sorted_, self.lateral, self.recursive,
            self.values,
            self.named, self.named, self.dated, self.bare, self.bare,
        ))  # fmt: skip
        self.loose = self.chance(0.3)
        return shape()

    # Expressions

    def form(self, forms: Forms) -> str:
        own = [form for letters, given in forms.items() if self.letter in letters for form in given]
        return self.random.choice(own)

    def expression(self, kind: str, depth: int | None = None) -> str:
        """Return an expression of a kind, mostly of a column."""
        depth = self.random.randint(0, self.depth) if depth is None else depth
        columns = [name for name, its in self.scope if its == kind]
        if depth <= 0 and columns:
            return self.random.choice(columns)
        if depth <= 0:
            return self.constant(kind)
        return self.fill(self.form(FORMS[kind]), depth - 1)

    def constant(self, kind: str) -> str:
        plain = {"int": "2", "dec": "1.25", "real": "0.5e0", "text": "'ab'", "bool": "1 = 1"}
        if kind == "time":
            return "'2024-02-29 12:00:00'" if self.dialect == "sqlite" else "timestamp '2024-02-29 12:00:00'"
        return plain.get(kind) or self.day()

    def day(self) -> str:
        chosen = self.random.choice(("2024-02-29", "2020-02-29", "2019-01-31", "2024-01-01"))
        return f"'{chosen}'" if self.dialect == "sqlite" else f"date '{chosen}'"

    def fill(self, form: str, depth: int) -> str:
        def one(found: re.Match[str]) -> str:
            name = found[1]
            if name in _CHOICES:
                return self.random.choice(_CHOICES[name])
            if name == "day":
                return self.day()
            if name == "key":
                return self.key
            made = self.expression(name, depth)
            if self.loose:
                return made
            return (
                made if re.fullmatch(r"[\w.]+|'[^']*'|\w+\([^()]*\)", made) or "{" + name + "}" == form else f"({made})"
            )

        return _HOLE.sub(one, form)

    def condition(self, depth: int = 1) -> str:
        return self.expression("bool", depth)

    def kind(self) -> str:
        return self.random.choice(("int", "int", "dec", "real", "text", "text", "bool", "date", "time"))

    def outputs(self, count: int) -> list[str]:
        return [self.expression(self.kind()) for _ in range(count)]

    # FROM

    def source(self) -> Source:
        made = self.random.choice((self.table, self.table, self.joined, self.joined, self.using, self.inner))()
        self.scope, self.key = made.columns, made.key
        return made

    def table(self) -> Source:
        name = self.random.choice(tuple(TABLES))
        alias = self.random.choice((name, "x", "T"))
        prefix = self.random.choice((alias + ".", ""))
        columns = [(prefix + column, kind) for column, kind in TABLES[name].items()]
        key = {"staff": "id", "dept": "title", "visit": "price"}[name]
        return Source(
            name if alias == name else f"{name} {self.random.choice(('AS ', ''))}{alias}", columns, prefix + key
        )

    def kind_of_join(self) -> str:
        return self.random.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT OUTER JOIN", "INNER JOIN"))

    def joined(self) -> Source:
        columns = [("s." + name, kind) for name, kind in TABLES["staff"].items()]
        other = self.random.choice(("dept", "visit"))
        columns += [("o." + name, kind) for name, kind in TABLES[other].items()]
        on = {"dept": "s.dept = o.dept", "visit": "s.id = o.id"}[other]
        text = f"staff s {self.kind_of_join()} {other} o ON {on}"
        if self.chance(0.3):
            self.scope = columns
            text += f" AND {self.condition(0)}"
        key = {"dept": "s.id, o.title", "visit": "s.id, o.price"}[other]
        return Source(text, columns, key)

    def using(self) -> Source:
        natural = self.chance(0.3) and self.dialect != "trino"
        how = self.kind_of_join()
        text = f"staff s NATURAL {how} dept d" if natural else f"staff s {how} dept d USING (dept)"
        columns = [(name, kind) for name, kind in TABLES["staff"].items()]
        columns += [(name, kind) for name, kind in TABLES["dept"].items() if name != "dept"]
        if self.chance(0.3) and not natural:
            text += f" {self.kind_of_join()} visit v USING (id)"
            columns += [(name, kind) for name, kind in TABLES["visit"].items() if name != "id"]
            return Source(text, columns, "id, title, price")
        return Source(text, columns, "id, title")

    def inner(self) -> Source:
        source = self.table()
        self.scope, self.key = source.columns, source.key
        kinds = [self.kind() for _ in range(2)]
        listed = [f"{self.expression(kind)} AS c{place}" for place, kind in enumerate(kinds)]
        where = f" WHERE {self.condition()}" if self.chance(0.4) else ""
        columns = [("q.k", "text" if "title" in source.key else "int")] + [
            (f"q.c{n}", kind) for n, kind in enumerate(kinds)
        ]
        text = f"(SELECT {source.key} AS k, {', '.join(listed)} FROM {source.text}{where}) AS q"
        return Source(text, columns, "q.k")

    # Queries

    def where(self, share: float = 0.5) -> str:
        return f" WHERE {self.condition()}" if self.chance(share) else ""

    def listed(self, outputs: Sequence[str]) -> str:
        names = ("a", "B", "total", '"Mixed Name"', "year", "name", '"A"', '"Id"', "id", "dept", '"NAME"')
        return ", ".join(
            f"{output} AS {self.random.choice(names)}" if self.chance(0.6) else output for output in outputs
        )

    def plain(self) -> Made:
        source = self.source()
        outputs = self.outputs(self.random.randint(1, 3))
        order = self.random.choice((" ORDER BY id", " ORDER BY name", " ORDER BY a", " ORDER BY dept")) * self.chance(
            0.3
        )
        limit = ""
        return Made(f"SELECT {self.listed(outputs)} FROM {source.text}{self.where()}{order}{limit}", False)

    def sorted_(self) -> Made:
        """A query whose order is fixed in full by its own outputs, and cut."""
        source = self.source()
        outputs = self.outputs(self.random.randint(1, 2))
        places = self.random.sample(range(1, len(outputs) + 1), len(outputs))
        keys = ", ".join(
            f"{place}{self.random.choice(('', ' DESC', ' ASC', ' NULLS LAST', ' DESC NULLS FIRST', ' NULLS FIRST'))}"
            for place in places
        )
        limit = self.random.choice(("", "", " LIMIT 3", " LIMIT 4 OFFSET 1"))
        if self.dialect == "trino":
            limit = limit.replace("LIMIT 4 OFFSET 1", "OFFSET 1 LIMIT 4")
        elif self.dialect != "sqlite" and limit:
            limit = self.random.choice(
                (limit, " OFFSET 1 ROWS FETCH NEXT 3 ROWS ONLY" if self.dialect == "postgres" else limit)
            )
        listed = ", ".join(f"{output} AS o{place}" for place, output in enumerate(outputs, 1))
        if self.chance(0.4):
            keys = re.sub(r"\b(\d+)", r"o\1", keys)
        return Made(f"SELECT {listed} FROM {source.text}{self.where(0.3)} ORDER BY {keys}{limit}", True)

    def aggregate(self) -> str:
        kind = self.random.choice(("int", "int", "dec", "dec", "real", "text", "bool", "date"))
        return self.fill(self.form(AGGREGATES[kind]), self.random.randint(0, 1))

    def grouped(self) -> Made:
        source = self.source()
        keys = [self.expression(self.kind(), self.random.randint(0, 1)) for _ in range(self.random.randint(0, 2))]
        shown = [f"{key} AS k{place}" if self.chance(0.6) else key for place, key in enumerate(keys)]
        listed = shown + [self.aggregate() + f" AS a{n}" * self.chance(0.7) for n in range(self.random.randint(1, 2))]
        by = [
            self.random.choice((key, str(place + 1), f"k{place}" if " AS " in shown[place] else key))
            for place, key in enumerate(keys)
        ]
        group = f" GROUP BY {', '.join(by)}" if by else ""
        having = f" HAVING {self.random.choice(('count(*) > 1', 'min(1) = 1', self.aggregate() + ' IS NOT NULL'))}"
        return Made(
            f"SELECT {', '.join(listed)} FROM {source.text}{self.where()}{group}{having * self.chance(0.25)}", False
        )

    def rolled(self) -> Made:
        source = self.source()
        keys = [self.expression(kind, 0) for kind in self.random.sample(("int", "text", "bool"), 2)]
        form = self.random.choice(("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"))
        grouping = f", grouping({keys[0]})" if self.chance(0.3) else ""
        by = form.format(", ".join(keys))
        return Made(
            f"SELECT {', '.join(keys)}, {self.aggregate()}{grouping} FROM {source.text}{self.where()} GROUP BY {by}",
            False,
        )

    def windowed(self) -> Made:
        source = self.source()
        kind = self.random.choice(tuple(WINDOWS))
        form = self.fill(self.form(WINDOWS[kind]), self.random.randint(0, 1))
        clause = (
            f" WINDOW w AS (PARTITION BY {self.expression('int', 0)} ORDER BY {self.key})" if "OVER w" in form else ""
        )
        return Made(f"SELECT {self.key}, {form} AS w FROM {source.text}{self.where(0.3)}{clause}", False)

    def united(self) -> Made:
        kinds = [self.kind() for _ in range(self.random.randint(1, 2))]
        parts: list[str] = []
        for _ in range(self.random.randint(2, 3)):
            source = self.table()
            self.scope, self.key = source.columns, source.key
            listed = ", ".join(f"{self.expression(kind)} AS c{n}" for n, kind in enumerate(kinds))
            parts.append(f"SELECT {listed} FROM {source.text}{self.where(0.3)}")
        text = parts[0]
        for part in parts[1:]:
            operators = ["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]
            if self.dialect != "sqlite":
                operators += ["EXCEPT ALL", "INTERSECT ALL"] if self.dialect != "trino" else []
            text += f" {self.random.choice(operators)} {part}"
        order = f" ORDER BY {', '.join(str(n + 1) + self.random.choice(('', ' DESC')) for n in range(len(kinds)))}"
        if self.chance(0.5):
            return Made(text + order + " LIMIT 5" * self.chance(0.5), True)
        return Made(text, False)

    def starred(self) -> Made:
        source = self.source()
        star = self.random.choice(("*", "*", "*, 1 AS one", "count(*) AS n, max(1)"))
        aliases = re.findall(r"\b(?:staff|dept|visit) (?:AS )?([A-Za-z])\b(?! USING)", source.text)
        if aliases and self.chance(0.4):
            star = self.random.choice(aliases) + ".*"
        return Made(f"SELECT {star} FROM {source.text}{self.where()}", False)

    def with_(self) -> Made:
        source = self.table()
        self.scope, self.key = source.columns, source.key
        kinds = [self.kind() for _ in range(2)]
        listed = ", ".join(f"{self.expression(kind)} AS c{n}" for n, kind in enumerate(kinds))
        head, columns = "w", [(f"c{n}", kind) for n, kind in enumerate(kinds)]
        if self.chance(0.3):
            head, columns = "w (a, b)", list(zip("ab", kinds, strict=True))
        member = f"WITH {head} AS (SELECT {listed} FROM {source.text}{self.where()})"
        self.scope, self.key = columns, columns[0][0]
        if self.chance(0.4):
            return Made(f"{member} SELECT {self.aggregate()}, count(*) FROM w{self.where()}", False)
        if self.chance(0.3):
            return Made(f"{member} SELECT * FROM w x JOIN w y ON x.{columns[0][0]} = y.{columns[0][0]}", False)
        return Made(f"{member} SELECT {self.listed(self.outputs(2))} FROM w{self.where()}", False)

    def nested(self) -> Made:
        source = self.table()
        self.scope, self.key = source.columns, source.key
        kind = self.kind()
        inner = self.expression(kind)
        scalar = self.random.choice((
            "(SELECT max(o.dept) FROM dept o WHERE o.dept < {int})",
            "(SELECT count(*) FROM visit o WHERE o.id = {int})",
            "(SELECT sum(o.price) FROM visit o WHERE o.id = {int})",
            "(SELECT o.title FROM dept o WHERE o.dept = {int} ORDER BY o.title LIMIT 1)",
            "(SELECT avg(o.minutes) FROM visit o)", "(SELECT o.note FROM visit o ORDER BY o.note DESC LIMIT 1)",
            "(SELECT o.minutes FROM visit o ORDER BY o.minutes LIMIT 1)",
            "(SELECT o.city FROM dept o ORDER BY o.city LIMIT 1)",
        ))  # fmt: skip
        return Made(f"SELECT {inner} AS i, {self.fill(scalar, 0)} AS s FROM {source.text}{self.where()}", False)

    def named(self) -> Made:
        """A query over names that may differ only in case."""
        source = self.table()
        self.scope, self.key = source.columns, source.key
        names = self.random.sample(("a", "A", '"a"', '"A"', '"Aa"', "aa", "id", '"Id"'), 2)
        kinds = [self.kind(), self.kind()]
        listed = ", ".join(f"{self.expression(kind, 0)} AS {name}" for kind, name in zip(kinds, names, strict=True))
        relation = self.random.choice(("staff", '"Staff"', '"STAFF"', "Q", '"q"'))
        inner = f"SELECT {listed} FROM {source.text}{self.where(0.3)}"
        shown = ", ".join(
            self.random.choice((*names, *map(str.lower, names), relation + "." + names[0])) for _ in range(2)
        )
        order = f" ORDER BY {self.random.choice(names)}" * self.chance(0.3)
        if self.chance(0.5):
            return Made(
                f"WITH {relation} AS ({inner}) SELECT {shown}"
                f" FROM {self.random.choice((relation, 'staff', 'q'))}{order}",
                False,
            )
        return Made(f"SELECT {shown} FROM ({inner}) AS {relation}{order}", False)

    def dated(self) -> Made:
        """A query that compares dates and timestamps with texts."""
        source = self.table()
        self.scope, self.key = source.columns, source.key
        form = self.random.choice(("{date} {cmp} {odd}", "{time} {cmp} {odd}", "{time} BETWEEN {odd} AND {odd}"))
        return Made(f"SELECT {self.key} FROM {source.text} WHERE {self.fill(form, 0)}", False)

    def bare(self) -> Made:
        """A query of operators without parentheses."""
        source, self.loose = self.table(), True
        self.scope, self.key = source.columns, source.key
        operators = ("+", "-", "*", "%", "||", "||", "=", "<", "|", "&", "AND", "OR", "IS DISTINCT FROM", "IN")
        text = self.expression(self.random.choice(("int", "text")), 0)
        for operator in self.random.choices(operators, k=self.random.randint(1, 3)):
            operand = self.expression(self.random.choice(("int", "int", "text", "bool")), 0)
            text += f" {operator} " + (f"({operand})" if operator == "IN" else operand)
        return Made(f"SELECT {text} AS b FROM {source.text}", False)

    def distinct(self) -> Made:
        source = self.source()
        if self.dialect in ("postgres", "duckdb") and self.chance(0.4):
            key = self.expression(self.random.choice(("int", "text", "bool")), 0)
            return Made(
                f"SELECT DISTINCT ON ({key}) {key} AS k, {self.key} FROM {source.text} ORDER BY 1, {self.key}", False
            )
        return Made(
            f"SELECT DISTINCT {self.listed(self.outputs(self.random.randint(1, 2)))} FROM {source.text}{self.where()}",
            False,
        )

    def lateral(self) -> Made:
        if self.dialect == "sqlite":
            return self.plain()
        inner = self.random.choice((
            "SELECT v.price AS p FROM visit v WHERE v.id = s.id ORDER BY v.price DESC LIMIT 1",
            "SELECT count(*) AS p FROM visit v WHERE v.id = s.id", "SELECT s.salary * 2 AS p",
            "SELECT sum(v.minutes) AS p FROM visit v WHERE v.id < s.id",
        ))  # fmt: skip
        how = self.random.choice(
            ("CROSS JOIN LATERAL ({}) l", "LEFT JOIN LATERAL ({}) l ON TRUE", "JOIN LATERAL ({}) AS l ON TRUE")
        )
        self.scope, self.key = [("s." + n, kind) for n, kind in TABLES["staff"].items()] + [("l.p", "dec")], "s.id"
        return Made(
            f"SELECT s.id, l.p, {self.expression(self.kind())} FROM staff s {how.format(inner)}{self.where(0.3)}", False
        )

    def recursive(self) -> Made:
        text = self.random.choice((
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, {int} FROM r",
            "WITH RECURSIVE r (id, lvl) AS (SELECT id, 1 FROM staff WHERE boss IS NULL UNION ALL"
            " SELECT s.id, r.lvl + 1 FROM staff s JOIN r ON s.boss = r.id) SELECT id, lvl FROM r",
            "WITH RECURSIVE r (n, t) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, t || 'b' FROM r WHERE n < 4)"
            " SELECT max(t), count(*), sum(n) FROM r",
        ))  # fmt: skip
        self.scope, self.key = [("n", "int")], "n"
        return Made(self.fill(text, 1), False)

    def values(self) -> Made:
        self.scope = ()
        kinds = [self.kind() for _ in range(2)]
        rows = ", ".join(f"({self.constant(kinds[0])}, {self.expression(kinds[1], 1)})" for _ in range(2))
        names = "column1, column2" if self.dialect != "trino" and self.chance(0.5) else "*"
        if self.dialect == "sqlite":
            return Made(f"SELECT {names} FROM (VALUES {rows})", False)
        head = self.random.choice(
            (f"SELECT * FROM (VALUES {rows}) AS v (a, b)", f"SELECT a, b FROM (VALUES {rows}) AS v (a, b)")
        )
        return Made(head, False)
