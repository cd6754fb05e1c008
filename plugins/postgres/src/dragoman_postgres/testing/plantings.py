"""Plants users' code in every kind of object and every place where a query may reach it.

Planted code leaves a file when it runs, even in a read-only transaction, for a superuser. A planting is SQL that
creates it in the schema `planted`, and queries that make an unprotected server run it. `vehicle`: the kind of object
that contains the code. `place`: where a query meets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

SCHEMA = """
DROP SCHEMA IF EXISTS planted CASCADE; DROP SCHEMA IF EXISTS aside CASCADE;
CREATE SCHEMA planted; CREATE SCHEMA aside;
CREATE FUNCTION planted.act() RETURNS void LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('COPY (SELECT 1) TO %L', '{trace}'); END $$;
CREATE FUNCTION planted.evil(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN $1; END $$;
CREATE FUNCTION planted.wrong(integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN true; END $$;
CREATE TABLE planted.base (id integer, name text);
INSERT INTO planted.base SELECT n, 'n' || n FROM generate_series(1, 20) AS n;
"""
"""Run before each planting. `trace` is the file to leave."""


@dataclass(frozen=True)
class Planting:
    """Code planted in one kind of object, met in one place."""

    vehicle: str
    place: str
    script: str
    queries: tuple[str, ...]
    since: int = 13
    until: int = 99
    everything: bool = False
    """Any query may run it, so all queries are refused."""
    undo: str = "SELECT"
    harmless: tuple[str, ...] = ()
    """Queries of the planted objects that run none of the code, and that everybody may run."""
    extension: str = ""
    """An extension that it takes, in the schema `public`."""

    def __str__(self) -> str:
        return f"{self.vehicle} in {self.place}"


# Kinds of objects that contain code: the SQL that creates them, and an expression of `id` that runs it.
_ENUM = "CREATE TYPE planted.mood AS ENUM ('sad', 'glad');"
_COMPARED = f"""{_ENUM}
CREATE FUNCTION planted.compare(planted.mood, planted.mood) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN CASE WHEN $1::text = $2::text THEN 0 ELSE 1 END; END $$;
CREATE FUNCTION planted.less(planted.mood, planted.mood) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN PERFORM planted.act(); RETURN false; END $$;
CREATE OPERATOR planted.< (leftarg = planted.mood, rightarg = planted.mood, function = planted.less);
CREATE OPERATOR planted.= (leftarg = planted.mood, rightarg = planted.mood, function = planted.less);
CREATE OPERATOR CLASS planted.moods DEFAULT FOR TYPE planted.mood USING btree AS
  OPERATOR 1 planted.<, OPERATOR 3 planted.=, FUNCTION 1 planted.compare(planted.mood, planted.mood);
"""
_DOMAIN = "CREATE DOMAIN planted.checked AS integer CHECK (planted.wrong(VALUE));"
_VEHICLES: dict[str, tuple[str, str]] = {
    "function": ("", "planted.evil({})"),
    "SQL function": (
        "CREATE FUNCTION planted.outer(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT planted.evil($1)';",
        "planted.outer({})",
    ),
    "operator": (
        "CREATE FUNCTION planted.two(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN PERFORM planted.act(); RETURN $1; END';"
        "CREATE OPERATOR planted.### (leftarg = integer, rightarg = integer, function = planted.two);",
        "({} OPERATOR(planted.###) 1)",
    ),
    "cast": (
        f"{_ENUM} CREATE FUNCTION planted.as_mood(integer) RETURNS planted.mood LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN 'sad'; END $$;"
        "CREATE CAST (integer AS planted.mood) WITH FUNCTION planted.as_mood(integer);",
        "(CASE WHEN ({}::planted.mood) IS NULL THEN 1 END)",
    ),
    "set-returning function": (
        "CREATE FUNCTION planted.row_of(integer) RETURNS SETOF integer LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM planted.act(); RETURN NEXT 1; END';",
        "(SELECT count(*)::integer FROM planted.row_of({}))",
    ),
    "aggregate": (
        "CREATE AGGREGATE planted.evils(integer) (sfunc = planted.two, stype = integer, initcond = 0);",
        "(SELECT planted.evils(n + {}) FROM generate_series(1, 2) AS n)",
    ),
    "window aggregate": (
        "CREATE AGGREGATE planted.evils(integer) (sfunc = planted.two, stype = integer, initcond = 0);",
        "(SELECT max(w) FROM (SELECT planted.evils(n + {}) OVER () AS w FROM generate_series(1, 2) AS n) AS s)",
    ),
    "domain": (_DOMAIN, "({}::planted.checked + 0)"),
    "domain over a domain": (
        f"{_DOMAIN} CREATE DOMAIN planted.twice AS planted.checked;",
        "({}::planted.twice + 0)",
    ),
    "array of a domain": (_DOMAIN, "(ARRAY[{}]::planted.checked[])[1]::integer"),
    "row of a domain": (
        f"{_DOMAIN} CREATE TYPE planted.holder AS (c planted.checked);",
        "((ROW({})::planted.holder).c::integer)",
    ),
    "domain through text": (_DOMAIN, "(({}::text::planted.checked)::integer)"),
    "comparison of a type": (
        _COMPARED,
        "(SELECT count(*)::integer FROM (SELECT DISTINCT m FROM unnest('{{sad,glad}}'::planted.mood[]) AS m"
        " WHERE {} IS NOT NULL) AS s)",
    ),
    "comparison within arrays": (
        _COMPARED,
        "(CASE WHEN {} = 0 OR '{{sad}}'::planted.mood[] < '{{glad}}'::planted.mood[] THEN 1 END)",
    ),
    "range": (
        f"{_COMPARED} CREATE TYPE planted.moods AS RANGE (subtype = planted.mood, subtype_opclass = planted.moods);",
        "(CASE WHEN {} = 0 OR lower(('[sad,' || 'glad]')::text::planted.moods) IS NULL THEN 1 END)",
    ),
}
_TWO = """CREATE FUNCTION planted.two(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN PERFORM planted.act(); RETURN $1; END $$;"""


def _plant_modified(language: str, body: str) -> str:
    """Return a type whose modifiers a user-defined function reads.

    The type must exist first, so the function is replaced.
    """
    head = "CREATE OR REPLACE FUNCTION planted.modified(cstring[]) RETURNS integer IMMUTABLE STRICT"
    return f"""CREATE TYPE planted.marked;
CREATE FUNCTION planted.marked_in(cstring) RETURNS planted.marked LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION planted.marked_out(planted.marked) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
{head} LANGUAGE internal AS 'varchartypmodin';
CREATE TYPE planted.marked (input = planted.marked_in, output = planted.marked_out, typmod_in = planted.modified,
  like = text);
{head} LANGUAGE {language} AS '{body}';"""


def plantings() -> Iterator[Planting]:
    """Yield every kind of object in every place where it can be, and objects that have only one place."""
    for vehicle, (script, expression) in _VEHICLES.items():
        made = _TWO + script if "aggregate" in vehicle else script
        yield from _everywhere(vehicle, made, expression)
    yield from _returned_types()
    yield from _plant_folded()
    yield from _values()
    yield from _casts_that_are_named()
    yield from _operator_classes()
    yield from _by_name()
    yield from _bodies()
    yield from _members()
    yield from _fillers()
    yield from _of_the_system()


def _everywhere(vehicle: str, script: str, expression: str) -> Iterator[Planting]:
    used = expression.format("id")
    yield Planting(
        vehicle, "the statement", script, (f"SELECT {used} FROM planted.base", f"SELECT {expression.format('1')}")
    )
    view = f"{script} CREATE VIEW planted.seen AS SELECT {used} AS a, name FROM planted.base;"
    yield Planting(vehicle, "a view", view, ("SELECT * FROM seen", "SELECT max(a) FROM planted.seen"))
    yield Planting(
        vehicle,
        "a view over a view",
        f"{view} CREATE VIEW planted.above AS SELECT * FROM planted.seen;"
        " CREATE VIEW planted.top AS SELECT a FROM planted.above WHERE name > '';",
        ("SELECT * FROM top", "SELECT 1 WHERE EXISTS (SELECT FROM planted.top WHERE a > 0)"),
    )
    yield Planting(
        vehicle,
        "the filter of a view",
        f"{script} CREATE VIEW planted.seen AS SELECT name FROM planted.base WHERE {used} > 0;",
        ("SELECT * FROM seen",),
    )
    yield Planting(
        vehicle,
        "a policy",
        f"""{script} ALTER TABLE planted.base ENABLE ROW LEVEL SECURITY; GRANT USAGE ON SCHEMA planted TO {{planter}};
        GRANT SELECT ON planted.base TO {{planter}}; CREATE POLICY evil ON planted.base USING ({used} > 0);
        CREATE VIEW planted.seen AS SELECT * FROM planted.base; ALTER VIEW planted.seen OWNER TO {{planter}};""",
        ("SELECT * FROM seen",),
    )
    yield Planting(
        vehicle,
        "a function of standard SQL",
        f"{script} CREATE FUNCTION planted.body(id integer) RETURNS integer LANGUAGE sql STABLE RETURN {used};"
        " CREATE VIEW planted.seen AS SELECT planted.body(id) FROM planted.base;",
        ("SELECT * FROM seen", "SELECT body(1)"),
        since=14,
    )


_TOLD = "CREATE DOMAIN planted.told AS text CHECK (planted.wrong(length(VALUE)));"
# Expressions of SQL/JSON that return a type by its name: since which version, its domain, the expression.
_RETURNING: dict[str, tuple[int, str, str]] = {
    "JSON_VALUE": (17, _DOMAIN, "JSON_VALUE(to_jsonb({}), '$' RETURNING planted.checked)"),
    "JSON_VALUE by default": (
        17,
        _DOMAIN,
        "JSON_VALUE(to_jsonb({}), '$.a' RETURNING planted.checked DEFAULT 1 ON EMPTY)",
    ),
    "JSON_QUERY": (17, _DOMAIN, "JSON_QUERY(to_jsonb({}), '$' RETURNING planted.checked)"),
    "JSON_TABLE": (
        17,
        _DOMAIN,
        "(SELECT x + 0 FROM JSON_TABLE(to_jsonb({}), '$' COLUMNS (x planted.checked PATH '$')) AS t)",
    ),
    "JSON_SERIALIZE": (17, _TOLD, "length(JSON_SERIALIZE(to_jsonb({}) RETURNING planted.told))"),
    "JSON_ARRAY": (16, _TOLD, "length(JSON_ARRAY({} RETURNING planted.told))"),
    "JSON_OBJECT": (16, _TOLD, "length(JSON_OBJECT('a': {} RETURNING planted.told))"),
    "JSON_ARRAYAGG": (
        16,
        _TOLD,
        "(SELECT length(JSON_ARRAYAGG(n + {} RETURNING planted.told)) FROM generate_series(1, 2) AS n)",
    ),
}


def _returned_types() -> Iterator[Planting]:
    """Yield domains that an expression names as the type to return, also in the check of another domain."""
    for vehicle, (since, script, expression) in _RETURNING.items():
        for planting in _everywhere(vehicle, script, expression):
            yield replace(planting, since=max(since, planting.since))
        if "SELECT" not in expression:
            check = expression.format("VALUE")
            outer = f"CREATE DOMAIN planted.outer AS integer CHECK ({check} IS NOT NULL);"
            yield Planting(vehicle, "the check of a domain", script + outer, ("SELECT '1'::planted.outer",), since)


# Expressions that the planner computes ahead, although no query uses them.
_FOLDED = {
    "an index expression": "CREATE INDEX ON planted.base ((id + {}))",
    "an index predicate": "CREATE INDEX ON planted.base (id) WHERE id > {}",
    "a check of a partition": "CREATE TABLE planted.child (CHECK (id > {})) INHERITS (planted.base)",
    "a check": "ALTER TABLE planted.base ADD CHECK (id <> {} + 100)",
    "statistics": "CREATE STATISTICS planted.known ON (id + {}), name FROM planted.base",
    "a partition key": "CREATE TABLE planted.parted (id integer) PARTITION BY RANGE ((id + {}));"
    "CREATE TABLE planted.part PARTITION OF planted.parted DEFAULT",
}


def _plant_folded() -> Iterator[Planting]:
    for vehicle in ("function", "SQL function", "operator", "cast"):
        script, expression = _VEHICLES[vehicle]
        for place, made in _FOLDED.items():
            constant = f"coalesce({expression.format('1')}, 0)" if vehicle == "cast" else expression.format("1")
            tables = ("parted", "part") if "parted" in made else ("base",)
            yield Planting(
                vehicle,
                place,
                f"{script} {made.format(constant)};",
                tuple(f"SELECT * FROM {table} WHERE id = 5" for table in tables),
                since=14 if place == "statistics" else 13,
            )
    yield Planting(
        "SQL function that computes",
        "an index expression",
        "CREATE FUNCTION planted.outer(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS"
        " 'SELECT $1 + planted.evil(1)'; CREATE INDEX ON planted.base (outer(id));",
        ("SELECT * FROM base WHERE id = 5",),
    )
    yield Planting(
        "comparison of a type",
        "the key of partitions",
        f"""{_COMPARED} CREATE TABLE planted.parted (m planted.mood, id integer) PARTITION BY LIST (m);
        CREATE TABLE planted.one PARTITION OF planted.parted FOR VALUES IN ('sad');
        CREATE TABLE planted.two PARTITION OF planted.parted FOR VALUES IN ('glad');""",
        ("SELECT id FROM parted", "SELECT id FROM planted.parted WHERE m = 'sad'"),
    )
    yield Planting(
        "comparison of numbers",
        "the key of partitions",
        """CREATE FUNCTION planted.compare(integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN CASE WHEN $1 < $2 THEN -1 WHEN $1 = $2 THEN 0 ELSE 1 END; END $$;
        CREATE OPERATOR CLASS planted.numbers FOR TYPE integer USING btree AS
        OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
        FUNCTION 1 planted.compare(integer, integer);
        CREATE TABLE planted.parted (id integer) PARTITION BY RANGE (id planted.numbers);
        CREATE TABLE planted.one PARTITION OF planted.parted FOR VALUES FROM (1) TO (9);""",
        ("SELECT id FROM parted WHERE id = 5",),
        everything=True,
    )


def _values() -> Iterator[Planting]:
    """Yield types whose values run code without being named."""
    held = f"""{_DOMAIN} CREATE TABLE planted.held (c planted.checked, n integer, many planted.checked[]);
    INSERT INTO planted.held VALUES (1, 2, '{{1}}');"""
    scalar = (
        f"{_DOMAIN} CREATE TABLE planted.held (c planted.checked, n integer); INSERT INTO planted.held VALUES (1, 2);"
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
    shown = f"""{_ENUM} CREATE FUNCTION planted.shown(planted.mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
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
    compared = f"""{_COMPARED} CREATE TABLE planted.felt (m planted.mood, id integer);
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
        f"{_COMPARED} CREATE TABLE planted.felt (m planted.mood, id integer); CREATE INDEX ON planted.felt (m);"
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
    "an array of an enumeration": (_ENUM, "planted.mood[]", "planted.mood", "'sad'", "ARRAY[v]", "array_agg(v)"),
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


def _casts_that_are_named() -> Iterator[Planting]:
    """Yield casts that a statement must name. Reading their source values runs nothing."""
    yield Planting(
        "cast that must be asked for",
        "the columns of a table",
        f"""{_ENUM} CREATE FUNCTION planted.number(planted.mood) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
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
        f"""{_ENUM} CREATE FUNCTION planted.as_mood(text) RETURNS planted.mood LANGUAGE plpgsql IMMUTABLE AS
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


def _operator_classes() -> Iterator[Planting]:
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


def _by_name() -> Iterator[Planting]:
    """Yield objects that a harmless name reaches."""
    yield Planting(
        "overload",
        "a schema of the path",
        "CREATE FUNCTION planted.lower(integer) RETURNS integer LANGUAGE sql AS 'SELECT planted.evil($1)';",
        ("SELECT lower(1)", "SELECT lower(id) FROM base"),
    )
    yield Planting(
        "overload with more arguments of a type",
        "a schema of the path",
        f"{_ENUM} CREATE FUNCTION planted.upper(planted.mood, planted.mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN 'x'; END $$;",
        ("SELECT upper('sad', 'glad')",),
    )
    yield Planting(
        "overload with a nearer argument beside one of a type",
        "a schema of the path",
        f"{_ENUM} CREATE FUNCTION planted.left(planted.mood, bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN 'x'; END $$;",
        ("SELECT left('sad', 1::bigint)",),
    )
    yield Planting(
        "aggregate",
        "a schema of the path",
        "CREATE FUNCTION planted.three(integer, integer, integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN $1; END $$;"
        "CREATE AGGREGATE planted.avg(integer, integer) (sfunc = planted.three, stype = integer, initcond = 0);",
        ("SELECT avg(1, 2)", "SELECT avg(id, id) OVER () FROM base"),
    )
    yield Planting(
        "function",
        "a schema beside the path",
        "CREATE FUNCTION aside.similarity(text, text) RETURNS real LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM planted.act(); RETURN 1; END'; DROP SCHEMA IF EXISTS extensions CASCADE;"
        "CREATE SCHEMA extensions; ALTER FUNCTION aside.similarity(text, text) SET SCHEMA extensions;",
        ("SELECT extensions.similarity('a', 'b')",),
    )
    yield Planting(
        "operator",
        "a schema beside the path",
        "CREATE FUNCTION planted.beside(text, text) RETURNS real LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM planted.act(); RETURN 1; END'; DROP SCHEMA IF EXISTS extensions CASCADE;"
        "CREATE SCHEMA extensions;"
        "CREATE OPERATOR extensions.<-> (leftarg = text, rightarg = text, function = planted.beside);",
        ("SELECT 'a' OPERATOR(extensions.<->) 'b'",),
    )
    yield Planting(
        "operator",
        "a schema of the path",
        "CREATE FUNCTION planted.plus(integer, text) RETURNS integer LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM planted.act(); RETURN 1; END';"
        "CREATE OPERATOR planted.+ (leftarg = integer, rightarg = text, function = planted.plus);",
        ("SELECT 1 + 'a'::text",),
    )
    yield Planting(
        "function of a row",
        "a schema of the path",
        "CREATE FUNCTION planted.total(planted.base) RETURNS integer LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM planted.act(); RETURN 1; END';",
        ("SELECT b.total FROM base AS b", "SELECT (b).total FROM planted.base AS b"),
    )
    yield Planting(
        "selectivity",
        "an operator",
        "CREATE FUNCTION planted.less(integer, integer) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN PERFORM planted.act(); RETURN true; END';"
        "CREATE OPERATOR planted.@@@ (leftarg = integer, rightarg = integer, function = planted.less,"
        " restrict = scalarltsel);"
        "CREATE VIEW planted.seen AS SELECT * FROM planted.base WHERE id OPERATOR(planted.@@@) 5;",
        ("SELECT * FROM seen",),
    )
    yield Planting(
        "table ahead",
        "a schema of the path",
        "CREATE TABLE IF NOT EXISTS public.ahead (id integer);"
        "CREATE VIEW planted.ahead AS SELECT planted.evil(1) AS id;",
        ("SELECT * FROM ahead",),
    )


def _acts(answer: str) -> str:
    return f"LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM planted.act(); RETURN {answer}; END $$;"


_PLAIN = "CREATE FUNCTION planted.plain(text) RETURNS text LANGUAGE sql IMMUTABLE"
_SHOUT = f"CREATE FUNCTION planted.shout(text) RETURNS text {_acts('$1')}"
# Functions that act, and a function in SQL whose body looks like one that only computes.
_BODIES: dict[str, tuple[str, str]] = {
    "a function of its own path": (
        f"CREATE FUNCTION planted.lower(text) RETURNS text {_acts('$1')}",
        f"{_PLAIN} SET search_path = planted, pg_catalog AS 'SELECT lower($1)';",
    ),
    "an overload": (
        f"CREATE FUNCTION planted.lower(date) RETURNS text {_acts('NULL')}",
        f"{_PLAIN} AS 'SELECT lower(NULL::date)';",
    ),
    "an operator": (
        f"CREATE FUNCTION planted.two(text, date) RETURNS text {_acts('$1')}"
        "CREATE OPERATOR planted.- (leftarg = text, rightarg = date, function = planted.two);",
        f"{_PLAIN} AS $$SELECT $1 - '2000-01-01'::date$$;",
    ),
    "a type of its own path": (
        f"CREATE FUNCTION planted.wrong(pg_catalog.text) RETURNS boolean {_acts('true')}"
        "CREATE DOMAIN planted.text AS pg_catalog.text CHECK (planted.wrong(VALUE));",
        "CREATE FUNCTION planted.plain(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE"
        " SET search_path = planted, pg_catalog AS $$SELECT ($1 || 'x')::text$$;",
    ),
    "a field": (_SHOUT, f"{_PLAIN} AS 'SELECT ($1).shout';"),
    "an aggregate": (
        f"CREATE FUNCTION planted.three(text, text, text) RETURNS text {_acts('$1')}"
        "CREATE AGGREGATE planted.max(text, text) (sfunc = planted.three, stype = text, initcond = 'a');",
        f"{_PLAIN} AS $$SELECT max(x, 'y') FROM unnest(ARRAY[$1, 'z']) AS x$$;",
    ),
    "an implicit comparison": (
        f"{_COMPARED} CREATE FUNCTION planted.lesser(anyelement, anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
        " 'SELECT $1 < $2';",
        "CREATE FUNCTION planted.plain(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
        " $$SELECT planted.lesser('sad'::planted.mood, 'glad')$$;",
    ),
    "a comment": (_SHOUT, f"{_PLAIN} AS $$SELECT /* /* */ lower( */ planted.shout($1) --)\n$$;"),
    "a second statement": (_SHOUT, f"{_PLAIN} AS $$SELECT lower($1); SELECT planted.shout($1)$$;"),
    "a table": (
        f"{_SHOUT} CREATE VIEW planted.acting AS SELECT planted.shout('a') AS a;",
        f"{_PLAIN} AS 'SELECT a FROM planted.acting';",
    ),
}


def _bodies() -> Iterator[Planting]:
    for place, (made, function) in _BODIES.items():
        yield Planting(
            "SQL function that seems to compute",
            place,
            f"{made} {function} CREATE VIEW planted.seen AS SELECT planted.plain(name) FROM planted.base;",
            ("SELECT * FROM seen",),
        )
    yield Planting(
        "comparison of a type",
        "a function of any type",
        f"{_COMPARED} CREATE FUNCTION planted.lesser(anyelement, anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
        " 'SELECT $1 < $2'; CREATE VIEW planted.seen AS SELECT planted.lesser('sad'::planted.mood, 'glad');",
        ("SELECT * FROM seen",),
    )


# What a function of an extension finds on the search path: what users made there, and a body that names it.
_SHADOWS: dict[str, tuple[str, str]] = {
    "a function": (f"CREATE FUNCTION planted.earth() RETURNS integer {_acts('5')}", "SELECT $1 + earth()"),
    "a function of a schema that the body names": (
        f"CREATE FUNCTION planted.earth() RETURNS integer {_acts('5')}",
        "SELECT $1 + planted.earth()",
    ),
    "an aggregate": (
        f"{_TWO} CREATE AGGREGATE planted.most(integer) (sfunc = planted.two, stype = integer, initcond = 0);",
        "SELECT most(x) FROM unnest(ARRAY[$1, 2]) AS x",
    ),
    "an operator": (
        f"{_TWO} CREATE OPERATOR planted.### (leftarg = integer, rightarg = integer, function = planted.two);",
        "SELECT $1 ### 1",
    ),
    "a type": (_DOMAIN, "SELECT $1::checked + 0"),
    "a relation": (
        "CREATE VIEW planted.measures AS SELECT planted.evil(1) AS size;",
        "SELECT $1 + (SELECT size FROM measures)",
    ),
    "a table with a check": (
        "CREATE TABLE planted.measures (size integer CHECK (planted.evil(1) = 1));",
        "SELECT $1 + (SELECT count(*) FROM measures WHERE size > 0)::integer",
    ),
    "a table with an index": (
        "CREATE TABLE planted.measures (size integer);"
        " CREATE INDEX ON planted.measures (size) WHERE planted.evil(1) = 1;",
        "SELECT $1 + (SELECT count(*) FROM measures WHERE size > 0)::integer",
    ),
    "a function of any type": (
        f"{_COMPARED} CREATE FUNCTION planted.lesser(anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
        " 'SELECT $1 < $1'; ALTER EXTENSION plpgsql ADD FUNCTION planted.lesser(anyelement);",
        "SELECT CASE WHEN lesser('sad'::mood) THEN $1 ELSE 2 END",
    ),
}


def _members() -> Iterator[Planting]:
    """Yield functions of an extension that run what its users made."""
    member = "CREATE FUNCTION planted.gc_to_sec(integer) RETURNS integer IMMUTABLE LANGUAGE"
    joined = "ALTER EXTENSION plpgsql ADD FUNCTION planted.gc_to_sec(integer);"
    seen = "CREATE VIEW planted.seen AS SELECT planted.gc_to_sec(id) AS a FROM planted.base;"
    for place, (made, body) in _SHADOWS.items():
        for language, text in (("sql", body), ("plpgsql", f"BEGIN RETURN ({body}); END")):
            yield Planting(
                f"{language} function of an extension",
                place,
                f"{made} {member} {language} AS $f${text}$f$; {joined} {seen}",
                ("SELECT * FROM seen", "SELECT gc_to_sec(1)", "SELECT gc_to_sec(id) FROM base"),
                undo=_LEAVE,
            )
    yield Planting(
        "sql function of an extension",
        "another one that it calls",
        f"{_SHADOWS['a function'][0]} {member} sql AS 'SELECT $1 + earth()'; {joined}"
        f"{member.replace('gc_to_sec', 'sec_to_gc')} sql AS 'SELECT gc_to_sec($1)';"
        f"{joined.replace('gc_to_sec', 'sec_to_gc')} {seen.replace('gc_to_sec', 'sec_to_gc')}",
        ("SELECT * FROM seen", "SELECT sec_to_gc(1)"),
        undo=_LEAVE,
    )
    yield Planting(
        "function that a user added to an extension",
        "an overload",
        f"""CREATE FUNCTION planted.lower(date) RETURNS text {_acts("'x'")} {_PLAIN} AS 'SELECT lower(NULL::date)';
        ALTER FUNCTION planted.lower(date) OWNER TO {{planter}};
        ALTER EXTENSION plpgsql ADD FUNCTION planted.lower(date);
        CREATE VIEW planted.seen AS SELECT planted.plain(name) FROM planted.base;""",
        ("SELECT * FROM seen", "SELECT lower(NULL::date)"),
        undo=_LEAVE,
    )
    variable = "DECLARE size integer := 1; state text; BEGIN RETURN $1 + size; END"
    yield Planting(
        "plpgsql function of an extension",
        "a schema with a table and a view that it may read",
        f"""CREATE TABLE planted.state (id integer, name text); CREATE VIEW planted.size AS SELECT planted.evil(1) AS a;
        {member} plpgsql AS $f${variable}$f$; {joined} {seen}""",
        ("SELECT * FROM size",),
        undo=_LEAVE,
    )
    yield Planting(
        "plpgsql function of an extension",
        "a schema with tables that it may read",
        f"""CREATE TABLE planted.state (id integer, name text); CREATE TABLE planted.size (a numeric[]);
        CREATE TABLE planted.rates (id integer CHECK (id > 0)); ALTER EXTENSION plpgsql ADD TABLE planted.rates;
        CREATE VIEW planted.other AS SELECT planted.evil(1) AS a;
        {member} plpgsql AS $f${variable.replace("1;", "(SELECT count(*) FROM planted.rates);")}$f$; {joined} {seen}""",
        ("SELECT * FROM other",),
        harmless=("SELECT * FROM seen", "SELECT gc_to_sec(1)"),
        undo=f"{_LEAVE}; ALTER EXTENSION plpgsql DROP TABLE planted.rates",
    )
    yield Planting(
        "sql function of an extension",
        "a schema where users made nothing that it names",
        f"""CREATE TYPE planted.paid AS (a integer);
        CREATE FUNCTION planted.less(planted.paid, planted.paid) RETURNS boolean {_acts("true")}
        CREATE OPERATOR planted.+ (leftarg = planted.paid, rightarg = planted.paid, function = planted.less);
        {member} sql AS 'SELECT $1 + abs($1)'; {joined} {seen}""",
        ("SELECT ROW(1)::planted.paid OPERATOR(planted.+) ROW(1)::planted.paid",),
        harmless=("SELECT * FROM seen", "SELECT gc_to_sec(1)"),
        undo=_LEAVE,
    )


def _fillers() -> Iterator[Planting]:
    """Yield what fills a row of any fields with values that it is given as texts."""
    told = f"""{_TOLD} CREATE TABLE planted.held (id integer, t planted.told, n integer);
    INSERT INTO planted.held VALUES (1, NULL, 2);"""
    for function, extension, filled in (
        ("json_populate_record", "", 'json_populate_record({}, \'{{"f1": "q"}}\')'),
        ("jsonb_populate_record", "", 'jsonb_populate_record({}, \'{{"f1": "q"}}\')'),
        ("populate_record", "hstore", "public.populate_record({}, 'f1=>q')"),
        ("#=", "hstore", "({} OPERATOR(public.#=) 'f1=>q'::public.hstore)"),
    ):
        row, made = filled.format("ROW(t)"), filled.format("(SELECT ROW(t))")
        yield Planting(
            "domain",
            f"a row that {function} fills",
            told,
            (f"SELECT ({row})::text FROM held", f"SELECT 1 FROM planted.held WHERE {made} IS NULL"),
            harmless=("SELECT t, ROW(t, n) FROM held WHERE t IS NULL", "SELECT sum(n) FROM planted.held"),
            extension=extension,
        )


_LEAVE = """DO $$ DECLARE f text; BEGIN
  FOR f IN SELECT objid::regprocedure::text FROM pg_depend
    WHERE classid = 'pg_proc'::regclass AND deptype = 'e' AND objid IN (
      SELECT oid FROM pg_proc WHERE pronamespace = 'planted'::regnamespace) LOOP
    EXECUTE 'ALTER EXTENSION plpgsql DROP FUNCTION ' || f;
  END LOOP;
END $$"""
"""Takes the planted functions out of the extension, so that their schema can be dropped."""


def _of_the_system() -> Iterator[Planting]:
    """Yield objects of the system itself that were altered."""
    yield Planting(
        "implicit cast",
        "types of the system",
        "CREATE FUNCTION planted.as_number(text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN PERFORM planted.act(); RETURN 1; END';"
        "CREATE CAST (text AS integer) WITH FUNCTION planted.as_number(text) AS IMPLICIT;",
        ("SELECT abs(name) FROM base", "SELECT 1 + name FROM base"),
        everything=True,
    )
    yield Planting(
        "cast",
        "types of the system",
        "CREATE FUNCTION planted.as_number(text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " 'BEGIN PERFORM planted.act(); RETURN 1; END';"
        "CREATE CAST (text AS integer) WITH FUNCTION planted.as_number(text);",
        ("SELECT name::integer FROM base", "SELECT CAST(name AS int) FROM base"),
        everything=True,
    )
    yield Planting(
        "cast to text",
        "functions that take any type",
        "CREATE FUNCTION planted.as_text(integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$BEGIN PERFORM planted.act(); RETURN 'x'; END$$;"
        "CREATE CAST (integer AS text) WITH FUNCTION planted.as_text(integer) AS ASSIGNMENT;",
        ("SELECT id || 'x' FROM base", "SELECT 'x' || id FROM base", "SELECT quote_literal(id) FROM base"),
        everything=True,
    )
    yield Planting(
        "cast to text",
        "a row of a table",
        "CREATE TABLE planted.cast_rows AS SELECT 1 AS id;"
        "CREATE FUNCTION planted.as_text(planted.cast_rows) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$BEGIN PERFORM planted.act(); RETURN 'x'; END$$;"
        "CREATE CAST (planted.cast_rows AS text) WITH FUNCTION planted.as_text(planted.cast_rows) AS ASSIGNMENT;",
        ("SELECT t || 'x' FROM planted.cast_rows t", "SELECT quote_nullable(t) FROM planted.cast_rows t"),
    )
    yield Planting(
        "comparison",
        "a type of the system",
        """CREATE FUNCTION planted.compare(json, json) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN PERFORM planted.act(); RETURN 0; END $$;
        CREATE FUNCTION planted.less(json, json) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN PERFORM planted.act(); RETURN false; END $$;
        CREATE OPERATOR planted.< (leftarg = json, rightarg = json, function = planted.less);
        CREATE OPERATOR planted.= (leftarg = json, rightarg = json, function = planted.less);
        CREATE OPERATOR CLASS planted.jsons DEFAULT FOR TYPE json USING btree AS
          OPERATOR 1 planted.<, OPERATOR 3 planted.=, FUNCTION 1 planted.compare(json, json);
        CREATE TABLE planted.documents AS SELECT '{}'::json AS d UNION ALL SELECT '[]';""",
        ("SELECT DISTINCT d FROM documents", "SELECT d FROM documents ORDER BY d"),
        everything=True,
    )
    yield Planting(
        "negator",
        "an operator of the system",
        """CREATE FUNCTION planted.outside(jsonb, jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
        BEGIN PERFORM planted.act(); RETURN false; END $$;
        CREATE OPERATOR planted.!@> (leftarg = jsonb, rightarg = jsonb, function = planted.outside,
          negator = OPERATOR(pg_catalog.@>));""",
        ("""SELECT NOT ('{"a": 1}'::jsonb @> '{}')""", """SELECT 1 FROM base WHERE NOT to_jsonb(id) @> '{}'"""),
        everything=True,
    )
    yield Planting(
        "replaced function",
        "the system",
        "CREATE OR REPLACE FUNCTION pg_catalog.lpad(text, integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN $1; END $$;",
        ("SELECT lpad(name, 10) FROM base",),
        everything=True,
        undo="CREATE OR REPLACE FUNCTION pg_catalog.lpad(text, integer) RETURNS text LANGUAGE sql IMMUTABLE STRICT"
        " PARALLEL SAFE COST 1 AS $$SELECT pg_catalog.lpad($1, $2, ' ')$$",
    )
    yield Planting(
        "added function",
        "the system's schema",
        "CREATE FUNCTION pg_catalog.lower(integer) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN $1; END $$;",
        ("SELECT pg_catalog.lower(1)", "SELECT lower(id) FROM base"),
        undo="DROP FUNCTION pg_catalog.lower(integer)",
    )
    for language, body in (
        ("plpgsql", "BEGIN PERFORM planted.act(); RETURN 5; END"),
        ("sql", "SELECT planted.evil(5)"),
    ):
        yield Planting(
            f"{language} function of a type's modifiers",
            "a text that names the type",
            _plant_modified(language, body),
            (
                "SELECT 'planted.marked(5)'::regtype",
                "SELECT to_regtype('planted.' || 'marked(5)')",
                "SELECT to_regprocedure('lower(planted.marked(5))')",
                'SELECT * FROM json_to_record(\'{"a": "planted.marked(5)"}\') AS r (a regtype)',
            ),
            everything=True,
        )
    yield Planting(
        "domain",
        "a field of what is no row",
        f"{_DOMAIN} CREATE DOMAIN planted.whole AS planted.base CHECK (planted.wrong((VALUE).id));",
        (
            "SELECT (1).checked",
            "SELECT (a).checked FROM (SELECT id AS a FROM base) AS s",
            "SELECT n.checked FROM generate_series(1, 2) AS n",
            "SELECT base.whole FROM base",
            "SELECT (base).whole FROM base",
        ),
    )
    checked = f"""{_DOMAIN} CREATE FUNCTION planted.wrong(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
    $$ BEGIN PERFORM planted.act(); RETURN true; END $$;
    CREATE DOMAIN planted.lower AS text CHECK (planted.wrong(VALUE));
    CREATE DOMAIN planted.abs AS integer CHECK (planted.wrong(VALUE));
    CREATE TYPE planted.upper AS (field planted.checked);"""
    yield Planting(
        "domain",
        "a call of a function of its name",
        checked,
        ("SELECT lower('x')", "SELECT abs('5')", "SELECT upper('(5)')", "SELECT * FROM lower('x')"),
    )
    yield Planting(
        "default",
        "a function of the system",
        "CREATE OR REPLACE FUNCTION pg_catalog.repeat(text, integer DEFAULT planted.evil(1)) RETURNS text"
        " LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'repeat'",
        ("SELECT repeat('a')", "SELECT pg_catalog.repeat(name) FROM base"),
        undo="UPDATE pg_proc SET pronargdefaults = 0, proargdefaults = NULL WHERE oid = 'repeat(text,integer)'"
        "::regprocedure; DELETE FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = 'repeat(text,integer)'"
        "::regprocedure",
    )
    yield Planting(
        "dangerous function of the system",
        "a view",
        "CREATE VIEW planted.seen AS SELECT * FROM pg_catalog.ts_stat('SELECT to_tsvector(planted.evil(1)::text)');",
        ("SELECT * FROM seen",),
    )
    yield Planting(
        "dangerous function of the system",
        "a cast to a domain",
        "CREATE DOMAIN planted.run AS text CHECK (pg_catalog.query_to_xml(VALUE, false, false, '') IS NOT NULL);",
        ("SELECT 'SELECT planted.evil(1)'::planted.run",),
    )
    large = "SELECT pg_catalog.lo_unlink(oid) FROM pg_largeobject_metadata; SELECT pg_catalog.lo_create(4711);"
    yield Planting(
        "dangerous function of the system",
        "an operator",
        f"{large} CREATE OPERATOR planted.- (leftarg = oid, rightarg = text, function = pg_catalog.lo_export);",
        ("SELECT '4711'::oid - '{trace}'::text",),
    )
    yield Planting(
        "dangerous function of the system",
        "an operator of a view",
        f"{large} CREATE OPERATOR planted.- (leftarg = oid, rightarg = text, function = pg_catalog.lo_export);"
        "CREATE VIEW planted.seen AS SELECT '4711'::oid OPERATOR(planted.-) '{trace}'::text AS a;",
        ("SELECT * FROM seen",),
    )
    yield Planting(
        "dangerous function of the system",
        "a domain of a table",
        f"{large} CREATE DOMAIN planted.path AS text CHECK (pg_catalog.lo_export(4711, VALUE) > 0 OR VALUE IS NULL);"
        "CREATE TABLE planted.paths (p planted.path); INSERT INTO planted.paths VALUES (NULL);",
        ('SELECT json_populate_record(p, \'{"p": "{trace}"}\') FROM paths AS p', "SELECT '{trace}'::planted.path"),
    )
