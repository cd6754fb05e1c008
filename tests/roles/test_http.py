"""What a caller over HTTP is told of the databases is what its roles grant."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dragoman import Gateway
from dragoman.auth.tokens import hash_token, make_token
from dragoman.config import load
from dragoman.tools import Toolbox
from serving import client_of

TOKEN, OTHER = make_token(), make_token()
EXPIRES = (datetime.now(UTC) + timedelta(days=1)).isoformat()
CONFIGURATION = f"""
[server]
transport = "http"
[[server.tokens]]
name = "reports"
hash = "{hash_token(TOKEN)}"
expires = "{EXPIRES}"
[[server.tokens]]
name = "other"
hash = "{hash_token(OTHER)}"
expires = "{EXPIRES}"
[databases.shop]
url = "sqlite:///shop.db"
[databases.crm]
url = "sqlite:///shop.db"
[roles.reporter]
tokens = ["reports"]
[[roles.reporter.grants]]
database = "shop"
tables = ["main.customers"]
"""


@pytest.mark.parametrize(("token", "databases"), [(TOKEN, {"shop": "ready"}), (OTHER, {})], ids=["some", "none"])
async def test_readiness_names_the_databases_a_caller_may_see(shop: Path, token: str, databases: object) -> None:
    (shop / "dragoman.toml").write_text(CONFIGURATION)
    configuration = load(shop / "dragoman.toml", environ={}, folder=shop)
    async with Gateway.open(configuration) as gateway:
        async with client_of(configuration.server, toolbox=Toolbox(gateway)) as client:
            answer = await client.get("/ready", headers={"authorization": f"Bearer {token}"})
    assert answer.json() == {"status": "ready", "databases": databases}
