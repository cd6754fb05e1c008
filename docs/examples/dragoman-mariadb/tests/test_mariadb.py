"""What is MariaDB's own: its types to the last digit, its lexer, and what its engine refuses without us."""

import contextlib
import dataclasses
import gc
import tempfile
import warnings
from collections import defaultdict
from pathlib import Path

import anyio
import pytest
from asyncmy.errors import MySQLError
from dragoman import (
    ColumnNotFound,
    ConnectionFailed,
    Database,
    DragomanError,
    Gateway,
    InvalidSql,
    Limits,
    PermissionDenied,
    ProfileBudget,
    QueryError,
    QueryTimeout,
    Request,
    Scope,
    Secret,
    TableNotFound,
    UnsafeSql,
    WriteDenied,
)
from dragoman.config import load
from dragoman.words import fold_widely
from dragoman_mariadb import plugin

NO_SUCH_FUNCTION = 1305
PLACES = """
    CREATE TABLE places (
        id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
        price DECIMAL(30, 10),
        seen DATE,
        at DATETIME(6),
        open TIME(3),
        flags BIT(10),
        facts JSON,
        photo BLOB,
        note TEXT,
        kind ENUM('Park', 'Café'),
        visitors BIGINT UNSIGNED,
        since YEAR
    )"""
ROWS = """
    INSERT INTO places VALUES
        (1, 12345678901234567890.0123456789, '0000-00-00', '2024-02-29 13:14:15.123456', '-838:59:59.001',
         b'1000000001', '{"a": [1, 2]}', X'00FF10', 'Zoë', 'Café', 18446744073709551615, 2024),
        (2, NULL, NULL, '0000-00-00 00:00:00', NULL, NULL, NULL, NULL, '', NULL, NULL, NULL)"""


@pytest.fixture(scope="module")
async def places(server, anyio_backend) -> Database:
    database = await server.create("places", ("SET sql_mode = ''", PLACES, ROWS))
    async with server.connected("places") as run:
        await run("CREATE TABLE secrets (id INT)")
        await run("CREATE USER reader IDENTIFIED BY 'reader'")
        await run("GRANT SELECT ON places.places TO reader")
    return database


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def gateway(places):
    async with Gateway.open([places]) as opened:
        yield opened


async def refusal(gateway: Gateway, sql: str) -> DragomanError:
    with pytest.raises(DragomanError) as caught:
        await gateway.query(None, sql)
    return caught.value


async def test_every_type_is_told_to_its_last_digit(gateway):
    result = await gateway.query(None, "SELECT * FROM places ORDER BY id")
    assert [column.type for column in result.columns] == (
        "int decimal date datetime time bit text text text char bigint year".split()
    )
    assert result.rows == [
        [
            1,
            "12345678901234567890.0123456789",
            "0000-00-00",
            "2024-02-29 13:14:15.123456",
            "-838:59:59.001",
            "AgE=",
            '{"a": [1, 2]}',
            "AP8Q",
            "Zoë",
            "Café",
            "18446744073709551615",
            2024,
        ],
        [2, None, None, "0000-00-00 00:00:00.000000", None, None, None, None, "", None, None, None],
    ]


async def test_types_are_described_as_the_server_spells_them(gateway):
    table = await gateway.database().catalog.find("places")
    types = {column.name: column.type for column in table.columns}
    assert (types["price"], types["visitors"]) == ("decimal(30,10)", "bigint(20) unsigned")
    assert types["kind"] == "enum('Park','Café')"


async def test_ddl_is_refused_by_the_engine_alone(gateway):
    for statement in (
        "CREATE TABLE more (id INT)",
        "DROP TABLE places",
        "TRUNCATE TABLE places",
        "DROP DATABASE places",
    ):
        with pytest.raises(WriteDenied):
            async with gateway.database().executor.open(Request(statement=statement)):
                pass


