"""What an error says to the writer of a statement that is not in the database's SQL."""

import pytest
from dragoman import ColumnNotFound, DragomanError, Gateway
from dragoman.gateway.hints import explain_column

pytestmark = pytest.mark.usefixtures("hints_of_each_gateway")


async def hint(gateway: Gateway, sql: str) -> str:
    with pytest.raises(DragomanError) as raised:
        await gateway.query("shop", sql)
    return raised.value.suggestion


@pytest.mark.parametrize(
    ("sql", "source"),
    [
        ("SELECT name FROM customers WHERE name ILIKE 'a%'", "postgres"),
        ("SELECT total::int FROM orders", "postgres"),
        ("SELECT extract(year FROM status) FROM orders", "postgres"),
        ("SELECT name FROM customers FETCH FIRST 1 ROWS ONLY", "postgres"),
        ("SELECT TOP 5 name FROM customers", "tsql"),
        ("SELECT isnull(email, 'none') FROM customers", "tsql"),
        ("SELECT date_format(status, '%Y-%m') FROM orders", "trino"),
    ],
)
async def test_a_statement_in_another_sql_is_told_how_to_be_translated(sql: str, source: str, gateway: Gateway):
    assert f'It reads as {source}: pass `from_dialect` "{source}"' in await hint(gateway, sql)
    assert (await gateway.explain("shop", sql, from_dialect=source)).sql is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELEC name FROM customers",
        "SELECT name FORM customers",
        "SELECT count(* FROM customers",
        "SELECT name FROM customers WHERE",
        "SELECT pg_sleep(1)",
        "SELECT load_extension('x')",
        "SELECT avrage(total) FROM orders",
        "SELECT nam FROM customers",
        "SELECT 1; SELECT 2",
    ],
)
async def test_no_other_sql_is_named_where_none_helps(sql: str, gateway: Gateway):
    assert "from_dialect" not in await hint(gateway, sql)


async def test_a_translation_that_fails_is_not_advised_again(gateway: Gateway):
    with pytest.raises(DragomanError) as raised:
        await gateway.query("shop", "SELECT name FROM customers WHERE name ILIKE 'a%'", from_dialect="sqlite")
    assert "from_dialect" not in raised.value.suggestion


async def test_a_hint_is_left_out_where_the_answer_is_wanted_before(gateway: Gateway):
    """A process that finds it starts in more than a hundredth of a second, and the answer does not wait for it."""
    with pytest.raises(DragomanError) as raised:
        await gateway.query("shop", "SELECT name FROM customers WHERE name ILIKE 'a%'", timeout=0.01)
    assert "from_dialect" not in raised.value.suggestion


async def test_a_condition_of_a_tool_that_translates_nothing_gets_no_such_advice(gateway: Gateway):
    with pytest.raises(DragomanError) as raised:
        await gateway.sample("shop", "customers", where="name ILIKE 'a%'")
    assert "from_dialect" not in raised.value.suggestion


async def test_a_statement_of_more_than_two_thousand_characters_is_not_tried(gateway: Gateway):
    many = " OR ".join(f"name ILIKE 'a{number}'" for number in range(40))
    assert "postgres" in await hint(gateway, f"SELECT name FROM customers WHERE {many}")
    assert "postgres" not in await hint(gateway, f"SELECT name FROM customers WHERE {many} OR {many} OR {many}")


@pytest.mark.parametrize("sql", ["SELECT order FROM customers", "SELECT id FROM customers GROUP BY id, order"])
async def test_a_keyword_that_is_a_name_is_to_be_quoted(sql: str, gateway: Gateway):
    assert await hint(gateway, sql) == 'order is a keyword. To use it as a name, write "order".'


async def test_a_keyword_that_nothing_is_called_is_no_name(gateway: Gateway):
    assert "keyword" not in await hint(gateway, "SELECT id FROM customers WHERE GROUP BY id")


