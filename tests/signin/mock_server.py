"""mock-oauth2-server, a real OAuth 2 server for tests: fetched once from Maven, run on a free port of loopback."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from dragoman_trino.testing.installing import ensure_folder, java

MAIN = "no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt"
PATIENCE = 60


def jars() -> Path:
    """Return the folder of the server's jars."""

    def fetch(temporary: Path) -> Path:
        # In a process of its own: a socket that it leaves open is noticed in nobody's test.
        command = [sys.executable, str(Path(__file__).with_name("fetching.py")), str(temporary / "jars")]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return temporary / "jars"

    return ensure_folder(Path("mock-oauth2-server-6.0.2"), fetch)


@asynccontextmanager
async def running(claims: dict[str, Any]) -> AsyncIterator[str]:
    """Run a server whose tokens have these claims, and yield the URL of its issuer."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mapping = {"requestParam": "grant_type", "match": "*", "claims": claims}
    callbacks = [{"issuerId": "team", "tokenExpiry": 300, "requestMappings": [mapping]}]
    settings = {"SERVER_HOSTNAME": "127.0.0.1", "SERVER_PORT": str(port)}
    settings["JSON_CONFIG"] = json.dumps({"httpServer": "NettyWrapper", "tokenCallbacks": callbacks})
    command = [str(java()), "-cp", f"{jars()}/*", MAIN]
    process = await asyncio.create_subprocess_exec(
        *command, env=os.environ | settings, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await _answers(f"http://127.0.0.1:{port}/isalive", process)
        yield f"http://127.0.0.1:{port}/team"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _answers(url: str, process: asyncio.subprocess.Process) -> None:
    """Wait until the server answers; it says nothing when it is ready."""
    async with asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:
        while process.returncode is None:
            try:
                await client.get(url)
                return
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
    raise RuntimeError(f"the server ended with {process.returncode}")
