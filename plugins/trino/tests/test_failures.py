"""The server's errors: their kind, where in the statement, what was not known, and nothing that must not show."""

import pytest
from dragoman import (
    ColumnNotFound,
    DragomanError,
    Gateway,
    InvalidSql,
    ParameterError,
    QueryError,
    ResultTooLarge,
    SchemaNotFound,
    TableNotFound,
    WriteDenied,
)
from dragoman.testing.asking import failure_of
from dragoman_trino.failures import translate_errors
from dragoman_trino.protocol import ServerError

CAST = "Check the types with describe_table and CAST where they differ."
# A statement, the error it is, the name that was not known, and the text that stands where it is wrong.
FAILURES = [
    ("SELECT * FROM\n  natoin", TableNotFound, "tpch.tiny.natoin", "natoin"),
    ("SELECT * FROM nope.orders", SchemaNotFound, "nope", "nope.orders"),
    ("SELECT * FROM nope.tiny.orders", SchemaNotFound, "nope", "nope.tiny.orders"),
    ("SELECT nmae FROM nation", ColumnNotFound, "nmae", "nmae"),
    ("SELECT 'é🦉', n.nmae FROM nation n", ColumnNotFound, "n.nmae", "n.nmae"),
    ("SELECT name FROM nation WHERE\n\n name = 1", InvalidSql, None, "= 1"),
    ("SELECT abz(1)", InvalidSql, None, "abz"),
    ("SELECT CAST(1 AS strange)", InvalidSql, None, "CAST"),
    ("SELEC 1", InvalidSql, None, "SELEC"),
    ("SELECT 1; SELECT 2", InvalidSql, None, "; SELECT 2"),
    ("SELECT name, count(*) FROM nation", InvalidSql, None, "name"),
    ("SELECT DATE 'yesterday'", InvalidSql, None, "DATE"),
    ("SELECT nationkey FROM nation a, nation b", InvalidSql, None, "nationkey"),
    ("SELECT name FROM nation ORDER BY 9", InvalidSql, None, "9"),
    ("SELECT name FROM nation GROUP BY 2", InvalidSql, None, "2"),
    ("SELECT sum(sum(nationkey)) FROM nation", InvalidSql, None, "sum(sum"),
    ("SELECT name FROM nation WHERE sum(nationkey) > 1", InvalidSql, None, "> 1"),
    ("SELECT rank() FROM nation", InvalidSql, None, "rank"),
    ("SELECT DISTINCT name FROM nation ORDER BY nationkey", InvalidSql, None, "SELECT DISTINCT"),
    ("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT 1", InvalidSql, None, "a AS (SELECT 2)"),
    ("SELECT name FROM nation UNION SELECT 1, 2", InvalidSql, None, "UNION"),
    ("SELECT name FROM nation WHERE regionkey = (SELECT 1, 2)", InvalidSql, None, "= ("),
    ("SELECT sum(nationkey) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM nation", InvalidSql, None, "ROWS"),
    ("SELECT * FROM (VALUES (1), (2, 3)) AS t", InvalidSql, None, "VALUES"),
    ("SELECT 1 / (nationkey - nationkey) FROM nation", QueryError, None, None),
    ("SELECT CAST(name AS integer) FROM nation", QueryError, None, None),
    ("SELECT (SELECT name FROM nation)", QueryError, None, None),
    ("SELECT ? FROM nation", ParameterError, None, "SELECT"),
    ("DELETE FROM nation", InvalidSql, None, "DELETE"),
    ("CREATE TABLE memory.default.x (a integer)", WriteDenied, None, None),
    ("CALL system.runtime.kill_query(query_id => 'x')", InvalidSql, None, None),
]


@pytest.mark.parametrize(("sql", "kind", "name", "place"), FAILURES, ids=[sql for sql, *_ in FAILURES])
async def test_an_error_says_what_and_where(executor, sql, kind, name, place):
    error = await failure_of(executor, sql)
    assert type(error) is kind
    assert error.identifier == name
    assert sql[error.offset :].startswith(place) if place else error.offset is None
    assert not error.message.startswith("line ")
    assert error.suggestion
    assert error.context["error_name"].isupper()


