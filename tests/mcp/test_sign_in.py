"""Who may call over HTTP: static tokens and trusted proxies, on the short way and through the SDK."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dragoman import Secret
from dragoman.auth.tokens import hash_token, make_token
from dragoman.config import Server, StaticToken
from dragoman.mcp.identity import SignIn
from requests_of import ERAS, answer, legacy
from serving import client_of

TOKEN, OLD, UNKNOWN = make_token(), make_token(), make_token()
SERVER = Server(
    transport="http",
    token=Secret("shared"),
    tokens=(
        StaticToken(name="reports", hash=hash_token(TOKEN), expires=datetime.now(UTC) + timedelta(days=1)),
        StaticToken(name="old", hash=hash_token(OLD), expires=datetime.now(UTC) - timedelta(seconds=1)),
    ),
    trusted_proxies=("10.0.0.0/8", "::1/128"),
)
PROXIED = {"x-forwarded-user": "ada@example", "x-forwarded-groups": "analysts, ops,"}


async def who(settings: Server, request_of: Any, *, hot: bool, peer: str = "192.0.2.1", **headers: str) -> Any:
    """Return the status of a call, and the name of its principal."""
    request = request_of("echo")
    request["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    async with client_of(settings, peer=peer, hot=hot) as client:
        response = await client.post("/mcp", **request)
    name = answer(response)["result"]["structuredContent"]["who"] if response.status_code == 200 else ""
    return response.status_code, name


@ERAS
@pytest.mark.parametrize("hot", [True, False])
async def test_each_token_is_a_principal_of_its_own(request_of: Any, hot: bool) -> None:
    assert await who(SERVER, request_of, hot=hot, authorization=f"Bearer {TOKEN}") == (200, "reports")
    assert await who(SERVER, request_of, hot=hot, authorization="Bearer shared") == (200, "token")
    for refused in (OLD, UNKNOWN, hash_token(TOKEN), ""):
        assert await who(SERVER, request_of, hot=hot, authorization=f"Bearer {refused}") == (401, "")


async def test_a_refusal_tells_an_expired_token_from_an_unknown_one_and_repeats_neither(caplog: Any) -> None:
    async with client_of(SERVER, peer="192.0.2.7") as client:
        for token, reason in ((OLD, "expired"), (UNKNOWN, "not known")):
            request = legacy("echo")
            request["headers"] |= {"authorization": f"Bearer {token}"}
            response = await client.post("/mcp", **request)
            assert reason in response.json()["message"]
            assert response.headers["www-authenticate"] == 'Bearer error="invalid_token"'
            assert token not in response.text + caplog.text
    refused = [record for record in caplog.records if record.name == "dragoman.mcp"]
    assert [record.refused["peer"] for record in refused] == ["192.0.2.7"] * 2


@ERAS
@pytest.mark.parametrize("peer", ["10.1.2.3", "::ffff:10.1.2.3", "::1"])
async def test_a_trusted_proxy_says_who_calls(request_of: Any, peer: str) -> None:
    settings = Server(transport="http", trusted_proxies=SERVER.trusted_proxies)
    headers = {"x_forwarded_user": "ada@example", "x_forwarded_groups": "analysts, ops,"}
    assert await who(settings, request_of, hot=True, peer=peer, **headers) == (200, "ada@example")


@pytest.mark.parametrize("peer", ["192.0.2.1", "11.0.0.1", "::2", "127.0.0.1"])
async def test_nobody_else_is_believed(peer: str) -> None:
    settings = Server(transport="http", trusted_proxies=SERVER.trusted_proxies)
    headers = {"x_forwarded_user": "ada", "x_forwarded_for": "10.0.0.1"}
    assert await who(settings, legacy, hot=True, peer=peer, **headers) == (401, "")


async def test_without_trusted_proxies_the_headers_say_nothing() -> None:
    headers = {"x_forwarded_user": "ada", "x_forwarded_groups": "admins"}
    assert await who(Server(transport="http"), legacy, hot=True, **headers) == (200, "anonymous")
    settings = Server(transport="http", token=Secret("shared"))
    assert await who(settings, legacy, hot=True, authorization="Bearer shared", **headers) == (200, "token")


async def test_a_proxy_that_names_nobody_needs_a_token() -> None:
    for user in ("", " "):
        assert await who(SERVER, legacy, hot=True, peer="10.0.0.1", x_forwarded_user=user) == (401, "")
    given = {"x_forwarded_user": "", "authorization": f"Bearer {TOKEN}"}
    assert await who(SERVER, legacy, hot=True, peer="10.0.0.1", **given) == (200, "reports")


async def ask_named(user: bytes, groups: bytes = b"") -> Any:
    """Return the answer to a trusted proxy that names a user so."""
    request = legacy("echo")
    named = [(b"x-forwarded-user", user), (b"x-forwarded-groups", groups)]
    headers = [*((name.encode(), value.encode()) for name, value in request["headers"].items()), *named]
    async with client_of(SERVER, peer="10.0.0.1") as client:
        return await client.post("/mcp", json=request["json"], headers=headers)


@pytest.mark.parametrize(
    "user", ["ada", "ümlaut", "à", "Łódź", "名前", "a\N{COMBINING DIAERESIS}", "\N{GRINNING FACE}"]
)
async def test_a_proxy_names_users_in_utf_8(user: str) -> None:
    response = await ask_named(user.encode(), "größe, команда".encode())
    assert response.json()["result"]["structuredContent"]["who"] == user


@pytest.mark.parametrize("space", [*filter(str.isspace, map(chr, range(0x80, 0x3001)))])
async def test_white_space_that_http_does_not_know_is_part_of_a_name(space: str) -> None:
    for name in (f"{space}ada", f"ada{space}"):
        named = [(b"x-forwarded-user", name.encode()), (b"x-forwarded-groups", f"a, {name}\t,b".encode())]
        principal = await SignIn(SERVER, "/mcp")({"type": "http", "client": ("10.0.0.1", 1), "headers": named})
        assert (principal.subject, principal.groups) == (name, {"a", name, "b"})


@pytest.mark.parametrize(
    "octets",
    ["ümlaut".encode("latin-1"), b"\xff", b"\xc0\xafroot", "ada".encode("utf-16"), b"\xed\xa0\x80", "ü".encode()[:1]],
)
async def test_a_name_that_is_not_utf_8_is_refused_and_not_told(octets: bytes) -> None:
    for header, sent in {"X-Forwarded-User": (octets,), "X-Forwarded-Groups": (b"ada", octets)}.items():
        response = await ask_named(*sent)
        assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
        assert response.json()["message"] == f"{header} is not UTF-8: have the proxy send it so."


async def test_a_user_named_twice_is_nobody() -> None:
    request = legacy("echo")
    headers = [*request["headers"].items(), ("x-forwarded-user", "ada"), ("x-forwarded-user", "eve")]
    async with client_of(SERVER, peer="10.0.0.1") as client:
        response = await client.post("/mcp", json=request["json"], headers=headers)
    assert (response.status_code, response.json()["error"]) == (400, "ambiguous_request")


async def test_a_token_in_the_address_is_none() -> None:
    async with client_of(SERVER) as client:
        response = await client.post(f"/mcp?access_token={TOKEN}", **legacy("echo"))
    assert response.status_code == 401
