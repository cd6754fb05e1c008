"""mock-oauth2-server, a real OAuth 2 server for tests: fetched once from Maven, run on a free port of loopback."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman_trino.testing.installing import ensure_folder, java
from fetching import NAME, VERSION
from processes import answering, free_port

MAIN = "no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt"


def jars() -> Path:
    """Return the folder of the server's jars."""

    def fetch(temporary: Path) -> Path:
        # In a process of its own: a socket that it leaves open is noticed in nobody's test.
        command = [sys.executable, str(Path(__file__).with_name("fetching.py")), NAME, str(temporary / "jars")]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return temporary / "jars"

    return ensure_folder(Path(f"{NAME}-{VERSION}"), fetch)


@asynccontextmanager
async def running(claims: dict[str, Any]) -> AsyncIterator[str]:
    """Run a server whose tokens have these claims, and yield the URL of its issuer."""
    port = free_port()
    mapping = {"requestParam": "grant_type", "match": "*", "claims": claims}
    callbacks = [{"issuerId": "team", "tokenExpiry": 300, "requestMappings": [mapping]}]
    settings = {"SERVER_HOSTNAME": "127.0.0.1", "SERVER_PORT": str(port)}
    settings["JSON_CONFIG"] = json.dumps({"httpServer": "NettyWrapper", "tokenCallbacks": callbacks})
    command = [str(java()), "-cp", f"{jars()}/*", MAIN]
    async with answering(command, f"http://127.0.0.1:{port}/isalive", settings):
        yield f"http://127.0.0.1:{port}/team"
