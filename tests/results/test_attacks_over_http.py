"""Attacks on kept results through the tools and over HTTP, on server processes: none succeeds, nothing kept is lost.

A seed chooses the attacks. Every row says whose it is: whatever an answer holds, it holds nobody else's. What a caller
was told is `complete` must be there, whole, after each attack: until it is replaced, dropped or expired.
"""

import asyncio
import json
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from dragoman.auth.tokens import hash_token

PATIENCE = 120
TOKENS = {name: f"dragoman-{name}-0123456789abcdef" for name in ("ada", "bob", "eve")}
OWNERS = ("ada", "bob")
NAMES = ("a", "b", "orders", "A")
GUESSES = ("../a", "a.rows", "", "*", "a\0", "%61", "/etc/passwd", "a" * 64, "lock", "export", "a/../a", "..", "a.kept")
MODEST = 1_500_000
"""Bytes of a caller's share."""
REFUSED = {
    "RESULT_NOT_FOUND",
    "PARAMETER_ERROR",
    "UNKNOWN_DATABASE",
    "TABLE_NOT_FOUND",
    "UNSAFE_SQL",
    "WRITE_OPERATION_DENIED",
    "MULTIPLE_STATEMENTS",
    "SYNTAX_ERROR",
    "QUERY_ERROR",
}
ROWS = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
SELECT 'secret-of-{who}' AS whose, i FROM n"""
CONFIGURATION = """
[server]
transport = "http"
port = 0
tools = "full"
log_format = "text"
{tokens}
[results]
dir = {dir}
ttl = {ttl}
max_bytes_per_caller = {share}
[databases.shop]
url = "sqlite:///shop.db"
{rest}
"""
HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
}

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Server:
    """A server process, what its callers were told, and whose rows they must never see."""

    def __init__(self, folder: Path, ttl: float = 3600, share: int = MODEST, before: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.results = folder / "kept"
        self.before = before
        self.told: dict[tuple[str, str], int] = {}
        with sqlite3.connect(folder / "shop.db") as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
        connection.close()
        tokens = "".join(
            f'[[server.tokens]]\nname = "{name}"\nhash = "{hash_token(token)}"\nexpires = 2999-01-01\n'
            for name, token in TOKENS.items()
        )
        text = CONFIGURATION.format(tokens=tokens, dir=json.dumps(str(self.results)), ttl=ttl, share=share, rest="")
        (folder / "dragoman.toml").write_text(text)

    async def start(self) -> None:
        command = (sys.executable, "-m", "dragoman", "serve", "--config", str(self.folder / "dragoman.toml"))
        self.process = await asyncio.create_subprocess_exec(
            *self.before, *command, stderr=asyncio.subprocess.PIPE, limit=2**24
        )
        assert self.process.stderr is not None
        log = list[str]()
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(r"serving on (http://\S+?)/mcp", "".join(log))):
                line = await self.process.stderr.readline()
                assert line, log
                log.append(line.decode())
        self.reading = asyncio.create_task(self.process.stderr.read())
        self.client = httpx2.AsyncClient(base_url=found[1], timeout=PATIENCE)

    async def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        await self.process.wait()
        await self.reading
        await self.client.aclose()

    async def send(self, who: str, method: str, **params: Any) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {**HEADERS, "authorization": f"Bearer {TOKENS[who]}"}
        response = await self.client.post("/mcp", json=message, headers=headers)
        self.see(who, response.text)
        text = response.text
        return json.loads(text[text.index("{") :] if text.startswith("event") else text)

    def see(self, who: str, text: str) -> None:
        for other in TOKENS:
            assert other == who or f"secret-of-{other}" not in text, f"{who} was shown what is {other}'s"

    async def ask(self, who: str, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.send(who, "tools/call", name=tool, arguments=arguments)
        return json.loads(answer["result"]["content"][0]["text"])

    async def code(self, who: str, tool: str, **arguments: Any) -> str:
        return (await self.ask(who, tool, **arguments)).get("error", {}).get("code", "")

    async def keep(self, who: str, name: str, rows: int) -> dict[str, Any]:
        """Keep rows of one's own, and remember what was told. Names are the same in any case."""
        self.told.pop((who, name.lower()), None)  # a name that is kept again ends the older result
        answer = await self.ask(who, "execute_query", sql=ROWS.format(who=who, rows=rows), keep=name, limit=1)
        if answer.get("status") == "complete":
            self.told[who, name.lower()] = answer["total_rows"]
        return answer

    async def check(self, who: str, name: str) -> None:
        """A result that was told as complete is there, from the first row to the last."""
        offset, rows = 0, list[list[Any]]()
        while offset is not None:
            page = await self.ask(who, "get_result", result=name, offset=offset, limit=5000)
            assert "error" not in page, (who, name, page)
            rows += page["rows"]
            offset = page.get("next_offset")
        assert rows == [[f"secret-of-{who}", number + 1] for number in range(self.told[who, name])]

    async def check_all(self) -> None:
        for who, name in self.told:
            await self.check(who, name)
        files = [path for path in self.results.rglob("*") if path.exists()]
        assert all(path.stat().st_mode & 0o077 == 0 for path in files), files

    def sizes(self) -> int:
        return sum(path.stat().st_size for path in self.results.rglob("*") if path.is_file())


