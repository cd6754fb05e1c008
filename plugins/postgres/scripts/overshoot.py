# ruff: noqa: E501
"""Find what a deadline cannot end: time everything the lists allow on long values, under a short statement_timeout.

    python scripts/overshoot.py 13 14 15 16 17 18

Linux only: what counts is the processor time of the backend, which a busy machine does not stretch.
A function, operator or cast that does not look for interrupts runs on beyond its deadline, beyond cancellation and
beyond pg_terminate_backend. Each is called with values so long that what takes time proportional to them is done at
once, and what takes more (n * m) is not. What overshoots is printed, worst first, with the call that showed it. Servers of our own
are started; a backend that goes on for too long is killed, which restarts them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import asyncpg
from dragoman_postgres.rules import load_allowed
from dragoman_postgres.testing import Server

TIMEOUT = 0.1
"""Seconds the server gives each call."""
LATE = 0.4
"""Seconds of processor time beyond which a call counts as one that cannot be ended."""
PATIENCE = 5.0
"""Seconds of processor time after which its backend is killed."""
MOST_CALLS = 12
"""Of one overload: combinations of values."""
EXTENSIONS = "hstore pg_trgm fuzzystrmatch unaccent ltree intarray cube citext tablefunc btree_gin postgis".split()

# By type: values that are long, and at least two of them alike but for one end, which is what quadratic searches dread.
LONG: Mapping[str, Sequence[str]] = {
    "text": ("repeat('a', 100000)", "'b' || repeat('a', 50000)", "repeat('a', 50000) || 'b'", "repeat('%a', 2000) || 'c'", "repeat('b', 50000) || 'a'",
             "(SELECT string_agg('w' || n, ' ') FROM generate_series(1, 20000) n)"),
    "bytea": ("decode(repeat('61', 100000), 'hex')", "decode('62' || repeat('61', 50000), 'hex')"),
    "varbit": ("repeat('0', 100000)::varbit", "('1' || repeat('0', 50000))::varbit"),
    "numeric": (
        "repeat('9', 100000)::numeric", "('1' || repeat('3', 60000) || '.7')::numeric", "('0.' || repeat('7', 16000))::numeric",
    ),
    "int4[]": ("array(SELECT generate_series(1, 20000))", "array(SELECT -generate_series(1, 20000))"),
    "int2[]": ("array(SELECT generate_series(1, 20000)::int2)", "array(SELECT -generate_series(1, 20000)::int2)"),
    "text[]": ("array(SELECT n::text FROM generate_series(1, 20000) n)", "array(SELECT 'x' || n FROM generate_series(1, 20000) n)"),
    "jsonb": (
        "(SELECT jsonb_agg(n) FROM generate_series(1, 20000) n)", "(SELECT jsonb_agg(-n) FROM generate_series(1, 20000) n)",
        "(SELECT jsonb_agg(jsonb_build_array(n)) FROM generate_series(1, 5000) n)",
        "(SELECT jsonb_object_agg(n, n) FROM generate_series(1, 20000) n)",
    ),
    "json": (
        "(SELECT json_agg(n) FROM generate_series(1, 20000) n)", "(SELECT json_object_agg(n, n) FROM generate_series(1, 20000) n)",
    ),
    "jsonpath": ("'$[*] ? (@ == $[*])'::jsonpath", "'$.**.**.**.**'::jsonpath", "'strict $[*] < $[*]'::jsonpath"),
    "tsvector": (
        "(SELECT string_agg(n || ':' || n % 16000 + 1, ' ') FROM generate_series(1, 20000) n)::tsvector",
        "(SELECT string_agg('x:' || n, ' ') FROM generate_series(1, 200) n)::tsvector",
        "(SELECT string_agg('w' || n % 100 || ':' || n / 100 + 1, ' ') FROM generate_series(0, 25499) n)::tsvector",
    ),
    "tsquery": (
        "(SELECT string_agg(n::text, ' | ') FROM generate_series(1, 5000) n)::tsquery",
        "(SELECT string_agg(n::text, ' & ') FROM generate_series(1, 5000) n)::tsquery",
        "(SELECT string_agg('x', ' <-> ') FROM generate_series(1, 2000) n)::tsquery",
        "(SELECT string_agg('w' || n, ' & ') FROM generate_series(0, 99) n)::tsquery",
    ),
    "path": (
        "(SELECT '[' || string_agg(format('(%s,%s)', n, n % 7), ',') || ']' FROM generate_series(1, 20000) n)::path",
        "(SELECT '(' || string_agg(format('(%s,%s)', n, 100 + n % 5), ',') || ')' FROM generate_series(1, 20000) n)::path",
    ),
    "polygon": (
        "(SELECT '(' || string_agg(format('(%s,%s)', n, n % 7), ',') || ')' FROM generate_series(1, 20000) n)::polygon",
        "(SELECT '(' || string_agg(format('(%s,%s)', n, n % 5 * 3), ',') || ')' FROM generate_series(1, 20000) n)::polygon",
        "'((-1,-100),(-1,30000),(30000,30000),(30000,-100))'::polygon",
    ),
    "xml": ("('<a>' || repeat('<b/>', 3000) || '</a>')::xml",),
    "hstore": (
        "(SELECT hstore(array_agg(n::text), array_agg(n::text)) FROM generate_series(1, 20000) n)",
        "(SELECT hstore(array_agg('x' || n), array_agg(n::text)) FROM generate_series(1, 20000) n)",
    ),
    "ltree": ("(SELECT string_agg('a', '.') FROM generate_series(1, 60000) n)::ltree", "(SELECT string_agg('a', '.') FROM generate_series(1, 1000) n)::ltree"),
    "lquery": ("(SELECT string_agg('*.a', '.') FROM generate_series(1, 12) n)::lquery", "('*.a.*.a.*.a.*.a.*.b')::lquery"),
    "ltree[]": ("array(SELECT ('a.b' || n)::ltree FROM generate_series(1, 20000) n)",),
    "lquery[]": ("array['*.a.*.a.*.a.*.b'::lquery]",),
    "ltxtquery": (
        "(SELECT string_agg('x' || n, ' & ') FROM generate_series(1, 5000) n)::ltxtquery",
        "(SELECT string_agg('x' || n, ' | ') FROM generate_series(1, 5000) n)::ltxtquery",
    ),
    "query_int": ("(SELECT string_agg(n::text, '|') FROM generate_series(1, 20000) n)::query_int",),
    "int4multirange": (
        "(SELECT range_agg(int4range(2 * n, 2 * n + 1)) FROM generate_series(1, 20000) n)",
        "(SELECT range_agg(int4range(-2 * n, 1 - 2 * n)) FROM generate_series(1, 20000) n)",
    ),
}  # fmt: skip
# What one argument alone may cost, where it is the only long one.
ALONE: Mapping[str, Sequence[str]] = {
    "text": (
        "(SELECT string_agg(n::text, ' ') FROM generate_series(1, 150000) n)",
        "repeat('a & ', 250000) || 'a'",
        "'a' || repeat(chr(803) || chr(775), 20000)",
    ),
}
SHORT: Mapping[str, Sequence[str]] = {
    "int4": ("1", "100000"), "int8": ("1::int8", "100000::int8"), "int2": ("1::int2",), "bool": ("true",), "char": ("'a'::\"char\"",),
    "float8": ("1.5::float8",), "float4": ("1.5::float4",), "regconfig": ("'simple'::regconfig",), "bpchar": (),
    "point": ("'(1,2)'::point",), "lseg": ("'[(1,2),(3,40)]'::lseg",), "box": ("'(1,2),(3,40)'::box",), "line": ("'{1,2,3}'::line",),
    "circle": ("'<(1,2),3>'::circle",), "timestamptz": ("now()",), "timestamp": ("localtimestamp",), "date": ("current_date",),
    "interval": ("'1 day'::interval",), "time": ("localtime",), "name": ("'a'::name",), "int4range": ("int4range(1, 9)",), "oid": ("1::oid",),
}  # fmt: skip
# Of functions of shapes: small shapes, and numbers and words that make much of them.
SHAPES: Mapping[str, Sequence[str]] = {
    "geometry": (
        "'POLYGON((0 0,1 0,1 1,0 1,0 0))'::geometry", "'LINESTRING(0 0,1 1,2 0)'::geometry", "'POINT(0 0)'::geometry",
        "'MULTIPOINT(0 0,1 0,1 1,0 2,3 1)'::geometry",
    ),
    "geography": ("'POLYGON((0 0,1 0,1 1,0 1,0 0))'::geography", "'LINESTRING(0 0,1 1,2 0)'::geography", "'POINT(0 0)'::geography"),
}  # fmt: skip
EXTREME: Mapping[str, Sequence[str]] = {
    **SHAPES,
    "int4": ("2147483647", "100000000", "1"), "int8": ("9000000000000000000::int8", "1::int8"), "bool": ("true",),
    "float8": ("1e-12::float8", "1e9::float8", "1e300::float8"), "text": ("'quad_segs=2000000000'",),
}  # fmt: skip
SAME = {"varchar": "text", "bpchar": "text", "bit": "varbit", "citext": "text", "anyarray": "int4[]", "anyelement": "int4",
        "anycompatiblearray": "int4[]", "anycompatible": "int4", "anynonarray": "int4", "any": "text", "anymultirange": "int4multirange",
        "anyrange": "int4range", "_int4": "int4[]", "_text": "text[]", "_int2": "int2[]", "_ltree": "ltree[]", "_lquery": "lquery[]",
        "_varchar": "text[]"}  # fmt: skip
KEYWORDS = ("xpath", "xpath_exists", "xml_is_well_formed")
# What the last argument must be. Other texts are an error at once, so that the function would never be timed.
WORDS: Mapping[str, str] = {
    **dict.fromkeys(("normalize", "is_normalized"), "'NFD'"),
    **dict.fromkeys(("convert_from", "convert_to"), "'LATIN1'"),
    "encode": "'escape'",
    "decode": "'hex'",
}
XPATH = ("'//b[count(//b[count(//b) > 1]) > 1]'", "'//*[//*[//*[//*]]]'")

_FUNCTIONS = """
SELECT p.proname::text AS name, n.nspname::text AS schema, array(
         SELECT t.typname::text FROM unnest(p.proargtypes) WITH ORDINALITY AS a(oid, place) JOIN pg_type t ON t.oid = a.oid ORDER BY place
       ) AS types, p.provariadic <> 0 AS variadic
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind = 'f' AND p.pronargs BETWEEN 1 AND 4 AND p.proname = ANY ($1::text[]) AND n.nspname IN ('pg_catalog', 'public')
ORDER BY 1, 3
"""
_OPERATORS = """
SELECT o.oprname::text AS name, l.typname::text AS left, r.typname::text AS right
FROM pg_operator o JOIN pg_type r ON r.oid = o.oprright LEFT JOIN pg_type l ON l.oid = o.oprleft
WHERE o.oprname = ANY ($1::text[]) ORDER BY 1, 2, 3
"""
_CASTS = "SELECT typname::text FROM pg_type WHERE typname = ANY ($1::text[]) AND typtype = 'b' ORDER BY 1"


def values(kind: str) -> Sequence[str]:
    """Return expressions of a type, long ones where it has them; none where we know of none."""
    kind = SAME.get(kind, kind)
    return LONG.get(kind) or SHORT.get(kind) or ()


def has_length(kinds: Sequence[str]) -> bool:
    """Whether a value of one of the types may be long."""
    return any(SAME.get(kind, kind) in LONG for kind in kinds)


def given(kinds: Sequence[str]) -> list[Sequence[str]]:
    """Return the values for every argument; texts beside lists are short, since the answer may be their product."""
    lists = any(
        SAME.get(kind, kind).endswith("[]") or SAME.get(kind, kind) in ("json", "jsonb", "hstore") for kind in kinds
    )
    long = [SAME.get(kind, kind) for kind in kinds if SAME.get(kind, kind) in LONG]
    if len(long) == 1:
        return [(*ALONE.get(SAME.get(kind, kind), ()), *values(kind)) for kind in kinds]
    return [
        ("'x'", "repeat('a', 1000)") if lists and SAME.get(kind, kind) == "text" else values(kind) for kind in kinds
    ]


def spread(choices: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield some combinations, of every argument's first values first."""
    return itertools.islice(itertools.product(*choices), MOST_CALLS)


