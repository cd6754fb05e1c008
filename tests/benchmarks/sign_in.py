"""What signing in adds to a call over HTTP: `PYTHONPATH=tests/mcp:tests/signin python tests/benchmarks/sign_in.py`.

Processor time of the whole application, without sockets, around a tool that does nothing; best of 25.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.auth.tokens import hash_token, make_token
from dragoman.config import Server, StaticToken
from dragoman.mcp.http import http_app
from dragoman.mcp.identity import SignIn
from issuer import running
from requests_of import legacy
from standin import StandIn

ROUNDS, SIGN_INS, CALLS = 25, 200, 40


async def main() -> None:
    async with running() as issuer:
        tokens = [make_token() for _ in range(1000)]
        static = tuple(StaticToken(name=f"t{place}", hash=hash_token(each)) for place, each in enumerate(tokens))
        cases = {
            "nobody has to": (Server(transport="http"), None),
            "one of 1,000 static tokens": (Server(transport="http", tokens=static), tokens[500]),
            "a remembered RS256 token": (
                Server(transport="http", auth=issuer.settings(scopes=("a",))),
                issuer.token(scope="a b", groups=["x"] * 5),
            ),
        }
        without = 0.0
        for name, (server, token) in cases.items():
            alone, whole = await measure(server, token)
            without = without or whole
            print(f"{name:28} {alone:6.1f} us   a call {whole:6.1f} us   ratio {whole / without:4.2f}", file=sys.stderr)


async def measure(server: Server, token: str | None) -> tuple[float, float]:
    """Return the microseconds of one sign-in, and of one call with it."""
    request = legacy("echo")
    body = json.dumps(request["json"]).encode()
    headers = [(b"host", b"localhost"), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in request["headers"].items()]
    headers += [(b"authorization", f"Bearer {token}".encode())] if token else []

    def scope() -> dict[str, Any]:
        fixed = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/mcp", "scheme": "http"}
        return {**fixed, "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}}

    async def send(_: Any) -> None:
        pass

    async def call() -> None:
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return messages.pop() if messages else await asyncio.Event().wait()

        await app(scope(), receive, send)

    toolbox: Any = StandIn()
    app = http_app(toolbox, server)
    sign_in = SignIn(server, "/mcp")
    try:
        return await best(lambda: sign_in(scope()), SIGN_INS), await best(call, CALLS)
    finally:
        await sign_in.aclose()


async def best(work: Callable[[], Awaitable[Any]], times: int) -> float:
    await work()
    taken = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(times):
            await work()
        taken.append((time.process_time() - begun) / times)
    return min(taken) * 1e6


if __name__ == "__main__":
    # The stand-in prints.
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        asyncio.run(main())
