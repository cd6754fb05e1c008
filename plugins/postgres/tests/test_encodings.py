"""In a database that is not in UTF8 the server reads some names otherwise than its grammar does here: none passes."""

import contextlib
import itertools
import json
import random
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager

import asyncpg
import pytest
from dragoman import ConfigurationError, DragomanError, Gateway, Principal, QueryError, UnsafeSql
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.tools import Toolbox
from dragoman_postgres.dialect import DIALECT
from dragoman_postgres.encodings import KNOWN, MERGED, WIDEST
from dragoman_postgres.testing import Server

ANN = Principal("ann", subject="ann", groups=frozenset({"readers"}))
LONG = {
    "LATIN1": "é" * 33,
    "WIN1251": "заработная_плата_всех_сотрудников_2024",
    "EUC_JP": "従業員給与明細書の秘密の表二千二十四年度版甲",
    "KOI8R": "ж" * 60,
    "SQL_ASCII": "é" * 31,
    "UTF8": "é" * 31,
}
"""Names that a database of the encoding holds in full; but for the last two, none of 63 bytes in UTF-8."""
HIDDEN = """
CREATE TABLE "{name}" (id int, v text);
INSERT INTO "{name}" VALUES (1, 'hiddenrow');
CREATE SCHEMA "{name}";
CREATE TABLE "{name}".plain (id int, v text);
INSERT INTO "{name}".plain VALUES (1, 'hiddenrow');
CREATE TABLE plain (id int, v text, "{name}" text);
INSERT INTO plain VALUES (1, 'shown', 'hiddenrow');
"""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def cut(name: str) -> str:
    """What the grammar makes of a name."""
    return name.encode()[:63].decode(errors="ignore")


def open_for(
    server: Server,
    name: str,
    *,
    tables: tuple[str, ...],
    deny: tuple[str, ...] = (),
    deny_columns: tuple[str, ...] = (),
    filter: str | None = None,
) -> AbstractAsyncContextManager[Gateway]:
    """The database as those have it who may read what a grant gives them."""
    database = server.configure(name)
    key = "roles.reader.grants.0"
    grant = Grant(database=name, key=key, tables=tables, deny=deny, deny_columns=deny_columns, filter=filter)
    role = Role(name="reader", groups=frozenset({"readers"}), grants=(grant,))
    return Gateway.open(Configuration(databases={name: database}, roles={"reader": role}))


async def ask(gateway: Gateway, sql: str) -> object:
    """Rows, or the error."""
    try:
        return (await gateway.query(None, sql, principal=ANN)).rows
    except DragomanError as error:
        return error


@pytest.mark.parametrize("encoding", LONG)
async def test_a_name_that_the_server_does_not_cut_where_the_grammar_does_reads_nothing(server: Server, encoding: str):
    hidden = LONG[encoding]
    short = quoted(cut(hidden))
    name = await server.create(HIDDEN.format(name=hidden), encoding=encoding)
    async with open_for(server, name, tables=("public.plain",), deny_columns=(f"*.{quoted(hidden)}",)) as gateway:
        for sql in (
            f"WITH {short} AS (SELECT 1) SELECT * FROM {quoted(hidden)}",
            f"WITH {short} AS (SELECT 1) SELECT * FROM public.{quoted(hidden)}",
            f"WITH {short} AS (SELECT 1 AS id) SELECT t.* FROM {quoted(hidden)} AS t",
            f"SELECT {quoted(hidden)} FROM plain",
            f"SELECT * FROM {quoted(hidden)}.plain",
        ):
            told = await ask(gateway, sql)
            assert isinstance(told, DragomanError) or "hiddenrow" not in str(told), sql
    await server.drop(name)


