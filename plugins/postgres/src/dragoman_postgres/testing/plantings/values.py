"""Code that values of users' types run: domains, casts, ranges, operator classes."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman_postgres.testing.plantings.planting import COMPARED, DOMAIN, ENUM, Planting


def checks_and_comparisons() -> Iterator[Planting]:
    """Yield types whose values run code without being named."""
    held = f"""{DOMAIN} CREATE TABLE planted.held (c planted.checked, n integer, many planted.checked[]);
    INSERT INTO planted.held VALUES (1, 2, '{{1}}');"""
    scalar = (
        f"{DOMAIN} CREATE TABLE planted.held (c planted.checked, n integer); INSERT INTO planted.held VALUES (1, 2);"
    )
    yield Planting(
        "domain",
        "the rows of a table",
        scalar,
        (
            "SELECT json_populate_record(h, '{\"c\": 5}') FROM held AS h",
            "SELECT * FROM held AS h, jsonb_populate_recordset(h, '[{\"c\": 5}]')",
            "SELECT lag(c, 1, '7') OVER () FROM held",
            "SELECT array_append(array_agg(c), '7') FROM held",
            "SELECT array_position(array_agg(c), '7') FROM held",
            "SELECT c || '{7}' FROM held",
            "SELECT ARRAY[h, '(5,6)'] FROM held AS h",
            "SELECT h FROM held AS h UNION ALL SELECT '(5,6)'",
            "SELECT coalesce(h, '(5,6)') FROM planted.held AS h WHERE n > 100 OR coalesce(h, '(5,6)') IS NULL",
            "SELECT CASE WHEN n > 5 THEN held ELSE '(5,6)' END FROM held",
            "SELECT array_agg(c) || '{7}' FROM held",
            "SELECT array_agg(c) = '{7}' FROM held",
            "SELECT array_agg(c) @> '{7}' FROM held",
            "SELECT '7' = ANY (array_agg(c)), array_agg(c) <> '{7}' FROM held",
            "SELECT array_agg(h) = '{\"(5,6)\"}' FROM held AS h",
            "SELECT h IN ('(5,6)', h) FROM held AS h",
            "SELECT ARRAY[h.*, '(5,6)'] FROM held AS h",
            "SELECT (ARRAY['(5,6)', x])[1] FROM (SELECT h AS x FROM held AS h) AS s",
        ),
    )
    yield Planting(
        "domain",
        "the arrays of a table",
        held,
        ("SELECT many || '7' FROM held", "SELECT many = '{7}' FROM held", "SELECT array_append(many, '7') FROM held"),
    )
    yield Planting(
        "domain",
        "the rows of a view",
        f"{scalar} CREATE VIEW planted.seen AS SELECT * FROM planted.held;",
        ("SELECT lag(c, 1, '7') OVER () FROM seen", "SELECT json_populate_record(s, '{\"c\": 5}') FROM seen AS s"),
    )
    yield Planting(
        "domain",
        "rows that a view makes",
        f"{scalar} CREATE VIEW planted.seen AS"
        " SELECT json_populate_record(h, '{\"c\": 5}') AS r FROM planted.held AS h;",
        ("SELECT * FROM seen",),
    )
    yield Planting(
        "domain",
        "a cast to rows of a table",
        scalar,
        ("SELECT '(5,6)'::held", "SELECT json_populate_record(NULL::planted.held, '{\"c\": 5}')"),
    )
    shown = f"""{ENUM} CREATE FUNCTION planted.shown(planted.mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM planted.act(); RETURN 'x'; END $$;
    CREATE CAST (planted.mood AS text) WITH FUNCTION planted.shown(planted.mood) AS IMPLICIT;
    CREATE TABLE planted.felt (m planted.mood, ms planted.mood[]);
    INSERT INTO planted.felt VALUES ('sad', '{{sad}}');"""
    yield Planting(
        "implicit cast",
        "the columns of a table",
        shown,
        ("SELECT upper(m) FROM felt", "SELECT m || 'x' FROM planted.felt", "SELECT upper(ms[1]) FROM felt"),
    )
    yield from _casts_of_made_values()
    compared = f"""{COMPARED} CREATE TABLE planted.felt (m planted.mood, id integer);
    INSERT INTO planted.felt VALUES ('sad', 1), ('glad', 1);"""
    yield Planting(
        "comparison of a type",
        "the columns of a table",
        compared,
        (
            "SELECT m FROM felt ORDER BY m",
            "SELECT DISTINCT m FROM felt",
            "SELECT 1 FROM planted.felt GROUP BY felt",
            "SELECT max(ARRAY[m]) FROM felt",
            "SELECT 1 FROM felt AS a JOIN felt AS b USING (m)",
            "SELECT 1 FROM felt WHERE m = 'sad'",
            "SELECT f FROM felt AS f ORDER BY f",
        ),
    )
    yield Planting(
        "comparison of a type",
        "an index",
        f"{COMPARED} CREATE TABLE planted.felt (m planted.mood, id integer); CREATE INDEX ON planted.felt (m);"
        "INSERT INTO planted.felt VALUES ('sad', 1);",
        ("SELECT m FROM felt ORDER BY m", "SELECT count(*) FROM felt WHERE m < 'glad'"),
    )
    yield Planting(
        "default",
        "a virtual column",
        "CREATE TABLE planted.made (id integer, g integer GENERATED ALWAYS AS (id + 1) VIRTUAL);"
        "CREATE VIEW planted.seen AS SELECT planted.evil(g) FROM planted.made;"
        "INSERT INTO planted.made VALUES (1);",
        ("SELECT * FROM seen",),
        since=18,
    )


_MADE = {
    "an array of an enumeration": (ENUM, "planted.mood[]", "planted.mood", "'sad'", "ARRAY[v]", "array_agg(v)"),
    "an array of rows": (
        "CREATE TYPE planted.two AS (a int);",
        "planted.two[]",
        "planted.two",
        "ROW(1)",
        "ARRAY[v]",
        "",
    ),
    "a multirange": (
        "CREATE TYPE planted.span AS RANGE (subtype = text, multirange_type_name = planted.spans);",
        *("planted.spans", "planted.span", "'[a,b]'", "multirange(v)", "range_agg(v)"),
    ),
}
"""For each type: the SQL that creates it, its name, the type of its part, a value of that, and a constructor.

The constructor is an expression that builds a value from the first `v`.
"""


def _casts_of_made_values() -> Iterator[Planting]:
    """Yield casts of types that no column has: the statement builds their values from a column's."""
    for place, (script, whole, part, value, one, many) in _MADE.items():
        made = " UNION ALL ".join(f"SELECT ({each})::text FROM part" for each in (one, many) if each)
        yield Planting(
            "implicit cast",
            place,
            f"""{script} CREATE FUNCTION planted.shown({whole}) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
            $$ BEGIN PERFORM planted.act(); RETURN 'x'; END $$;
            CREATE CAST ({whole} AS text) WITH FUNCTION planted.shown({whole}) AS IMPLICIT;
            CREATE TABLE planted.part (v {part}); INSERT INTO planted.part VALUES ({value});""",
            (f"SELECT ({one})::text FROM planted.part", f"SELECT length({one}) FROM part", made),
            since=14 if "multirange" in place else 13,
        )
    yield Planting(
        "implicit cast",
        "an array of a table's rows",
        """CREATE TABLE planted.part (v integer); INSERT INTO planted.part VALUES (1);
        CREATE FUNCTION planted.shown(planted.part[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN 'x'; END $$;
        CREATE CAST (planted.part[] AS text) WITH FUNCTION planted.shown(planted.part[]) AS IMPLICIT;""",
        ("SELECT (ARRAY[p])::text FROM planted.part AS p", "SELECT length(array_agg(p)) FROM part AS p"),
    )


def casts_that_are_named() -> Iterator[Planting]:
    """Yield casts that a statement must name. Reading their source values runs nothing."""
    yield Planting(
        "cast that must be asked for",
        "the columns of a table",
        f"""{ENUM} CREATE FUNCTION planted.number(planted.mood) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN 1; END $$;
        CREATE CAST (planted.mood AS integer) WITH FUNCTION planted.number(planted.mood);
        CREATE DOMAIN planted.small AS integer; CREATE DOMAIN planted.smaller AS planted.small;
        CREATE TYPE planted.pair AS (a integer, b text);
        CREATE TABLE planted.felt (m planted.mood, ms planted.mood[], n text);
        CREATE VIEW planted.seen AS SELECT m AS a FROM planted.felt;
        INSERT INTO planted.felt VALUES ('sad', '{{sad}}', '1');""",
        (
            "SELECT m::integer FROM felt",
            "SELECT CAST(m AS int4) FROM planted.felt",
            "SELECT ms::int[] FROM felt",
            "SELECT ms::_int4 FROM felt",
            "SELECT array_agg(m)::int[] FROM felt",
            "SELECT m::planted.small, m::planted.smaller FROM felt",
            "SELECT ROW(m, 'x')::planted.pair FROM felt",
            "SELECT ARRAY[ROW(m, 'x')]::planted._pair FROM felt",
            "SELECT ROW(1, 1, m, 1, 1, 1, 'n')::pg_depend FROM felt",
            "SELECT ARRAY[ROW(1, 1, m, 1, 1, 1, 'n')]::_pg_depend FROM felt",
            "SELECT m::information_schema.cardinal_number FROM felt",
            "SELECT a::pg_catalog.int4 FROM seen",
            "SELECT x.y::int FROM (SELECT m AS y FROM felt) AS x",
            "SELECT 'sad'::planted.mood::int",
            "SELECT (enum_range(NULL::planted.mood))[1]::int",
        ),
        harmless=(
            "SELECT * FROM felt WHERE m = 'sad' ORDER BY m",
            "SELECT m::text, n::text, ms FROM planted.felt",
            "SELECT n::integer FROM base, (SELECT '1' AS n) AS s",
            "SELECT a, count(*) FROM seen GROUP BY a",
        ),
    )
    yield Planting(
        "cast that must be asked for",
        "the rows of a table",
        """CREATE TABLE planted.part (v integer); INSERT INTO planted.part VALUES (1);
        CREATE FUNCTION planted.number(planted.part) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN 1; END $$;
        CREATE CAST (planted.part AS integer) WITH FUNCTION planted.number(planted.part);""",
        ("SELECT p::int FROM planted.part AS p", "SELECT (x.p)::int4 FROM (SELECT p FROM part AS p) AS x"),
        harmless=("SELECT v FROM part", "SELECT p FROM planted.part AS p"),
    )
    yield Planting(
        "cast that must be asked for",
        "a value of the system's",
        f"""{ENUM} CREATE FUNCTION planted.as_mood(text) RETURNS planted.mood LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN 'sad'; END $$;
        CREATE CAST (text AS planted.mood) WITH FUNCTION planted.as_mood(text);
        CREATE DOMAIN planted.feeling AS planted.mood; CREATE TYPE planted.pair AS (a planted.mood);
        CREATE TABLE planted.felt (m planted.mood); INSERT INTO planted.felt VALUES ('sad');""",
        (
            "SELECT name::planted.mood FROM base",
            "SELECT ARRAY[name]::mood[] FROM base",
            "SELECT ARRAY[name]::_mood FROM base",
            "SELECT name::feeling FROM base",
            "SELECT ROW(name)::pair FROM base",
            "SELECT ROW(name)::felt FROM base",
        ),
        harmless=("SELECT m FROM felt WHERE m = 'sad'", "SELECT m, count(*) FROM felt GROUP BY m", "SELECT 'x'::text"),
    )


def operator_classes() -> Iterator[Planting]:
    """Yield operator classes that a table's own index or key uses. Other tables are read as before."""
    yield Planting(
        "second function of hashing",
        "the key of partitions",
        """CREATE FUNCTION planted.spread(bigint, bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN $1; END $$;
        CREATE OPERATOR CLASS planted.spreading FOR TYPE bigint USING hash AS
        OPERATOR 1 =, FUNCTION 2 planted.spread(bigint, bigint);
        CREATE TABLE planted.parted (id bigint, name text) PARTITION BY HASH (id planted.spreading);
        CREATE TABLE planted.one PARTITION OF planted.parted FOR VALUES WITH (modulus 2, remainder 0);
        CREATE TABLE planted.plain (id bigint, name text); INSERT INTO planted.plain VALUES (1, 'x');""",
        ("SELECT id FROM parted WHERE id = 5::bigint",),
        harmless=(
            "SELECT id, count(*) FROM plain WHERE id = 5 GROUP BY id ORDER BY id",
            "SELECT * FROM plain AS a JOIN plain AS b USING (id)",
        ),
    )
    yield Planting(
        "comparison of rows",
        "a type of one's own",
        """CREATE TYPE planted.amount AS (value numeric, currency text);
        CREATE FUNCTION planted.same(planted.amount, planted.amount) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN true; END $$;
        CREATE OPERATOR planted.= (leftarg = planted.amount, rightarg = planted.amount, function = planted.same);
        CREATE TABLE planted.paid (id integer, a planted.amount, many planted.amount[]);
        CREATE TABLE planted.typed OF planted.amount; INSERT INTO planted.typed VALUES (1, 'x');
        CREATE VIEW planted.seen AS SELECT a AS b FROM planted.paid;
        INSERT INTO planted.paid VALUES (1, ROW(1, 'x'), ARRAY[ROW(1, 'x')::planted.amount]);""",
        (
            "SELECT id FROM paid WHERE a = a",
            "SELECT id FROM planted.paid WHERE a = ROW(1, 'x')",
            "SELECT ROW(1, 'x')::planted.amount = ROW(1, 'x')::planted.amount",
            "SELECT b = '(1,x)' FROM seen",
            "SELECT many[1] = '(1,x)' FROM paid",
            "SELECT t = t FROM typed AS t",
            "SELECT x.b = x.b FROM (SELECT seen.b FROM seen) AS x",
            "SELECT 1 FROM seen JOIN (SELECT b FROM seen) AS s USING (b)",
            "SELECT b IN (SELECT b FROM seen) FROM seen",
        ),
        harmless=(
            "SELECT * FROM base WHERE id = 1 AND name = 'x'",
            "SELECT b = b, ROW(1, 'x') = ROW(b.id, b.name), 'x' = 'y' FROM base AS b",
            "SELECT * FROM base JOIN people USING (id) WHERE ROW(1, 2) IN (SELECT 1, 2)",
            "SELECT (a).value FROM paid",
        ),
    )
    yield Planting(
        "operators of one's own on numbers",
        "an index",
        """CREATE FUNCTION planted.less(integer, integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN $1 < $2; END $$;
        CREATE FUNCTION planted.compare(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN $1 - $2; END $$;
        CREATE OPERATOR planted.|<| (leftarg = integer, rightarg = integer, function = planted.less);
        CREATE OPERATOR planted.|=| (leftarg = integer, rightarg = integer, function = planted.less);
        CREATE OPERATOR CLASS planted.sizes FOR TYPE integer USING btree AS
        OPERATOR 1 planted.|<|, OPERATOR 3 planted.|=|, FUNCTION 1 planted.compare(integer, integer);
        CREATE TABLE planted.sized (id integer, size integer); CREATE INDEX ON planted.sized (size planted.sizes);
        INSERT INTO planted.sized VALUES (1, 2), (2, 3);""",
        ("SELECT id FROM planted.sized WHERE size OPERATOR(planted.|<|) 3", "SELECT 1 OPERATOR(planted.|=|) 2"),
        harmless=("SELECT id, count(*) FROM base WHERE id = 5 GROUP BY id ORDER BY id", "SELECT DISTINCT id FROM base"),
    )
