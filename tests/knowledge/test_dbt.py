"""dbt itself builds a project in a DuckDB file; what its artifacts tell of it reaches an agent."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway, KnowledgeSettings
from dragoman.tools import Toolbox

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv") or "uv"
DBT = ("--with", "dbt-core>=1.10,<1.11", "--with", "dbt-duckdb>=1.9,<1.12", "dbt")
"""The newest that comes from the registry alone: later ones download a parser from elsewhere."""
ARTIFACTS = ("target/manifest.json", "target/catalog.json", "target/semantic_manifest.json")

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, built and documented by dbt."""
    folder = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(Path(__file__).parent / "dbt", folder)
    until = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["exclude-newer"]
    hidden = {"VIRTUAL_ENV", "PYTHONPATH", "UV_NO_SYNC"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment |= {"DO_NOT_TRACK": "1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "UV_EXCLUDE_NEWER": until}
    for command in (["build"], ["docs", "generate"]):
        words = [UV, "run", "--quiet", "--no-project", "--python", "3.11", *DBT, *command, "--profiles-dir", "."]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
async def tools(project: Path):
    knowledge = KnowledgeSettings(files=tuple(map(Path, ARTIFACTS)), values="off", infer_joins=False)
    database = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=project, knowledge=knowledge)
    async with Gateway.open([database]) as gateway:
        yield Toolbox(gateway, profile="full")


async def call(tools: Toolbox, name: str, **arguments: Any) -> Any:
    answer = await tools.call(name, arguments)
    assert not answer.is_error, answer.text
    return answer.structured


async def test_what_a_project_says_of_its_models_is_described(tools: Toolbox):
    told = await call(tools, "describe_table", table_name=["orders", "clients", "rates_v2", "main_raw.raw_orders"])
    assert told["tables"]["orders"] == [
        "-- One row for each order.",
        "order_id integer NULL PK",
        "customer_id integer NULL -> clients -- Who ordered",
        "status varchar NULL {placed|shipped|returned} -- How far the order is. It never goes back.",
        "placed_on date NULL",
        "amount integer NULL -- in cents",  # its accepted values are those of some rows
        "is_small boolean NULL",
    ]
    assert told["tables"]["clients"] == [
        "-- Who ordered.",
        "customer_id integer PK",
        "segment varchar NULL {private|trade}",
        "town varchar NULL",  # its accepted values are only a warning
    ]
    assert told["tables"]["rates_v2"][:2] == ["-- Rates of a day", "currency varchar NULL -- ISO code"]
    assert told["tables"]["main_raw.raw_orders"][0] == "-- Orders as they came"


async def test_a_test_of_relationships_joins_models(tools: Toolbox):
    told = await call(tools, "find_join_path", from_table="orders", to_table="clients")
    assert "JOIN clients" in told["paths"][0]["sql"]
    joined = await call(tools, "execute_query", sql=told["paths"][0]["sql"])
    assert joined["row_count"] == 4


async def test_metrics_and_descriptions_are_found(tools: Toolbox):
    told = await call(tools, "search_catalog", query="revenue")
    assert "metric revenue: All that was ever ordered; sum(amount) of orders" in told["notes"]
    assert "metric revenue_per_order: Revenue by order; revenue / orders" in told["notes"]
    told = await call(tools, "search_catalog", query="one row for each order")
    assert told["results"][0]["table"] == "orders"