@pytest.mark.parametrize(
    ("sql", "suggestion"),
    [
        ("SELECT name FROM nation LIMIT 5 OFFSET 2", "Write OFFSET before LIMIT: OFFSET 20 LIMIT 10."),
        ("SELECT now() - INTERVAL '7 days'", "Write the unit after the number: INTERVAL '7' DAY."),
        ("SELECT name + '!' FROM nation", "Join texts with ||, or concat(a, b)."),
        ("SELECT nationkey + name FROM nation", "Join texts with ||, or concat(a, b)."),
        ("SELECT name + INTERVAL '1' DAY FROM nation", CAST),
        ("SELECT current_date + '7 days'", CAST),
        ("SELECT now() + name FROM nation", CAST),
        (
            "SELECT count(*) FROM nation GROUP BY count(*)",
            "Group by columns without aggregates; compute windows in a subquery.",
        ),
        (
            "SELECT name FROM nation WHERE count(*) > 1",
            "Filter groups in HAVING; compute windows in a subquery, and filter them outside.",
        ),
        ("SELECT sum(count(*)) FROM nation", "Compute the inner aggregate in a subquery."),
        ("SELECT rank() FROM nation", "Write OVER (ORDER BY ...) behind it."),
    ],
)
async def test_a_usual_slip_is_told_with_its_way_out(executor, sql, suggestion):
    error = await failure_of(executor, sql)
    assert (type(error), error.suggestion) == (InvalidSql, suggestion)
    assert "Exception" not in error.message


@pytest.mark.parametrize(
    ("sql", "suggestion"),
    [
        ("SELECT name FROM tpch.tiny.orders LIMIT 5, 10", "Write LIMIT 10 OFFSET 5."),
        ('SELECT name FROM tpch.tiny.nation WHERE name = "Some Text"', "Write texts in single quotes."),
        ("SELECT acctbal FROM tpch.tiny.orders", 'Join one of "customer", "supplier".'),
    ],
)
async def test_a_slip_in_names_and_limits_is_told_by_the_gateway(trino_server, sql, suggestion):
    async with Gateway.open([trino_server.configure("tpch", "tiny")]) as gateway:
        await gateway.database().catalog.snapshot()  # an error does not wait for the first one
        with pytest.raises(DragomanError) as raised:
            await gateway.query(None, sql)
    assert raised.value.suggestion.startswith(suggestion)


async def test_the_gateway_names_what_is_near_and_shows_the_place(trino_server):
    async with Gateway.open([trino_server.configure("tpch", "tiny")]) as gateway:
        with pytest.raises(TableNotFound) as table:
            await gateway.query(None, "SELECT * FROM natoin")
        with pytest.raises(ColumnNotFound) as column:
            await gateway.query(None, "SELECT nmae FROM nation")
        with pytest.raises(InvalidSql) as broken:
            await gateway.query(None, "SELECT name FROM nation WHERE name = 1")
    assert "nation" in table.value.suggestion
    assert "name" in column.value.suggestion
    assert broken.value.context["position"].endswith("^")


def failed(**error):
    """The error made of the server's own report."""
    with pytest.raises(DragomanError) as raised, translate_errors("lake", "SELECT 1", "SELECT 1"):
        raise ServerError(error)
    return raised.value


@pytest.mark.parametrize("kind", ["EXTERNAL", "INTERNAL_ERROR"])
def test_what_fails_behind_the_server_is_named_and_its_address_is_not(kind):
    stack = ["io.trino.spi.TrinoException.<init>", "io.trino.plugin.postgresql.PostgreSqlClient.open(Client.java:1)"]
    error = failed(
        errorName="JDBC_ERROR",
        errorType=kind,
        message="Connection to db.internal:5432 refused (jdbc:postgresql://db.internal:5432/sales?user=x, /etc/db.key)",
        failureInfo={"stack": ["java.base.Thread.run"], "cause": {"stack": stack}},
    )
    assert isinstance(error, QueryError)
    assert error.context == {"error_name": "JDBC_ERROR", "connector": "postgresql"}
    assert not any(private in error.message for private in ("db.internal", "5432", "user=x", "db.key"))
    assert "refused" in error.message


def test_an_error_of_a_newer_server_goes_by_its_kind():
    assert isinstance(failed(errorName="NEW_LIMIT", errorType="INSUFFICIENT_RESOURCES", message="x"), ResultTooLarge)
    assert isinstance(failed(errorName="NEW", errorType="USER_ERROR", message="x"), QueryError)
    assert isinstance(failed(message=None), QueryError)
