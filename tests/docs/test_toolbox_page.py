"""The page of saved queries shows one tool twice, for MCP Toolbox and for this server: both read the same rows."""

import json
import re
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import yaml
from contents import text_of
from dragoman_postgres.testing import Server
from mcp import Client, StdioServerParameters

PAGE = (Path(__file__).parents[2] / "docs" / "saved-queries.md").read_text(encoding="utf-8")
TABLE = """
CREATE TABLE orders (id int, status text, placed_at timestamptz, total numeric(12, 2));
INSERT INTO orders VALUES (1, 'paid', '2025-12-31', 1), (2, 'paid', '2026-01-01', 12.50), (3, 'open', '2026-02-01', 7),
    (4, 'paid', '2026-03-01', 0.25), (5, NULL, '2026-03-01', 3);
"""
CALLS: list[dict[str, Any]] = [
    {},
    {"since": "2026-02-01"},
    {"status": "paid"},
    {"since": "2025-01-01", "status": "open"},
]


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


@pytest.fixture(scope="module")
def toolbox() -> dict[str, Any]:
    """The file of MCP Toolbox's that the page shows."""
    read: dict[str, Any] = yaml.safe_load(block("yaml"))
    return read


@pytest.fixture
async def address() -> AsyncIterator[str]:
    server = Server.start()
    name = await server.create(TABLE)
    yield server.address(name)
    server.stop()


@pytest.fixture
async def client(address: str, tmp_path: Path) -> AsyncIterator[Client]:
    """A client of the server that the page configures, over the file that it shows."""
    configuration = re.sub(r'url = ".*"', f'url = "{address}"', block("toml", -1))
    (tmp_path / "dragoman.toml").write_text(configuration)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "revenue.sql").write_text(block("sql"))
    command = ["-m", "dragoman", "serve", "--config", str(tmp_path / "dragoman.toml"), "--transport", "stdio"]
    async with Client(StdioServerParameters(command=sys.executable, args=command)) as client:
        yield client


async def test_both_files_declare_the_same_tool(client: Client, toolbox: dict[str, Any]) -> None:
    (name, theirs), *others = toolbox["tools"].items()
    assert others == []
    ours = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(ours) == {name, "list_databases"}
    assert ours[name].description == theirs["description"]
    told = ours[name].input_schema["properties"]
    assert {each: told[each]["description"] for each in told} == {
        each["name"]: each["description"] for each in theirs["parameters"]
    }
    required = [each["name"] for each in theirs["parameters"] if each.get("required", "default" not in each)]
    assert ours[name].input_schema.get("required", []) == required
    assert ours[name].output_schema is not None


@pytest.mark.parametrize("given", CALLS, ids=str)
async def test_both_read_the_same_rows(client: Client, address: str, toolbox: dict[str, Any], given: dict[str, Any]):
    theirs = toolbox["tools"]["revenue"]
    values = [given.get(each["name"], each.get("default")) for each in theirs["parameters"]]
    connection = await asyncpg.connect(address)
    expected = [tuple(row) for row in await connection.fetch(theirs["statement"], *values)]
    await connection.close()
    answer = await client.call_tool("revenue", given)
    assert answer.structured_content == json.loads(text_of(answer))
    rows = [(status, Decimal(revenue)) for status, revenue in answer.structured_content["rows"]]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert len(rows) > 0


async def test_what_differs_is_as_the_page_says(client: Client) -> None:
    wrong = await client.call_tool("revenue", {"since": "first day"})
    assert json.loads(text_of(wrong))["error"]["code"] == "PARAMETER_ERROR"
    kept = await client.call_tool("revenue", {})
    assert kept.structured_content["types"] == ["text", "numeric"]