class Attacks:
    """Attacks by chance on a server, and on a hasty one whose results expire soon."""

    def __init__(self, server: Server, hasty: Server, seed: int) -> None:
        self.server = server
        self.hasty = hasty
        self.chance = random.Random(seed)
        self.codes: set[str] = set()

    async def own(self) -> tuple[str, str]:
        """Whose result is attacked: one that is there."""
        if not self.server.told:
            await self.server.keep(self.chance.choice(OWNERS), self.chance.choice(NAMES), 50)
        return self.chance.choice(sorted(self.server.told))

    async def address(self) -> httpx2.URL:
        who, name = await self.own()
        answer = await self.server.ask(who, "export_result", result=name, format=self.chance.choice(["csv", "jsonl"]))
        assert "error" not in answer, answer
        return httpx2.URL(answer["url"])

    async def guess(self) -> None:
        """Somebody else asks for what is there, and for what may be, by every tool that takes a name."""
        _, name = await self.own()
        name = self.chance.choice([name, *GUESSES])
        tool = self.chance.choice(["get_result", "export_result", "drop_result"])
        assert await self.server.code("eve", tool, result=name) in REFUSED

    async def read_resource(self) -> None:
        """The same by the addresses of resources, and by those of files."""
        _, name = await self.own()
        files = [path.as_uri() for path in self.server.results.rglob("*.rows")]
        of_name = [f"dragoman://results/{each}" for each in (name, f"{name}/csv", f"{name}/table", f"../{name}", "%2e")]
        answer = await self.server.send("eve", "resources/read", uri=self.chance.choice([*files, *of_name]))
        assert "error" in answer

    async def ask_with_sql(self) -> None:
        """The same in the database `results`, by the names of tables and of files."""
        who, name = await self.own()
        path = self.chance.choice([str(each) for each in self.server.results.rglob("*")])
        source = self.chance.choice(
            [name, f"main.{name}", f"read_parquet('{path}')", f"'{path}'", f"read_text('{path}')"]
        )
        sql = self.chance.choice(
            [f"SELECT * FROM {source}", f"COPY (SELECT 1) TO '{path}'", f"ATTACH '{path}'", f"DROP TABLE {name}"]
        )
        thief = next(each for each in ("eve", *OWNERS) if (each, name) not in self.server.told and each != who)
        assert await self.server.code(thief, "execute_query", database="results", sql=sql) in REFUSED

    async def change_address(self) -> None:
        """An address of a file with a part of it changed, cut, repeated or taken from another."""
        url, other = await self.address(), await self.address()
        key = self.chance.choice(["file", "expires", "signature"])
        value = url.params[key]
        place = self.chance.randrange(len(value))
        digit = self.chance.choice("0123456789abcdef".replace(value[place], ""))
        changed = self.chance.choice(
            [value[:place] + digit + value[place + 1 :], value[:-1], value + "0", "", "../lock", "\0", "é"]
        )
        if key == "file" and self.chance.random() < 0.2 and url != other:
            changed = other.params["file"]
        for_whom = self.chance.choice([{}, {"authorization": f"Bearer {TOKENS['eve']}"}])
        answer = await self.server.client.get(url.copy_set_param(key, changed), headers=for_whom)
        assert answer.status_code == 404, (url, key, changed)
        assert answer.json() == {
            "error": "not_found",
            "message": "There is nothing at this address, or it is no longer valid.",
        }

    async def use_address_of_another(self) -> None:
        """An address in the hands of somebody who signs in as another."""
        url = await self.address()
        thief = {"authorization": f"Bearer {TOKENS['eve']}"}
        assert (await self.server.client.get(url, headers=thief)).status_code == 404
        assert (await self.server.client.get(url)).status_code == 200

    async def forge_token(self) -> None:
        """A token that is nearly one."""
        who, name = await self.own()
        token = self.chance.choice([TOKENS[who][:-1], TOKENS[who].upper(), who, "x", f"{TOKENS[who]}0"])
        params = {"name": "get_result", "arguments": {"result": name}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**HEADERS, "authorization": f"Bearer {token}"}
        assert (await self.server.client.post("/mcp", json=message, headers=headers)).status_code == 401

    async def climb(self) -> None:
        """A path that leads elsewhere, and a name that would be one."""
        name = self.chance.choice([each for each in GUESSES if each and not each.isidentifier()] + ["a" * 64])
        path = self.chance.choice(["/exports/../kept/lock", "/exports?file=../../etc/passwd", "/%2e%2e/etc/passwd"])
        assert (await self.server.client.get(path)).status_code in (401, 404)
        assert await self.server.code("ada", "execute_query", sql="SELECT 1 AS n", keep=name) == "PARAMETER_ERROR"

    async def race(self) -> None:
        """One name kept several times, read, exported and dropped at once: what is left of it is whole."""
        who, name = self.chance.choice(OWNERS), self.chance.choice(NAMES)
        rows = self.chance.sample(range(1, 3000), 3)
        await asyncio.gather(
            *(self.server.keep(who, name, each) for each in rows),
            self.server.ask(who, "get_result", result=name),
            self.server.ask(who, "export_result", result=name),
            self.server.ask(who, "drop_result", result=name),
        )
        self.server.told.pop((who, name.lower()), None)
        page: dict[str, Any] = {"status": "running"}
        while page.get("status") == "running":  # what a busy machine does not keep soon
            page = await self.server.ask(who, "get_result", result=name)
        if "error" not in page:
            assert page["status"] == "complete"
            assert page["total_rows"] in rows
            self.server.told[who, name.lower()] = page["total_rows"]

    async def fill_disk(self) -> None:
        """Writing fails, at a place of chance: what was kept before stays, what did not fit is not told as kept."""
        who, name = self.chance.choice(OWNERS), self.chance.choice(NAMES)
        pid, most = self.server.process.pid, self.chance.choice([0, 1, 1000, 20_000])
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        try:
            answer = await self.server.keep(who, name, 3000)
            while answer.get("status") == "running":  # what a busy machine does not keep soon
                answer = await self.server.ask(who, "get_result", result=name)
            assert answer["error"]["code"] == "BUSY"
            assert await self.server.code(who, "export_result", sql="SELECT hex(zeroblob(20000))") == "BUSY"
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        assert await self.server.code(who, "get_result", result=name) == "RESULT_NOT_FOUND"

    async def exceed_share(self) -> None:
        """More than a caller's share: a part is kept and says so, and the other caller's share is untouched."""
        who, name = self.chance.choice(OWNERS), self.chance.choice(NAMES)
        answer = await self.server.keep(who, name, 200_000)
        assert answer.get("status") in ("complete", "running"), answer
        while answer["status"] == "running":
            answer = await self.server.ask(who, "get_result", result=name)
        assert answer["truncated"]["reason"] == "bytes"
        assert self.server.sizes() < 3 * MODEST
        assert await self.server.code(who, "drop_result", result=name) == ""
        self.server.told.pop((who, name.lower()), None)

    async def crash(self) -> None:
        """The server is killed while it writes. Whatever it told as complete is there when it is back."""
        who, name = self.chance.choice(OWNERS), "large"
        url = await self.address()
        writing = asyncio.create_task(self.server.keep(who, name, 10**6))
        try:
            async with asyncio.timeout(PATIENCE):
                while (
                    not (await self.server.ask(who, "get_result", result=name)).get("total_rows") and not writing.done()
                ):
                    pass
        finally:
            await self.server.end(signal.SIGKILL)
            with suppress(httpx2.HTTPError):
                await writing
        self.server.told.pop((who, name.lower()), None)
        await self.server.start()
        await self.server.check_all()
        assert await self.server.code(who, "get_result", result=name) in ("RESULT_NOT_FOUND", "")
        await self.server.ask(who, "drop_result", result=name)
        assert (await self.server.client.get(f"/exports?{url.query.decode()}")).status_code == 404

    async def expire(self) -> None:
        """A result that nobody reads goes, with its file and its address, also for its owner."""
        await self.hasty.keep("ada", "short", 10)
        answer = await self.hasty.ask("ada", "export_result", result="short")
        async with asyncio.timeout(PATIENCE):
            while [*self.hasty.results.rglob("*.rows")]:
                assert await self.hasty.code("eve", "get_result", result="short") == "RESULT_NOT_FOUND"
        assert await self.hasty.code("ada", "get_result", result="short") == "RESULT_NOT_FOUND"
        if "url" in answer:
            assert (await self.hasty.client.get(answer["url"])).status_code == 404

    async def run(self, number: int) -> None:
        """Attack so often; each kind comes once at least."""
        cheap = [
            *(self.guess, self.read_resource, self.ask_with_sql, self.change_address, self.use_address_of_another),
            *(self.forge_token, self.climb, self.race, self.fill_disk),
        ]
        dear = [self.exceed_share, self.crash, self.expire]
        moves: list[Callable[[], Awaitable[None]]] = [*cheap, *dear]
        moves += self.chance.choices(cheap * 11 + dear, k=max(0, number - len(moves)))
        self.chance.shuffle(moves)
        for move in moves:
            await move()
            await self.server.check(*await self.own())
        await self.server.check_all()


