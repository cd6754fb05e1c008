"""The gate by itself: no database is asked."""

from typing import Any

import pytest
from dragoman import Database, DragomanError, InvalidSql, ParsedStatement, Statement, UnsafeSql, WriteDenied
from dragoman.testing.corpus import Case, cases
from dragoman.validators import ReadOnly, check_text, read
from dragoman_postgres import walk
from dragoman_postgres.lexicon import LEXICON
from dragoman_postgres.plugin import plugin
from dragoman_postgres.rules import load_allowed
from hypothesis import given, settings
from hypothesis import strategies as st

CASES = cases("any") + cases("postgres")
DATABASE = Database(name="shop", dialect="postgres")


def judged(text: str, database: Database | None = None) -> ParsedStatement:
    """What a statement reads, once the core has judged it."""
    statement = Statement.parse(text, sqlglot="postgres", lexicon=LEXICON)
    parsed = read(plugin.dialect, statement)
    ReadOnly(plugin.dialect, database).judge(parsed)
    return parsed


def verdict(text: str) -> str:
    try:
        check_text(plugin.dialect, text)
    except DragomanError as error:
        return error.code
    return ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdict_is_the_expected_one(case: Case):
    assert verdict(case.sql) == case.code


def test_a_reading_tells_relations_and_functions():
    parsed = judged("WITH a AS (SELECT * FROM s.t) SELECT lower(x), pg_catalog.upper(y) FROM a, pg_class")
    assert sorted(map(str, parsed.names)) == ["pg_catalog.pg_class", "s.t"]
    assert sorted(parsed.functions) == ["lower", "pg_catalog.upper"]


REFUSED_AT = [
    ("SELECT 'é', pg_sleep(1)", "pg_sleep"),
    ("SELECT 1 FROM a, b, pg_authid", "pg_authid"),
    ("SELECT 'ß' AS x, t.pg_sleep FROM t", "t.pg_sleep"),
    ("SELECT 1 OPERATOR(public.+) 2", "OPERATOR"),
    ("SELECT 'é' frm x", "x"),
    ("SELECT /* a */ 1 INTO b", "b"),
]


@pytest.mark.parametrize(("text", "place"), REFUSED_AT)
def test_a_refusal_tells_its_place_in_characters(text: str, place: str):
    with pytest.raises(DragomanError) as refused:
        judged(text)
    assert refused.value.offset == text.index(place, text.index("x") if place == "x" else 0)
    assert refused.value.suggestion


ALLOWED_BY_CONFIGURATION = [
    ("SELECT evil(1)", {"allow_functions": frozenset({"evil"})}),
    ("SELECT s.evil(1)", {"allow_functions": frozenset({"s.evil"})}),
    ("SELECT public.evil(1)", {"allow_functions": frozenset({"evil"})}),
    ("SELECT t.nextval FROM t", {"allow_functions": frozenset({"nextval"})}),
    ("SELECT 1 OPERATOR(s.===) 2", {"allow_functions": frozenset({"s.==="})}),
    ("SELECT * FROM pg_stat_activity", {"allow_relations": frozenset({"pg_stat_activity"})}),
    ("SELECT * FROM pg_catalog.pg_locks", {"allow_relations": frozenset({"pg_catalog.pg_locks"})}),
]


@pytest.mark.parametrize(("text", "fields"), ALLOWED_BY_CONFIGURATION)
def test_configuration_opens_what_it_names_and_nothing_else(text: str, fields: dict[str, Any]):
    with pytest.raises(UnsafeSql):
        judged(text, DATABASE)
    judged(text, Database(name="shop", dialect="postgres", **fields))
    with pytest.raises(UnsafeSql):
        judged(text + ", pg_sleep(1)" if " FROM " not in text else text + " WHERE pg_sleep(1) IS NULL", DATABASE)


def test_the_validator_of_the_core_asks_the_grammar():
    with pytest.raises(WriteDenied):
        judged("WITH a AS (DELETE FROM t RETURNING 1) SELECT * FROM a", DATABASE)


def test_a_construct_nobody_looked_at_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(walk._STEPS, "CaseExpr")
    assert verdict("SELECT CASE WHEN true THEN 1 END") == "UNSAFE_SQL"


def test_a_field_nobody_looked_at_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(walk._STEPS, "quals")
    assert verdict("SELECT 1 FROM a JOIN b ON true") == "UNSAFE_SQL"


