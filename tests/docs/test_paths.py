"""The paths that need no token are those that the page on security names."""

import re
from pathlib import Path

import pytest
from dragoman import Database, Gateway
from dragoman.config import Auth, Configuration, Server
from dragoman.tools import Toolbox
from serving import client_of

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
AUTH = Auth(issuer="https://i.example", audience=("https://gw.example/mcp",), jwks_url="https://i.example/jwks")


@pytest.mark.parametrize("metrics", [True, False])
async def test_no_other_path_than_those_of_the_page_is_answered_without_a_token(tmp_path: Path, metrics: bool) -> None:
    sentence = re.search(r"Only then is a body read\. (.*?) need no token", PAGE, re.DOTALL)
    assert sentence is not None
    named = set(re.findall(r"`(/[^`]*)`", sentence[1]))
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)
    server = Server(transport="http", metrics=metrics, auth=AUTH, allowed_hosts=("gw.example",))
    async with Gateway.open(Configuration(databases={"shop": shop}, server=server)) as gateway:
        async with client_of(server, toolbox=Toolbox(gateway)) as client:
            there = (await client.get("/nothing")).json()["message"].rstrip(".").split("see ")[1].split(", ")
            answers = {path: (await client.get(path)).status_code for path in there if path != "/mcp"}
            assert (await client.post("/mcp", json={})).status_code == 401
    metadata = {path for path in answers if path.startswith("/.well-known/")}
    assert metadata
    assert 401 not in answers.values()
    assert answers.keys() - metadata == (named if metrics else named - {"/metrics"})
