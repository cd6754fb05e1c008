"""Another issuer, other scopes: taken while the server runs, or refused with what is to be done."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration, Server
from dragoman.errors import ConfigurationError
from dragoman.tools import Toolbox
from issuer import Issuer, running
from requests_of import legacy
from serving import client_of


@pytest.fixture
async def other(anyio_backend: str) -> AsyncIterator[Issuer]:
    async with running() as issuer:
        yield issuer


def server_of(issuer: Issuer, **changes: Any) -> Server:
    return Server(transport="http", auth=issuer.settings(**changes), allowed_hosts=("gw.example",))


class Service:
    """A gateway behind HTTP, and its configuration."""

    def __init__(self, toolbox: Toolbox, client: httpx2.AsyncClient) -> None:
        self.toolbox, self.client = toolbox, client

    async def take(self, server: Server) -> None:
        await self.toolbox.reload(replace(self.toolbox.gateway.configuration, server=server))

    async def status(self, token: str) -> int:
        request = legacy("execute_query", sql="SELECT 1")
        request["headers"] |= {"authorization": f"Bearer {token}"}
        return (await self.client.post("/mcp", **request)).status_code


@pytest.fixture
async def service(issuer: Issuer, tmp_path: Any) -> AsyncIterator[Service]:
    (tmp_path / "shop.db").touch()
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)
    configuration = Configuration(databases={"shop": shop}, server=server_of(issuer))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway)
        async with client_of(configuration.server, toolbox=toolbox) as client:
            yield Service(toolbox, client)


async def test_another_issuer_counts_from_the_next_call_on(service: Service, issuer: Issuer, other: Issuer) -> None:
    before, after = issuer.token(), other.token()
    assert (await service.status(before), await service.status(after)) == (200, 401)
    await service.take(server_of(other))
    assert (await service.status(before), await service.status(after)) == (401, 200)
    document = (await service.client.get("/.well-known/oauth-protected-resource/mcp")).json()
    assert document["authorization_servers"] == [other.url]
    await service.take(server_of(issuer))
    assert (await service.status(before), await service.status(after)) == (200, 401)


async def test_other_scopes_count_from_the_next_call_on(service: Service, issuer: Issuer) -> None:
    token = issuer.token(scope="a")
    await service.take(server_of(issuer, scopes=("a", "b")))
    assert await service.status(token) == 403
    await service.take(server_of(issuer, scopes=("a",)))
    assert await service.status(token) == 200


async def test_a_token_that_was_verified_before_is_not_taken_at_its_word(service: Service, issuer: Issuer) -> None:
    token = issuer.token()
    assert await service.status(token) == 200
    await service.take(server_of(issuer, audience=("https://gw.example/mcp/",)))
    assert await service.status(token) == 401


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"auth": None}, "Whether callers sign in"),
        ({"audience": "https://other.example/mcp"}, "The address of the server"),
    ],
)
async def test_what_takes_a_restart_says_so_and_changes_nothing(
    service: Service, issuer: Issuer, changes: Any, words: str
) -> None:
    audience = changes.get("audience")
    server = server_of(issuer, audience=(audience,)) if audience else replace(server_of(issuer), **changes)
    with pytest.raises(ConfigurationError, match=f"{words}.* cannot change while the server runs"):
        await service.take(server)
    assert await service.status(issuer.token()) == 200
