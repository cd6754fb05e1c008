"""Plans, in every form."""

import json

import pytest
import yaml
from dragoman import Database, ExplainOptions, Gateway, QueryTimeout, TableNotFound, Unsupported, WriteDenied

SQL = "SELECT * FROM orders WHERE customer_id = ?"


async def test_a_plan_is_text_json_or_yaml_of_one_meaning(gateway: Gateway):
    text = await gateway.explain("shop", SQL, [1])
    tree = await gateway.explain("shop", SQL, [1], options=ExplainOptions(format="json"))
    told = await gateway.explain("shop", SQL, [1], options=ExplainOptions(format="yaml"))
    assert (text.format, tree.format, told.format) == ("text", "json", "yaml")
    assert "SCAN orders" in text.plan
    assert "SCAN orders" in json.dumps(tree.plan)
    assert yaml.safe_load(told.plan) == tree.plan
    assert text.actual_time_ms is None


async def test_analyze_runs_the_query(gateway: Gateway, endless: str):
    plan = await gateway.explain("shop", SQL, [1], options=ExplainOptions(analyze=True))
    assert plan.actual_time_ms is not None
    assert plan.actual_time_ms > 0
    with pytest.raises(QueryTimeout):
        await gateway.explain("shop", endless, options=ExplainOptions(analyze=True), timeout=0.1)


async def test_explaining_runs_nothing(gateway: Gateway, endless: str):
    assert "SCAN" in (await gateway.explain("shop", endless, timeout=20)).plan


@pytest.mark.parametrize("analyze", [True, False])
async def test_what_is_explained_is_judged(analyze: bool, gateway: Gateway):
    options = ExplainOptions(analyze=analyze)
    with pytest.raises(WriteDenied):
        await gateway.explain("shop", "DELETE FROM orders", options=options)
    with pytest.raises(TableNotFound) as raised:
        await gateway.explain("shop", "SELECT * FROM order_s", options=options)
    assert 'Did you mean "orders"?' in raised.value.suggestion


async def test_a_dialect_that_cannot_explain_says_so(install):
    install("dragoman-odd", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(Unsupported, match="pretend cannot explain queries"):
            await gateway.explain("x", "SELECT 1")


async def test_a_dialect_that_cannot_measure_says_so(install):
    source = """
    from dataclasses import replace
    PretendPlugin.dialect = replace(
        PretendPlugin.dialect, capabilities=frozenset({Capability.READ_ONLY_SESSION, Capability.EXPLAIN})
    )
    plugin = PretendPlugin()
    """
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(Unsupported, match="cannot measure"):
            await gateway.explain("x", "SELECT 1", options=ExplainOptions(analyze=True))
