"""Which tokens of an issuer are accepted, whom they name, and what happens while the issuer is down."""

import asyncio
import base64
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import pytest
from dragoman import Secret
from dragoman.auth import InvalidToken, IssuerUnreachable
from dragoman.auth.http import IssuerClient
from dragoman.auth.jwks import FRESH, OLD, PATIENCE, KeyCache
from dragoman.auth.jwt import SignedTokens
from dragoman.auth.verifier import REMEMBERED, Verifier
from dragoman.config import Auth
from dragoman.model import Principal
from issuer import ALGORITHMS, KEYS, RESOURCE, Issuer, sign
from joserfc.jwk import RSAKey


@asynccontextmanager
async def verifying(settings: Auth) -> AsyncIterator[Verifier]:
    verifier = Verifier(settings)
    try:
        yield verifier
    finally:
        await verifier.aclose()


async def named(issuer: Issuer, token: str, **settings: Any) -> Principal:
    async with verifying(issuer.settings(**settings)) as verifier:
        return await verifier.principal(token)


async def accepts(verifier: Verifier, token: str, peer: str = "") -> bool:
    try:
        return bool(await verifier.principal(token, peer))
    except InvalidToken:
        return False


def set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute passes, in which somebody sets the wall clock back by an hour."""
    wall, steady = time.time() - 3600, time.monotonic
    monkeypatch.setattr(time, "time", lambda: wall)
    monkeypatch.setattr(time, "monotonic", lambda: steady() + REMEMBERED)


def asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine sleeps for a minute, which only the wall clock notices."""
    wall = time.time() + REMEMBERED
    monkeypatch.setattr(time, "time", lambda: wall)


# Whom a token names


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", ["at+jwt", "application/at+jwt", "JWT", None])
async def test_a_token_the_issuer_signed_names_its_subject(issuer: Issuer, algorithm: str, kind: str | None) -> None:
    principal = await named(issuer, issuer.token(algorithm, header={"typ": kind}))
    assert (principal.issuer, principal.subject, principal.client) == (issuer.url, "u-1", "ide")


async def test_name_groups_scopes_and_claims_come_from_the_configured_claims(issuer: Issuer) -> None:
    claims = {
        "preferred_username": "ada",
        "realm_access": {"roles": ["analyst", "ops"]},
        "scope": "openid dragoman.query",
        "azp": "vscode",
        "tenant": "a",
        "jti": "x",
    }
    settings = {"user_claim": "preferred_username", "groups_claim": "realm_access.roles"}
    one = await named(issuer, issuer.token(**claims), **settings)
    assert (one.name, one.client, one.groups) == ("ada", "vscode", {"analyst", "ops"})
    assert one.scopes == {"openid", "dragoman.query"}
    assert one.claims["tenant"] == "a"
    # The next token of the same caller is the same principal, whatever its times and numbers.
    assert one == await named(issuer, issuer.token(**claims | {"jti": "y", "iat": 1, "nbf": 2}), **settings)


@pytest.mark.parametrize(
    ("claims", "groups", "scopes"),
    [
        ({"groups": ["a", "b"], "scp": ["x"]}, {"a", "b"}, {"x"}),
        ({"groups": "a", "scp": "x y"}, {"a"}, {"x", "y"}),
        ({}, set(), set()),
    ],
)
async def test_groups_and_scopes_are_lists_or_texts(issuer: Issuer, claims: Any, groups: Any, scopes: Any) -> None:
    principal = await named(issuer, issuer.token(**claims))
    assert (principal.groups, principal.scopes) == (groups, scopes)


async def test_nothing_a_tool_sees_has_the_token(issuer: Issuer) -> None:
    token = issuer.token()
    principal = await named(issuer, token)
    assert not any(part in f"{principal!r}{dict(principal.claims)}" for part in token.split("."))


# What is refused


def rsa(name: str) -> RSAKey:
    key = KEYS[name]
    assert isinstance(key, RSAKey)
    return key


