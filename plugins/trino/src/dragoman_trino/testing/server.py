"""A Trino server of our own: started in a temporary folder, and stopped and removed when this process ends."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import select
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

from dragoman import Database

from dragoman_trino.testing.installing import install, java

ENVIRONMENT: Final = "DRAGOMAN_TEST_TRINO_URL"
"""Names a server to use instead of our own, as http://user@host:port. It needs the catalogs tpch and memory."""

ADMIN: Final = "admin"
CATALOGS: Final[Mapping[str, Mapping[str, str]]] = {
    "memory": {"connector.name": "memory", "memory.max-data-per-node": "512MB"},
    "tpch": {"connector.name": "tpch", "tpch.splits-per-node": "2"},
}
"""The default settings of a server."""

_numbers = itertools.count(1)
_START = 120.0
_BUILTIN = ("geospatial", "password-authenticators")
"""The server's own plugins that are loaded. Each takes a part of the start."""
_JVM = (
    "-Xmx2G",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-OmitStackTraceInFastThrow",
    "-Djdk.attach.allowAttachSelf=true",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
_SHORT = ("-XX:TieredStopAtLevel=1",)
"""Java options of a server for few statements.

Half the work of a start is compiling code well that does not run for long. Measured over 1,200 statements: 175 ms of
processor time each at the end with these options, 120 without, even after about 1,000.
"""
_LONG = (
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=2400",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:Tier4BackEdgeThreshold=160000",
)
"""Java options of a server for many statements: code is compiled well once it has run four times as often as usual.

Measured over 540 statements: 89 s of processor time, 115 s without.
"""
# The shell outlives us: when the pipe to it closes, for whatever reason, it ends the server and cleans up.
_KEEPER = """
trap '' INT TERM HUP PIPE
folder=$1
shift
exec 3<&0
"$@" >"$folder/log" 2>&1 &
server=$!
{ cat <&3 >/dev/null; kill -KILL $server; } &
wait $server
echo over 2>/dev/null
cat <&3 >/dev/null
rm -rf "$folder"
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `origin`: its scheme, host and port. `user`: a user with every right."""

    origin: str
    user: str = ADMIN
    keeper: subprocess.Popen[bytes] | None = None
    folder: Path | None = None

    @classmethod
    def at(cls, url: str) -> Self:
        """Return the server of a URL such as http://user@host:port."""
        parts = urlsplit(url)
        return cls(f"{parts.scheme}://{parts.hostname}:{parts.port}", parts.username or ADMIN)

    @classmethod
    def start(
        cls,
        *,
        catalogs: Mapping[str, Mapping[str, str]] = CATALOGS,
        settings: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        port: int = 0,
        long: bool = False,
    ) -> Self:
        """Start a server on a port of the loopback interface, a free one for 0. It stops when this process ends.

        - `catalogs`: by name, their properties.
        - `settings`: of config.properties, beside ours.
        - `files`: further files of its `etc` folder; `{etc}` in any value stands for the folder.
        - `long`: it will run thousands of statements.

        Raises `RuntimeError` if it cannot be installed.
        """
        folder = Path(tempfile.mkdtemp(prefix="dragoman-trino-"))
        port = port or free_port()
        given = {**_settings(folder, port), **(settings or {})}
        contents = {"config.properties": _properties(given), "log.properties": "io.trino=WARN\n", **(files or {})}
        contents |= {f"catalog/{name}.properties": _properties(catalog) for name, catalog in catalogs.items()}
        _lay_out(folder, contents, {catalog["connector.name"] for catalog in catalogs.values()})
        server = cls(f"http://127.0.0.1:{port}", ADMIN, _keep(folder, *(_LONG if long else _SHORT)), folder)
        server._wait()
        return server

    def _wait(self) -> None:
        """Wait until it answers. Raises `RuntimeError`."""
        assert self.keeper is not None
        assert self.folder is not None
        deadline = time.monotonic() + _START
        assert self.keeper.stdout is not None
        while not self.ready:
            over, _, _ = select.select([self.keeper.stdout], [], [], 0.1)
            if over or time.monotonic() > deadline:
                log = (self.folder / "log").read_text(errors="replace")
                self.stop()
                raise RuntimeError(f"Trino does not start: {log[-2000:]}")

    @property
    def ready(self) -> bool:
        """Return whether it accepts statements."""
        try:
            with urllib.request.urlopen(f"{self.origin}/v1/info", timeout=5) as answer:
                return not json.load(answer)["starting"]
        except OSError:
            return False

    def stop(self) -> None:
        """Stop the server, if it is ours, and wait until it has ended."""
        if self.keeper is None:
            return
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.close()
        self.keeper.wait(30)
        self.keeper.stdout.close()

    @property
    def host(self) -> str:
        """Its host."""
        return urlsplit(self.origin).hostname or ""

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.origin).port or 80

    def url(self, catalog: str | None = None, schema: str | None = None, *, user: str | None = None) -> str:
        """Return its URL as in a configuration, for its administrator or another user."""
        path = "/".join(part for part in (catalog, schema) if part)
        return f"trino://{user or self.user}@{self.host}:{self.port}" + (f"/{path}" if path else "")

    def configure(self, catalog: str | None = None, schema: str | None = None, /, **fields: Any) -> Database:
        """Return the server's configuration for its administrator. `fields`: fields of `Database` to change."""
        given: dict[str, Any] = {
            "name": catalog or "trino",
            "dialect": "trino",
            "host": self.host,
            "port": self.port,
            "database": catalog,
            "schema": schema,
            "user": self.user,
        }
        return Database(**{**given, **fields})

    async def run(self, *statements: str, user: str | None = None, schema: str | None = None) -> list[list[Any]]:
        """Run statements with every right of the user; return the rows of the last one as the driver decodes them."""
        return await asyncio.to_thread(self._run, statements, user or self.user, schema)

    @asynccontextmanager
    async def schema(self) -> AsyncGenerator[str]:
        """Create a schema in the memory catalog and yield its qualified name; drop it and its contents afterwards.

        Names have equal lengths, since errors show excerpts of statements.
        """
        name = f"memory.test_{os.getpid()}_{next(_numbers):04}"
        await self.run(f"CREATE SCHEMA {name}")
        try:
            yield name
        finally:
            await self.run(f"DROP SCHEMA {name} CASCADE")

    def _run(self, statements: Iterable[str], user: str, schema: str | None) -> list[list[Any]]:
        import trino

        driver: Any = trino.dbapi
        rows: list[list[Any]] = []
        place = dict(zip(("catalog", "schema"), schema.split("."), strict=True)) if schema else {}
        with driver.connect(host=self.host, port=self.port, user=user, **place) as connection:
            for statement in statements:
                rows = connection.cursor().execute(statement).fetchall()
        return rows


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _settings(folder: Path, port: int) -> dict[str, str]:
    return {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "node.environment": "test",
        "node.id": "one",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
        "plugin.dir": str(folder / "plugin"),
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "catalog.management": "dynamic",
        "query.max-memory": "512MB",
        "query.max-history": "100",
        # A client that pauses for longer is told that there is no such query.
        "query.min-expire-age": "3m",
    }


def _properties(values: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _lay_out(folder: Path, contents: Mapping[str, str], connectors: Iterable[str]) -> None:
    """Write the files of a server and link the plugins that it loads."""
    for name, text in contents.items():
        path = folder / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{etc}", str(folder / "etc")), encoding="utf-8")
    (folder / "plugin").mkdir()
    builtin = install("server-core") / "plugin"
    for plugin in (*(builtin / name for name in _BUILTIN), *(install(connector) for connector in connectors)):
        (folder / "plugin" / plugin.name).symlink_to(plugin)


def _keep(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start the server of a folder, with a shell that ends it when this process ends."""
    command = [
        str(java()),
        *_JVM,
        *options,
        f"-Dconfig={folder / 'etc' / 'config.properties'}",
        f"-Dlog.levels-file={folder / 'etc' / 'log.properties'}",
        "-cp",
        str(install("server-core") / "lib" / "*"),
        "io.trino.server.TrinoServer",
    ]
    return subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "keeper", str(folder), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        start_new_session=True,
    )
