"""The MCP authorization specification, clause by clause: what a server must and should do.

Each test names the clause it proves; `CLAUSES` is the table, and a test below holds both to each other. "2025": the
editions of 2025-06-18 and 2025-11-25; "2026": that of 2026-07-28. Clauses about clients and about authorization
servers alone are theirs to prove. `UNPROVED` has the clauses about servers that no test can prove, and why.
"""

import asyncio
import gc
import json
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import httpx2
import pytest
from dragoman.auth.verifier import Verifier
from dragoman.config import Server, load
from dragoman.errors import ConfigurationError
from issuer import RESOURCE, Issuer
from requests_of import ERAS, HEADERS, answer, legacy, modern
from serving import client_of
from standin import StandIn

CLAUSES = {
    "metadata": "2025 MUST, 2026 MUST: servers implement OAuth 2.0 Protected Resource Metadata (RFC 9728)",
    "authorization_servers": "2025 MUST, 2026 MUST: the metadata names at least one authorization server",
    "location": "2025-06-18 MUST: a 401 names the metadata's URL; later MUST: so, or it is at a well-known place",
    "well-known": "2025-11-25 MUST, 2026 MUST: the metadata stands at the path of the endpoint, or at the root",
    "scope": "2025-11-25 SHOULD, 2026 SHOULD: a 401 names the scopes that are needed",
    "every request": "2025 MUST, 2026 MUST: each request carries its authorization, in a session too",
    "header": "2025 MUST, 2026 MUST: tokens come in the Authorization header, never in the address",
    "validate": "2025 MUST, 2026 MUST: servers validate access tokens as OAuth 2.1 section 5.2 says",
    "audience": "2025 MUST, 2026 MUST: a token was issued for this very server",
    "401": "2025 MUST, 2026 MUST: invalid or expired tokens get a 401",
    "only access tokens": "2025 MUST, 2026 MUST: no other tokens are accepted: ID tokens, ID-JAGs",
    "403": "2025 MUST, 2026 MUST: a token without the rights gets a 403",
    "insufficient_scope": "2025-11-25 SHOULD, 2026 MUST: the 403 names all scopes of the operation",
    "consistent": "2025-11-25 SHOULD, 2026 SHOULD: the scopes that are asked for are the same each time",
    "hierarchy": "2026 MUST: a broader scope implies narrower ones",
    "offline_access": "2026 SHOULD NOT: the scope of refresh tokens is neither asked for nor in the metadata",
    "case": "2025 SHOULD, 2026 SHOULD: upper case in the scheme and host of the server's address is accepted",
    "no slash": "2025 SHOULD, 2026 SHOULD: the server's address has no slash at its end",
    "before": "2025 MUST, 2026 MUST: a token is validated before anything of the request is done",
    "storage": "2025 MUST, 2026 MUST: tokens are kept so that nobody who sees what is kept can use one",
    "400": "2025 MUST, 2026 MUST: a malformed authorization request gets a 400",
    "no passing on": "2025 MUST NOT, 2026 MUST NOT: the token goes no further than this server",
    "sessions": "2025 MUST NOT: a session is no authentication; SHOULD: it is bound to the user",
    "https": "2025 MUST, 2026 MUST: authorization servers are reached by HTTPS",
    "communication": "2025 MUST, 2026 MUST: tokens come to the server by HTTPS (OAuth 2.1 section 1.5)",
    "stdio": "2025 SHOULD NOT, 2026 SHOULD NOT: over stdio the environment says who calls, and no token is asked for",
    "unavailable": "RFC 9110: who cannot tell now answers 503 with Retry-After, and sends nobody to sign in again",
}
UNPROVED = {
    "user experience": "2025-11-25 SHOULD, 2026 SHOULD: the scopes asked for suit people: the operator's choice",
    "best practices": "2025 MUST, 2026 MUST: OAuth 2.1 section 7 is followed: what of it is a server's is in `CLAUSES`",
    "proxies": "2025 MUST, 2026 MUST: proxies with one client id ask for consent: this server signs in at no other",
    "transports": "2025 MUST, 2026 MUST: other transports follow their protocols' practices: there are no others",
}
PROVED: set[str] = set()
Test = TypeVar("Test", bound=Callable[..., Any])
STANDIN = Path(__file__).parents[1] / "mcp" / "standin.py"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
ENDPOINT_METADATA = "https://gw.example/.well-known/oauth-protected-resource/mcp"


def proves(*clauses: str) -> Callable[[Test], Test]:
    PROVED.update(clauses)
    return lambda test: test


def test_every_clause_has_a_test_and_no_other_is_claimed() -> None:
    assert set(CLAUSES) == PROVED
    assert not PROVED & set(UNPROVED)