@asynccontextmanager
async def attacked(folder: Path, seed: int) -> AsyncIterator[Attacks]:
    servers = Server(folder / "patient"), Server(folder / "hasty", ttl=1)
    for server in servers:
        await server.start()
    try:
        yield Attacks(*servers, seed)
    finally:
        for server in servers:
            if server.process.returncode is None:
                await server.end(signal.SIGTERM)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("patient", "hasty"):
        (tmp_path / name).mkdir()
    return tmp_path


async def test_no_attack_over_http_succeeds_and_nothing_kept_is_lost(folder: Path) -> None:
    async with attacked(folder, 17) as attacks:
        await attacks.run(24)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
async def test_none_of_a_thousand_attacks_over_http_succeeds(folder: Path) -> None:
    async with attacked(folder, 2026) as attacks:
        await attacks.run(1000)


@pytest.mark.skipif(
    sys.platform != "linux" or subprocess.run(["unshare", "-rm", "true"], check=False).returncode != 0,
    reason="a small file system of one's own needs a mount namespace",
)
async def test_a_disk_that_is_really_full_loses_nothing(tmp_path: Path) -> None:
    """A file system of 300 MB, filled up to the floor, then to its last byte, while results are kept on it."""
    mount = f'mount -t tmpfs -o size=300m tmpfs {tmp_path / "kept"} && exec "$@"'
    (tmp_path / "kept").mkdir(mode=0o700)
    server = Server(tmp_path, before=("unshare", "-rm", "sh", "-c", mount, "sh"))
    await server.start()
    try:
        filler = Path(f"/proc/{server.process.pid}/root{server.results}/filler")
        assert (await server.keep("ada", "a", 3000))["status"] == "complete"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 60 * 2**20)
        answer = await server.keep("bob", "b", 300_000)  # more than one page of them
        assert answer["truncated"]["reason"] == "bytes"
        assert answer["kept"]["rows"] < 300_000
        free = os.statvfs(filler.parent)
        with filler.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, 60 * 2**20 + free.f_bavail * free.f_frsize)
        assert os.statvfs(filler.parent).f_bavail == 0
        assert (await server.keep("bob", "c", 3000))["error"]["code"] == "BUSY"
        assert await server.code("bob", "export_result", result="b") == "BUSY"
        await server.check_all()
        filler.unlink()
        assert (await server.keep("bob", "c", 3000))["status"] == "complete"
        await server.check_all()
    finally:
        await server.end(signal.SIGTERM)
