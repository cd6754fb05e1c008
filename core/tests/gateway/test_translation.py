"""SQL written for another database: what runs, what is said of it, and what is refused."""

import pytest
from dragoman import Database, DragomanError, ExplainOptions, Gateway, ParameterError, Unsupported


async def test_a_translated_query_says_what_ran(gateway: Gateway):
    result = await gateway.query(
        "shop", "SELECT id FROM orders WHERE status ILIKE 'PAID' ORDER BY id LIMIT 1", from_dialect="postgres"
    )
    assert result.rows == [[1 + 1]]
    assert result.sql is not None
    assert "ILIKE" not in result.sql.upper()
    assert any("postgres" in notice for notice in result.notices)


async def test_the_database_s_own_sql_is_not_called_translated(gateway: Gateway):
    result = await gateway.query("shop", "SELECT id  FROM orders LIMIT 1", from_dialect="sqlite")
    assert (result.sql, result.notices) == (None, ())


async def test_parameters_keep_the_source_s_numbers(gateway: Gateway):
    sql = "SELECT name FROM customers WHERE name = $2 AND id = $1"
    assert (await gateway.query("shop", sql, [2, "Grace"], from_dialect="postgres")).rows == [["Grace"]]
    with pytest.raises(ParameterError, match="uses parameter 2; 1 came"):
        await gateway.query("shop", sql, [2], from_dialect="postgres")


async def test_an_unknown_source_is_answered_with_near_ones(gateway: Gateway):
    with pytest.raises(ParameterError) as raised:
        await gateway.query("shop", "SELECT 1", from_dialect="postgrs")
    assert "postgres" in raised.value.suggestion


async def test_a_plan_of_a_translated_query_says_what_it_is_of(gateway: Gateway):
    plan = await gateway.explain("shop", "SELECT id FROM orders WHERE status ILIKE 'x'", from_dialect="postgres")
    assert plan.sql is not None
    assert plan.notices


async def test_a_stream_is_translated_too(gateway: Gateway):
    async with gateway.stream("shop", "SELECT 'a' ILIKE 'A' AS same", from_dialect="postgres") as stream:
        assert any("postgres" in notice for notice in stream.notices)


REFUSED = ["SELECT * FROM generate_series(1, 3)", "SELECT DISTINCT ON (status) id FROM orders", "DELETE FROM orders"]


@pytest.mark.parametrize("sql", REFUSED)
async def test_what_cannot_be_said_rightly_is_refused(sql: str, gateway: Gateway):
    with pytest.raises(DragomanError) as raised:
        await gateway.query("shop", sql, from_dialect="postgres")
    assert raised.value.code in {"UNSUPPORTED", "WRITE_OPERATION_DENIED", "UNSAFE_SQL"}
    assert raised.value.suggestion


async def test_an_error_of_a_translation_shows_the_sql_it_is_about(gateway: Gateway):
    with pytest.raises(DragomanError) as raised:
        await gateway.query("shop", "SELECT nam FROM customers WHERE name ILIKE 'x'", from_dialect="postgres")
    assert "nam" in raised.value.context["sql"]
    assert 'Did you mean "name"?' in raised.value.suggestion


async def test_a_translation_the_database_cannot_compile_is_unsupported(install):
    source = """
    from dataclasses import replace
    PretendPlugin.dialect = replace(
        PretendPlugin.dialect, capabilities=frozenset({Capability.READ_ONLY_SESSION, Capability.DESCRIBE})
    )
    class Odd(PretendPlugin):
        @hookimpl
        def executor(self, database):
            class Strict(PretendExecutor):
                async def prepare(self, request):
                    raise InvalidSql("near LIKE: syntax error")
            return Strict(database)
    plugin = Odd()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(Unsupported, match="does not run on pretend: near LIKE") as raised:
            await gateway.query("x", "SELECT `id` FROM things", from_dialect="mysql")
        assert "sql" in raised.value.context
        assert (await gateway.query("x", "SELECT id FROM things")).row_count == 1


async def test_analyze_of_a_translation_runs_it(gateway: Gateway):
    plan = await gateway.explain(
        "shop",
        "SELECT id FROM orders WHERE status ILIKE 'x'",
        options=ExplainOptions(analyze=True),
        from_dialect="postgres",
    )
    assert plan.actual_time_ms is not None