DEEP = [
    "SELECT " + "+".join(["1"] * 20_000),
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "SELECT 1" + " UNION SELECT 1" * 4_000,
    "SELECT " + "-" * 1 + " - ".join(["1"] * 10_000),
    "SELECT " + "'a' || " * 8_000 + "'a'",
    "SELECT " + "NOT " * 10_000 + "true",
    "'" * 60_001,
    "SELECT " + "a." * 20_000 + "b",
    "SELECT " + "ARRAY[" * 9_000,
    "SELECT " + ", ".join(["pg_catalog.lower('a')"] * 2_500),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_long_and_deep_texts_get_a_verdict(text: str):
    assert verdict(text) in {"", "INVALID_SQL", "UNSAFE_SQL"}


PIECES = [case.sql for case in CASES if case.sql]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PIECES), st.sampled_from(PIECES), st.data())
def test_mutated_statements_always_get_a_verdict(one: str, other: str, data: st.DataObject):
    cut = data.draw(st.integers(0, len(one)))
    paste = data.draw(st.integers(0, len(other)))
    text = (
        one[:cut]
        + data.draw(st.sampled_from(["", " ", "(", ")", "'", '"', "$$", "/*", "*/", "--", ";", "\\"]))
        + other[paste:]
    )
    code = verdict(text)
    assert code in ("", "INVALID_SQL", "UNSAFE_SQL", "WRITE_OPERATION_DENIED")


REFUSED = [case.sql for case in cases("postgres") if case.code == "UNSAFE_SQL" and case.sql.startswith("SELECT ")]
FRAMES = [
    "SELECT * FROM ({}) AS x",
    "WITH x AS ({}) SELECT * FROM x",
    "SELECT (SELECT count(*) FROM ({}) AS x)",
    "SELECT 1 WHERE EXISTS ({})",
    "EXPLAIN {}",
    "({}) UNION ALL (SELECT 1)",
    "SELECT ARRAY({})",
    "SELECT 1 FROM customers, LATERAL ({}) AS x",
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(REFUSED), st.lists(st.sampled_from(FRAMES), min_size=1, max_size=4))
def test_what_is_refused_stays_refused_within_other_queries(text: str, frames: list[str]):
    for frame in frames:
        text = frame.format(text)
    assert verdict(text) != ""


def test_no_list_lets_pass_what_the_policy_takes_away():
    rules = load_allowed()
    assert not rules.functions & {"pg_sleep", "set_config", "query_to_xml", "nextval", "lo_create", "current_setting"}
    assert not rules.refused & rules.functions
    assert not any(rules.is_secret(name) for name in rules.relations)


def test_an_operator_longer_than_any_name_is_refused_and_a_long_line_in_a_text_is_not():
    with pytest.raises(InvalidSql, match="operator"):
        check_text(plugin.dialect, "SELECT " + "+" * 64 + "1")
    check_text(plugin.dialect, f"SELECT '{'=' * 500}' -- {'-' * 500}")
    check_text(plugin.dialect, "SELECT " + "- " * 64 + "1")


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT btrim(name), trim(name), trim(BOTH 'x' FROM name), ltrim(name, 'xy'), rtrim(name, ' ') FROM t", ""),
        ("SELECT translate(name, 'ab', other) FROM t", ""),
        ("SELECT btrim(name, other) FROM t", "UNSAFE_SQL"),
        ("SELECT trim(LEADING repeat('x', 9) FROM name) FROM t", "UNSAFE_SQL"),
        (f"SELECT rtrim(name, '{'x' * 101}') FROM t", "UNSAFE_SQL"),
        ("SELECT pg_catalog.translate(name, other, 'x') FROM t", "UNSAFE_SQL"),
        ("""SELECT xpath('//a[@id="1"]/b[2]/text()', x), xpath_exists('/a/x:b/@c', x, ARRAY[ARRAY['x', 'y']])""", ""),
        ("SELECT xpath('//*//*', x)", "UNSAFE_SQL"),
        ("SELECT xpath('//b[count(//b) > 1]', x)", "UNSAFE_SQL"),
        ("SELECT xpath('/a/descendant::b', x)", "UNSAFE_SQL"),
        ("SELECT xpath(path, x) FROM t", "UNSAFE_SQL"),
    ],
)
def test_functions_that_no_deadline_ends_pass_with_arguments_that_keep_them_short(sql: str, code: str):
    assert verdict(sql) == code