async def calls(connection: asyncpg.Connection[asyncpg.Record]) -> Sequence[tuple[str, str]]:
    """Return (what, expression) of everything to time."""
    lists = load_allowed()
    found: list[tuple[str, str]] = []
    names = sorted(lists.functions | lists.extension_functions | {name.rpartition(".")[2] for name in lists.qualified})
    for row in await connection.fetch(_FUNCTIONS, names):
        if not SHAPES.keys().isdisjoint(row["types"]):
            what = f"{row['name']}({', '.join(row['types'])})"
            choices = [EXTREME.get(kind, ()) for kind in row["types"]]
            found += ((what, f'{row["schema"]}."{row["name"]}"({", ".join(each)})') for each in spread(choices))
        elif has_length(row["types"]):
            what = f"{row['name']}({', '.join(row['types'])})"
            choices = given(row["types"])
            if row["name"] in KEYWORDS:
                choices[0] = XPATH
            if row["name"] in WORDS and len(choices) > 1:
                first = row["types"][0]
                choices = [(*ALONE.get(first, ()), *values(first)), (WORDS[row["name"]],)]
            found += ((what, f'{row["schema"]}."{row["name"]}"({", ".join(each)})') for each in spread(choices))
    for row in await connection.fetch(_OPERATORS, sorted(lists.operators | lists.extension_operators)):
        kinds = [kind for kind in (row["left"], row["right"]) if kind]
        if has_length(kinds):
            what = f"{row['left'] or ''} {row['name']} {row['right']}"
            for each in spread(given(kinds)):
                found.append(
                    (what, f"({each[0]}) {row['name']} ({each[1]})" if len(each) == 2 else f"{row['name']} ({each[0]})")
                )
    texts = [*ALONE["text"], *(value for several in LONG.values() for value in several[:2])]
    for (kind,) in await connection.fetch(_CASTS, sorted(lists.functions)):
        found += ((f"text -> {kind}", f"({value})::text::{kind}") for value in (*texts, *NUMERALS))
        found += ((f"{value[:12]} -> {kind}", f"({value})::{kind}") for value in texts)
    return found


