"""docs/sign-in.md, followed without an issuer: a token for a program, and a proxy that signs people in.

tests/signin follows the parts with issuers.
"""

import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from processes import gateway_in
from requests_of import answer, legacy

PAGE = (Path(__file__).parents[2] / "docs" / "sign-in.md").read_text(encoding="utf-8")
ROLES = """
[databases.shop]
url = "sqlite:///shop.db"
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (7);")
    connection.close()
    return tmp_path


async def orders(url: str, **headers: str) -> Any:
    """Return the status of a query, and its rows."""
    request = legacy("execute_query", sql="SELECT id FROM orders")
    request["headers"] |= headers
    async with httpx2.AsyncClient(timeout=60) as http:
        response = await http.post(url, **request)
    if response.status_code != 200:
        return response.status_code, None
    result = answer(response).get("result", {})  # who has no role has no tool
    return 200, result["structuredContent"]["rows"] if result else None


async def test_a_token_made_by_the_page_s_command_opens_what_its_group_grants(folder: Path) -> None:
    (folder / "dragoman.toml").write_text(f'[server]\ntransport = "http"\nport = 0\n{ROLES}')
    (command,) = re.findall(r"^\$ (dragoman token create .* >> dragoman\.toml)$", PAGE, re.MULTILINE)
    words = f'"{sys.executable}" -m {command}'
    done = subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    (token,) = re.findall(r"drg_\S+", done.stderr)
    assert token not in (folder / "dragoman.toml").read_text()
    async with gateway_in(folder) as (url, log):
        assert await orders(url, authorization=f"Bearer {token}") == (200, [[7]])
        assert await orders(url, authorization=f"Bearer {token}x") == (401, None)
        assert await orders(url) == (401, None)
    assert '"reports"' in "".join(log)
    assert token not in "".join(log)


@pytest.mark.parametrize(("listed", "expected"), [("127.0.0.1", (200, [[7]])), ("10.0.3.7", (401, None))])
async def test_a_proxy_that_the_page_lists_says_who_calls_and_nobody_else_does(
    folder: Path, listed: str, expected: Any
) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", PAGE.split("## A proxy that signs people in")[1], re.DOTALL)
    assert "10.0.3.7" in shown
    shown = shown.replace("10.0.3.7", listed).replace("0.0.0.0", "127.0.0.1")
    (folder / "dragoman.toml").write_text(f"{shown}port = 0\n{ROLES}")
    named = {"x-forwarded-user": "ada", "x-forwarded-groups": "analysts, ops"}
    async with gateway_in(folder) as (url, _):
        assert await orders(url, **named) == expected
        assert await orders(url) == (401, None)
        if expected[0] == 200:
            assert await orders(url, **{**named, "x-forwarded-groups": "ops"}) == (200, None)