@pytest.mark.parametrize(
    ("encoding", "sql"),
    [
        ("LATIN1", "SELECT * FROM Über"),
        ("LATIN1", "SELECT v AS Über FROM plain"),
        ("LATIN1", "WITH über AS (SELECT 1) SELECT 1"),
        ("LATIN1", "SELECT 1::über"),
        ("LATIN1", "SELECT lower(v) é FROM plain"),
        ("LATIN1", "SELECT über.v FROM plain AS über"),
        ("LATIN1", "SELECT * FROM plain AS p (a, é)"),
        ("LATIN1", "EXPLAIN SELECT é FROM plain"),
        ("LATIN1", f'SELECT 1 AS "{"é" * 32}"'),
        ("SQL_ASCII", "SELECT * FROM über"),
        ("SQL_ASCII", f'SELECT 1 AS "{"é" * 32}"'),
        ("LATIN1", "SELECT $é$ x $é$"),
        # Two characters of Unicode, one of EUC_JP: the server ends the string at the second.
        ("EUC_JP", "SELECT $¦$ $￤$, (SELECT v FROM plain), $￤$ $¦$"),
        ("EUC_JP", 'SELECT 1 AS "￤"'),
        ("EUC_JP", f'SELECT 1 AS "{"é" * 22}"'),
        ("EUC_TW", f'SELECT 1 AS "{"万" * 16}"'),
    ],
)
async def test_names_that_the_server_may_read_otherwise_are_refused(read, encoding: str, sql: str):
    with pytest.raises(UnsafeSql, match=rf"this database is in {encoding}: it may read another name"):
        await read(encoding, sql)


@pytest.mark.parametrize(
    ("encoding", "sql", "row"),
    [
        ("LATIN1", f'SELECT "Über"."é" AS "{"é" * 31}" FROM "Über"', "one"),
        ("LATIN1", "SELECT 'Über', $$é$$, $x$é$x$ /* Über */ -- é", "Über"),
        ("LATIN1", f"SELECT 'a' AS {'a' * 70}", "a"),
        ("EUC_JP", "SELECT '¦' AS \"従業員給与明細書の秘密の表二千二十四年度版\"", "￤"),
        ("EUC_TW", f"SELECT 'a' AS \"{'万' * 15}\"", "a"),
        ("SQL_ASCII", f"SELECT 'é' AS \"{'é' * 31}\"", "é"),
        ("UTF8", f"SELECT 'Über' AS Über, 1 AS {'é' * 60}", "Über"),
    ],
)
async def test_other_names_and_texts_in_any_letters_pass(read, encoding: str, sql: str, row: str):
    assert (await read(encoding, sql))[0][0] == row


@pytest.fixture(scope="module")
async def gateways(server: Server, anyio_backend: str) -> AsyncGenerator[dict[str, Gateway]]:
    """A database for each encoding."""
    tables = "CREATE TABLE plain (v text); INSERT INTO plain VALUES ('hiddenrow')"
    names = {each: await server.create(tables, encoding=each) for each in ("EUC_JP", "EUC_TW", "SQL_ASCII", "UTF8")}
    names["LATIN1"] = await server.create(f'{tables}; CREATE TABLE "Über" AS SELECT \'one\' AS "é"', encoding="LATIN1")
    opened = {encoding: Gateway.open([server.configure(name)]) for encoding, name in names.items()}
    async with contextlib.AsyncExitStack() as stack:
        yield {encoding: await stack.enter_async_context(each) for encoding, each in opened.items()}
    for name in names.values():
        await server.drop(name)


@pytest.fixture
def read(gateways: dict[str, Gateway]):
    async def read(encoding: str, sql: str) -> Sequence[Sequence[object]]:
        return (await gateways[encoding].query(None, sql)).rows

    return read


NO_UTF8 = r"""
DO $$ BEGIN EXECUTE E'CREATE FUNCTION "f\351"() RETURNS integer LANGUAGE sql AS $f$SELECT 1$f$'; END $$
"""


@pytest.mark.parametrize(
    ("planted", "sql"), [(r"INSERT INTO plain VALUES (E'caf\351')", "SELECT v FROM plain"), (NO_UTF8, "SELECT 1")]
)
async def test_bytes_that_are_no_utf8_are_told_as_such(server: Server, planted: str, sql: str):
    name = await server.create(f"CREATE TABLE plain (v text); {planted}", encoding="SQL_ASCII")
    async with Gateway.open([server.configure(name)]) as gateway:
        with pytest.raises(QueryError, match="invalid byte sequence") as raised:
            await gateway.query(None, sql)
    await server.drop(name)
    assert "SQL_ASCII" in raised.value.suggestion


async def test_bytes_that_a_query_takes_for_a_text_are_told_as_such(server: Server, database_name: str):
    async with Gateway.open([server.configure(database_name)]) as gateway:
        with pytest.raises(QueryError, match="invalid byte sequence") as raised:
            await gateway.query(None, r"SELECT convert_from('\xe9'::bytea, 'UTF8')")
        assert "convert_from" in raised.value.suggestion
        assert (await gateway.query(None, r"SELECT convert_from('\xe9'::bytea, 'LATIN1')")).rows == [["é"]]


