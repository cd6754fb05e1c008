"""Code behind functions: names of the system's, bodies, members of extensions, and what altered the system."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman_postgres.testing.plantings.planting import COMPARED, DOMAIN, ENUM, TOLD, TWO, Planting, acts


def by_name() -> Iterator[Planting]:
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
        f"{ENUM} CREATE FUNCTION planted.upper(planted.mood, planted.mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
        " $$ BEGIN PERFORM planted.act(); RETURN 'x'; END $$;",
        ("SELECT upper('sad', 'glad')",),
    )
    yield Planting(
        "overload with a nearer argument beside one of a type",
        "a schema of the path",
        f"{ENUM} CREATE FUNCTION planted.left(planted.mood, bigint) RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
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


_PLAIN = "CREATE FUNCTION planted.plain(text) RETURNS text LANGUAGE sql IMMUTABLE"


_SHOUT = f"CREATE FUNCTION planted.shout(text) RETURNS text {acts('$1')}"


# Functions that act, and a function in SQL whose body looks like one that only computes.
_BODIES: dict[str, tuple[str, str]] = {
    "a function of its own path": (
        f"CREATE FUNCTION planted.lower(text) RETURNS text {acts('$1')}",
        f"{_PLAIN} SET search_path = planted, pg_catalog AS 'SELECT lower($1)';",
    ),
    "an overload": (
        f"CREATE FUNCTION planted.lower(date) RETURNS text {acts('NULL')}",
        f"{_PLAIN} AS 'SELECT lower(NULL::date)';",
    ),
    "an operator": (
        f"CREATE FUNCTION planted.two(text, date) RETURNS text {acts('$1')}"
        "CREATE OPERATOR planted.- (leftarg = text, rightarg = date, function = planted.two);",
        f"{_PLAIN} AS $$SELECT $1 - '2000-01-01'::date$$;",
    ),
    "a type of its own path": (
        f"CREATE FUNCTION planted.wrong(pg_catalog.text) RETURNS boolean {acts('true')}"
        "CREATE DOMAIN planted.text AS pg_catalog.text CHECK (planted.wrong(VALUE));",
        "CREATE FUNCTION planted.plain(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql IMMUTABLE"
        " SET search_path = planted, pg_catalog AS $$SELECT ($1 || 'x')::text$$;",
    ),
    "a field": (_SHOUT, f"{_PLAIN} AS 'SELECT ($1).shout';"),
    "an aggregate": (
        f"CREATE FUNCTION planted.three(text, text, text) RETURNS text {acts('$1')}"
        "CREATE AGGREGATE planted.max(text, text) (sfunc = planted.three, stype = text, initcond = 'a');",
        f"{_PLAIN} AS $$SELECT max(x, 'y') FROM unnest(ARRAY[$1, 'z']) AS x$$;",
    ),
    "an implicit comparison": (
        f"{COMPARED} CREATE FUNCTION planted.lesser(anyelement, anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
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


def bodies() -> Iterator[Planting]:
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
        f"{COMPARED} CREATE FUNCTION planted.lesser(anyelement, anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
        " 'SELECT $1 < $2'; CREATE VIEW planted.seen AS SELECT planted.lesser('sad'::planted.mood, 'glad');",
        ("SELECT * FROM seen",),
    )


# What a function of an extension finds on the search path: what users made there, and a body that names it.
_SHADOWS: dict[str, tuple[str, str]] = {
    "a function": (f"CREATE FUNCTION planted.earth() RETURNS integer {acts('5')}", "SELECT $1 + earth()"),
    "a function of a schema that the body names": (
        f"CREATE FUNCTION planted.earth() RETURNS integer {acts('5')}",
        "SELECT $1 + planted.earth()",
    ),
    "an aggregate": (
        f"{TWO} CREATE AGGREGATE planted.most(integer) (sfunc = planted.two, stype = integer, initcond = 0);",
        "SELECT most(x) FROM unnest(ARRAY[$1, 2]) AS x",
    ),
    "an operator": (
        f"{TWO} CREATE OPERATOR planted.### (leftarg = integer, rightarg = integer, function = planted.two);",
        "SELECT $1 ### 1",
    ),
    "a type": (DOMAIN, "SELECT $1::checked + 0"),
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
        f"{COMPARED} CREATE FUNCTION planted.lesser(anyelement) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
        " 'SELECT $1 < $1'; ALTER EXTENSION plpgsql ADD FUNCTION planted.lesser(anyelement);",
        "SELECT CASE WHEN lesser('sad'::mood) THEN $1 ELSE 2 END",
    ),
}


def members() -> Iterator[Planting]:
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
        f"""CREATE FUNCTION planted.lower(date) RETURNS text {acts("'x'")} {_PLAIN} AS 'SELECT lower(NULL::date)';
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
        CREATE FUNCTION planted.less(planted.paid, planted.paid) RETURNS boolean {acts("true")}
        CREATE OPERATOR planted.+ (leftarg = planted.paid, rightarg = planted.paid, function = planted.less);
        {member} sql AS 'SELECT $1 + abs($1)'; {joined} {seen}""",
        ("SELECT ROW(1)::planted.paid OPERATOR(planted.+) ROW(1)::planted.paid",),
        harmless=("SELECT * FROM seen", "SELECT gc_to_sec(1)"),
        undo=_LEAVE,
    )


def fillers() -> Iterator[Planting]:
    """Yield what fills a row of any fields with values that it is given as texts."""
    told = f"""{TOLD} CREATE TABLE planted.held (id integer, t planted.told, n integer);
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