NUMERALS = (
    "'0x' || repeat('f', 100000)",
    "'0b' || repeat('1', 100000)",
    "repeat('[', 5000) || repeat(']', 5000)",
    "repeat('1', 100000) || 'e5'",
)


def processor_time(pid: int) -> float:
    """Return the seconds of processor time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def timed(connection: asyncpg.Connection[asyncpg.Record], expression: str) -> float:
    """Return the seconds of processor time a call takes; the backend of one that goes on for too long is killed."""
    pid = connection.get_server_pid()
    began = processor_time(pid)
    work = asyncio.ensure_future(connection.execute(f"SELECT count(x) FROM (SELECT {expression} AS x OFFSET 0) AS q"))
    while not (await asyncio.wait({work}, timeout=PATIENCE))[0]:
        if processor_time(pid) - began > PATIENCE:
            os.kill(pid, signal.SIGKILL)
            break
    # Some messages of PostGIS are no UTF-8.
    with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, UnicodeDecodeError):
        await work
    return PATIENCE if connection.is_closed() else processor_time(pid) - began


async def connected(server: Server, database: str) -> asyncpg.Connection[asyncpg.Record]:
    """Connect, once the server is up again."""
    while True:
        try:
            connection = await asyncpg.connect(server.address(database), statement_cache_size=0)
            await connection.execute(f"SET statement_timeout = {int(TIMEOUT * 1000)}; SET jit = off")
            return connection
        except (asyncpg.PostgresError, OSError):
            await asyncio.sleep(0.2)


async def examine(major: int | None = None, one_in: int = 1) -> dict[str, tuple[float, str]]:
    """Return what overshoots on one major: by signature the worst seconds and the expression.

    `one_in`: of how many signatures one is timed.
    """
    server = Server.start(major)
    worst: dict[str, tuple[float, str]] = {}
    try:
        database = await server.create()
        for extension in EXTENSIONS:
            with contextlib.suppress(asyncpg.PostgresError):
                await server.run(f"CREATE EXTENSION {extension}", database)
        connection = await connected(server, database)
        await connection.execute("SET statement_timeout = 0")
        todo = await calls(connection)
        await connection.execute(f"SET statement_timeout = {int(TIMEOUT * 1000)}")
        wanted = set(sorted({what for what, _ in todo})[::one_in])
        for what, expression in todo:
            if what not in wanted or worst.get(what, (0, ""))[0] >= PATIENCE:
                continue
            if connection.is_closed():
                connection = await connected(server, database)
            took = await timed(connection, expression)
            if took > TIMEOUT + LATE and took > worst.get(what, (0.0, ""))[0]:
                worst[what] = took, expression
        await connection.close()
    finally:
        server.stop()
    return worst


def main(majors: Sequence[str]) -> None:
    """Print what overshoots, worst first."""
    for major in map(int, majors):
        found = asyncio.run(examine(major))
        for what, (took, expression) in sorted(found.items(), key=lambda each: -each[1][0]):
            print(f"{major}\t{took:.2f}\t{what}\t{expression[:200]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