async def test_a_value_that_is_no_utf8_is_read_as_bytes(server: Server):
    name = await server.create(r"CREATE TABLE plain (v) AS SELECT E'caf\351'::text", encoding="SQL_ASCII")
    async with Gateway.open([server.configure(name)]) as gateway:
        rows = (await gateway.query(None, "SELECT encode(convert_to(v, 'SQL_ASCII'), 'escape') FROM plain")).rows
    await server.drop(name)
    assert rows == [[r"caf\351"]]


async def test_a_table_that_cannot_be_named_is_listed_and_its_rows_are_refused(server: Server):
    name = await server.create(HIDDEN.format(name=LONG["LATIN1"]), encoding="LATIN1")
    async with Gateway.open([server.configure(name)]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        assert LONG["LATIN1"] in (await toolbox.call("list_tables", {})).text
        for tool, more in (("get_sample_rows", {}), ("get_row", {"key": {"id": 1}})):
            answer = json.loads((await toolbox.call(tool, {"table_name": LONG["LATIN1"], **more})).text)
            assert answer["error"]["code"] == "UNSAFE_SQL", answer
    await server.drop(name)


LETTERS = "AzÜüÉéİıIiΣσςẞßKkÅÅåŻżЖжІіΩωΆάǅǄǆＡａŒœÆæØøĦħÐðÞþŸÿΐŉﬀⅠⅰⒶⓐԱաႠⴀᎠꭰ\U00010400\U00010428"


async def test_unquoted_names_are_stored_as_the_dialect_folds_them(server: Server):
    columns = dict.fromkeys(f"x{letter}{mark}Y" for letter in LETTERS for mark in ("", "\u0307"))
    connection = await asyncpg.connect(server.address("postgres"))
    try:
        for column in columns:
            told = await connection.prepare(f"SELECT 1 AS {column}")
            assert [each.name for each in told.get_attributes()] == [DIALECT.fold(column)]
    finally:
        await connection.close()


async def test_a_pattern_without_quotes_names_what_the_server_has_under_it(server: Server):
    tables = (f"CREATE TABLE \"{name}\" AS SELECT 'row' AS v" for name in ("Über", "über", "plain"))
    name = await server.create(";".join(tables))
    for written, readable in (
        ("public.Über", ["über", "plain"]),
        ("public.ÜBER", ["über", "plain"]),
        ("public.ü*", ["Über", "plain"]),
    ):
        async with open_for(server, name, tables=("public.*",), deny=(written,)) as gateway:
            told = {each: await ask(gateway, f'SELECT v FROM "{each}"') for each in ("Über", "über", "plain")}
        assert [each for each, answer in told.items() if not isinstance(answer, DragomanError)] == readable
    await server.drop(name)


async def test_a_filter_on_a_table_that_cannot_be_named_stops_the_start(server: Server):
    name = await server.create(HIDDEN.format(name=LONG["LATIN1"]), encoding="LATIN1")
    for table in (LONG["LATIN1"], "*"):
        with pytest.raises(
            ConfigurationError, match=rf"the filter or a mask does not match public.{LONG['LATIN1']}: the judge"
        ):
            async with open_for(server, name, tables=(f"public.{table}",), filter="v = 'a'"):
                pass
    await server.drop(name)


ALPHABETS = ("abcXY_", "éüÜßÀ", "зЗаяЖ", "従業員給料", "ωΩσς", "aéз従 ", "¦￤ｱ")


CODECS = {"LATIN1": "latin-1", "WIN1251": "cp1251", "EUC_JP": "euc_jp", "UTF8": "utf-8"}


def names(chance: random.Random, encoding: str) -> Iterator[str]:
    """Names that the encoding has, of about as many bytes as fit, in it or in UTF-8."""
    while True:
        letters = chance.choice(ALPHABETS)
        wanted, by = chance.choice((3, 61, 62, 63, 64, 65, 70)), chance.choice(("utf-8", CODECS[encoding]))
        name = ""
        while len(name.encode(by, "replace")) < wanted:
            name += chance.choice(letters)
        with contextlib.suppress(UnicodeEncodeError):
            name.encode(CODECS[encoding])
            yield name


def like(chance: random.Random, name: str) -> str:
    """A name that may be taken for another."""
    changed = (name.lower(), name.upper(), name.swapcase(), name.replace("￤", "¦"))
    return chance.choice((cut(name), name[:63], name, name[:-1] or "a", *changed))


def written(chance: random.Random, name: str) -> str:
    """As a caller may write it, with a schema or without."""
    return chance.choice((quoted(name), name, f"public.{quoted(name)}", f"public.{name}", f'U&"{name}"'))


def statements(chance: random.Random, hidden: str, shown: str) -> Iterator[str]:
    """Queries that want what is hidden, by names like it and like what is not."""
    while True:
        one, other = like(chance, hidden), like(chance, chance.choice((hidden, shown)))
        alias = chance.choice((quoted(other), other))
        column = chance.choice(("*", "v", quoted(one), one, f"{alias}.*", f"{alias}.v"))
        member = f"WITH {alias} AS (SELECT 1 AS id, 'a' AS v)"
        yield chance.choice(
            (
                f"SELECT * FROM {written(chance, one)}",
                f"{member} SELECT {column} FROM {written(chance, one)}",
                f"{member} SELECT {column} FROM {written(chance, one)} AS {alias}",
                f"SELECT {column} FROM {written(chance, shown)} AS {alias}",
                f"SELECT {column} FROM {written(chance, shown)} AS {alias} ({quoted(one)})",
                f"SELECT ${one}$ ${other}$, (SELECT v FROM {quoted(hidden)}), ${other}$ ${one}$",
                f"TABLE {written(chance, one)}",
                "SELECT v FROM plain",
            )
        )


SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 20))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("encoding", CODECS)
async def test_whatever_passes_reads_what_is_granted(server: Server, encoding: str, seed: int):
    chance = random.Random(seed)
    name = await server.create(encoding=encoding)
    hidden, shown = await fill(server, name, chance, encoding)
    tables = ("public.plain", f"public.{quoted(shown)}")
    answered, leaked = 0, list[str]()
    async with open_for(server, name, tables=tables, deny_columns=(f"*.{quoted(hidden)}",)) as gateway:
        for sql in itertools.islice(statements(chance, hidden, shown), 60):
            told = await ask(gateway, sql)
            if not isinstance(told, DragomanError):
                answered += 1
                leaked += [sql] * ("hiddenrow" in str(told))
    assert leaked == []
    assert answered
    await server.drop(name)


