"""Code in each kind of object, in every place where a query may meet it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dragoman_postgres.testing.plantings.planting import COMPARED, DOMAIN, ENUM, TOLD, TWO, Planting

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
        f"{ENUM} CREATE FUNCTION planted.as_mood(integer) RETURNS planted.mood LANGUAGE plpgsql IMMUTABLE AS"
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
    "domain": (DOMAIN, "({}::planted.checked + 0)"),
    "domain over a domain": (
        f"{DOMAIN} CREATE DOMAIN planted.twice AS planted.checked;",
        "({}::planted.twice + 0)",
    ),
    "array of a domain": (DOMAIN, "(ARRAY[{}]::planted.checked[])[1]::integer"),
    "row of a domain": (
        f"{DOMAIN} CREATE TYPE planted.holder AS (c planted.checked);",
        "((ROW({})::planted.holder).c::integer)",
    ),
    "domain through text": (DOMAIN, "(({}::text::planted.checked)::integer)"),
    "comparison of a type": (
        COMPARED,
        "(SELECT count(*)::integer FROM (SELECT DISTINCT m FROM unnest('{{sad,glad}}'::planted.mood[]) AS m"
        " WHERE {} IS NOT NULL) AS s)",
    ),
    "comparison within arrays": (
        COMPARED,
        "(CASE WHEN {} = 0 OR '{{sad}}'::planted.mood[] < '{{glad}}'::planted.mood[] THEN 1 END)",
    ),
    "range": (
        f"{COMPARED} CREATE TYPE planted.moods AS RANGE (subtype = planted.mood, subtype_opclass = planted.moods);",
        "(CASE WHEN {} = 0 OR lower(('[sad,' || 'glad]')::text::planted.moods) IS NULL THEN 1 END)",
    ),
}


def in_every_place() -> Iterator[Planting]:
    """Yield each kind of object in every place where it can be."""
    for vehicle, (script, expression) in _VEHICLES.items():
        made = TWO + script if "aggregate" in vehicle else script
        yield from _everywhere(vehicle, made, expression)


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


# Expressions of SQL/JSON that return a type by its name: since which version, its domain, the expression.
_RETURNING: dict[str, tuple[int, str, str]] = {
    "JSON_VALUE": (17, DOMAIN, "JSON_VALUE(to_jsonb({}), '$' RETURNING planted.checked)"),
    "JSON_VALUE by default": (
        17,
        DOMAIN,
        "JSON_VALUE(to_jsonb({}), '$.a' RETURNING planted.checked DEFAULT 1 ON EMPTY)",
    ),
    "JSON_QUERY": (17, DOMAIN, "JSON_QUERY(to_jsonb({}), '$' RETURNING planted.checked)"),
    "JSON_TABLE": (
        17,
        DOMAIN,
        "(SELECT x + 0 FROM JSON_TABLE(to_jsonb({}), '$' COLUMNS (x planted.checked PATH '$')) AS t)",
    ),
    "JSON_SERIALIZE": (17, TOLD, "length(JSON_SERIALIZE(to_jsonb({}) RETURNING planted.told))"),
    "JSON_ARRAY": (16, TOLD, "length(JSON_ARRAY({} RETURNING planted.told))"),
    "JSON_OBJECT": (16, TOLD, "length(JSON_OBJECT('a': {} RETURNING planted.told))"),
    "JSON_ARRAYAGG": (
        16,
        TOLD,
        "(SELECT length(JSON_ARRAYAGG(n + {} RETURNING planted.told)) FROM generate_series(1, 2) AS n)",
    ),
}


def returned_types() -> Iterator[Planting]:
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


def plant_folded() -> Iterator[Planting]:
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
        f"""{COMPARED} CREATE TABLE planted.parted (m planted.mood, id integer) PARTITION BY LIST (m);
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
