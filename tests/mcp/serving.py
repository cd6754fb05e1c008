"""The HTTP face in this process, with a peer's address of one's choice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from dragoman.config import Server
from dragoman.mcp.http import http_app
from standin import StandIn


@asynccontextmanager
async def client_of(
    settings: Server, *, peer: str = "127.0.0.1", hot: bool = True, toolbox: Any = None
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of a server with these settings; its lifespan runs meanwhile."""
    shown: Any = toolbox or StandIn()
    app = http_app(shown, settings, hot=hot)
    started, stopping = anyio.Event(), anyio.Event()

    async def receive() -> dict[str, Any]:
        if not started.is_set():
            return {"type": "lifespan.startup"}
        await stopping.wait()
        return {"type": "lifespan.shutdown"}

    async def send(message: Any) -> None:
        if message["type"] == "lifespan.startup.complete":
            started.set()

    async def live() -> None:
        await app({"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}, receive, send)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        await started.wait()
        transport = httpx2.ASGITransport(app, client=(peer, 50000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
            yield client
        stopping.set()