async def test_the_server_itself_keeps_the_deadline(gateway):
    """What stands beside the deadline is the server's own word for its limit."""
    request = Request(statement="SELECT SLEEP(30)", limits=Limits(timeout=0.3))
    with pytest.raises(QueryTimeout):
        async with gateway.database().executor.open(request):
            pass
    told = Request(statement="SELECT @@max_statement_time", limits=Limits(timeout=7))
    async with gateway.database().executor.open(told) as stream:
        assert [list(row) for row in await anext(stream.batches)] == [[7.0]]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT * FROM mysql.user", UnsafeSql),
        ("SELECT info FROM information_schema.processlist", UnsafeSql),
        ("SELECT LOAD_FILE('/etc/passwd')", UnsafeSql),
        ("SELECT SLEEP(10)", UnsafeSql),
        ("SELECT BENCHMARK(1000000000, MD5('x'))", UnsafeSql),
        ("SELECT GET_LOCK('x', 10)", UnsafeSql),
        ("SELECT @@version", InvalidSql),
        ("SELECT id INTO OUTFILE 'out.txt' FROM places", WriteDenied),
        ("SELECT id FROM places FOR UPDATE", WriteDenied),
        ("SELECT 5--1", InvalidSql),
    ],
)
async def test_what_is_no_harmless_query_is_refused(gateway, sql, kind):
    assert isinstance(await refusal(gateway, sql), kind)


async def test_every_listed_function_is_the_server_s_own(server, places):
    """One that it does not have could be a stored function of that name, which reads and writes what its owner may."""
    stored = []
    async with server.connected("places") as run:
        for name in sorted(plugin.dialect.loaded_rules.functions):
            for arguments in ("", "1", "1, 1"):
                try:
                    await run(f"SELECT {name}({arguments})")
                except MySQLError as error:
                    if error.args[0] == NO_SUCH_FUNCTION:
                        stored.append(name)
    assert stored == []


LEAKS = """
    CREATE FUNCTION leak() RETURNS INT MODIFIES SQL DATA SQL SECURITY DEFINER
    BEGIN SELECT 1 INTO OUTFILE '{file}'; RETURN 1; END"""
BEHIND = {
    "plain": "SELECT leak() AS n",
    "qualified": "SELECT `behind`.`leak`() AS n",
    "filtering": "SELECT 1 AS n FROM t WHERE leak() = 1",
    "listed": "WITH c AS (SELECT leak() AS n) SELECT n FROM c",
    "united": "SELECT 0 AS n UNION SELECT leak()",
    "inner_one": "SELECT (SELECT max(leak()) FROM t) AS n",
    "above": "SELECT n FROM plain",
    "far_above": "SELECT a.n FROM above AS a JOIN t ON t.n = a.n",
}
HARMLESS = {
    "sums": "SELECT upper('a') AS a, sum(n) AS n, CAST(1 AS CHAR) AS c, NOW() + INTERVAL 1 DAY AS d FROM t GROUP BY 1",
    "ranks": "SELECT n, row_number() OVER (ORDER BY n) AS place FROM t",
    "parts": "WITH c (a, b) AS (SELECT n, CONVERT('é' USING latin1) FROM t) SELECT if(a > 1, b, 'x') AS it FROM c",
    "sums_above": "SELECT n FROM sums WHERE a LIKE 'A%'",
}