def settings(issuer: Issuer, **changes: Any) -> Server:
    given = {"scopes": ("dragoman.query", "dragoman.read")} | changes
    return Server(transport="http", auth=issuer.settings(**given), allowed_hosts=("gw.example",))


async def call(server: Server, request_of: Any, token: str | None, **options: Any) -> httpx2.Response:
    request = request_of("echo")
    request["headers"] |= {"authorization": f"Bearer {token}"} if token is not None else {}
    async with client_of(server, **options) as client:
        return await client.post("/mcp", **request)


def challenge(response: httpx2.Response) -> dict[str, str]:
    """Return the parameters of a challenge."""
    scheme, _, rest = response.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    return {name: value.strip('"') for name, _, value in (part.partition("=") for part in rest.split(", "))}


@proves("metadata", "authorization_servers", "well-known")
@pytest.mark.parametrize("path", ["", "/mcp", "/mcp/"])
async def test_the_metadata_stands_where_clients_look_and_needs_no_token(issuer: Issuer, path: str) -> None:
    async with client_of(settings(issuer)) as client:
        response = await client.get(f"/.well-known/oauth-protected-resource{path}")
    document = response.json()
    assert response.status_code == 200
    assert document["resource"] == RESOURCE
    assert document["authorization_servers"] == [issuer.url]
    assert document["scopes_supported"] == ["dragoman.query", "dragoman.read"]
    assert document["bearer_methods_supported"] == ["header"]


@proves("metadata", "no slash")
async def test_an_audience_that_is_no_address_is_told_by_the_address_that_was_asked(issuer: Issuer) -> None:
    server = settings(issuer, audience=("dragoman-rs",))
    async with client_of(server) as client:
        document = (await client.get("/.well-known/oauth-protected-resource/mcp")).json()
    assert document["resource"] == "http://localhost:8080/mcp"
    assert (
        await call(server, legacy, issuer.token(aud=["dragoman-rs"], scope="dragoman.query dragoman.read"))
    ).is_success


@proves("metadata")
async def test_a_server_without_an_issuer_has_no_metadata() -> None:
    async with client_of(Server(transport="http")) as client:
        assert (await client.get("/.well-known/oauth-protected-resource/mcp")).status_code == 404


@proves("location", "scope")
@ERAS
async def test_a_request_without_a_token_is_told_where_to_get_one_and_with_which_scopes(
    issuer: Issuer, request_of: Any
) -> None:
    response = await call(settings(issuer), request_of, None)
    assert response.status_code == 401
    assert challenge(response) == {"scope": "dragoman.query dragoman.read", "resource_metadata": ENDPOINT_METADATA}


@proves("location", "scope", "401")
@ERAS
@pytest.mark.parametrize("changes", [{"exp": 1}, {"iss": "https://other.example"}, {"header": {"alg": "none"}}])
async def test_an_invalid_or_expired_token_gets_a_401_that_says_so(
    issuer: Issuer, request_of: Any, changes: Any
) -> None:
    response = await call(settings(issuer), request_of, issuer.token(**changes))
    assert response.status_code == 401
    told = {"scope": "dragoman.query dragoman.read", "resource_metadata": ENDPOINT_METADATA}
    assert challenge(response) == {"error": "invalid_token", **told}


@proves("validate")
@ERAS
@pytest.mark.parametrize("hot", [True, False])
async def test_a_valid_token_opens(issuer: Issuer, request_of: Any, hot: bool) -> None:
    token = issuer.token(scope="openid dragoman.read dragoman.query", preferred_username="ada")
    response = await call(settings(issuer, user_claim="preferred_username"), request_of, token, hot=hot)
    assert answer(response)["result"]["structuredContent"]["who"] == "ada"


@proves("audience")
@ERAS
@pytest.mark.parametrize("audience", ["https://other.example/mcp", "https://gw.example", RESOURCE + "/", None, []])
async def test_a_token_for_another_server_is_refused(issuer: Issuer, request_of: Any, audience: Any) -> None:
    token = issuer.token(aud=audience, scope="dragoman.query dragoman.read")
    assert (await call(settings(issuer), request_of, token)).status_code == 401


@proves("only access tokens")
@pytest.mark.parametrize(
    "changes",
    [
        {"header": {"typ": "JWT"}, "typ": "ID"},
        {"header": {"typ": "JWT"}, "at_hash": "x"},
        {"header": {"typ": "oauth-id-jag+jwt"}},
    ],
)
async def test_an_id_token_or_an_id_jag_opens_nothing(issuer: Issuer, changes: Any) -> None:
    token = issuer.token(scope="dragoman.query dragoman.read", **changes)
    assert (await call(settings(issuer), legacy, token)).status_code == 401