TABLES = """
SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY oid
"""


async def fill(server: Server, database: str, chance: random.Random, encoding: str) -> tuple[str, str]:
    """Make a hidden table and one that is not, with a hidden column each; return the names that the server gave."""
    connection = await asyncpg.connect(server.address(database))
    try:
        hidden = next(names(chance, encoding))
        await connection.execute(f"CREATE TABLE {quoted(hidden)} AS SELECT 1 AS id, 'hiddenrow' AS v")
        await connection.execute("CREATE TABLE plain AS SELECT 'a' AS v")
        while len(found := await connection.fetch(TABLES)) < 3:
            shown = chance.choice((next(names(chance, encoding)), like(chance, hidden)))
            with contextlib.suppress(asyncpg.DuplicateTableError):
                await connection.execute(
                    f"CREATE TABLE {quoted(shown)} AS SELECT 1 AS id, 'shown' AS v, 'hiddenrow' AS {quoted(hidden)}"
                )
    finally:
        await connection.close()
    return found[0][0], found[2][0]


CONVERTED = """
CREATE FUNCTION pg_temp.convert(place int, encoding name) RETURNS bytea LANGUAGE plpgsql AS $$
BEGIN RETURN convert_to(chr(place), encoding); EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$
"""
CHARACTERS = """
SELECT chr(place) AS character, pg_temp.convert(place, $1) AS bytes FROM generate_series(128, $2) AS place
WHERE place NOT BETWEEN 55296 AND 57343
"""


@pytest.mark.full
@pytest.mark.parametrize("encoding", sorted(KNOWN - {"SQL_ASCII"}))
async def test_the_server_converts_characters_as_is_taken_for_granted(server: Server, encoding: str):
    connection = await asyncpg.connect(server.address("postgres"))
    try:
        await connection.execute(CONVERTED)
        rows = await connection.fetch(CHARACTERS, encoding, 0x2FFFF if encoding.startswith("EUC") else 0xFFFF)
    finally:
        await connection.close()
    found: dict[bytes, str] = {}
    for character, converted in rows:
        if converted is not None:
            assert len(converted) <= max(len(character.encode()), WIDEST.get(encoding, 1)), character
            found[converted] = found.get(converted, "") + character
    assert [each for each in found.values() if len(each) > 1] == ([MERGED[encoding]] if encoding in MERGED else [])
