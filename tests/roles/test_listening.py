"""Who listens for changes over HTTP hears them as long as a call of theirs would be answered, and no longer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from dragoman.auth.tokens import hash_token, make_token
from processes import gateway_in
from requests_of import HEADERS, MODERN

TOKEN = make_token()
ADDRESSES = ["schema://shop", "schema://shop/main/customers", "schema://crm"]
SERVER = """
[server]
transport = "http"
port = 0
watch = true
"""
SIGN_IN = """
[[server.tokens]]
name = "{name}"
hash = "{hash}"
groups = ["{groups}"]
expires = "{expires}"
"""
SHOP = '[databases.shop]\nurl = "sqlite:///shop.db"\n'
CRM = '[databases.crm]\nurl = "sqlite:///shop.db"\n'
ROLE = '[roles.{name}]\ngroups = ["clerks"]\n{more}[[roles.{name}.grants]]\ndatabase = "{database}"\ntables = ["*"]\n'
CLERK = ROLE.format(name="clerk", database="shop", more="")
SELLER = ROLE.format(name="seller", database="crm", more="")


def sign_in(*, name: str = "ann", groups: str = "clerks", seconds: float = 3600) -> str:
    expires = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    return SIGN_IN.format(name=name, hash=hash_token(TOKEN), groups=groups, expires=expires)


def configuration(tokens: str, *parts: str) -> str:
    other = SIGN_IN.format(name="other", hash=hash_token(make_token()), groups="clerks", expires="2100-01-01T00:00:00Z")
    return SERVER + tokens + other + "".join(parts)


WHOLE = (SHOP, CRM, CLERK, SELLER)


class Stream:
    """An open `subscriptions/listen`, event by event."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any] | None:
        """Return the next message, None after the last."""
        with anyio.fail_after(60):
            async for line in self._lines:
                if line.startswith("data: "):
                    return json.loads(line[6:])
        return None

    async def rest(self) -> list[dict[str, Any]]:
        """Return what comes until the stream ends."""
        found: list[dict[str, Any]] = []
        while (message := await self.next()) is not None:
            found.append(message)
        return found


@asynccontextmanager
async def listening(url: str, token: str = TOKEN) -> AsyncIterator[Stream]:
    """Listen to everything there is; what is promised was heard."""
    kinds = {f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources")}
    params = {"notifications": {**kinds, "resourceSubscriptions": ADDRESSES}, "_meta": MODERN}
    request = {"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": params}
    headers = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen"}
    async with (
        httpx2.AsyncClient(timeout=60) as client,
        client.stream("POST", url, json=request, headers={**headers, "authorization": f"Bearer {token}"}) as response,
    ):
        stream = Stream(response)
        first = await stream.next()
        assert first is not None
        assert first["method"] == "notifications/subscriptions/acknowledged", first
        assert first["params"]["notifications"]["resourceSubscriptions"] == ADDRESSES
        yield stream


REVOKED = {
    "the token is withdrawn": configuration("", *WHOLE),
    "the token is another caller's": configuration(sign_in(name="bob"), *WHOLE),
    "its groups give no role": configuration(sign_in(groups="nobody"), *WHOLE),
    "the role grants one database less": configuration(sign_in(), SHOP, CRM, CLERK),
    "the role has no tool that reads": configuration(
        sign_in(),
        SHOP,
        CRM,
        CLERK.replace("\n[[", '\ntools = ["list_databases"]\n[[', 1),
        SELLER.replace("\n[[", '\ntools = ["list_databases"]\n[[', 1),
    ),
    "the database is removed": configuration(sign_in(), SHOP, CLERK),
}


@pytest.mark.parametrize("after", REVOKED.values(), ids=REVOKED.keys())
async def test_a_reload_that_takes_something_away_ends_the_stream(shop: Path, after: str) -> None:
    file = shop / "dragoman.toml"
    file.write_text(configuration(sign_in(), *WHOLE))
    async with gateway_in(shop) as (url, _), listening(url) as stream:
        file.write_text(after)
        rest = await stream.rest()
    # Nothing but the answer to the request, which says that the stream ended.
    assert [message.get("id") for message in rest] == ["sub"]
    assert "result" in rest[0]


async def test_a_reload_that_takes_nothing_away_is_told(shop: Path) -> None:
    file = shop / "dragoman.toml"
    file.write_text(configuration(sign_in(), *WHOLE))
    async with gateway_in(shop) as (url, _), listening(url) as stream:
        file.write_text(configuration(sign_in(), *WHOLE, SHOP.replace("databases.shop", "databases.third")))
        told = {(await stream.next() or {}).get("method") for _ in range(3)}
        assert told == {f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


async def test_a_stream_ends_with_its_token(shop: Path) -> None:
    file = shop / "dragoman.toml"
    file.write_text(configuration(sign_in(), *WHOLE))
    async with gateway_in(shop) as (url, _), listening(url) as stream:
        file.write_text(configuration(sign_in(seconds=3), *WHOLE))
        *told, last = await stream.rest()
    assert last["id"] == "sub"
    assert all(message["method"].endswith("/list_changed") for message in told)