@pytest.fixture(scope="module")
def written():
    """A file that the server could write. Whenever a run of pytest begins, it closes its own folders to other users."""
    with tempfile.TemporaryDirectory(prefix="dragoman-written-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o777)
        yield Path(folder, "file")


@pytest.fixture(scope="module")
async def behind(server, written, anyio_backend):
    """A database of views that call a function which writes a file, and the file."""
    views = (f"CREATE VIEW {name} AS {query}" for name, query in (BEHIND | HARMLESS).items())
    made = ("CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)", LEAKS.format(file=written), *views)
    database = await server.create("behind", made)
    async with server.connected("behind") as run:
        await run("CREATE USER blind IDENTIFIED BY 'blind'")
        await run("GRANT SELECT ON behind.* TO blind")
        await run("CREATE USER narrow IDENTIFIED BY 'narrow'")
        for view in (*BEHIND, "sums"):
            await run(f"GRANT SELECT ON behind.{view} TO narrow")
    return database, written


async def test_a_view_that_calls_a_stored_function_is_refused(behind):
    database, file = behind
    async with Gateway.open([database]) as gateway:
        for view in BEHIND:
            refused = await refusal(gateway, f"SELECT * FROM {view}")
            assert isinstance(refused, UnsafeSql), view
            assert "leak" not in f"{refused} {refused.suggestion}"
        for view in HARMLESS:
            await gateway.query(None, f"SELECT * FROM {view}")
    assert not file.exists()


async def test_a_view_that_begins_to_call_a_function_is_refused(behind, server):
    database, file = behind
    async with Gateway.open([database]) as gateway, server.connected("behind") as run:
        await run("CREATE VIEW turned AS SELECT 1 AS n")
        await gateway.query(None, "SELECT n FROM turned")
        await run("CREATE OR REPLACE VIEW turned AS SELECT leak() AS n")
        await gateway.database().catalog.refresh()
        assert isinstance(await refusal(gateway, "SELECT n FROM turned"), UnsafeSql)
    assert not file.exists()


@pytest.mark.parametrize("login", ["blind", "narrow"])
async def test_a_view_that_the_login_cannot_see_into_is_refused_until_it_is_allowed(behind, login):
    """The server hides the columns of views from a login that may not call their functions, and runs them."""
    database = dataclasses.replace(behind[0], user=login, password=Secret(login))
    async with Gateway.open([database]) as gateway:
        for view in (*BEHIND, "sums"):
            assert isinstance(await refusal(gateway, f"SELECT n FROM {view}"), UnsafeSql), view
        assert (await gateway.query(None, "SELECT count(*) > 0 FROM information_schema.tables")).rows == [[1]]
    allowed = dataclasses.replace(database, allow_relations=frozenset({"behind.sums"}))
    async with Gateway.open([allowed]) as gateway:
        assert (await gateway.query(None, "SELECT n FROM sums")).rows == [["1"]]
        assert isinstance(await refusal(gateway, "SELECT n FROM plain"), UnsafeSql)
    assert not behind[1].exists()


async def test_the_planted_function_does_write_the_file(behind, server):
    """Else the tests above would prove nothing."""
    async with server.connected("behind") as run:
        await run("SET SESSION TRANSACTION READ ONLY")
        await run("SELECT n FROM above")
    assert behind[1].exists()


async def test_a_comment_that_mariadb_would_run_is_gone_before_it_is_sent(gateway):
    result = await gateway.query(None, "SELECT 1 /*! + 1 */ AS n -- one\n # and no more")
    assert result.rows == [[1]]


async def test_quotes_are_read_as_the_server_reads_them(gateway):
    result = await gateway.query(None, r"""SELECT "it's", 'say \'hi\'', `id` FROM `places` WHERE id = ?""", [1])
    assert result.rows == [["it's", "say 'hi'", 1]]


NUMBERS = """
    SELECT variable_name, numeric_min_value FROM information_schema.system_variables
    WHERE variable_scope = 'SESSION' AND read_only = 'NO' AND global_value IS NOT NULL
      AND numeric_min_value IS NOT NULL
      AND variable_name NOT RLIKE '^(max_user_connections|server_id|wsrep_.*|sql_slave_.*)$'"""
COUNTED = "WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 3000)"


@pytest.mark.parametrize(
    ("setting", "sql", "whole"),
    [
        ("sql_select_limit = 1", "SELECT id FROM places ORDER BY id", [[1], [2]]),
        ("group_concat_max_len = 1024", f"SELECT length(group_concat(id, '{'x' * 999}')) FROM places", [[2001]]),
        ("max_recursive_iterations = 1000", f"{COUNTED} SELECT count(*) FROM counted", [[3000]]),
    ],
)
async def test_the_server_s_settings_cut_no_answer(server, places, setting, sql, whole):
    name = setting.partition(" ")[0]
    async with server.connected() as run:
        await run(f"SET GLOBAL {setting}")
        try:
            async with Gateway.open([places]) as gateway:
                assert (await gateway.query(None, sql)).rows == whole
        finally:
            await run(f"SET GLOBAL {name} = DEFAULT")


@pytest.mark.anyio
@pytest.mark.parametrize("zone", ["+02:00", "-11:30"])
async def test_a_moment_is_told_in_utc_whatever_the_zone_of_the_server(server, zone):
    moment = "INSERT INTO moments VALUES (FROM_UNIXTIME(1767225600), '2026-01-01 00:00:00')"
    name = f"moments_{zone[1:3]}"
    database = await server.create(name, ("CREATE TABLE moments (seen TIMESTAMP, written DATETIME)", moment))
    async with server.connected() as run:
        await run(f"SET GLOBAL time_zone = '{zone}'")
        try:
            async with Gateway.open([database]) as gateway:
                found = await gateway.query(None, "SELECT seen, written FROM moments WHERE seen = '2026-01-01'")
                assert found.rows == [["2026-01-01 00:00:00"] * 2]
        finally:
            await run("SET GLOBAL time_zone = DEFAULT")


async def test_no_number_among_the_server_s_settings_changes_an_answer_unseen(server, places):
    """Every setting of a session that is a number, at its least: the answer is the same, or an error says why not."""
    sql = f"{COUNTED} SELECT n % 100 AS k, count(*), group_concat(n ORDER BY n) FROM counted GROUP BY k ORDER BY k"
    groups = [[n for n in range(1, 3001) if n % 100 == k] for k in range(100)]
    whole = [[k, len(group), ",".join(map(str, group))] for k, group in enumerate(groups)]
    cut = []
    async with server.connected() as run:
        for name, least in await run(NUMBERS):
            await run(f"SET GLOBAL {name} = {least}")
            try:
                async with Gateway.open([places]) as gateway:
                    with contextlib.suppress(QueryError):
                        if (await gateway.query(None, sql)).rows != whole:
                            cut.append(name)
            finally:
                await run(f"SET GLOBAL {name} = DEFAULT")
    assert cut == []


async def test_a_right_the_role_lacks_is_named(places):
    reader = dataclasses.replace(places, user="reader", password=Secret("reader"))
    async with Gateway.open([reader]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM places")).rows == [[2]]
        assert isinstance(await refusal(gateway, "SELECT * FROM secrets"), PermissionDenied)


async def test_a_server_without_tls_is_not_spoken_to_when_tls_is_asked_for(places):
    async with Gateway.open([dataclasses.replace(places, options={"tls": True})]) as gateway:
        assert isinstance(await refusal(gateway, "SELECT 1"), ConnectionFailed)


async def test_the_server_s_own_schemas_are_told_to_a_scope_that_names_them_only(gateway):
    inspector = gateway.database().inspector
    told = (await inspector.tables(Scope())).tables
    assert {table.relation.schema for table in told if table.relation.name == "places"} == {"places"}
    assert not any(table.system for table in told)
    own = (await inspector.tables(Scope(schemas=frozenset({"mysql"}), names=frozenset({"user", "db"})))).tables
    assert [(str(table.relation), table.system) for table in own] == [("mysql.db", True), ("mysql.user", True)]


async def test_a_long_answer_left_early_gives_its_connection_back_soon(gateway):
    """The driver would read all of it first; a connection it keeps is told by SQLAlchemy when it is collected."""
    executor = gateway.database().executor
    endless = "SELECT 1 FROM information_schema.columns a, information_schema.columns b, information_schema.columns c"
    with warnings.catch_warnings(record=True) as told, anyio.fail_after(120):  # all of it takes hours
        warnings.simplefilter("always")
        for _ in range(2 * gateway.database().config.pool_size):
            async with executor.open(Request(statement=endless)) as stream:
                assert await anext(stream.batches)
        gc.collect()
    assert [str(warning.message) for warning in told] == []


PARTED = """
    CREATE TABLE visits (id INT, at DATE NOT NULL, kind VARCHAR(10), `odd ``name` INT)
    PARTITION BY RANGE (YEAR(at)) SUBPARTITION BY HASH (TO_DAYS(at)) SUBPARTITIONS 2
    (PARTITION old VALUES LESS THAN (2024), PARTITION new VALUES LESS THAN MAXVALUE)"""


@pytest.mark.anyio
async def test_values_partitions_and_changes_are_told(server):
    rows = ", ".join(f"({n}, '2024-01-{1 + n % 28:02}', '{'paid' if n % 3 else 'open'}', NULL)" for n in range(90))
    database = await server.create("parted", (PARTED, f"INSERT INTO visits VALUES {rows}"))
    async with Gateway.open([database]) as gateway, server.connected("parted") as run:
        inspector = gateway.database().inspector
        (table,) = (await inspector.tables(Scope(schemas=frozenset({"parted"})))).tables
        assert (table.type, len(table.partitioned_by)) == ("partitioned table", 2)
        assert "year" in table.partitioned_by[0].lower()
        assert await inspector.profiles([table], ProfileBudget()) == {}
        told = (await inspector.profiles([table], ProfileBudget(sample=True)))[table.relation]
        kind, odd = told[2], told[3]
        assert (kind.values, kind.kind, kind.null_fraction) == (("paid", "open"), "all", 0)
        assert (odd.name, odd.null_fraction) == ("odd `name", 1)
        seen = [await inspector.fingerprint()]
        for change in (
            "ALTER TABLE visits MODIFY kind VARCHAR(11)",
            "ALTER TABLE visits MODIFY kind VARCHAR(11) DEFAULT 'x'",
            "ALTER TABLE visits COMMENT 'who came'",
            "ALTER TABLE visits REMOVE PARTITIONING",
            "ALTER TABLE visits ADD PRIMARY KEY (id)",
            "CREATE TABLE whose (id INT PRIMARY KEY, visit INT)",
            "ALTER TABLE whose ADD FOREIGN KEY (visit) REFERENCES visits (id)",
            "CREATE VIEW few AS SELECT id FROM whose",
            "CREATE OR REPLACE VIEW few AS SELECT id FROM visits",
        ):
            await run(change)
            seen.append(await inspector.fingerprint())
        assert len(set(seen)) == len(seen)
        await run("INSERT INTO whose VALUES (1, 1)")
        assert await inspector.fingerprint() == seen[-1]


ROLE = """
[roles.r]
principals = ["*"]
[[roles.r.grants]]
database = "made"
tables = ["*.*"]
deny_columns = ["*.secret"]
"""


@pytest.mark.anyio
async def test_a_column_made_of_a_hidden_one_is_hidden(server, tmp_path):
    made = "CREATE TABLE t (id INT, secret VARCHAR(9), gen VARCHAR(9) AS (CONCAT(secret, '!')), other INT AS (id + 1))"
    database = await server.create("made", (made, "INSERT INTO t (id, secret) VALUES (1, 'hush')"))
    where = f'host = "{database.host}"\nport = {database.port}\ndatabase = "made"\nuser = "{database.user}"\n'
    (tmp_path / "dragoman.toml").write_text(f'[databases.made]\ndialect = "mariadb"\n{where}{ROLE}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        assert (await gateway.query("made", "SELECT id, other FROM t")).rows == [[1, 2]]
        with pytest.raises(ColumnNotFound):
            await gateway.query("made", "SELECT gen FROM t")


SPELLED = {"secret": "SECRET", "ink": "\u0130n\u212a", "mail_i_d": "MA\u0130L_i_d", "οδοσ": "ΟΔΟΣ", "größe": "grõße"}
SPELLED |= {"mí": "m\u0131", "kí": "K\u0130", "aś": "a\u017f", "σα": "\u03f2α", "ἰδ": "\u1fbeδ"}
"""Names of hidden columns, and another spelling that MariaDB takes for the same name, if not everywhere."""
JOINED = "SELECT x.a FROM (SELECT 1 AS a, 7 AS `{name}`) AS x JOIN t USING (`{name}`)"
GROUPED = "SELECT count(*), 9 AS `{name}` FROM t GROUP BY `{name}`"


@pytest.mark.anyio
@pytest.mark.parametrize("query", [JOINED, GROUPED], ids=["joined", "grouped"])
@pytest.mark.parametrize("hidden", SPELLED)
async def test_no_spelling_of_a_hidden_column_is_read(server, tmp_path, hidden, query):
    """Of the names of a table with many columns MariaDB ignores the accents."""
    others = ", ".join(f"c{number} INT" for number in range(40))
    name = f"spelled_{list(SPELLED).index(hidden)}{'_g' if query == GROUPED else ''}"
    made = f"CREATE TABLE t (id INT, `{hidden}` INT, {others})"
    database = await server.create(name, (made, f"INSERT INTO t (id, `{hidden}`) VALUES (1, 7), (2, 8)"))
    where = f'host = "{database.host}"\nport = {database.port}\ndatabase = "{name}"\nuser = "{database.user}"\n'
    role = ROLE.replace("made", name).replace("*.secret", f"*.{hidden}")
    (tmp_path / "dragoman.toml").write_text(f'[databases.{name}]\ndialect = "mariadb"\n{where}{role}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        assert (await gateway.query(name, "SELECT id FROM t ORDER BY id")).rows == [[1], [2]]
        with pytest.raises(ColumnNotFound):
            await gateway.query(name, query.format(name=SPELLED[hidden]))


LETTERS = """
SELECT seq, HEX(WEIGHT_STRING(letter COLLATE utf8mb3_general_ci)), HEX(CONVERT(UPPER(letter) USING ucs2))
FROM (SELECT seq, CONVERT(CHAR(seq USING ucs2) USING utf8mb3) AS letter FROM seq_32_to_65535
      WHERE seq NOT BETWEEN 0xD800 AND 0xDFFF) AS letters
"""


@pytest.mark.anyio
async def test_letters_that_the_server_takes_for_one_in_names_have_one_form(server):
    """Two letters are one if they have the same capital, or the same weight and length."""
    async with server.connected("mysql") as run:
        letters = await run(LETTERS)
    forms = defaultdict(set)
    for number, weight, capital in letters:
        form = fold_widely(f"é{chr(number)}é")
        forms[weight, len(chr(number).encode())].add(form)
        forms[capital].update({form, fold_widely(f"é{bytes.fromhex(capital).decode('utf-16-be')}é")})
    assert len(letters) > 60_000
    assert {key: found for key, found in forms.items() if len(found) > 1} == {}


@pytest.mark.anyio
@pytest.mark.parametrize(("hidden", "seen"), [("주소", "점수"), ("가격", "국가"), ("がく", "かく"), ("\u0958", "क")])
async def test_a_column_beside_a_hidden_one_with_similar_letters_is_read(server, tmp_path, hidden, seen):
    name = f"beside_{hidden.encode().hex()}"
    made = f"CREATE TABLE t (`{hidden}` INT, `{seen}` INT)"
    database = await server.create(name, (made, "INSERT INTO t VALUES (1, 2)"))
    where = f'host = "{database.host}"\nport = {database.port}\ndatabase = "{name}"\nuser = "{database.user}"\n'
    role = ROLE.replace("made", name).replace("*.secret", f"*.{hidden}")
    (tmp_path / "dragoman.toml").write_text(f'[databases.{name}]\ndialect = "mariadb"\n{where}{role}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        assert (await gateway.query(name, f"SELECT `{seen}` FROM t")).rows == [[2]]
        with pytest.raises(ColumnNotFound):
            await gateway.query(name, f"SELECT `{hidden}` FROM t")


TWINS = (
    "CREATE TABLE twin (id INT PRIMARY KEY, one INT)",
    "CREATE TABLE Twin (id INT PRIMARY KEY, two INT, one INT REFERENCES twin (id)) COMMENT 'the other'",
    "CREATE VIEW TWIN AS SELECT one AS three FROM twin",
    "CREATE TABLE parts (id INT) PARTITION BY HASH (id) PARTITIONS 2",
    "CREATE TABLE Parts (id INT) PARTITION BY HASH (id) PARTITIONS 2",
)


@pytest.mark.anyio
async def test_relations_whose_names_differ_in_case_are_told_apart(server):
    """information_schema compares names without case, also on a server whose tables have it."""
    database = await server.create("twins", TWINS)
    async with Gateway.open([database]) as gateway:
        tables = (await gateway.database().inspector.tables(Scope(schemas=frozenset({"twins"})))).tables
    told = {table.relation.name: [column.name for column in table.columns] for table in tables}
    assert told == {
        "twin": ["id", "one"],
        "Twin": ["id", "two", "one"],
        "TWIN": ["three"],
        "parts": ["id"],
        "Parts": ["id"],
    }
    found = {table.relation.name: table for table in tables}
    assert [found[name].type for name in ("twin", "Twin", "TWIN")] == ["table", "table", "view"]
    assert [found[name].primary_key for name in ("twin", "Twin", "TWIN")] == [("id",), ("id",), ()]
    assert found["Twin"].comment == "the other"
    assert not found["twin"].comment
    assert found["parts"].partitioned_by
    assert found["Parts"].partitioned_by


@pytest.mark.anyio
async def test_without_a_database_a_name_of_several_hidden_tables_is_told_as_one_that_is_not_there(server, tmp_path):
    made = ("CREATE TABLE alike (id INT)", "CREATE VIEW seen AS SELECT 1 AS id")
    for name in ("alike_a", "alike_b", "alike_c"):
        database = await server.create(name, made)
    where = f'host = "{database.host}"\nport = {database.port}\nuser = "{database.user}"\n'
    role = ROLE.partition("deny_columns")[0].replace("made", "alike").replace('"*.*"', '"alike_c.seen"')
    (tmp_path / "dragoman.toml").write_text(f'[databases.alike]\ndialect = "mariadb"\n{where}{role}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        told = [await refusal(gateway, f"SELECT * FROM {name}") for name in ("alike", "alikx")]
        assert (await gateway.query("alike", "SELECT id FROM alike_c.seen")).rows == [[1]]
    assert str(told[0]).replace("alike", "alikx") == str(told[1])
    assert [type(error) for error in told] == [TableNotFound, TableNotFound]


@pytest.mark.anyio
async def test_a_view_is_judged_wherever_the_server_may_look_for_its_name(server, tmp_path):
    leaks = LEAKS.format(file=tmp_path / "file")
    await server.create("leaking", (leaks, "CREATE VIEW either AS SELECT leak() AS id"))
    database = await server.create("drying", ("CREATE VIEW either AS SELECT 1 AS id",))
    async with Gateway.open([dataclasses.replace(database, database=None)]) as gateway:
        refused = await refusal(gateway, "SELECT * FROM either")
        assert isinstance(refused, UnsafeSql)
        assert "leaking.either" in str(refused)
