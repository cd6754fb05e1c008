import contextlib
import dataclasses
import re
import time
from dataclasses import replace

import pytest
from dragoman import (
    Call,
    Capability,
    Database,
    Dialect,
    DragomanError,
    FunctionCall,
    Lexicon,
    NamedRelation,
    ParsedStatement,
    Principal,
    Relation,
    Resolution,
    Rules,
    Statement,
    UnsafeSql,
    WriteDenied,
)
from dragoman.catalog.places import Places
from dragoman.validators import ReadOnly, check_text, read
from hypothesis import given
from hypothesis import strategies as st

DIALECT = Dialect(
    name="plain",
    contract=1,
    sqlglot="",
    lexicon=Lexicon(),
    default_schema="main",
    rules=Rules(
        functions=frozenset({"abs", "count"}),
        table_functions=frozenset({"series"}),
        statements=(re.compile(r"show\s+tables", re.IGNORECASE),),
        prefixes=(re.compile(r"explain\s+", re.IGNORECASE),),
        refused_relations=(re.compile(r"(?:main\.)?secret"),),
    ),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def database(**settings: object) -> Database:
    return Database(name="shop", dialect="plain", **settings)  # type: ignore[arg-type]


def statement(text: str) -> Statement:
    return Statement.parse(text, sqlglot="", lexicon=DIALECT.lexicon)


async def check(text: str, target: Database, known: tuple[Relation, ...] = (), dialect: Dialect = DIALECT) -> None:
    async def resolve() -> Resolution:
        return Resolution(known)

    async def relations() -> tuple[Relation, ...]:
        return known

    call = Call(
        principal=Principal(),
        tool="execute_query",
        database=target,
        resolve=resolve,
        relations=relations,
        parsed=read(dialect, statement(text)),
        dialect=dialect,
    )
    await ReadOnly(dialect, target).check(statement(text), call)


REFUSED = [
    ("select abs(1), harm(2)", UnsafeSql, 15, "harm"),
    ("explain select harm(1)", UnsafeSql, 15, "harm"),
    ("explain delete from t", WriteDenied, 8, "DELETE"),
    ("with a as (select 1) delete from t", WriteDenied, 21, "DELETE"),
    ("select * from secret", UnsafeSql, 14, "secret"),
    ("select * from main.secret", UnsafeSql, 19, "main.secret"),
    ("select other.abs(1)", UnsafeSql, 13, "other.abs"),
    ("show columns", WriteDenied, 0, "SHOW"),
]


@pytest.mark.parametrize(("text", "kind", "offset", "named"), REFUSED)
def test_a_refusal_says_what_where_and_what_to_do(text: str, kind: type[DragomanError], offset: int | None, named: str):
    with pytest.raises(kind, match=re.escape(named)) as refusal:
        check_text(DIALECT, text)
    assert refusal.value.offset == offset
    assert refusal.value.suggestion


@pytest.mark.parametrize(
    "text",
    [
        "show  TABLES",
        "explain select abs(1)",
        "select main.abs(1)",
        "select * from series(1) as t(a)",
        "select 1 as secret",
    ],
)
def test_what_the_rules_list_passes(text: str):
    check_text(DIALECT, text)


@pytest.mark.parametrize("text", ["select * from glob('*')", "select glob('*', a) from t", "select regexp('a', 'b')"])
def test_an_operator_s_name_is_judged_where_it_is_called(text: str):
    with pytest.raises(UnsafeSql):
        check_text(dataclasses.replace(DIALECT, sqlglot="duckdb"), text)


async def test_the_operator_can_allow_functions_and_relations():
    text = "select app.harm(1) from secret"
    with pytest.raises(UnsafeSql, match=r"app\.harm"):
        await check(text, database(allow_relations=("secret",)))
    with pytest.raises(UnsafeSql, match="secret"):
        await check(text, database(allow_functions=frozenset({"App.Harm"})))
    await check(text, database(allow_functions=frozenset({"App.Harm"}), allow_relations=frozenset({"Secret"})))


async def test_only_the_configured_schemas_may_be_queried():
    target = database(schemas=("main", "sales"))
    await check("select * from a, sales.b", target, (Relation("a"), Relation("b", "sales")))
    with pytest.raises(UnsafeSql, match=r"hr\.b.*not open"):
        await check("select * from b", target, (Relation("b", "hr"),))


@pytest.mark.parametrize(
    ("configured", "schema", "allowed"),
    [
        ("Sales", "Sales", True),
        ("Sales", "sales", True),
        ('"Sales"', "Sales", True),
        ('"Sales"', "sales", False),
        ('"sales"', "sales", True),
        ("sales", "Sales", False),
        ("main.x", "main", False),
    ],
)
async def test_a_configured_schema_is_the_one_of_that_name_and_the_one_that_sql_means(configured, schema, allowed):
    stored = replace(DIALECT, folding="lower", read=lambda _: ParsedStatement((NamedRelation(Relation("b", schema)),)))
    statement = check("select 1", database(schemas=(configured,)), (Relation("b", schema),), dialect=stored)
    places = Places(database(schemas=(configured,)), stored)
    assert places.visible(schema, None) == allowed
    with contextlib.nullcontext() if allowed else pytest.raises(UnsafeSql, match="not open"):
        await statement


@pytest.mark.parametrize(
    ("relation", "home", "allowed"),
    [
        (Relation("a"), "lake", True),
        (Relation("a", "main", "lake"), "lake", True),
        (Relation("a", "main", "other"), "lake", False),
        (Relation("a", "sales", "other"), "lake", True),
        (Relation("a", "sales"), "lake", False),
        (Relation("a", "sales"), "other", True),
        (Relation("a", "main", "other"), None, True),
        (Relation("a", "sales", "third"), None, False),
    ],
)
async def test_a_configured_schema_is_the_default_catalog_s_unless_it_names_one(relation, home, allowed):
    layered = replace(DIALECT, capabilities=frozenset({Capability.CATALOGS}))
    target = database(schemas=("main", "other.sales"), database=home, schema="main")
    if allowed:
        await check("select * from a", target, (relation,), layered)
        return
    with pytest.raises(UnsafeSql, match="not open"):
        await check("select * from a", target, (relation,), layered)


async def test_a_name_that_resolves_to_nothing_counts_as_one_of_the_default_schema():
    with pytest.raises(UnsafeSql, match="not open"):
        await check("select * from a", database(schemas=("sales",)), (Relation("a"),))


def reads_harm(statement: Statement) -> ParsedStatement:
    """A grammar that sees one thing in everything."""
    return ParsedStatement(calls=(FunctionCall("harm", offset=3),))


def test_what_a_dialect_s_own_grammar_reads_is_judged_by_the_core():
    own = Dialect(name="own", contract=1, sqlglot="", capabilities=frozenset({Capability.GRAMMAR}), read=reads_harm)
    with pytest.raises(UnsafeSql, match="harm") as refusal:
        check_text(own, "select 1")
    assert refusal.value.offset == 3
    check_text(replace(own, rules=Rules(functions=frozenset({"harm"}))), "select 1")
    with pytest.raises(UnsafeSql, match="More than one"):
        check_text(own, "select 1; select 2")


def test_a_dialect_that_only_claims_a_grammar_is_read_by_sqlglot():
    own = Dialect(name="own", contract=1, sqlglot="", capabilities=frozenset({Capability.GRAMMAR}))
    with pytest.raises(UnsafeSql, match="harm"):
        check_text(own, "select harm(1)")


@pytest.mark.parametrize(
    ("text", "offset"),
    [('select "main.abs"(1)', 7), ('select * from "main"."a.series"(1)', 21), ('select "other.main"."abs"(1)', 20)],
)
def test_a_dot_within_a_name_is_no_dot_between_names(text: str, offset: int):
    with pytest.raises(UnsafeSql) as refusal:
        check_text(DIALECT, text)
    assert refusal.value.offset == offset


CASTS = [
    "select a::DECIMAL(10,2), b::varchar(10), cast(c as decimal(10, 2)), cast(d as varchar(5)) from t",
    "select a :: decimal(10, 2), a::double precision(3), (a)::numeric(1)::decimal(2) from t",
]


@pytest.mark.parametrize("text", CASTS)
@pytest.mark.parametrize("lexicon", [Lexicon(colon_casts=True), Lexicon(parameters="$")])
def test_a_type_with_parameters_is_cast_to_and_not_called(text: str, lexicon: Lexicon):
    check_text(replace(DIALECT, sqlglot="duckdb", lexicon=lexicon), text)


@pytest.mark.parametrize("text", ["select a::harm.decimal(1) from t", "select a: :harm(1) from t", "select ::harm(1)"])
def test_what_only_looks_like_a_cast_is_refused(text: str):
    with pytest.raises(DragomanError):
        check_text(replace(DIALECT, sqlglot="duckdb", lexicon=Lexicon(colon_casts=True, marks=":")), text)


WORDS = (
    "select from where with as ( ) , . ; ' \" -- /* */ a b 1 * = and insert delete into values abs harm union in case"
    " when end cast over ? null not"
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS.split()), max_size=60).map(" ".join))


@given(TEXTS)
def test_judging_never_raises_anything_of_ours_unknown(text: str):
    try:
        check_text(DIALECT, text)
    except DragomanError as error:
        failure = error
    else:
        return
    assert failure.code != "INTERNAL_ERROR"
    assert failure.suggestion


LONG = [
    "select " + "a in b or " * 6000 + "1",
    "select " + "abs(" * 39 + "1" + ")" * 39 + " + 1" * 15000,
    "with " + ", ".join(f"a{n} as (select 1)" for n in range(3000)) + " select 1",
    "select 1" + " union select * from a" * 2800,
    "select " + "a." * 30000 + "a(1)",
    "select " + "not " * 16000 + "1",
    "select " + "case when " * 6000 + "1",
    "select " + "'" * 65001,
    "select " + "/* " * 20000,
    "select " + "a, " * 20000 + "a",
]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_judging_ends_soon_whatever_the_text(text: str):
    begun = time.monotonic()
    with contextlib.suppress(DragomanError):
        check_text(DIALECT, text)
    assert time.monotonic() - begun < 10
