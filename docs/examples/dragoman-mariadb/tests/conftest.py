"""A MariaDB server of our own, where one is installed: an empty folder, a free port, gone with the run."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncmy
import pytest
from dragoman import Database, Secret

ADDRESS = "127.0.0.1"
PATIENCE = 60


@dataclass(frozen=True)
class Server:
    """A running server; `reader` may only read the databases that are made for tests."""

    port: int
    user: str
    password: str

    @asynccontextmanager
    async def connected(self, database: str | None = None) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
        """Give a function that runs a statement as the server's administrator, and returns its rows."""
        connection = await asyncmy.connect(
            host=ADDRESS, port=self.port, user=self.user, password=self.password, database=database, autocommit=True
        )

        async def run(statement: str) -> Any:
            async with connection.cursor() as cursor:
                await cursor.execute(statement)
                return await cursor.fetchall()

        try:
            yield run
        finally:
            await connection.ensure_closed()

    async def create(self, name: str, statements: tuple[str, ...]) -> Database:
        """Make a database of these statements, and return it as a role that may write would configure it."""
        async with self.connected() as run:
            await run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        async with self.connected(name) as run:
            for statement in statements:
                await run(statement)
        return Database(
            name="sample",
            dialect="mariadb",
            host=ADDRESS,
            port=self.port,
            database=name,
            user=self.user,
            password=Secret(self.password),
        )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the run."""
    binary = shutil.which("mariadbd")
    if binary is None:
        pytest.skip("mariadbd is not installed; Debian has it as mariadb-server")
    folder = tmp_path_factory.mktemp("server", numbered=True)
    owner = ["--user=mysql"] if os.geteuid() == 0 else []
    if owner:
        open_to_others(folder)
        shutil.chown(folder, "mysql")
    files = [f"--datadir={folder / 'data'}", *owner]
    # A plain password for the administrator, which its installer's default would tie to a user of the machine.
    log = (folder / "log").open("wb")
    install = [
        "mariadb-install-db",
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        *files,
    ]
    subprocess.run(install, stdout=log, stderr=log, check=True)
    port = free_port()
    places = [f"--port={port}", f"--bind-address={ADDRESS}", f"--socket={folder / 's'}", f"--pid-file={folder / 'p'}"]
    settings = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-log-bin"]
    process = subprocess.Popen([binary, "--no-defaults", *files, *places, *settings], stdout=log, stderr=log)
    try:
        until_it_answers(port, process)
        yield Server(port, "root", "")
    finally:
        process.terminate()
        process.wait(PATIENCE)
        log.close()


def open_to_others(folder: Path) -> None:
    """Let the server's own user reach a folder that pytest keeps for ours."""
    for parent in (folder, folder.parent, folder.parent.parent):
        with contextlib.suppress(PermissionError):
            parent.chmod(parent.stat().st_mode | 0o711)


def until_it_answers(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((ADDRESS, port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("mariadbd does not answer")


async def becomes_idle(server: Server) -> bool:
    """Whether no statement but our own runs any more, within a few seconds."""
    active = "SELECT count(*) FROM information_schema.processlist WHERE command IN ('Query', 'Execute')"
    async with server.connected() as run:
        for _ in range(50):
            if (await run(f"{active} AND id <> connection_id()"))[0][0] == 0:
                return True
            await asyncio.sleep(0.1)
    return False