@proves("403", "insufficient_scope")
@ERAS
@pytest.mark.parametrize("scope", ["", "dragoman.read", "dragoman", "dragoman.query-all dragoman.read"])
async def test_a_token_without_a_scope_is_told_all_of_them(issuer: Issuer, request_of: Any, scope: str) -> None:
    response = await call(settings(issuer), request_of, issuer.token(scope=scope))
    assert response.status_code == 403
    told = {"scope": "dragoman.query dragoman.read", "resource_metadata": ENDPOINT_METADATA}
    assert challenge(response) == {"error": "insufficient_scope", **told}


@proves("consistent")
async def test_each_answer_asks_for_the_same_scopes(issuer: Issuer) -> None:
    server = settings(issuer)
    tokens = [None, issuer.token(exp=1), issuer.token(scope=""), issuer.token(scope="dragoman.read")]
    asked = {challenge(await call(server, of, token))["scope"] for of in (legacy, modern) for token in tokens}
    async with client_of(server) as client:
        document = (await client.get("/.well-known/oauth-protected-resource")).json()
    assert asked == {" ".join(document["scopes_supported"])}


AUTH = """
[databases.shop]
url = "sqlite:///shop.db"
[server.auth]
issuer = "https://idp.example"
audience = "x"
jwks_url = "https://idp.example/jwks"
"""
IMPLIED = {"dragoman.all": ("dragoman.query", "dragoman.list"), "dragoman.list": ("dragoman.read", "dragoman.all")}


@proves("hierarchy")
@ERAS
@pytest.mark.parametrize(
    ("scope", "status"), [("dragoman.all", 200), ("dragoman.list dragoman.query", 200), ("dragoman.query", 403)]
)
async def test_a_broader_scope_stands_for_narrower_ones(
    issuer: Issuer, request_of: Any, scope: str, status: int
) -> None:
    server = settings(issuer, implied_scopes=IMPLIED)
    assert (await call(server, request_of, issuer.token(scope=scope))).status_code == status


async def test_what_a_broader_scope_stands_for_is_configured(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'{AUTH}[server.auth.implied_scopes]\n"dragoman.all" = ["dragoman.read"]\n')
    read = load(file, environ={}, folder=tmp_path).server.auth
    assert read is not None
    assert read.implied_scopes == {"dragoman.all": ("dragoman.read",)}


@proves("offline_access")
async def test_the_scope_of_refresh_tokens_cannot_be_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'{AUTH}scopes = ["dragoman.query", "offline_access"]\n')
    with pytest.raises(ConfigurationError, match=r"server\.auth\.scopes: offline_access"):
        load(file, environ={}, folder=tmp_path)


@proves("case")
@pytest.mark.parametrize(
    ("audience", "status"),
    [
        ("HTTPS://GW.Example/mcp", 200),
        ("https://GW.EXAMPLE/MCP", 401),
        ("https://gw.example/Mcp", 401),
        ("https://GW.EXAMPLE@other.example/mcp", 401),
    ],
)
async def test_the_case_of_scheme_and_host_means_nothing(issuer: Issuer, audience: str, status: int) -> None:
    token = issuer.token(aud=[audience], scope="dragoman.query dragoman.read")
    assert (await call(settings(issuer), legacy, token)).status_code == status
    upper = settings(issuer, audience=(RESOURCE.replace("https://gw", "HTTPS://GW"),))
    assert (await call(upper, legacy, token)).status_code == status


@proves("storage")
async def test_what_is_kept_of_a_token_signs_nobody_in(issuer: Issuer) -> None:
    auth = settings(issuer).auth
    assert auth is not None
    verifier = Verifier(auth)
    token = issuer.token(scope="dragoman.query dragoman.read")
    await verifier.principal(token)
    kept = " ".join(map(repr, reachable(verifier)))
    await verifier.aclose()
    assert "u-1" in kept
    assert [part for part in token.split(".") if part in kept] == []