def namesakes() -> Iterator[Planting]:
    """Yield a function of composite values that has the name of the system's for texts."""
    yield Planting(
        "function for a composite type",
        "the name of the system's",
        """CREATE TYPE planted.two AS (a integer); CREATE DOMAIN planted.worn AS planted.two;
        CREATE FUNCTION planted.lower(planted.two) RETURNS text LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN PERFORM planted.act(); RETURN ''; END $$;
        CREATE TABLE planted.typed OF planted.two; INSERT INTO planted.typed VALUES (1);
        CREATE TABLE planted.held (t planted.two, ts planted.two[], w planted.worn, note text);
        INSERT INTO planted.held VALUES ('(1)', '{(1)}', '(1)', 'X');
        CREATE VIEW planted.seen AS SELECT t FROM planted.held;""",
        (
            "SELECT lower(ROW(1))",
            "SELECT lower(ROW(id)) FROM base",
            "SELECT lower(q) FROM (SELECT 1) AS q",
            "SELECT lower(q.*) FROM (SELECT 1 AS a) AS q",
            "SELECT lower(q) FROM (VALUES (1)) AS q",
            "WITH q AS (SELECT 1) SELECT lower(q) FROM q",
            "WITH q AS (SELECT 1) SELECT lower(r) FROM q AS r",
            "WITH RECURSIVE q AS (SELECT 1 UNION SELECT 2 FROM q) SELECT lower(q) FROM q",
            "SELECT lower(json_each) FROM json_each('{\"a\": 1}')",
            "SELECT lower(xmltable) FROM xmltable('/a' PASSING '<a/>' COLUMNS b integer PATH 'c')",
            "SELECT lower(q) FROM (base CROSS JOIN base AS b) AS q",
            "SELECT lower(q) FROM base JOIN base AS b USING (id) AS q",
            "SELECT lower(q.*) FROM base JOIN base AS b USING (id) AS q",
            "SELECT (SELECT lower(q)) FROM generate_series(1, 2) WITH ORDINALITY AS q",
            "SELECT lower(q) FROM json_to_record('{}') AS q (a integer)",
            "SELECT lower(q) FROM (SELECT id FROM base EXCEPT SELECT 1) AS q",
            "SELECT lower(x) FROM ROWS FROM (generate_series(1, 2), generate_series(1, 2)) AS x",
            "SELECT lower('(1)'::planted.two)",
            "SELECT lower('(1)'::planted.worn)",
            "SELECT lower(('{(1)}'::planted.two[])[1])",
            "SELECT lower(json_populate_record(NULL::planted.two, '{}'))",
            'SELECT lower(x) FROM json_to_record(\'{"t": {"a": 1}}\') AS y (t planted.two), LATERAL (SELECT t) z (x)',
            "SELECT lower(t) FROM held",
            "SELECT lower(ts[1]) FROM held",
            "SELECT lower(w) FROM held",
            "SELECT lower(x) FROM held, unnest(ts) AS x",
            "SELECT lower(t) FROM seen",
            "SELECT lower(t) FROM typed AS t",
            "SELECT t.lower FROM typed AS t",
            "SELECT (t).lower FROM held",
        ),
        harmless=("SELECT lower('X'), lower(name), lower(NULL) FROM base", "SELECT * FROM held", "SELECT lower($$X$$)"),
    )


_LEAVE = """DO $$ DECLARE f text; BEGIN
  FOR f IN SELECT objid::regprocedure::text FROM pg_depend
    WHERE classid = 'pg_proc'::regclass AND deptype = 'e' AND objid IN (
      SELECT oid FROM pg_proc WHERE pronamespace = 'planted'::regnamespace) LOOP
    EXECUTE 'ALTER EXTENSION plpgsql DROP FUNCTION ' || f;
  END LOOP;
END $$"""
"""Takes the planted functions out of the extension, so that their schema can be dropped."""


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


def of_the_system() -> Iterator[Planting]:
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
        f"{DOMAIN} CREATE DOMAIN planted.whole AS planted.base CHECK (planted.wrong((VALUE).id));",
        (
            "SELECT (1).checked",
            "SELECT (a).checked FROM (SELECT id AS a FROM base) AS s",
            "SELECT n.checked FROM generate_series(1, 2) AS n",
            "SELECT base.whole FROM base",
            "SELECT (base).whole FROM base",
        ),
    )
    checked = f"""{DOMAIN} CREATE FUNCTION planted.wrong(text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
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
