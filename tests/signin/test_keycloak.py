"""docs/sign-in.md, followed with Keycloak itself: the realm of deploy/, a person, a program, and a real gateway."""

import base64
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from keycloak import Keycloak, running
from people import Person
from processes import free_port, gateway_in
from requests_of import answer, legacy

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sign-in.md").read_text(encoding="utf-8").split("### Keycloak")[1].split("\n### ")[0]
ADDRESS = "http://localhost:8080/mcp"
ELSEWHERE = "https://other.example/mcp"
ROLES = """
[databases.shop]
url = "sqlite:///shop.db"
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
filter = "buyer = $claim.preferred_username"
"""


def program(name: str, **more: Any) -> dict[str, Any]:
    """Return a client that signs in by itself."""
    own = {"clientId": name, "secret": "s3cret", "publicClient": False, "serviceAccountsEnabled": True}
    return {
        "enabled": True,
        "standardFlowEnabled": False,
        "defaultClientScopes": ["basic", "dragoman.query"],
        **own,
        **more,
    }


def realm_of(address: str) -> dict[str, Any]:
    """Return the realm of deploy/ for a gateway at this address, with programs; some have tokens for others."""
    realm = json.loads((ROOT / "deploy" / "compose" / "realm.json").read_text().replace(ADDRESS, address))
    config = {"access.token.claim": "true", "included.custom.audience": ELSEWHERE}
    mapper = {"name": "elsewhere", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper"}
    foreign = program("foreign", defaultClientScopes=["basic"], protocolMappers=[{**mapper, "config": config}])
    none = program("none", defaultClientScopes=["basic"])
    realm["clients"] += [program("reports"), foreign, none]
    account = {"username": "service-account-reports", "enabled": True, "serviceAccountClientId": "reports"}
    realm["users"].append({**account, "groups": ["analysts"]})
    return realm


@dataclass(frozen=True)
class Service:
    """Keycloak and a gateway that takes its tokens."""

    keycloak: Keycloak
    gateway: str
    log: list[str]

    async def post(self, token: str) -> httpx2.Response:
        """Ask for the orders with a token."""
        request = legacy("execute_query", sql="SELECT id FROM orders ORDER BY id")
        request["headers"] |= {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(timeout=60) as http:
            return await http.post(self.gateway, **request)

    async def rows(self, token: str) -> Any:
        response = await self.post(token)
        assert response.status_code == 200, response.text
        return answer(response)["result"]["structuredContent"]

    async def person(self, name: str) -> dict[str, Any]:
        """Return the tokens of a person who signs in."""
        endpoint = f"{self.keycloak.issuer}/protocol/openid-connect"
        who = Person(self.keycloak.issuer, "agent", username=name, password="change-me")
        return await who.sign_in(f"{endpoint}/auth", f"{endpoint}/token", scope="openid dragoman.query")


@pytest.fixture(scope="module")
async def service(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("gateway")
    port = free_port()
    address = f"http://127.0.0.1:{port}/mcp"
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.executescript("""
            CREATE TABLE orders (id INTEGER PRIMARY KEY, buyer TEXT);
            INSERT INTO orders VALUES (1, 'ann'), (2, 'olga'), (3, 'ann'), (4, 'service-account-reports');
        """)
    shop.close()
    async with running(realm_of(address)) as keycloak:
        shown = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
        shown = shown.replace("https://idp.example/realms/team", keycloak.issuer).replace(
            "https://gw.example/mcp", address
        )
        server = f'[server]\ntransport = "http"\nport = {port}\n'
        (folder / "dragoman.toml").write_text(server + shown + ROLES)
        async with gateway_in(folder) as (url, log):
            assert url == address
            yield Service(keycloak, url, log)
    assert "eyJ" not in "".join(log)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_person_signs_in_through_the_form_and_sees_what_the_role_of_the_group_grants(
    service: Service, mode: Any
) -> None:
    ann = Person(service.keycloak.issuer, "agent", username="ann", password="change-me")
    async with ann.connected(service.gateway, mode) as client:
        result = await client.call_tool("execute_query", {"sql": "SELECT id FROM orders ORDER BY id"})
    assert result.structured_content is not None
    assert result.structured_content["rows"] == [[1], [3]]
    assert "dragoman.query" in ann.asked["scope"][0].split()
    assert ann.asked["resource"] == [service.gateway]
    assert ann.asked["code_challenge_method"] == ["S256"]


async def test_a_client_may_stay_signed_in(service: Service) -> None:
    endpoint = f"{service.keycloak.issuer}/protocol/openid-connect"
    ann = Person(service.keycloak.issuer, "agent", username="ann", password="change-me")
    scope = "dragoman.query offline_access"
    tokens = await ann.sign_in(f"{endpoint}/auth", f"{endpoint}/token", scope=scope, resource=service.gateway)
    form = {"grant_type": "refresh_token", "client_id": "agent", "refresh_token": tokens["refresh_token"]}
    async with httpx2.AsyncClient(timeout=60) as http:
        renewed = (await http.post(f"{endpoint}/token", data=form)).raise_for_status().json()
    assert (await service.rows(renewed["access_token"]))["rows"] == [[1], [3]]


async def test_a_person_of_another_group_sees_nothing(service: Service) -> None:
    tokens = await service.person("olga")
    response = await service.post(tokens["access_token"])
    assert response.status_code == 200
    assert answer(response)["error"]["message"] == "Unknown tool: execute_query"


async def test_a_program_signs_in_by_its_credentials(service: Service) -> None:
    tokens = await service.keycloak.token("reports", "s3cret")
    assert (await service.rows(tokens["access_token"]))["rows"] == [[4]]


@pytest.mark.parametrize("client", ["foreign", "none"])
async def test_a_token_for_another_server_or_for_none_is_refused(service: Service, client: str) -> None:
    tokens = await service.keycloak.token(client, "s3cret")
    refused = await service.post(tokens["access_token"])
    assert refused.status_code == 401
    assert 'error="invalid_token"' in refused.headers["www-authenticate"]


async def test_an_id_token_is_refused(service: Service) -> None:
    tokens = await service.person("ann")
    assert (await service.post(tokens["id_token"])).status_code == 401
    assert (await service.post(tokens["access_token"])).status_code == 200


async def test_a_new_key_is_followed(service: Service) -> None:
    before = (await service.keycloak.token("reports", "s3cret"))["access_token"]
    assert (await service.post(before)).status_code == 200
    await service.keycloak.rotate()
    after = (await service.keycloak.token("reports", "s3cret"))["access_token"]
    assert key_of(after) != key_of(before)
    assert (await service.rows(after))["rows"] == [[4]]


def key_of(token: str) -> str:
    head = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"]
