"""On Postgres, a query that the planner expects to cost too much is not run, and the model is asked for another."""

from dataclasses import replace

import pytest
from dragoman import CostExceeded
from dragoman.config.roles import Grant, Role
from dragoman_postgres.testing.fixtures import database_name, server
from scripted import query

__all__ = ["database_name", "server"]
TABLES = "CREATE TABLE IF NOT EXISTS n AS SELECT generate_series(1, 1000) AS i, 1 AS hidden; ANALYZE n"
DEAR = "SELECT count(*) AS c FROM n AS a, n AS b, n AS d"
CHEAP = "SELECT count(*) AS c FROM n"


@pytest.mark.full
async def test_a_dear_plan_is_refused_before_it_runs_and_a_cheap_one_is_taken(asking, server, database_name):
    await server.run(TABLES, database_name)
    database = server.configure(database_name)
    async with asking([query(DEAR), query(CHEAP)], database, max_plan_cost=100_000) as (gateway, model):
        answer = await gateway.ask("How many?")
        assert (answer.result.rows, answer.attempts) == ([[1000]], 2)
        assert "cost more than" in model.last()
    async with asking([query(DEAR)], database, max_plan_cost=100_000, max_attempts=1) as (gateway, _):
        with pytest.raises(CostExceeded):
            await gateway.ask("How many?")


PARTS = {
    "rows are hidden": {"filter": "i > 0"},
    "a column is hidden": {"deny_columns": ("*.hidden",)},
    "a column is masked": {"masks": {"*.hidden": "null"}},
    "the database acts for the caller": {},
}


@pytest.mark.full
@pytest.mark.parametrize("part", PARTS)
async def test_a_plan_that_the_caller_may_not_see_is_refused_as_well(asking, server, database_name, part):
    await server.run(TABLES, database_name)
    database = server.configure(database_name)
    if not PARTS[part]:
        database = replace(database, identity="session", session={"app.caller": "{user}"})
    grant = Grant(database=database.name, tables=("*",), key="roles.all.grants.0", **PARTS[part])
    roles = {"all": Role(name="all", principals=frozenset({"*"}), grants=(grant,))}
    async with asking([query(DEAR), query(CHEAP)], database, roles=roles, max_plan_cost=100_000) as (gateway, _):
        answer = await gateway.ask("How many?")
        assert (answer.result.rows, answer.attempts) == ([[1000]], 2)
