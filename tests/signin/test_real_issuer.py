"""docs/sign-in.md, followed: a real client signs in at a real OAuth server and calls a tool of a real gateway."""

import re
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from dragoman.auth import InvalidToken
from dragoman.auth.verifier import Verifier
from dragoman.config import Auth
from mock_server import running
from people import Person
from processes import gateway_in

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
PAGE = (Path(__file__).parents[2] / "docs" / "sign-in.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```toml\n(.*?)```", PAGE.split("### Any other issuer")[1], re.DOTALL)[0]
AUDIENCE = "dragoman-rs"
SCOPES = ("openid", "dragoman.query")
CALLBACK = "http://127.0.0.1:33418/callback"
CLAIMS = {
    "aud": [AUDIENCE],
    "sub": "u-1",
    "preferred_username": "ada",
    "groups": ["analysts"],
    "scope": " ".join(SCOPES),
}


@pytest.fixture(scope="module")
async def issuer(anyio_backend: str) -> AsyncIterator[str]:
    async with running(CLAIMS) as url:
        yield url


@pytest.fixture
async def gateway(issuer: str, tmp_path: Path) -> AsyncIterator[str]:
    """The address of `dragoman serve`; when it ends, its log has who called and no token."""
    sqlite3.connect(tmp_path / "shop.db").close()
    (tmp_path / "dragoman.toml").write_text(f"""
[server]
transport = "http"
port = 0
{SHOWN.replace("http://127.0.0.1:8099/team", issuer)}
user_claim = "preferred_username"
[databases.shop]
url = "sqlite:///shop.db"
""")
    async with gateway_in(tmp_path) as (url, log):
        yield url
    assert '"ada"' in log[-1]
    assert "eyJ" not in "".join(log)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_s_client_signs_in_and_calls_a_tool(issuer: str, gateway: str, mode: Any) -> None:
    person = Person(issuer)
    async with person.connected(gateway, mode) as client:
        result = await client.call_tool("execute_query", {"sql": "select 1 as one"})
    assert result.structured_content is not None
    assert result.structured_content["rows"] == [[1]]
    assert set(person.asked["scope"][0].split()) == set(SCOPES)
    assert person.asked["resource"] == [gateway]
    assert person.tokens is not None


async def test_access_tokens_are_accepted_by_keys_and_by_introspection_and_id_tokens_by_neither(issuer: str) -> None:
    given = {"issuer": issuer, "audience": (AUDIENCE, "ide"), "user_claim": "preferred_username"}
    access = (await ask(issuer, grant_type="client_credentials", scope="dragoman.query"))["access_token"]
    signed = Verifier(Auth(jwks_url=f"{issuer}/jwks", **given))
    asked = Verifier(Auth(introspection_url=f"{issuer}/introspect", client_id="gw", **given))
    try:
        for verifier in (signed, asked):
            principal = await verifier.principal(access)
            assert (principal.subject, principal.issuer) == ("u-1", issuer)
        for forged in (access[:-8] + "AAAAAAAA", access.replace(".", ".A", 1)):
            with pytest.raises(InvalidToken):
                await signed.principal(forged)
    finally:
        await signed.aclose()
        await asked.aclose()


async def ask(issuer: str, **form: str) -> dict[str, Any]:
    """Ask the issuer for tokens."""
    async with httpx2.AsyncClient(auth=("ide", "secret")) as client:
        answer = await client.post(f"{issuer}/token", data=form)
    return answer.raise_for_status().json()
