"""An issuer of tokens in this process: it signs, publishes keys and introspects over a real socket, and can be down."""

import asyncio
import base64
import hmac
import json
import time
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from dragoman.config import Auth
from joserfc import jws
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey


def _short(kid: str) -> RSAKey:
    """Return a key of 1,024 bits, which the library warns of."""
    with warnings.catch_warnings(action="ignore"):
        return RSAKey.generate_key(1024, {"kid": kid, "use": "sig"})


RESOURCE = "https://gw.example/mcp"
KEYS: Mapping[str, Key] = {
    "rsa": RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"}),
    "rsa-2": RSAKey.generate_key(2048, {"kid": "rsa-2", "use": "sig"}),
    "ec": ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"}),
    "ed": OKPKey.generate_key("Ed25519", {"kid": "ed", "use": "sig"}),
    "short": _short("short"),
    "encryption": RSAKey.generate_key(2048, {"kid": "encryption", "use": "enc"}),
}
ALGORITHMS = {"RS256": "rsa", "PS256": "rsa-2", "ES256": "ec", "EdDSA": "ed"}


class Issuer:
    """What the tests tell it to be. `requests`: the paths that were asked for, and what was sent there."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.published = list(KEYS)
        self.active: dict[str, Any] = {}
        self.down = False
        self.requests: list[tuple[str, str, Mapping[str, str]]] = []

    @property
    def fetches(self) -> int:
        return sum(path == "/jwks" for path, *_ in self.requests)

    def settings(self, **changes: Any) -> Auth:
        given = {"issuer": self.url, "audience": (RESOURCE,), "jwks_url": f"{self.url}/jwks"}
        return Auth(**(given | changes))

    def introspecting(self, **changes: Any) -> Auth:
        url = f"{self.url}/introspect"
        return self.settings(jwks_url="", introspection_url=url, client_id="gw", **changes)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good access token, changed; None leaves one out."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": RESOURCE, "sub": "u-1", "iat": now, "exp": now + 300, "client_id": "ide"}
        return {name: value for name, value in (claims | changes).items() if value is not None}

    def token(self, algorithm: str = "RS256", *, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        kid = ALGORITHMS[algorithm]
        head = {"alg": algorithm, "kid": kid, "typ": "at+jwt"} | dict(header or {})
        head = {name: value for name, value in head.items() if value is not None}
        return sign(head, self.claims(**changes), KEYS[kid])

    def answer(self, path: str, body: str) -> tuple[int, Any]:
        if path == "/jwks":
            return 200, {"keys": [KEYS[kid].as_dict(private=False) for kid in self.published]}
        if path == "/introspect":
            token = parse_qs(body)["token"][0]
            return 200, {"active": True, **self.active[token]} if token in self.active else {"active": False}
        return 404, {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            body = (await reader.readexactly(int(headers.get("content-length", 0)))).decode()
            path = first.split()[1]
            self.requests.append((path, body, headers))
            status, answer = (503, {}) if self.down else self.answer(path, body)
            data = json.dumps(answer).encode()
            head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + data)
            await writer.drain()
        finally:
            writer.close()


def sign(header: Mapping[str, Any], claims: Any, key: Key | bytes | None) -> str:
    """Sign anything with any algorithm, as an attacker would: nothing is checked. Without a key nothing is signed.

    Bytes are a shared secret.
    """
    return sign_octets(json.dumps(header).encode(), json.dumps(claims).encode(), header["alg"], key)


def sign_octets(header: bytes, payload: bytes, algorithm: str, key: Key | bytes | None) -> str:
    """Sign what need not be JSON, as `sign`."""
    signed = f"{encoded(header)}.{encoded(payload)}"
    if isinstance(key, bytes):
        signature = hmac.digest(key, signed.encode(), "sha256")
    else:
        signature = jws.JWSRegistry.algorithms[algorithm].sign(signed.encode(), key) if key else b""
    return f"{signed}.{encoded(signature)}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@asynccontextmanager
async def running() -> AsyncIterator[Issuer]:
    """Run an issuer on a free port of loopback."""
    made: list[Issuer] = []
    server = await asyncio.start_server(lambda reader, writer: made[0].serve(reader, writer), "127.0.0.1", 0)
    made.append(Issuer(server.sockets[0].getsockname()[1]))
    async with server:
        yield made[0]
