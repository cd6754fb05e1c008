"""A database that an administrator added is sent what was given with it, and nothing else that this machine has."""

import asyncio
import json
import os
import ssl
import struct
import typing
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
import trustme
from dragoman import Gateway
from dragoman.config import load
from dragoman.config.keys import CONNECTION
from dragoman.model import Secret
from dragoman.plugins import Plugins
from dragoman.tools import Toolbox

from .conftest import ask
from .test_admin import ADMIN

MARK = "m4rk3r"
SETTINGS = """
[server]
tools = ["standard", "admin"]
state_dir = "state"
[databases.shop]
url = "{shop}"
[roles.operator]
groups = ["admins"]
tools = ["list_databases", "admin"]
{more}
"""
SHOPS = {
    "sqlite": "sqlite:///shop.db",
    "postgres": "postgresql://127.0.0.1:1/shop",
    "trino": "trino://127.0.0.1:1/shop?http_scheme=https",
}
POSTGRES_ASKS = b"R" + struct.pack("!ii", 8, 3)  # for a password, as it is
POSTGRES_REFUSES = b"E" + struct.pack("!i", 4 + 15) + b"SFATAL\0C28P01\0\0"
TRINO_REFUSES = b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Listener:
    """A server of somebody else's, that asks for a password and keeps what it is sent."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.port = 0

    async def talk_postgres(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Ask for a password in plain text, and refuse it."""
        length, code = struct.unpack("!ii", await reader.readexactly(8))
        if code == 80877103:  # TLS is asked for
            writer.write(b"N")
            length, _ = struct.unpack("!ii", await reader.readexactly(8))
        self.heard += await reader.readexactly(length - 8)
        writer.write(POSTGRES_ASKS)
        self.heard += await reader.read(10_000)
        writer.write(POSTGRES_REFUSES)
        writer.close()

    async def talk_trino(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Ask for a sign-in."""
        self.heard += await reader.readuntil(b"\r\n\r\n")
        writer.write(TRINO_REFUSES)
        writer.close()


@asynccontextmanager
async def listening(dialect: str, context: ssl.SSLContext) -> AsyncIterator[Listener]:
    """A listener that speaks a dialect's protocol."""
    listener = Listener()
    talk = listener.talk_trino if dialect == "trino" else listener.talk_postgres
    server = await asyncio.start_server(_until_gone(talk), "127.0.0.1", 0, ssl=context if dialect == "trino" else None)
    listener.port = server.sockets[0].getsockname()[1]
    async with server:
        yield listener


def _until_gone(talk: Callable[..., Any]) -> Callable[..., Any]:
    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            writer.close()

    return guarded


@pytest.fixture
def machine(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """`machine(source)`: put a password where drivers look for one; returns what the configuration says of it."""
    home = shop / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)

    def write(name: str, text: str) -> str:
        path = home / name
        path.write_text(text)
        path.chmod(0o600)
        return str(path)

    def put(source: str) -> str:
        match source:
            case "PGPASSWORD":
                monkeypatch.setenv("PGPASSWORD", MARK)
            case "PGPASSFILE":
                monkeypatch.setenv("PGPASSFILE", write("elsewhere", f"*:*:*:*:{MARK}\n"))
            case ".pgpass":
                write(".pgpass", f"*:*:*:*:{MARK}\n")
            case "NETRC":
                monkeypatch.setenv("NETRC", write("netrc", f"default login me password {MARK}\n"))
            case ".netrc":
                write(".netrc", f"default login me password {MARK}\n")
            case "passfile":
                return f'[defaults.options]\npassfile = "{write("elsewhere", f"*:*:*:*:{MARK}")}"\n'
            case "service":
                file = write("services", f"[x]\npassword={MARK}\n")
                return f'[defaults.options]\nservice = "x"\nservicefile = "{file}"\n'
            case "token":
                return f'[defaults.options]\ntoken = "{MARK}"\n'
            case "password":
                return f'[defaults]\npassword = "{MARK}"\n'
            case _:
                raise ValueError(source)
        return ""

    return put


SOURCES = [
    ("postgres", "PGPASSWORD"),
    ("postgres", "PGPASSFILE"),
    ("postgres", ".pgpass"),
    ("postgres", "passfile"),
    ("postgres", "service"),
    ("postgres", "password"),
    ("trino", "NETRC"),
    ("trino", ".netrc"),
    ("trino", "token"),
    ("trino", "password"),
]
NEVER_USED = {"NETRC", ".netrc"}
"""Sources that no database is sent anything of, wherever it is configured."""


@pytest.fixture
def trusted(shop: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's side of TLS, whose certificate clients of this machine trust."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(shop / "authority.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(shop / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def address(dialect: str, port: int, options: str = "") -> str:
    scheme = "&http_scheme=https" if dialect == "trino" and "http_scheme" not in options else ""
    return f"{dialect}://reader@127.0.0.1:{port}/memory?connect_timeout=3{scheme}{options}"


@asynccontextmanager
async def served(shop: Path, more: str, dialect: str = "sqlite") -> AsyncIterator[Toolbox]:
    """The tools over a configuration with these lines, whose own database is of a dialect."""
    file = shop / "dragoman.toml"
    file.write_text(SETTINGS.format(more=more, shop=SHOPS[dialect]))

    def read():
        return load(file, environ={}, folder=shop)

    configuration = read()
    async with Gateway.open(configuration) as gateway:
        yield Toolbox(gateway, profile=configuration.server.tools, reread=read)


@pytest.mark.parametrize(("dialect", "source"), SOURCES)
async def test_a_database_that_was_added_is_sent_no_password_of_this_machine(dialect, source, shop, machine, trusted):
    said = machine(source)
    async with listening(dialect, trusted) as listener, served(shop, said, dialect) as toolbox:
        told = await ask(toolbox, "add_database", ADMIN, name="far", url=address(dialect, listener.port))
        assert told["status"] == "unreachable", told
        assert b"reader" in listener.heard
        assert MARK.encode() not in listener.heard
        assert MARK not in str(told)


@pytest.mark.parametrize(("dialect", "source"), SOURCES)
async def test_a_database_of_the_configuration_is_sent_it(dialect, source, shop, machine, trusted):
    said = machine(source)
    async with listening(dialect, trusted) as listener:
        configured = f'[databases.far]\nurl = "{address(dialect, listener.port)}"\n{said}'
        async with served(shop, configured, dialect) as toolbox:
            status = await toolbox.gateway.database("far").status(wait=10)
            assert status.state == "unreachable"
            sent = MARK in listener.heard.decode() or "Basic cmVhZGVyOm00cmszcg==" in listener.heard.decode()
            assert sent == (source not in NEVER_USED)


async def test_a_database_whose_address_was_changed_keeps_its_password_to_itself(shop, machine, trusted):
    given = '[databases.far]\nurl = "postgresql://reader@127.0.0.1:1/far"\n' + f'password = "{MARK}"\n'
    machine("PGPASSWORD")
    async with listening("postgres", trusted) as listener, served(shop, given) as toolbox:
        await ask(toolbox, "edit_database", ADMIN, name="far", url=address("postgres", listener.port))
        assert b"reader" in listener.heard
        assert MARK.encode() not in listener.heard


async def test_a_database_whose_limits_were_changed_is_still_the_configurations(shop, machine):
    said = machine("password") + '[databases.far]\nurl = "postgresql://reader@127.0.0.1:1/far"\n'
    async with served(shop, said) as toolbox:
        await ask(toolbox, "edit_database", ADMIN, name="far", max_rows=5)
        far = toolbox.gateway.configuration.databases["far"]
        assert (far.max_rows, far.password, far.administered) == (5, Secret(MARK), False)


def test_no_default_of_a_connection_holds_for_it(shop: Path):
    values: dict[str, Any] = {name: MARK for name in CONNECTION if name != "url"}
    values |= {"port": 7, "options": {"passfile": MARK}, "dialect": "sqlite"}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items() if name != "options")
    (shop / "dragoman.toml").write_text(
        SETTINGS.format(
            shop=SHOPS["sqlite"], more=f"[defaults]\ntimeout = 7\n{lines}\n[defaults.options]\npassfile = '{MARK}'\n"
        )
    )
    (shop / "state").mkdir()
    state = {"far": {"settings": {"url": "postgresql://there"}, "roles": []}}
    (shop / "state" / "databases.json").write_text(json.dumps(state))
    far = load(shop / "dragoman.toml", environ={}, folder=shop).databases["far"]
    assert far.administered
    assert far.timeout == 7
    given = {name: getattr(far, name) for name in CONNECTION}
    secret = given.pop("url").reveal()
    assert (secret, given.pop("dialect"), given.pop("host")) == ("postgresql://there", "postgres", "there")
    assert not any(given.values())


def options_of(dialects: Iterable[str]) -> Iterator[tuple[str, str, bool, Any]]:
    """Yield every option of every installed dialect: whether administrators may give it, and its type."""
    plugins = Plugins.discover()
    for name in dialects:
        dialect = plugins.load(name).dialect
        hints = typing.get_type_hints(dialect.options) if dialect.options else {}
        for field in fields(dialect.options) if dialect.options else ():
            yield name, field.name, field.name in dialect.open_options, hints[field.name]


OPTIONS = list(options_of(Plugins.discover().names))


@pytest.mark.parametrize(
    ("dialect", "option"), [(dialect, option) for dialect, option, is_open, _ in OPTIONS if not is_open]
)
async def test_an_option_that_could_use_this_machine_is_refused(dialect, option, shop):
    async with served(shop, "") as toolbox:
        url = f"{dialect}://there/x?{option}=/etc/passwd"
        error = (await ask(toolbox, "add_database", ADMIN, name="far", url=url))["error"]
        assert f"{option} cannot be set for databases that administrators add" in error["message"]
        assert toolbox.gateway.names == ("shop",)


def values_of(hint: Any, file: Path) -> list[str]:
    """What a text of an address may give for an option, a path for everything that takes texts."""
    found = [str(word) for each in (hint, *typing.get_args(hint)) for word in _words(each)]
    return found or [str(file), f"a:{file}", json.dumps({"a": str(file)}), json.dumps([str(file)])]


def _words(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return {bool: ("true", "false"), int: (3,), float: (3,)}.get(hint, ())


@pytest.mark.parametrize(
    ("dialect", "option", "hint"),
    [
        (dialect, option, hint)
        for dialect, option, is_open, hint in OPTIONS
        if is_open and dialect in ("postgres", "trino")
    ],
)
async def test_no_option_of_an_address_sends_what_is_in_a_file(dialect, option, hint, shop, machine, trusted):
    machine(".pgpass")
    file = shop / "home" / ".pgpass"
    async with listening(dialect, trusted) as listener, served(shop, "") as toolbox:
        for value in values_of(hint, file):
            url = address(dialect, listener.port, f"&{option}={quote(value, safe='')}")
            answer = await ask(toolbox, "add_database", ADMIN, name="far", url=url)
            assert MARK not in str(answer)
            if "error" not in answer or "status" in answer:
                await ask(toolbox, "remove_database", ADMIN, name="far")
        assert MARK.encode() not in listener.heard


@pytest.mark.parametrize("place", ["postgresql:///x", "postgresql://%2Frun%2Fpostgresql/x", "postgresql://a,%2Ftmp/x"])
async def test_a_socket_that_signs_in_as_the_servers_own_user_is_refused(place, shop):
    async with served(shop, "") as toolbox:
        answer = await ask(toolbox, "add_database", ADMIN, name="far", url=place)
        assert "host" in str(answer)
        assert "administrators" in str(answer), answer