@pytest.mark.parametrize(
    ("sql", "suggestion"),
    [
        ("SELECT name, FROM customers", "Remove the comma before FROM."),
        ("SELECT name,, email FROM customers", "Remove one of the two commas that follow each other."),
        ("SELECT max(id,) FROM customers", "Remove the comma before )."),
        ("SELECT name FROM customers WHERE id IN (1, 2, /* no more */ )", "Remove the comma before )."),
        ("SELECT name FROM customers ORDER BY name,", "Remove the comma at the end."),
    ],
)
async def test_a_comma_that_nothing_follows_is_named(sql: str, suggestion: str, gateway: Gateway):
    assert await hint(gateway, sql) == suggestion


@pytest.mark.parametrize("sql", ["SELECT ',' FROM customers WHERE", "SELECT ',)', id FROM customers WHERE"])
async def test_a_comma_in_a_text_is_none(sql: str, gateway: Gateway):
    assert "comma" not in await hint(gateway, sql)


@pytest.mark.parametrize(
    "written", [":least", "@least", "%s", "%(least)s", "{least}", "{{ least }}", "${least}", "#{least}"]
)
async def test_a_parameter_of_another_driver_is_written_as_this_database_takes_it(written: str, gateway: Gateway):
    told = await hint(gateway, f"SELECT id FROM orders WHERE status = ':x' AND total > {written}")
    assert told.startswith("Write ? ")
    assert "in params" in told


@pytest.mark.parametrize("sql", ["SELECT ':a %s {b}' FROM", "SELECT 1 -- :a\n FROM", "SELECT {} 1"])
async def test_what_is_no_parameter_is_not_taken_for_one(sql: str, gateway: Gateway):
    assert "in params" not in await hint(gateway, sql)


async def test_markdown_s_fence_is_named(gateway: Gateway):
    assert await hint(gateway, "```sql\nSELECT 1\n```") == "Send the statement alone, without Markdown's ```."


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT orders.total FROM customers", '"orders" is not in FROM: join it. find_join_path shows how.'),
        ("SELECT main.orders.total FROM customers c", '"orders" is not in FROM: join it. find_join_path shows how.'),
        ("SELECT total FROM customers", '"orders" has this column: join it. find_join_path shows how.'),
        ("SELECT c.total FROM customers c", '"orders" has this column: join it. find_join_path shows how.'),
        (
            "SELECT o.name FROM orders o JOIN customers c ON true",
            '"customers" has this column, but not here: write its',
        ),
        ("SELECT status FROM (SELECT id FROM orders) t", '"orders" has this column, but not here: write its alias'),
        ("SELECT totl FROM orders", 'Did you mean "total"?'),
        ("SELECT strange FROM customers", ""),
        ('SELECT "orders.total" FROM customers', ""),
        (
            "SELECT max(name) AS big FROM customers WHERE big > 'a' GROUP BY id",
            "Use an aggregate in the selected columns",
        ),
        ("SELECT name FROM customers WHERE count(*) > 1", "Use an aggregate in the selected columns or in HAVING"),
        ("SELECT row_number() OVER () AS n FROM customers WHERE n < 3", "Compute a window function in a subquery"),
        ('SELECT name FROM customers WHERE name = "nobody"', "Write texts in single quotes."),
    ],
)
async def test_what_is_named_at_the_wrong_place_is_explained(sql: str, meant: str, gateway: Gateway):
    told = await hint(gateway, sql)
    assert told.startswith(meant) if meant else "FROM" not in told


async def test_a_plan_of_explain_is_not_asked_for(gateway: Gateway):
    with pytest.raises(DragomanError) as raised:
        await gateway.explain("shop", "EXPLAIN QUERY PLAN SELECT name FROM customers")
    assert raised.value.suggestion == "Send the query alone."


async def test_nothing_is_said_of_a_column_that_the_database_does_not_name():
    error = ColumnNotFound("Column cannot be resolved")
    assert explain_column(error, "SELECT a AS b FROM t") == ""
