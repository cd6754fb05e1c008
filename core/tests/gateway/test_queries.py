"""One query: its limits, its parameters, its errors."""

import re
from pathlib import Path

import pytest
from dragoman import (
    ColumnNotFound,
    ConfigurationError,
    Database,
    DragomanError,
    Gateway,
    InvalidSql,
    ParameterError,
    QueryError,
    QueryTimeout,
    ResultTooLarge,
    SchemaNotFound,
    TableNotFound,
    UnknownDatabase,
    UnsafeSql,
    WriteDenied,
)

ALL = "SELECT id FROM orders ORDER BY id"


async def test_a_query_is_answered_as_the_contract_has_it(gateway: Gateway):
    result = await gateway.query("shop", "SELECT id, name, NULL AS gone FROM customers ORDER BY id")
    assert [column.name for column in result.columns] == ["id", "name", "gone"]
    assert [column.type for column in result.columns][:2] == ["integer", "text"]
    assert result.rows_json == b'[[1,"Ada",null],[2,"Grace",null]]'
    assert (result.row_count, result.truncated, result.notices, result.sql) == (2, None, (), None)
    assert result.elapsed_ms > 0
    assert re.fullmatch(r"[0-9a-f]{16}", result.query_hash)


async def test_parameters_are_bound(gateway: Gateway):
    assert (await gateway.query("shop", "SELECT name FROM customers WHERE id = ?", [2])).rows == [["Grace"]]
    text = "'; DROP TABLE customers --"
    assert (await gateway.query("shop", "SELECT ? AS t", [text])).rows == [[text]]


async def test_without_a_limit_the_default_cuts(shop: Database):
    database = with_limits(shop, default_rows=7)
    async with Gateway.open([database]) as gateway:
        result = await gateway.query(None, ALL)
    assert result.row_count == 7
    assert result.truncated is not None
    assert (result.truncated.reason, result.truncated.limit) == ("rows", 7)
    assert "limit" in result.truncated.hint


def with_limits(database: Database, **limits: float) -> Database:
    from dataclasses import replace

    return replace(database, **limits)


@pytest.mark.parametrize(("limit", "cut"), [(1999, True), (2000, False), (2001, False)])
async def test_a_limit_cuts_exactly(limit: int, cut: bool, gateway: Gateway):
    result = await gateway.query("shop", ALL, limit=limit)
    assert result.rows == [[number] for number in range(1, min(limit, 2000) + 1)]
    assert (result.truncated is not None) is cut


async def test_limits_above_the_ceiling_are_lowered_and_said(shop: Database):
    async with Gateway.open([with_limits(shop, max_rows=5, timeout=9.5)]) as gateway:
        result = await gateway.query(None, ALL, limit=6, timeout=10)
        assert result.row_count == 5
        assert result.notices == (
            "limit was lowered to 5. The server's administrator can raise `max_rows`.",
            "The timeout was lowered to 9.5 seconds. The server's administrator can raise `timeout`.",
        )
        assert (await gateway.query(None, ALL, limit=5, timeout=9.5)).notices == ()


@pytest.mark.parametrize("name", ["limit", "timeout", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1])
async def test_limits_must_be_positive(name: str, value: int, gateway: Gateway):
    with pytest.raises(ParameterError, match=f"^{name} must be greater than zero"):
        await gateway.query("shop", ALL, **{name: value})  # type: ignore[misc]


async def test_bytes_are_bounded_by_the_database_unless_the_caller_says_otherwise(shop: Database):
    async with Gateway.open([with_limits(shop, max_bytes=50)]) as gateway:
        result = await gateway.query(None, ALL)
        assert len(result.rows_json) <= 50
        assert result.truncated is not None
        assert (result.truncated.reason, result.truncated.limit) == ("bytes", 50)
        assert (await gateway.query(None, ALL, limit=2000, max_bytes=10**6)).row_count == 2000
        with pytest.raises(ResultTooLarge):
            await gateway.query(None, "SELECT printf('%.60c', 'x') AS wide")


async def test_an_unknown_keyword_is_an_error_of_the_program(gateway: Gateway):
    with pytest.raises(TypeError, match="limits"):
        await gateway.query("shop", ALL, limits=3)  # type: ignore[call-arg]


# Which database


async def test_the_only_database_need_not_be_named(gateway: Gateway):
    assert gateway.default == "shop"
    assert (await gateway.query(None, "SELECT 1 AS one")).rows == [[1]]


async def test_among_several_one_must_be_named(shop: Database, warehouse: Database):
    async with Gateway.open([shop, warehouse]) as gateway:
        assert gateway.default is None
        with pytest.raises(ParameterError) as raised:
            await gateway.query(None, "SELECT 1")
        assert raised.value.suggestion == "Pass database, one of: shop, warehouse."
        assert (await gateway.query("warehouse", "SELECT pieces FROM stock")).rows == [[7]]