def reachable(root: object) -> list[object]:
    """What an object of dragoman's holds, itself or by what it holds."""
    seen: dict[int, object] = {}
    waiting: list[object] = [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen[id(each)] = each
        waiting += [held for held in gc.get_referents(each) if isinstance(held, KEPT) or "dragoman" in str(type(held))]
    return list(seen.values())


KEPT = (dict, list, tuple, set, frozenset, str, bytes, bytearray)


@proves("every request", "sessions")
async def test_a_session_that_was_signed_in_is_no_sign_in(issuer: Issuer) -> None:
    token = issuer.token(scope="dragoman.query dragoman.read")
    async with client_of(settings(issuer)) as client:
        signed = HEADERS | {"authorization": f"Bearer {token}"}
        begun = await client.post("/mcp", json=INITIALIZE, headers=signed)
        assert begun.status_code == 200
        request = legacy("echo")
        request["headers"] |= {"mcp-session-id": begun.headers["mcp-session-id"]}
        assert (await client.post("/mcp", **request)).status_code == 401
        assert (await client.delete("/mcp", headers=request["headers"])).status_code == 401


@proves("header")
async def test_a_token_in_the_address_or_the_body_is_none(issuer: Issuer) -> None:
    token = issuer.token(scope="dragoman.query dragoman.read")
    request = legacy("echo", access_token=token)
    async with client_of(settings(issuer)) as client:
        assert (await client.post(f"/mcp?access_token={token}", **request)).status_code == 401
        assert (
            await client.post("/mcp", headers={**request["headers"], "cookie": f"access_token={token}"})
        ).status_code == 401


@proves("400")
async def test_two_authorization_headers_are_malformed(issuer: Issuer) -> None:
    token = issuer.token(scope="dragoman.query dragoman.read")
    request = legacy("echo")
    headers = [*request["headers"].items(), ("authorization", f"Bearer {token}"), ("authorization", "Bearer x")]
    async with client_of(settings(issuer)) as client:
        assert (await client.post("/mcp", json=request["json"], headers=headers)).status_code == 400


@proves("no passing on", "before")
@ERAS
async def test_tools_and_logs_see_no_part_of_a_token(issuer: Issuer, request_of: Any, caplog: Any) -> None:
    class Toolbox(StandIn):
        async def call(self, name: str, arguments: dict, *, progress: Any = None, principal: Any) -> Any:
            seen.append(f"{principal!r} {dict(principal.claims)}")
            return await super().call(name, arguments, progress=progress, principal=principal)

    seen: list[str] = []
    caplog.set_level("DEBUG")
    good, bad = issuer.token(scope="dragoman.query dragoman.read"), issuer.token(exp=1)
    assert (await call(settings(issuer), request_of, good, toolbox=Toolbox())).is_success
    assert not (await call(settings(issuer), request_of, bad, toolbox=Toolbox())).is_success
    assert len(seen) == 1
    for part in (*good.split("."), *bad.split(".")):
        assert part not in seen[0] + caplog.text


@proves("https")
async def test_an_issuer_without_https_is_warned_about_unless_it_is_this_machine(tmp_path: Any) -> None:
    auth = '[server.auth]\nissuer = "https://idp.example"\naudience = "https://gw.example/mcp"\n'
    database = '[databases.shop]\nurl = "sqlite:///shop.db"\n'
    for url, warned in (("http://idp.example/jwks", 1), ("https://idp.example/jwks", 0), ("http://[::1]/jwks", 0)):
        (tmp_path / "dragoman.toml").write_text(f'{database}{auth}jwks_url = "{url}"\n')
        warnings = load(folder=tmp_path, environ={}).warnings
        assert ["plain http" in warning for warning in warnings] == [True] * warned


@proves("communication")
@pytest.mark.parametrize(
    ("audience", "warned"),
    [("http://gw.example/mcp", 1), ("https://gw.example/mcp", 0), ("http://127.0.0.1:8080/mcp", 0), ("a-name", 0)],
)
async def test_an_address_of_ours_without_https_is_warned_about(tmp_path: Any, audience: str, warned: int) -> None:
    (tmp_path / "dragoman.toml").write_text(
        '[databases.shop]\nurl = "sqlite:///shop.db"\n[server.auth]\nissuer = "https://idp.example"\n'
        f'audience = ["dragoman-rs", "{audience}"]\njwks_url = "https://idp.example/jwks"\n'
    )
    warnings = load(folder=tmp_path, environ={}).warnings
    assert ["tokens can be read on their way" in warning for warning in warnings] == [True] * warned


@proves("stdio")
async def test_over_stdio_no_token_is_asked_for() -> None:
    command = [sys.executable, str(STANDIN)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in (INITIALIZE, done, request))
    out, _ = await process.communicate(lines)
    assert b'"who":"local"' in out.replace(b" ", b"").replace(b"\\", b"")


@proves("unavailable")
@ERAS
async def test_while_the_issuer_is_down_nobody_is_sent_to_sign_in(issuer: Issuer, request_of: Any) -> None:
    issuer.down = True
    response = await call(settings(issuer), request_of, issuer.token(scope="dragoman.query dragoman.read"))
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert "www-authenticate" not in response.headers


@proves("validate", "401", "unavailable")
@ERAS
async def test_introspection_answers_alike(issuer: Issuer, request_of: Any) -> None:
    issuer.active["opaque"] = issuer.claims(scope="dragoman.query dragoman.read", exp=int(time.time()) + 99)
    auth = issuer.introspecting(scopes=("dragoman.query", "dragoman.read"))
    server = Server(transport="http", auth=auth)
    assert (await call(server, request_of, "opaque")).status_code == 200
    assert (await call(server, request_of, "other")).status_code == 401
    issuer.down = True
    assert (await call(server, request_of, "opaque")).status_code == 503
