"""A few rows of a table; its condition is one expression and nothing else."""

import pytest
from dragoman import ColumnNotFound, DragomanError, Gateway, InvalidSql, TableNotFound, UnsafeSql, Unsupported
from dragoman.dialect import CONTRACT, Dialect, Rules
from dragoman.gateway.sampling import sample_sql
from dragoman.model import Relation, Table


async def test_a_sample_is_the_first_rows_and_not_called_truncated(gateway: Gateway):
    sample = await gateway.sample("shop", "orders")
    assert sample.row_count == 5
    assert sample.truncated is None
    assert [column.name for column in sample.columns] == ["id", "customer_id", "total", "status"]


async def test_columns_are_picked_in_order(gateway: Gateway):
    sample = await gateway.sample("shop", "orders", columns=["STATUS", "id"], limit=1)
    assert [column.name for column in sample.columns] == ["status", "id"]
    assert sample.rows == [["open", 1]]


ODD = 'Odd "Names"'


@pytest.mark.parametrize("table", [ODD, '"Odd ""Names"""', 'main."Odd ""Names"""'])
async def test_odd_names_are_quoted(table: str, gateway: Gateway):
    sample = await gateway.sample("shop", table, columns=["it's", "a b", "order"], where="\"it's\" = 'y'")
    assert sample.rows == [["y", "x", 1]]


async def test_a_random_sample_is_another_each_time(gateway: Gateway):
    samples = {(await gateway.sample("shop", "orders", randomize=True)).rows_json for _ in range(4)}
    assert len(samples) > 1


def by_chance(*functions: str) -> str:
    dialect = Dialect(name="acme", contract=CONTRACT, sqlglot="", rules=Rules(functions=frozenset(functions)))
    table = Table(relation=Relation("orders", "main"))
    return sample_sql(table, dialect, columns=None, where=None, randomize=True)


def test_chance_is_what_the_dialect_s_rules_allow():
    assert by_chance("abs", "rand").endswith(" ORDER BY rand()")
    assert by_chance("rand", "newid").endswith(" ORDER BY newid()")
    with pytest.raises(Unsupported, match="no random function"):
        by_chance("abs")


CONDITIONS = [
    ("status = 'paid'", 1000),
    ("status = 'paid' -- ) UNION SELECT", 1000),
    ("status = 'paid' /* ) */", 1000),
    ("status = 'paid' /* never closed )", 1000),
    ("(id < 10) AND (id > 5)", 4),
    ("id IN (SELECT id FROM paid WHERE id < 10)", 4),
    ("status = ')' OR id = 1", 1),
    ('"status" = \'paid\' AND "id" < 5', 2),
    ("EXISTS (SELECT 1 FROM customers c WHERE c.id = customer_id AND c.name = 'Ada')", 1000),
]


@pytest.mark.parametrize(("where", "count"), CONDITIONS)
async def test_a_condition_is_an_expression_that_may_hold_subqueries(where: str, count: int, gateway: Gateway):
    assert (await gateway.sample("shop", "orders", where=where, limit=2000)).row_count == count


# Every one would answer more than the table if it got out of its parentheses.
ATTACKS = [
    "1) UNION SELECT id, name, email, 1 FROM customers WHERE (1",
    "1) UNION SELECT id, name, email, 1 FROM customers --",
    "1) LIMIT 5 --",
    "1); SELECT 1; --",
    "1; DROP TABLE orders",
    "1 LIMIT 5",
    "1 ORDER BY 1",
    "1 UNION SELECT 1",
    "1 GROUP BY id",
    "/* ( */ 1) UNION SELECT id, name, email, 1 FROM customers WHERE (1",
    "'('  ) UNION SELECT id, name, email, 1 FROM customers WHERE (1",
    '"(" ) UNION SELECT id, name, email, 1 FROM customers WHERE (1',
    "[(] ) UNION SELECT id, name, email, 1 FROM customers WHERE (1",
    "`(` ) UNION SELECT id, name, email, 1 FROM customers WHERE (1",
    "((1)",
    "(1))",
    ")(",
    "",
    "   ",
    "-- nothing",
    "status = 'open",
    'status = "open',
    "1 AND load_extension('x')",
    "(DELETE FROM orders)",
    "id IN (DELETE FROM orders RETURNING id)",
    "id = ?",
    "\x00",
    "1 AS x",
    "*",
    "DISTINCT id",
    "id, status",
    "1 WHERE 1",
]


@pytest.mark.parametrize("where", ATTACKS)
async def test_whatever_is_not_one_expression_is_refused(where: str, gateway: Gateway):
    with pytest.raises(DragomanError) as raised:
        await gateway.sample("shop", "orders", where=where)
    assert raised.value.code in {"UNSAFE_SQL", "INVALID_SQL", "PARAMETER_ERROR", "WRITE_OPERATION_DENIED"}
    assert (await gateway.query("shop", "SELECT count(*) FROM orders")).rows == [[2000]]


async def test_a_condition_that_closes_a_parenthesis_is_told_so(gateway: Gateway):
    with pytest.raises(UnsafeSql, match="closes a parenthesis it did not open") as raised:
        await gateway.sample("shop", "orders", where="1) OR (1")
    assert raised.value.context["position"] == "1) OR (1\n ^"


async def test_a_statement_is_no_condition(gateway: Gateway):
    for where in ("SELECT 1", "VALUES (1)", "WITH x AS (SELECT 1) SELECT * FROM x"):
        with pytest.raises(InvalidSql, match="expression"):
            await gateway.sample("shop", "orders", where=where)


async def test_a_table_that_is_not_there_is_answered_with_near_ones(gateway: Gateway):
    with pytest.raises(TableNotFound) as raised:
        await gateway.sample("shop", "ordres")
    assert 'Did you mean "orders"?' in raised.value.suggestion


async def test_a_column_that_is_not_there_is_answered_with_the_nearest(gateway: Gateway):
    with pytest.raises(ColumnNotFound) as raised:
        await gateway.sample("shop", "orders", columns=["id", "totl"])
    assert raised.value.suggestion == 'Did you mean "total"?'
    with pytest.raises(ColumnNotFound) as raised:
        await gateway.sample("shop", "customers", columns=["zzz"])
    assert raised.value.suggestion == 'Its columns are: "id", "name", "email".'


async def test_columns_are_names_and_nothing_else(gateway: Gateway):
    for column in ("*", "id, email", "count(*)", '"id"; DROP TABLE orders', "''"):
        with pytest.raises(ColumnNotFound):
            await gateway.sample("shop", "customers", columns=[column])
