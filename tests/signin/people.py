"""A person with a client of MCP's SDK, and what stands in for the person's browser."""

import base64
import hashlib
import html
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

CALLBACK = "http://127.0.0.1:33418/callback"
FORM = re.compile(r'<form[^>]*\baction="([^"]+)"')


class Person:
    """Keeps what the client stores, and signs in: at once, or through a form that asks for a name and a password."""

    def __init__(self, issuer: str, client: str = "ide", **credentials: str) -> None:
        self.tokens: OAuthToken | None = None
        self.issuer = issuer
        uris: Any = [CALLBACK]
        self.client = OAuthClientInformationFull(client_id=client, redirect_uris=uris, issuer=issuer)
        self.asked: dict[str, list[str]] = {}
        self._credentials = credentials
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
        async with httpx2.AsyncClient(timeout=60) as browser:
            answer = await browser.get(url)
            if found := FORM.search(answer.text):
                # Browsers send what is meant for HTTPS alone to loopback too.
                kept = [each.split(";")[0] for each in answer.headers.get_list("set-cookie")]
                sent = {"cookie": "; ".join(kept)}
                answer = await browser.post(html.unescape(found[1]), data=self._credentials, headers=sent)
        assert "location" in answer.headers, answer.text
        self._answer = parse_qs(urlsplit(answer.headers["location"]).query)

    async def come_back(self) -> AuthorizationCodeResult:
        assert "code" in self._answer, self._answer
        answer = {name: values[0] for name, values in self._answer.items()}
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer.get("iss"))

    @asynccontextmanager
    async def connected(self, gateway: str, mode: Any = "auto") -> AsyncIterator[Client]:
        """Yield the SDK's client of a gateway; it signs in when the gateway asks for that."""
        uris: Any = [CALLBACK]
        about = OAuthClientMetadata(redirect_uris=uris, token_endpoint_auth_method="none", client_name="test")
        provider = OAuthClientProvider(gateway, about, self, self.open, self.come_back)
        async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
            async with Client(streamable_http_client(gateway, http_client=http), mode=mode) as client:
                yield client

    async def sign_in(self, authorize: str, token: str, **asked: str) -> dict[str, Any]:
        """Return what the issuer gives for a code (PKCE), with no client of MCP's between."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        client = {"client_id": self.client.client_id, "redirect_uri": CALLBACK}
        proof = {"code_challenge": challenge, "code_challenge_method": "S256"}
        asked = {"response_type": "code", "state": "s"} | client | proof | asked
        await self.open(str(httpx2.URL(authorize, params=asked)))
        code = (await self.come_back()).code
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier} | client
        async with httpx2.AsyncClient(timeout=60) as http:
            return (await http.post(token, data=form)).raise_for_status().json()