NEAR = "st_hausdorffdistance(a, b, {})", "public.st_frechetdistance(a, b, {})"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("st_buffer(geom, 10), ST_Buffer(geom, r, 16), ST_Buffer(geom, r, 'quad_segs=16 endcap=flat join=mitre')", ""),
        ("public.st_buffer(geom, (10)::double precision, 'side=left mitre_limit=5.0'::text)", ""),
        ("st_offsetcurve(geom, -2), extensions.st_offsetcurve(geom, r, 'quad_segs=8 join=round')", ""),
        ("st_buffer(geom, 1, 100000)", "UNSAFE_SQL"),
        ("st_buffer(geom, 1, n)", "UNSAFE_SQL"),
        ("st_buffer(geom, 1, $1)", "UNSAFE_SQL"),
        ("public.st_buffer(geom, 1, 'quad_segs=2000000000')", "UNSAFE_SQL"),
        ("st_buffer(geom, 1, 'quad_segs=8 quad_segs=20000')", "UNSAFE_SQL"),
        ("st_buffer(geom, 1, '2000000000')", "UNSAFE_SQL"),
        ("st_buffer(options => 'quad_segs=2000000000', geom => g, radius => 1)", "UNSAFE_SQL"),
        ("extensions.st_offsetcurve(geom, 1, 'quad_segs=1e9')", "UNSAFE_SQL"),
        *((each.format(fraction), "") for each in NEAR for fraction in ("0.5", ".01", "(0.25)::double precision", "1")),
        *(
            (each.format(fraction), "UNSAFE_SQL")
            for each in NEAR
            for fraction in ("1e-9", "0.000001", "f", "'1e-9'", "0")
        ),
        ("st_hausdorffdistance(a, b), st_frechetdistance(a, b)", ""),
        ("st_asgeojson(geom), st_asgeojson(t.*), st_asgeojson(geom, 6), st_asgeojson(geom, 15, 8)", ""),
        ("st_asgeojson(t, 'geom', 6), st_asgeojson(t, 'geom', 6, true)", ""),
        ("st_asgeojson(geom, 2147483647, 2147483647)", "UNSAFE_SQL"),
        ("st_asgeojson(geom, '2147483647', 1)", "UNSAFE_SQL"),
        ("st_asgeojson(geom, n, 1)", "UNSAFE_SQL"),
        ("st_geohash(geom), st_geohash(geom, 8)", ""),
        ("st_geohash(geom, 1000000000)", "UNSAFE_SQL"),
    ],
)
def test_functions_of_geometry_that_no_deadline_ends_pass_with_small_literals(call: str, code: str):
    assert verdict(f"SELECT {call} FROM t") == code


MERCATOR = "+proj=merc +a=6378137 +b=6378137 +lat_ts=0.0 +lon_0=0 +k=1.0 +units=m +nadgrids=@null +wktext +no_defs"
# Where a text may say which file of the server is opened.
NAMING = [
    "+init=/srv/x:y",
    "init=/srv/x:y +proj=longlat",
    "+proj=longlat +nadgrids=/srv/x",
    "+proj=longlat +nadgrids=@null,/srv/x",
    "+proj=longlat +datum=WGS84 +geoidgrids=x.gtx",
    "+proj=pipeline +step +proj=tinshift +file=/srv/x.json",
    "+proj=pipeline +step +proj=defmodel +model=x.json",
    "+proj=pipeline +step proj=hgridshift grids=x.gsb",
    'GEOGCRS["a",PARAMETERFILE["b","/srv/x"]]',
    '{"type": "GeographicCRS"}',
    "https://example.org/x",
    "/srv/x",
    "\t+proj=longlat\n+init=/srv/x:y",
]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("st_transform(geom, 3857), ST_Transform(geom, '4326'::int), public.st_transform(geom, (3857)::integer)", ""),
        ("st_transform(geom, srid::integer), st_transform(geom, $1::int4), st_transform(geom, -1)", ""),
        ("st_transform(geom, st_srid(other)), st_transform(geom, public.st_srid('POINT(0 0)'::geometry))", ""),
        ("st_transform(geom, 32600 + zone), st_transform(geom, coalesce(srid::int, 4326))", ""),
        ("st_transform(geom, CASE WHEN n > 0 THEN 32601 ELSE 32701 END)", ""),
        ("st_transform(rast, 3857, 'Bilinear', 0.1), st_transform(rast, 3857, 10.0, 10.0)", ""),
        ("st_transform(geom, 'EPSG:3857'), extensions.st_transform(geom, 'epsg:4326', 'ESRI:102003')", ""),
        (f"st_transform(geom, '{MERCATOR}'::text)", ""),
        ("st_transform(geom, '+proj=utm +zone=33 +datum=WGS84 +units=m +no_defs', 4326)", ""),
        ("st_transform(geom, '+proj=longlat +towgs84=598.1,73.7,418.2,0.202,0.045,-2.455,6.7 +pm=paris', 4326)", ""),
        ("st_transform(geom, '+init=epsg:2154')", ""),
        ("st_transformpipeline(geom, 'urn:ogc:def:coordinateOperation:EPSG::16031')", ""),
        ("st_transformpipeline(geom, '+proj=pipeline +step +inv +proj=utm +zone=31 +step +proj=longlat', 4326)", ""),
        ("st_transform(geom, srid)", "UNSAFE_SQL"),
        ("st_transform(geom, $1)", "UNSAFE_SQL"),
        ("st_transform(geom, 'EPSG:4326' || x)", "UNSAFE_SQL"),
        ("st_transform(geom, coalesce(NULL, x), 4326)", "UNSAFE_SQL"),
        ("st_transform(geom, CASE WHEN n > 0 THEN 1 ELSE x END)", "UNSAFE_SQL"),
        ("st_transform(from_proj => '+init=/srv/x:y', geom => geom, to_srid => 4326)", "UNSAFE_SQL"),
        ("st_transform(geom, to_proj => '+init=/srv/x:y')", "UNSAFE_SQL"),
        ("st_transform(geom, '4326', '+init=/srv/x:y')", "UNSAFE_SQL"),
        ("st_transform(geom, zone::int[])", "UNSAFE_SQL"),
        ("postgis_transform_geometry(geom, 'EPSG:4326', 'EPSG:3857', 3857)", "UNSAFE_SQL"),
        *(
            (call.format(text), "UNSAFE_SQL")
            for text in NAMING
            for call in (
                "st_transform(geom, '{}')",
                "st_transform(geom, 'EPSG:4326', '{}')",
                "public.st_transform(geom, '{}', 4326)",
                "st_transformpipeline(geom, '{}')",
            )
        ),
    ],
)
def test_a_projection_that_is_written_as_a_text_names_no_file(call: str, code: str):
    assert verdict(f"SELECT {call} FROM t") == code


