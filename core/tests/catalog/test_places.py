"""What exists for callers of a database of which they see only a part."""

from dataclasses import replace
from random import Random

import pytest
from dragoman import ColumnNotFound, Database, Dialect, InvalidSql, PermissionDenied, QueryError, TableNotFound
from dragoman.catalog import Places
from dragoman.catalog.places import names_in
from dragoman.sql.lexicon import Lexicon

DIALECT = Dialect(name="any", contract=1, sqlglot="postgres", lexicon=Lexicon(colon_casts=True))
OUT = [
    "nextval('secret.numbers')",
    "nextval('\"secret\".numbers') + 1",
    "NEXTVAL('secret.numbers')",
    "nextval(('secret.numbers'::text)::regclass)",
    "length('secret.numbers'::text::regclass::text)",
    "concat(nextval('sales.numbers'), secret.f('x'))",
    "concat('sales.orders'::regclass, 'it''s', secret.f('x'))",
    "\"it's\" > 0 AND secret.f('x')",
    "nextval('secret.numbers'::regclass)",
    "'calm'::secret.mood",
    "secret.f(x) > 0",
    'a COLLATE "secret"."c"',
    "a OPERATOR(secret.=) b",
    'x > 0 AND "Se""cret".f(1)',
    "secret.mood[]",
    "o.secret::secret.t",
]
IN = [
    "nextval('sales.numbers')",
    "concat('www.example.com', 1)",
    "concat(nextval('sales.numbers'), 'www.example.com')",
    "concat('nextval(', 'www.example.com', '\"', 'it''s www.example.com')",
    "nextval('sales.numbers'::regclass)",
    "'calm'::sales.mood",
    "sales.f(x)",
    "pg_catalog.lower(x) > 1.5",
    "x ~ '^www.example.com$'",
    "numeric(12,2)",
    "a OPERATOR(pg_catalog.=) b",
]


@pytest.fixture
def places() -> Places:
    places = Places(Database(name="d", dialect="any", schemas=("sales",)), DIALECT)
    places.settle(["pg_catalog", "information_schema"])
    return places


@pytest.mark.parametrize("text", OUT)
def test_a_text_that_names_another_schema_leads_out(places: Places, text: str):
    assert places.leads_out(text)


@pytest.mark.parametrize("text", [text for text in OUT if not text.startswith("secret.mood")])
def test_an_alias_of_that_name_makes_no_difference(places: Places, text: str):
    assert places.leads_out(text, {"secret", "o"})


@pytest.mark.parametrize("text", IN)
def test_a_text_of_visible_schemas_and_the_engine_s_own_does_not(places: Places, text: str):
    assert not places.leads_out(text)


# Pieces whose quotes may be taken for the beginning or the end of another.
BETWEEN = ['"it\'s"', "'a \"'", "''", "'it''s'", '"a""b"', "'nextval('", "E'\\\\'", "'::regclass'", "(", ")"]


@pytest.mark.parametrize("seed", range(200))
def test_what_stands_beside_a_name_does_not_hide_it(places: Places, seed: int):
    chance = Random(seed)
    inside = chance.choices(IN + BETWEEN, k=6)
    assert not places.leads_out(" || ".join(inside))
    inside.insert(chance.randrange(7), chance.choice(OUT))
    assert places.leads_out(" || ".join(inside))


def test_quotes_and_escapes_are_those_of_the_dialect():
    lexicon = Lexicon(identifier_quotes="`", backslash_escapes=True)
    places = Places(Database(name="d", dialect="any", schemas=("sales",)), replace(DIALECT, lexicon=lexicon))
    assert places.leads_out("select `it's`, `secret`.`t`.`x`, `that's`")
    assert places.leads_out(r"select 'it\'s', secret.t.x, 'that\'s'")
    assert not places.leads_out(r"select 'it\'s secret.t.x', `sales`.`t`.`x`")


def test_a_part_of_a_name_is_no_alias():
    assert names_in("\"it's\".x, secret.t, o, 'p'", DIALECT.lexicon) == {"x", "t", "o"}


def test_an_alias_may_qualify_columns(places: Places):
    assert not places.leads_out("SELECT o.id FROM orders o", {"o", "orders"})
    assert places.leads_out("SELECT o.id FROM orders o")


def test_everything_is_told_where_nothing_is_outside():
    places = Places(Database(name="d", dialect="any"), DIALECT)
    assert not any(map(places.leads_out, OUT))
    error = PermissionDenied("permission denied for table secret.x")
    assert places.clean(error, "").message == "permission denied for table secret.x"


def test_an_error_says_the_same_whatever_it_is_about(places: Places):
    told = [
        places.clean(error, "").as_dict()
        for name in ("secret.a", "nowhere.b")
        for error in (
            QueryError(f"invalid input for {name}", context={"sqlstate": "22P02", "detail": name}),
            QueryError(f"the view {name[-1]} is not there", context={"sqlstate": "55000"}),
            PermissionDenied(f"permission denied for table {name[-1]}"),
            TableNotFound(f"no relation {name}", suggestion=f"Perhaps {name}."),
        )
    ]
    assert told[:4] == told[4:]
    assert "(hidden)" in str(told)


def test_an_error_about_the_statement_shows_the_names_that_it_has(places: Places):
    hint = {"hint": "Perhaps secret.b is meant.", "code": 1}
    error = ColumnNotFound("column s.b of secret.t does not exist", context={"database": hint})
    told = places.clean(error, "SELECT s.B FROM sales.t AS s")
    assert (told.message, told.context) == ("column s.b of (hidden) does not exist", {"database": {"code": 1}})


@pytest.mark.parametrize(
    "message",
    [
        "operator does not exist: secret.t + integer",
        'function lower(secret.t, "secret"."t") does not exist',
        'column "a" not found in data type secret.t',
        "cannot cast type secret.t[] to integer",
        "COALESCE could not convert type mood to secret.t",
    ],
)
def test_an_error_about_the_statement_confirms_no_name_of_a_type(places: Places, message: str):
    written = "SELECT secret.t, 'secret.t' AS \"secret.t\" FROM sales.t AS secret"
    assert "secret" not in places.clean(InvalidSql(message), written).message


@pytest.mark.parametrize(
    "message",
    [
        "column s.b does not exist",
        'column "s.b" must appear in the GROUP BY clause',
        "Column 's.b' cannot be resolved",
        "'(s.b + s.b)' must be an aggregate expression",
        "no such column: s.b",
        "ambiguous column name: s.b",
        "You have an error in your SQL syntax near 'frm s.b' at line 1",
        "Ambiguous reference to column name \"b\" (use: 's.b' or `s.b`)",
    ],
)
def test_an_error_about_the_statement_shows_its_columns(places: Places, message: str):
    assert places.clean(InvalidSql(message), "SELECT s.b FROM sales.t AS s").message == message


def test_an_error_about_values_shows_no_name_whatever_the_statement_has(places: Places):
    error = QueryError("secret.t is full", context={"sqlstate": "53100", "table": "secret.t"})
    told = places.clean(error, "SELECT t FROM sales.t AS secret")
    assert (told.message, told.context) == ("(hidden) is full", {"sqlstate": "53100"})