NOW = int(time.time())
SECRET = rsa("rsa").as_pem(private=False)
ENCRYPTING = RSAKey.import_key(rsa("encryption").as_pem(private=True))
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"})
REFUSED: dict[str, Callable[[Issuer], str]] = {
    "no signature": lambda i: sign({"alg": "none", "kid": "rsa"}, i.claims(), None),
    "no signature, another spelling": lambda i: sign({"alg": "none"}, i.claims(), None).replace("bm9uZSJ9", "TmJuZSJ9"),
    "HS256 keyed with the public key": lambda i: sign({"alg": "HS256", "kid": "rsa"}, i.claims(), SECRET),
    "RS512": lambda i: sign({"alg": "RS512", "kid": "rsa"}, i.claims(), KEYS["rsa"]),
    "signed by a stranger": lambda i: sign({"alg": "RS256", "kid": "rsa"}, i.claims(), STRANGER),
    "a stranger's key in the header": lambda i: sign(
        {"alg": "RS256", "kid": "rsa", "jwk": STRANGER.as_dict(private=False)}, i.claims(), STRANGER
    ),
    "a stranger's keys at a URL in the header": lambda i: sign(
        {"alg": "RS256", "kid": "rsa", "jku": f"{i.url}/jwks"}, i.claims(), STRANGER
    ),
    "a key of another kind": lambda i: i.token("ES256", header={"kid": "rsa"}),
    "a replaced kid": lambda i: i.token(header={"kid": "rsa-2"}),
    "a kid that is a path": lambda i: i.token(header={"kid": "../../dev/null"}),
    "no kid, and two keys of its kind": lambda i: i.token(header={"kid": None}),
    "a kid that is no text": lambda i: i.token(header={"kid": ["rsa"]}),
    "a key for encryption": lambda i: sign({"alg": "RS256", "kid": "encryption"}, i.claims(), ENCRYPTING),
    "an unknown critical parameter": lambda i: i.token(header={"crit": ["exp2"], "exp2": 1}),
    "critical parameters that are no list": lambda i: i.token(header={"crit": 1}),
    "an ID token by Keycloak": lambda i: i.token(header={"typ": "JWT"}, typ="ID"),
    "a refresh token by Keycloak": lambda i: i.token(header={"typ": "JWT"}, typ="Refresh"),
    "an ID token": lambda i: i.token(header={"typ": "JWT"}, at_hash="x"),
    "an ID token for a browser": lambda i: i.token(header={"typ": None}, nonce="x"),
    "an ID token by Cognito": lambda i: i.token(header={"typ": None}, token_use="id"),
    "an ID-JAG": lambda i: i.token(header={"typ": "oauth-id-jag+jwt"}),
    "a logout token": lambda i: i.token(header={"typ": "logout+jwt"}),
    "a security event": lambda i: i.token(header={"typ": "JWT"}, events={}),
    "another type": lambda i: i.token(header={"typ": ["at+jwt"]}),
    "a token bound to a DPoP key": lambda i: i.token(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
    "a token bound to a certificate": lambda i: i.token(
        cnf={"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}
    ),
    "a token bound to a key in no way we know": lambda i: i.token(header={"typ": "JWT"}, cnf={}),
    "another audience": lambda i: i.token(aud="https://other.example/mcp"),
    "an audience that begins like ours": lambda i: i.token(aud=[RESOURCE + "/", RESOURCE[:-1], RESOURCE.upper()]),
    "no audience": lambda i: i.token(aud=None),
    "an audience that is no text": lambda i: i.token(aud={RESOURCE: True}),
    "another issuer": lambda i: i.token(iss="https://other.example"),
    "an issuer with a slash more": lambda i: i.token(iss=f"{i.url}/"),
    "no issuer": lambda i: i.token(iss=None),
    "expired": lambda i: i.token(exp=NOW - 120),
    "no expiry": lambda i: i.token(exp=None),
    "an expiry that is no number": lambda i: i.token(exp=str(NOW + 999)),
    "an expiry that is true": lambda i: i.token(exp=True),
    "an expiry that never comes": lambda i: i.token(exp=float("inf")),
    "an expiry that no clock can show": lambda i: i.token(exp=10**400),
    "a beginning that no clock can show": lambda i: i.token(nbf=-(10**400)),
    "signed by a key that is too short": lambda i: sign({"alg": "RS256", "kid": "short"}, i.claims(), KEYS["short"]),
    "an expiry that is no number at all": lambda i: i.token(exp=float("nan")),
    "not valid yet": lambda i: i.token(nbf=NOW + 36_000),
    "no subject": lambda i: i.token(sub=None),
    "an empty subject": lambda i: i.token(sub=""),
    "a subject that is no text": lambda i: i.token(sub=1),
    "a subject with half a character": lambda i: i.token(sub="u\ud800"),
    "groups that cannot be read": lambda i: i.token(groups=[1]),
    "a list instead of claims": lambda i: sign({"alg": "RS256", "kid": "rsa"}, [i.claims()], KEYS["rsa"]),
    "too long": lambda i: i.token(filler="x" * 20_000),
    "two parts": lambda i: i.token().rpartition(".")[0],
    "four parts": lambda i: i.token() + ".x",
    "five parts": lambda i: i.token() + ".x.y",
    "no JSON": lambda i: "x.y.z",
    "a header that is deep": lambda i: "W1tb" * 1300 + "." + i.token().partition(".")[2],
    "not ASCII": lambda i: i.token() + "\xe9",
    "nothing": lambda i: "",
}


@pytest.mark.parametrize("how", REFUSED)
async def test_it_is_refused(issuer: Issuer, how: str) -> None:
    with pytest.raises(InvalidToken):
        await named(issuer, REFUSED[how](issuer))


@pytest.mark.parametrize(("claim", "said"), [("exp", "when it expires"), ("nbf", "when it begins")])
async def test_which_time_is_wrong_is_said(issuer: Issuer, claim: str, said: str) -> None:
    with pytest.raises(InvalidToken, match=said):
        await named(issuer, sign({"alg": "RS256", "kid": "rsa"}, issuer.claims() | {claim: "soon"}, KEYS["rsa"]))


async def test_a_token_with_too_many_groups_is_said_to_be_too_long(issuer: Issuer) -> None:
    with pytest.raises(InvalidToken, match="too long"):
        await named(issuer, issuer.token(groups=[f"group-{number}" for number in range(2000)]))


async def test_a_token_without_a_kid_needs_a_single_key(issuer: Issuer) -> None:
    assert await named(issuer, issuer.token("ES256", header={"kid": None}))


async def test_clocks_may_differ_by_a_minute(issuer: Issuer) -> None:
    assert await named(issuer, issuer.token(exp=int(time.time()) - 30, nbf=int(time.time()) + 30))


# Keys


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def reading(issuer: Issuer) -> AsyncIterator[tuple[SignedTokens, Clock]]:
    clock, client = Clock(), IssuerClient()
    keys = KeyCache(client, f"{issuer.url}/jwks", clock)
    try:
        yield SignedTokens(keys), clock
    finally:
        await keys.aclose()
        await client.aclose()


async def test_a_hundred_callers_fetch_the_keys_once(issuer: Issuer) -> None:
    async with reading(issuer) as (tokens, _):
        await asyncio.gather(*(tokens.claims(issuer.token("ES256", number=number)) for number in range(100)))
    assert issuer.fetches == 1


async def test_a_thousand_forged_keys_are_looked_for_once_in_half_a_minute(issuer: Issuer) -> None:
    async with reading(issuer) as (tokens, clock):
        await tokens.claims(issuer.token("ES256"))
        for number in range(1000):
            with pytest.raises((InvalidToken, IssuerUnreachable)):
                await tokens.claims(issuer.token("ES256", header={"kid": f"forged-{number}"}))
        assert issuer.fetches == 2
        clock.now += PATIENCE + 1
        with pytest.raises(InvalidToken):
            await tokens.claims(issuer.token("ES256", header={"kid": "forged"}))
    assert issuer.fetches == 3


async def test_a_new_key_is_found_and_nobody_is_told_that_their_token_is_wrong(issuer: Issuer) -> None:
    issuer.published = ["rsa"]
    async with reading(issuer) as (tokens, clock):
        await tokens.claims(issuer.token())
        issuer.published = ["ec"]
        assert await tokens.claims(issuer.token("ES256"))
        with pytest.raises(InvalidToken):  # the key that was replaced
            await tokens.claims(issuer.token())
        issuer.published = ["ed"]
        with pytest.raises(IssuerUnreachable) as told:  # forged keys are looked for seldom, so nobody can tell yet
            await tokens.claims(issuer.token("EdDSA"))
        clock.now += told.value.retry_after
        assert await tokens.claims(issuer.token("EdDSA"))


async def test_a_withdrawn_key_is_forgotten_behind_the_callers_backs(issuer: Issuer) -> None:
    async with reading(issuer) as (tokens, clock):
        await tokens.claims(issuer.token("ES256"))
        issuer.published = ["rsa"]
        clock.now += FRESH + 1
        before = asyncio.all_tasks()
        assert await tokens.claims(issuer.token("ES256"))
        await asyncio.wait(asyncio.all_tasks() - before)
        with pytest.raises(InvalidToken):
            await tokens.claims(issuer.token("ES256"))


@pytest.mark.parametrize("idle", [OLD + 1, 24 * 3600])
@pytest.mark.parametrize("was_down", [False, True], ids=["up", "down before"])
async def test_a_withdrawn_key_opens_nothing_after_a_night_without_callers(
    issuer: Issuer, idle: float, was_down: bool
) -> None:
    async with reading(issuer) as (tokens, clock):
        await tokens.claims(issuer.token("ES256"))
        if was_down:
            issuer.down, clock.now = True, clock.now + OLD + 1
            assert await tokens.claims(issuer.token("ES256"))
        issuer.down, issuer.published = False, ["rsa"]
        clock.now += idle
        with pytest.raises(InvalidToken):
            await tokens.claims(issuer.token("ES256"))
        assert await tokens.claims(issuer.token())


async def test_a_withdrawn_key_opens_nothing_soon_after_the_issuer_was_down(issuer: Issuer) -> None:
    async with reading(issuer) as (tokens, clock):
        await tokens.claims(issuer.token("ES256"))
        issuer.down, clock.now = True, clock.now + OLD + 1
        assert await tokens.claims(issuer.token("ES256"))
        issuer.down, issuer.published = False, ["rsa"]
        clock.now += PATIENCE + 1
        with pytest.raises(InvalidToken):
            await tokens.claims(issuer.token("ES256"))


async def test_a_key_that_stays_holds_after_a_night_without_callers(issuer: Issuer) -> None:
    async with reading(issuer) as (tokens, clock):
        for fetches in range(1, 5):
            claims = await asyncio.gather(*(tokens.claims(issuer.token(number=number)) for number in range(20)))
            assert len(claims) == 20
            assert issuer.fetches == fetches
            clock.now += 24 * 3600


RSA = KEYS["rsa"].as_dict(private=False)
ODD_KEYS: Any = [
    None,
    5,
    "x",
    [],
    {},
    {"kty": "RSA"},
    {"kty": 5},
    {"kty": []},
    {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
    {"kty": "EC", "crv": "X", "x": "AA", "y": "AA"},
    {"kty": "RSA", "n": "_" * 342, "e": "_" * 342},
    {"kty": "oct", "k": "eA"},
    {"kty": "OKP", "crv": "X25519", "x": "A" * 43},
    {"kty": "AKP", "pub": "AA"},
    *(RSA | {"key_ops": odd} for odd in (5, None, True)),
    *(RSA | odd for odd in ({"use": ["sig"]}, {"kid": [1]}, {"kid": 5}, {"n": None})),
    *(RSA | odd for odd in ({"alg": 5}, {"alg": {}}, {"x5c": 5}, {"e": {}})),
]


@pytest.mark.parametrize("odd", ODD_KEYS, ids=range(len(ODD_KEYS)))
async def test_an_odd_key_of_the_issuer_keeps_nobody_out(issuer: Issuer, odd: Any) -> None:
    good = KEYS["ec"].as_dict(private=False)
    issuer.answer = lambda *_: (200, {"keys": [odd, good]})  # type: ignore[method-assign]
    assert (await named(issuer, issuer.token("ES256"))).subject == "u-1"


async def test_while_the_issuer_is_down_good_keys_hold_and_nobody_is_told_that_a_token_is_wrong(issuer: Issuer) -> None:
    async with reading(issuer) as (tokens, clock):
        issuer.down = True
        for _ in range(10):
            with pytest.raises(IssuerUnreachable):
                await tokens.claims(issuer.token())
        issuer.down, clock.now = False, clock.now + 2
        assert await tokens.claims(issuer.token())
        issuer.down = True
        for _ in range(100):
            clock.now += 3600
            assert await tokens.claims(issuer.token())
            with pytest.raises(IssuerUnreachable):
                await tokens.claims(issuer.token(header={"kid": "new"}))


@pytest.mark.parametrize("answer", [[], {}, {"keys": 1}, {"keys": [1, {"kty": "RSA"}, {"kty": "oct", "k": "eA"}]}])
async def test_an_answer_without_keys_signs_nobody_in(issuer: Issuer, answer: Any) -> None:
    issuer.answer = lambda *_: (200, answer)  # type: ignore[method-assign]
    with pytest.raises((InvalidToken, IssuerUnreachable)):
        await named(issuer, issuer.token())


@pytest.mark.parametrize("answer", [{}, {"keys": 1}, {"keys": None}, {"keys": {}}, {"error": "maintenance"}])
async def test_an_answer_that_is_no_set_of_keys_counts_as_an_issuer_that_is_down(issuer: Issuer, answer: Any) -> None:
    keys = issuer.answer
    async with reading(issuer) as (tokens, clock):
        issuer.answer = lambda *_: (200, answer)  # type: ignore[method-assign]
        with pytest.raises(IssuerUnreachable):
            await tokens.claims(issuer.token())
        issuer.answer, clock.now = keys, clock.now + 2  # type: ignore[method-assign]
        assert await tokens.claims(issuer.token())
        issuer.answer = lambda *_: (200, answer)  # type: ignore[method-assign]
        for _ in range(10):
            clock.now += 3600
            assert await tokens.claims(issuer.token())
            with pytest.raises(IssuerUnreachable):
                await tokens.claims(issuer.token(header={"kid": "new"}))


@pytest.mark.parametrize("published", [[], ["encryption"], ["short"]])
async def test_a_set_without_keys_for_signatures_makes_nobody_sign_in_again(
    issuer: Issuer, published: list[str]
) -> None:
    """Such an issuer cannot have made a token that callers hold, so it is out of order. Its old keys are withdrawn."""
    async with reading(issuer) as (tokens, clock):
        for _ in range(2):
            whole, issuer.published = issuer.published, published
            clock.now += FRESH + 1
            before = asyncio.all_tasks()
            with suppress(IssuerUnreachable):
                await tokens.claims(issuer.token())
            await asyncio.wait([*(asyncio.all_tasks() - before), asyncio.create_task(asyncio.sleep(0))])
            with pytest.raises(IssuerUnreachable):
                await tokens.claims(issuer.token())
            issuer.published, clock.now = whole, clock.now + 2
            assert await tokens.claims(issuer.token())


async def test_a_redirect_is_not_followed(issuer: Issuer) -> None:
    issuer.answer = lambda *_: (302, {})  # type: ignore[method-assign]
    with pytest.raises(IssuerUnreachable):
        await named(issuer, issuer.token())


# Remembering


async def test_a_token_is_verified_once_a_minute(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    token = issuer.token("ES256")
    async with verifying(issuer.settings()) as verifier:
        first = await verifier.principal(token)
        issuer.published = []
        assert await verifier.principal(token) is first
        later = time.time() + REMEMBERED + 1
        monkeypatch.setattr(time, "time", lambda: later)
        assert await verifier.principal(token) is not first


async def test_a_remembered_token_is_refused_once_it_has_expired(issuer: Issuer, monkeypatch: Any) -> None:
    token = issuer.token("ES256", exp=int(time.time()) - 50)
    async with verifying(issuer.settings()) as verifier:
        assert await verifier.principal(token)
        later = time.time() + 15
        monkeypatch.setattr(time, "time", lambda: later)
        with pytest.raises(InvalidToken, match="expired"):
            await verifier.principal(token)


@pytest.mark.parametrize("clock", [set_back, asleep])
@pytest.mark.parametrize("is_active", [True, False])
async def test_no_clock_makes_the_minute_longer(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, clock: Any, is_active: bool
) -> None:
    told = {"sub": "u-1", "aud": RESOURCE}
    issuer.active = {"opaque": told} if is_active else {}
    async with verifying(issuer.introspecting()) as verifier:
        assert await accepts(verifier, "opaque") is is_active
        issuer.active = {} if is_active else {"opaque": told}
        clock(monkeypatch)
        assert await accepts(verifier, "opaque") is not is_active


# Introspection


async def test_the_issuer_is_asked_about_a_token_once_a_minute(issuer: Issuer, monkeypatch: Any) -> None:
    issuer.active["opaque"] = {"sub": "u-1", "aud": [RESOURCE], "scope": "a b", "username": "ada"}
    async with verifying(issuer.introspecting(user_claim="username")) as verifier:
        principal = [await verifier.principal("opaque") for _ in range(3)][-1]
        assert (principal.name, principal.issuer, principal.scopes) == ("ada", issuer.url, {"a", "b"})
        ((_, body, headers),) = issuer.requests
        assert "token=opaque" in body
        assert headers["authorization"] == "Basic Z3c6"
        later = time.time() + REMEMBERED + 1
        monkeypatch.setattr(time, "time", lambda: later)
        issuer.active.clear()
        for _ in range(3):
            with pytest.raises(InvalidToken):
                await verifier.principal("opaque")
    assert len(issuer.requests) == 2


@pytest.mark.parametrize(
    "told",
    [
        {"sub": "u-1"},
        {"aud": RESOURCE},
        {"sub": "u-1", "aud": "other"},
        {"sub": "u-1", "aud": RESOURCE, "iss": "other"},
        {"sub": "u-1", "aud": RESOURCE, "exp": 1},
        {"active": False, "sub": "u-1", "aud": RESOURCE},
        {"sub": "u-1", "aud": RESOURCE, "exp": 10**400},
        {"sub": "u-1", "aud": RESOURCE, "typ": "Refresh"},
        {"sub": "u-1", "aud": RESOURCE, "typ": "ID"},
        {"sub": "u-1", "aud": RESOURCE, "token_use": "refresh_token"},
        {"sub": "u-1", "aud": RESOURCE, "token_use": "id"},
        {"sub": "u-1", "aud": RESOURCE, "token_type": "refresh_token"},
        {"sub": "u-1", "aud": RESOURCE, "token_type": "DPoP"},
        {"sub": "u-1", "aud": RESOURCE, "nonce": "x"},
    ],
)
async def test_a_token_that_is_for_others_or_for_nobody_is_refused(issuer: Issuer, told: Any) -> None:
    issuer.active["opaque"] = told
    async with verifying(issuer.introspecting()) as verifier:
        with pytest.raises(InvalidToken):
            await verifier.principal("opaque")


@pytest.mark.parametrize(
    "told", [{"typ": "Bearer", "nonce": "x"}, {"token_use": "access_token"}, {"token_type": "Bearer"}]
)
async def test_what_an_issuer_calls_an_access_token_is_accepted(issuer: Issuer, told: Any) -> None:
    issuer.active["opaque"] = {"sub": "u-1", "aud": RESOURCE} | told
    async with verifying(issuer.introspecting()) as verifier:
        assert await verifier.principal("opaque")


@pytest.mark.parametrize(("client", "secret"), [("gw", "plain-secret"), ("gw:a", "a:b%&+ é")])
async def test_an_issuer_reads_the_credentials_as_they_are_configured(issuer: Issuer, client: str, secret: str) -> None:
    issuer.active["opaque"] = {"sub": "u-1", "aud": RESOURCE}
    settings = replace(issuer.introspecting(client_secret=Secret(secret)), client_id=client)
    async with verifying(settings) as verifier:
        await verifier.principal("opaque")
    sent = base64.b64decode(issuer.requests[-1][2]["authorization"].removeprefix("Basic ")).decode()
    assert [unquote_plus(part) for part in sent.split(":")] == [client, secret]


def stop_answering(issuer: Issuer) -> asyncio.Event:
    """Let an issuer accept connections and answer nothing, until the returned event is set."""
    answering, answer = asyncio.Event(), issuer.serve

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering.wait()
        with suppress(asyncio.IncompleteReadError):  # whoever connected may have left
            await answer(reader, writer)

    issuer.serve = serve  # type: ignore[method-assign]
    return answering


async def test_strangers_with_tokens_that_they_invent_keep_nobody_from_signing_in(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was accepted before, or calls from elsewhere, does not wait for them."""
    monkeypatch.setattr("dragoman.auth.verifier.MOST", 20)
    issuer.active = {token: {"sub": token, "aud": RESOURCE} for token in ("known", "new")}
    callers = {"known": "10.6.6.6", "new": "10.0.0.1"}
    invented = {f"invented-{number}": "10.6.6.6" for number in range(200)}
    async with verifying(issuer.introspecting()) as verifier:
        assert await accepts(verifier, "known", "10.6.6.6")
        await asyncio.gather(*(accepts(verifier, f"before-{number}", "10.6.6.6") for number in range(50)))
        set_back(monkeypatch)
        issuer.requests.clear()
        answering = stop_answering(issuer)
        asking = [asyncio.create_task(accepts(verifier, *each)) for each in (invented | callers).items()]
        await asyncio.sleep(0)  # all of them ask now, in this order
        answering.set()
        assert await asyncio.gather(*asking) == [False] * 200 + [True, True]
    asked = [parse_qs(body)["token"][0] for _, body, _ in issuer.requests]
    assert {"known", "new"} <= set(asked[:40])


async def test_who_gives_up_waiting_takes_no_place(issuer: Issuer) -> None:
    async with verifying(issuer.introspecting()) as verifier:
        answering = stop_answering(issuer)
        asking = [asyncio.create_task(accepts(verifier, f"{number}", f"{number % 3}")) for number in range(200)]
        await asyncio.sleep(0)
        for each in asking:
            each.cancel()
        await asyncio.wait(asking)
        answering.set()
        issuer.active = {"known": {"sub": "u-1", "aud": RESOURCE}}
        assert await accepts(verifier, "known")


async def test_an_issuer_that_answers_a_byte_now_and_then_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.auth.http.TIMEOUT", 0.5)

    ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 1000000\r\n\r\n")
        gone = asyncio.create_task(reader.read())
        while not gone.done():
            writer.write(b" ")
            await asyncio.wait({gone}, timeout=0.1)
        gone.exception()  # a client that leaves bytes unread may reset the connection
        writer.close()
        ended.set()

    client = IssuerClient()
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        with pytest.raises(IssuerUnreachable):
            async with asyncio.timeout(60):
                await client.ask("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        await client.aclose()
        await ended.wait()


SMALL = b'{"a": 1}'
BOMB = b'{"a": 1' + b" " * 100_000_000 + b"}"


@pytest.mark.parametrize(
    ("encoding", "body", "is_read"),
    [
        ("gzip", gzip.compress(SMALL), True),
        ("GZIP", gzip.compress(SMALL), True),
        ("identity", SMALL, True),
        ("gzip", gzip.compress(BOMB), False),
        ("gzip, gzip", gzip.compress(gzip.compress(BOMB)), False),
        ("deflate", zlib.compress(SMALL), False),
        ("gzip", SMALL, False),
    ],
)
async def test_what_an_issuer_compresses_is_unpacked_only_as_far_as_it_may_be_long(
    encoding: str, body: bytes, is_read: bool
) -> None:
    heads = list[bytes]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        head = f"HTTP/1.1 200 X\r\ncontent-encoding: {encoding}\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.read()
        writer.close()

    client = IssuerClient()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url, begun = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", time.process_time()
        with nullcontext() if is_read else pytest.raises(IssuerUnreachable):
            assert await client.ask("GET", url, headers={"Accept": "application/json"}) == {"a": 1}
        assert time.process_time() - begun < 2
        await client.aclose()
    assert b"accept-encoding: identity" in heads[0].lower()


@pytest.mark.parametrize("answer", [(500, {}), (401, {}), (200, {}), (200, {"active": "true"}), (200, [])])
async def test_an_issuer_that_does_not_say_is_unreachable_and_asked_again(
    issuer: Issuer, answer: Any, caplog: Any
) -> None:
    right = issuer.answer
    issuer.answer = lambda *_: answer  # type: ignore[method-assign]
    issuer.active["opaque"] = {"sub": "u-1", "aud": RESOURCE}
    async with verifying(issuer.introspecting()) as verifier:
        with pytest.raises(IssuerUnreachable):
            await verifier.principal("opaque")
        assert answer[0] == 200 or f"(status {answer[0]})" in caplog.text
        issuer.answer = right  # type: ignore[method-assign]
        assert await verifier.principal("opaque")
