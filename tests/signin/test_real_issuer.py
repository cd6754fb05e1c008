"""A real client signs in at a real OAuth server and calls a tool of a real gateway."""

import asyncio
import re
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from dragoman.auth import InvalidToken
from dragoman.auth.verifier import Verifier
from dragoman.config import Auth
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mock_server import running

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
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
[server.auth]
issuer = "{issuer}"
audience = "{AUDIENCE}"
jwks_url = "{issuer}/jwks"
scopes = ["openid", "dragoman.query"]
user_claim = "preferred_username"
[databases.shop]
url = "sqlite:///shop.db"
""")
    command = [sys.executable, "-m", "dragoman", "serve"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    log: list[str] = []
    async for line in process.stderr:
        log.append(line.decode())
        if found := re.search(r"serving on (http://\S+/mcp)", log[-1]):
            break
    assert found
    rest = asyncio.create_task(process.stderr.read())
    yield found[1]
    process.terminate()
    log.append((await rest).decode())
    await process.wait()
    assert '"ada"' in log[-1]
    assert "eyJ" not in "".join(log)


class Person:
    """Stands in for the browser, and keeps what the client stores."""

    def __init__(self, issuer: str) -> None:
        self.tokens: OAuthToken | None = None
        uris: Any = [CALLBACK]
        self.client = OAuthClientInformationFull(client_id="ide", redirect_uris=uris, issuer=issuer)
        self.asked: dict[str, list[str]] = {}
        self._answer: dict[str, list[str]] = {}

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info

    async def open(self, url: str) -> None:
        self.asked = parse_qs(urlsplit(url).query)
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url)
        self._answer = parse_qs(urlsplit(answer.headers["location"]).query)

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._answer["code"][0], state=self._answer["state"][0])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_s_client_signs_in_and_calls_a_tool(issuer: str, gateway: str, mode: Any) -> None:
    person = Person(issuer)
    uris: Any = [CALLBACK]
    about = OAuthClientMetadata(redirect_uris=uris, token_endpoint_auth_method="none", client_name="test")
    provider = OAuthClientProvider(gateway, about, person, person.open, person.come_back)
    async with httpx2.AsyncClient(auth=provider, timeout=30) as http:
        async with Client(streamable_http_client(gateway, http_client=http), mode=mode) as client:
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