async def test_an_unknown_database_is_answered_with_the_nearest(shop: Database, warehouse: Database):
    async with Gateway.open([shop, warehouse]) as gateway:
        with pytest.raises(UnknownDatabase) as raised:
            await gateway.query("shopp", "SELECT 1")
        assert raised.value.suggestion == "Did you mean 'shop'?"
        with pytest.raises(UnknownDatabase) as raised:
            await gateway.query("zebra", "SELECT 1")
        assert raised.value.suggestion == "Configured are: shop, warehouse."


async def test_two_databases_of_one_name_are_a_configuration_error(shop: Database):
    with pytest.raises(ConfigurationError, match="one name"):
        async with Gateway.open([shop, shop]):
            pass


# Errors

ERRORS: list[tuple[str, type[DragomanError], str]] = [
    ("SELECT * FROM custmers", TableNotFound, 'Did you mean "customers"?'),
    ("SELECT nam FROM customers", ColumnNotFound, 'Did you mean "name"?'),
    ("SELECT o.totl FROM customers c JOIN orders o ON o.customer_id = c.id", ColumnNotFound, 'Did you mean "total"?'),
    ("SELECT c.id FROM customers AS c WHERE c.emial = 1", ColumnNotFound, 'Did you mean "email"?'),
    ("WITH x AS (SELECT * FROM orders) SELECT statuss FROM x", ColumnNotFound, 'Did you mean "status"?'),
    ("SELECT * FROM mian.customers", SchemaNotFound, 'Did you mean "main"?'),
    ("SELECT * FROM orders JOIN nowhere.customers USING (id)", SchemaNotFound, "main"),
]


@pytest.mark.parametrize(("sql", "kind", "suggestion"), ERRORS)
async def test_a_name_in_sql_that_is_not_there_is_answered_with_near_ones(sql, kind, suggestion, gateway: Gateway):
    with pytest.raises(kind) as raised:
        await gateway.query("shop", sql)
    assert suggestion in raised.value.suggestion
    assert "position" not in raised.value.context


async def test_a_name_that_resembles_nothing_is_shown_where_it_stands(gateway: Gateway):
    with pytest.raises(ColumnNotFound) as raised:
        await gateway.query("shop", "SELECT id,\n       xyzzy FROM customers")
    assert raised.value.context["position"] == "       xyzzy FROM customers\n       ^"


PLACED: list[tuple[str, type[DragomanError], str]] = [
    ("SELECT id FROM customers WHERE", InvalidSql, "SELECT id FROM customers WHERE\n                              ^"),
    ("SELECT 1; SELECT 2", UnsafeSql, "SELECT 1; SELECT 2\n        ^"),
    ("SELECT /* why */ load_extension('x')", UnsafeSql, "SELECT /* why */ load_extension('x')\n                 ^"),
    ("DELETE FROM customers", WriteDenied, "DELETE FROM customers\n^"),
]


@pytest.mark.parametrize(("sql", "kind", "position"), PLACED)
async def test_a_refusal_shows_the_place_in_the_text_as_it_was_sent(sql, kind, position, gateway: Gateway):
    with pytest.raises(kind) as raised:
        await gateway.query("shop", sql)
    assert raised.value.context["position"] == position
    assert raised.value.suggestion


async def test_a_failure_while_running_keeps_the_database_s_words(gateway: Gateway):
    with pytest.raises(QueryError, match="integer overflow"):
        await gateway.query("shop", "SELECT abs(-9223372036854775807 - 1)")


async def test_a_deadline_ends_the_query(gateway: Gateway, shop: Database, endless: str, idle):
    with pytest.raises(QueryTimeout) as raised:
        await gateway.query("shop", endless, timeout=0.2)
    assert "explain_query" in raised.value.suggestion
    assert idle(shop)


async def test_the_library_is_used_as_the_readme_shows(tmp_path: Path, shop: Database):
    (tmp_path / "dragoman.toml").write_text('[databases.shop]\nurl = "sqlite:///shop.db"\n')
    async with Gateway.open(tmp_path / "dragoman.toml") as gateway:
        result = await gateway.query("shop", "select count(*) from orders")
    assert result.rows == [[2000]]
    async with Gateway.open(str(tmp_path / "dragoman.toml")) as gateway:
        assert gateway.names == ("shop",)


async def test_a_configuration_is_opened_as_it_is(tmp_path: Path, shop: Database):
    from dragoman.config import load

    configuration = load(urls=["sqlite:///shop.db", "other=sqlite:///shop.db"], environ={}, folder=tmp_path)
    async with Gateway.open(configuration) as gateway:
        assert gateway.names == ("shop", "other")
        assert (await gateway.query("other", "SELECT count(*) FROM customers")).rows == [[2]]