PATHS = [
    ('//a[@id="1"]/b[2]/text()', ""),
    ("/ROWS/ROW[COUNTRY='DE'][last()]/@id", ""),
    ("//x:a[b = 5]/*", ""),
    (".", ""),
    ("../../@name", ""),
    ("count(item)", ""),
    ("normalize-space(../name)", ""),
    ("//*//*", "UNSAFE_SQL"),
    ("//b[count(//b) > 1]", "UNSAFE_SQL"),
    ("/a/descendant::b", "UNSAFE_SQL"),
    ("//a[descendant::b]", "UNSAFE_SQL"),
    ("//a | //b", "UNSAFE_SQL"),
    # Parents are looked for among all parents found so far.
    ("//b/..", "UNSAFE_SQL"),
    ("/a/b/../c", "UNSAFE_SQL"),
    ("//text()/..", "UNSAFE_SQL"),
    ("//a[../b]", "UNSAFE_SQL"),
    ("//..", "UNSAFE_SQL"),
    ("count(//b/..)", "UNSAFE_SQL"),
    ("count(count(//b))", "UNSAFE_SQL"),
]
READERS = [
    "SELECT xpath('{}', x)",
    "SELECT pg_catalog.xpath_exists('{}', x)",
    "SELECT xmlexists('{}' PASSING BY REF x)",
    "SELECT * FROM t, XMLTABLE('{}' PASSING x COLUMNS a int) AS q",
    "SELECT * FROM t, XMLTABLE('/a' PASSING x COLUMNS n FOR ORDINALITY, a int PATH '{}' DEFAULT 1) AS q",
]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("path", "code"), PATHS)
def test_whatever_takes_a_path_of_xml_takes_simple_paths_alone(reader: str, path: str, code: str):
    assert verdict(reader.format(path.replace("'", "''"))) == code


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ('SELECT * FROM t, XMLTABLE(\'/a\' PASSING x COLUMNS "@id" int, "b" text) AS q', ""),
        ("SELECT * FROM t, XMLTABLE('/a' PASSING x COLUMNS \"//*[count(//*) > 0]\" int) AS q", "UNSAFE_SQL"),
        ("SELECT * FROM t, XMLTABLE(t.path PASSING x COLUMNS a int) AS q", "UNSAFE_SQL"),
        ("SELECT * FROM t, XMLTABLE('/a' PASSING x COLUMNS a int PATH t.path) AS q", "UNSAFE_SQL"),
        ("SELECT * FROM t, XMLTABLE('/a' PASSING x COLUMNS a int PATH 'b' || '//*') AS q", "UNSAFE_SQL"),
        ("SELECT xmlexists(path PASSING x) FROM t", "UNSAFE_SQL"),
        # As the server prints views.
        ("SELECT q.a FROM t, XMLTABLE(('/a'::text) PASSING (t.x) COLUMNS a integer PATH ('b'::text)) q(a)", ""),
        ("SELECT xpath('/a'::text, x), xmlexists(('/a'::pg_catalog.text) PASSING x) FROM t", ""),
        ("SELECT xpath('//b/..'::text, x)", "UNSAFE_SQL"),
        ("SELECT xpath('/a'::public.text, x)", "UNSAFE_SQL"),
        ("SELECT xpath('/a'::text[], x)", "UNSAFE_SQL"),
    ],
)
def test_a_path_of_xml_is_a_literal_or_the_name_of_its_column(sql: str, code: str):
    assert verdict(sql) == code
