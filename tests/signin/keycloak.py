"""Keycloak, an identity provider that teams run: fetched once from Maven and built, run on a free port of loopback."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from dragoman_trino.testing.installing import ensure_folder, java
from fetching import KEYCLOAK
from processes import answering, free_port

ADMIN = {"KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin"}
SMALL = {"JAVA_OPTS_KC_HEAP": "-Xmx512m -XX:TieredStopAtLevel=1"}


@dataclass(frozen=True)
class Keycloak:
    """A server that runs. `realm`: the name of its realm."""

    url: str
    realm: str

    @property
    def issuer(self) -> str:
        return f"{self.url}/realms/{self.realm}"

    async def token(self, client: str, secret: str, **form: str) -> dict[str, Any]:
        """Ask for tokens as a program: by its own credentials."""
        sent = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret} | form
        async with httpx2.AsyncClient(timeout=60) as http:
            answer = await http.post(f"{self.issuer}/protocol/openid-connect/token", data=sent)
        return answer.raise_for_status().json()

    async def rotate(self) -> None:
        """Sign with a new key from now on, and publish the old one no more."""
        async with httpx2.AsyncClient(timeout=60, base_url=self.url) as http:
            form = {"grant_type": "password", "client_id": "admin-cli", "username": "admin", "password": "admin"}
            answer = await http.post("/realms/master/protocol/openid-connect/token", data=form)
            http.headers["authorization"] = f"Bearer {answer.raise_for_status().json()['access_token']}"
            components = f"/admin/realms/{self.realm}/components"
            kind = "org.keycloak.keys.KeyProvider"
            found = (await http.get(components, params={"type": kind})).raise_for_status().json()
            made = {"name": "new", "providerId": "rsa-generated", "providerType": kind, "config": {"priority": ["999"]}}
            (await http.post(components, json=made)).raise_for_status()
            for old in found:
                if old["providerId"] == "rsa-generated":
                    (await http.delete(f"{components}/{old['id']}")).raise_for_status()


def home() -> Path:
    """Return the folder of a Keycloak that is built."""

    def fetch(temporary: Path) -> Path:
        # In a process of its own: a socket that it leaves open is noticed in nobody's test.
        command = [sys.executable, str(Path(__file__).with_name("fetching.py")), "keycloak", str(temporary / "home")]
        environment = os.environ | SMALL | {"JAVA": str(java())}
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        return temporary / "home"

    return ensure_folder(Path("keycloak") / KEYCLOAK, fetch)


@asynccontextmanager
async def running(realm: Mapping[str, Any]) -> AsyncIterator[Keycloak]:
    """Run a server with a realm, which is forgotten with it."""
    with tempfile.TemporaryDirectory(prefix="keycloak-") as name:
        folder = Path(name) / "home"
        shutil.copytree(home(), folder)
        (folder / "data" / "import").mkdir(parents=True)
        (folder / "data" / "import" / "realm.json").write_text(json.dumps(realm))
        port = free_port()
        server = Keycloak(f"http://127.0.0.1:{port}", realm["realm"])
        words = ("start", "--optimized", "--import-realm", "--http-enabled=true", "--http-host=127.0.0.1")
        command = ["bash", str(folder / "bin" / "kc.sh"), *words, f"--http-port={port}", f"--hostname={server.url}"]
        environment = ADMIN | SMALL | {"JAVA": str(java())}
        async with answering(command, f"{server.issuer}/.well-known/openid-configuration", environment):
            yield server
