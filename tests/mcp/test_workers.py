"""`server.workers`: several processes behind one address, and what they share of their callers."""

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from dragoman.config import Configuration
from dragoman.config.roles import Role
from dragoman.gateway.exporting import PATH as EXPORTS
from dragoman.mcp.prefork import Worker, _Child, _First, receive, receive_configuration, send_configuration
from dragoman.mcp.siblings import CONNECTION, Siblings
from prometheus_client.parser import text_string_to_metric_families

JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
SETTINGS = """
[server]
transport = "http"
port = 0
log_format = "text"
workers = 2
metrics = true
{server}
[databases.shop]
url = "sqlite:///shop.db"
{rest}
"""
ROLES = """
[roles.counted]
principals = ["*"]
[[roles.counted.grants]]
database = "shop"
tables = ["main.orders"]
[roles.counted.limits]
calls_per_minute = 5
"""
IMPATIENT = (
    "-c",
    "from dragoman import __main__; from dragoman.mcp import prefork; prefork.BEAT = 0.2; __main__.main()",
)
"""A server whose first process finds soon that a worker hangs."""
MORE = '[databases.more]\nurl = "sqlite:///shop.db"\n'

Serve = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture(scope="session")
def way() -> str:
    """Which way calls go makes no difference to where they go; `post` reads an answer that is no stream."""
    return "hot"


def write(folder: Path, server: str = "", rest: str = "") -> Path:
    """Write a configuration and its database; return its file."""
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.executescript("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY);")
    connection.close()
    file = folder / "dragoman.toml"
    file.write_text(SETTINGS.format(server=server, rest=rest))
    return file


@pytest.fixture(scope="module")
def serve(run: Any) -> Serve:
    """`async with serve(folder, server, rest) as (peer, url, workers)`; `workers` are processes."""

    @asynccontextmanager
    async def start(
        folder: Path, server: str = "", rest: str = "", program: Sequence[str] = ("-m", "dragoman"), **variables: str
    ) -> AsyncGenerator[Any]:
        file = write(folder, server, rest)
        command = (sys.executable, *program, "serve", "--config", str(file))
        async with run(*command, env={**os.environ, "DRAGOMAN_HOT_PATH": "on", **variables}) as peer:
            url = (await peer.logged(r"serving on (http://\S+?)/mcp"))[1]
            workers = [int((await peer.logged(rf"worker {index} serves, process (\d+)"))[1]) for index in (0, 1)]
            yield peer, url, workers

    return start


@pytest.fixture(scope="module")
async def url(anyio_backend: str, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A server for the tests that leave it as it is."""
    async with serve(tmp_path_factory.mktemp("shop")) as (_, url, _):
        yield url


async def post(url: str, method: str, request: int | None = 1, session: str = "", **params: Any) -> httpx2.Response:
    """Send one message of the 2025 era over a connection of its own: any worker may get it."""
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if request is None else {"id": request})
    named = {"mcp-session-id": session} if session else {}
    headers = {**JSON, "mcp-protocol-version": "2025-11-25", **named}
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(f"{url}/mcp", json=message, headers=headers)


async def call(url: str, name: str, **arguments: Any) -> dict[str, Any]:
    answer = await post(url, "tools/call", name=name, arguments=arguments)
    return json.loads(answer.json()["result"]["content"][0]["text"])


async def begin(url: str) -> str:
    """Begin a session and return its name."""
    client = {"name": "test", "version": "1"}
    answer = await post(url, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    return answer.headers["mcp-session-id"]


async def metrics(url: str) -> dict[str, dict[str, float]]:
    """Return each metric's values, added up by worker."""
    found: dict[str, dict[str, float]] = {}
    async with httpx2.AsyncClient() as client:
        text = (await client.get(f"{url}/metrics")).text
    for sample in (sample for family in text_string_to_metric_families(text) for sample in family.samples):
        values = found.setdefault(sample.name, {})
        values[sample.labels["worker"]] = values.get(sample.labels["worker"], 0) + sample.value
    return found


async def until_in_use(url: str, connections: int) -> None:
    """Wait until so many connections to databases are in use; each scrape is an exchange with the server."""
    while sum((await metrics(url)).get("dragoman_pool_in_use", {}).values()) != connections:
        pass


async def test_the_counters_tell_every_worker_whichever_is_asked(url: str):
    before = await metrics(url)
    answers = await asyncio.gather(*(call(url, "execute_query", sql="SELECT 1 AS n") for _ in range(12)))
    assert [answer["rows"] for answer in answers] == [[[1]]] * 12
    after = await metrics(url)
    assert after["dragoman_worker_up"] == {"0": 1, "1": 1}
    assert after["dragoman_config_version"] == {"0": 1, "1": 1}
    counted = [sum(each.get("dragoman_calls_total", {}).values()) for each in (before, after)]
    assert counted[1] - counted[0] == 12


async def test_a_kept_result_is_found_over_every_connection(url: str):
    kept = await call(url, "execute_query", sql="SELECT 1 AS n UNION SELECT 2", keep="mine")
    assert kept["kept"]["rows"] == 2
    sql = "SELECT count(*) AS n FROM mine"
    answers = [await call(url, "execute_query", database="results", sql=sql) for _ in range(6)]
    assert [answer["rows"] for answer in answers] == [[[2]]] * 6
    listed = [await call(url, "list_databases") for _ in range(4)]
    assert [[each["name"] for each in one["databases"]] for one in listed] == [["shop", "results"]] * 4


async def test_an_exported_file_is_fetched_over_every_connection(serve: Serve, tmp_path: Path):
    async with serve(tmp_path, 'tools = ["standard", "results"]') as (peer, url, _):
        exported = await call(url, "export_result", sql="SELECT 1 AS n UNION SELECT 2")
        for _ in range(8):
            async with httpx2.AsyncClient() as client:
                response = await client.get(exported["url"])
                assert (response.status_code, response.content) == (200, b"n\r\n1\r\n2\r\n")
                assert [len(response.headers.get_list(name)) for name in ("date", "content-length")] == [1, 1]
                assert (await client.get(exported["url"] + "0")).status_code == 404
        # Whoever has the address has the file: the log does not tell it.
        assert await peer.logged("export_result")
        assert not [line for line in peer.log if "signature" in line]


async def test_a_host_that_is_the_address_of_the_connection_is_accepted_in_every_worker(serve: Serve, tmp_path: Path):
    async with serve(tmp_path, 'host = "0.0.0.0"\ntoken = "hush"') as (_, url, _):
        # No name of loopback: the connection's address alone says that it is ours.
        own = url.replace("0.0.0.0", "127.0.0.2")
        for _ in range(8):
            async with httpx2.AsyncClient(headers={**JSON, "authorization": "Bearer hush"}) as client:
                message = {"jsonrpc": "2.0", "method": "resources/list", "id": 1}
                assert (await client.post(f"{own}/mcp", json=message)).status_code == 200
        assert (await metrics(own))["dragoman_config_version"] == {"0": 1, "1": 1}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("server", [("192.0.2.7", 8443), ("/a/socket", None), None])
async def test_what_is_known_of_a_connection_is_known_where_a_request_is_passed_on(
    tmp_path: Path, scheme: str, server: tuple[str, int | None] | None
):
    seen: list[MutableMapping[str, Any]] = []

    async def see(scope: Any, *_: Any) -> None:
        seen.append(scope)

    toolbox: Any = None  # nothing of it is asked
    nothing: Any = None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        siblings = Siblings(
            Worker(index=0, listener=ours, doors=(ours, theirs), folder=tmp_path, channel=ours), toolbox, "/mcp", ""
        )
        forged = [(CONNECTION, b'{"client":"10.0.0.1"}')]
        came = {"client": ("192.0.2.9", 4711), "server": server, "scheme": scheme, "headers": forged}
        request = siblings._request(
            httpx2.AsyncClient(), {"method": "GET", "path": "/mcp", "query_string": b"", **came}, b""
        )
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        await siblings.behind(see)(
            {"type": "http", "client": None, "server": ("/door", None), "headers": headers}, nothing, nothing
        )
        await siblings.aclose()
    found = seen[0]["client"][0], seen[0]["server"], seen[0]["scheme"]
    assert found == ("192.0.2.9", server, scheme)


async def test_a_cancel_reaches_the_call_wherever_it_runs(url: str):
    session = await begin(url)

    arguments = {"sql": ENDLESS}
    running = [
        asyncio.create_task(post(url, "tools/call", request, session, name="execute_query", arguments=arguments))
        for request in range(1, 5)
    ]
    await until_in_use(url, 4)
    for request in range(1, 5):
        await post(url, "notifications/cancelled", None, session, requestId=request)
    answers = [answer.json() for answer in await asyncio.gather(*running)]
    assert [answer["error"]["code"] for answer in answers] == [-32800] * 4


async def test_a_session_that_was_ended_is_ended_in_all_workers(url: str):
    session = await begin(url)
    assert (await post(url, "ping", session=session)).status_code == 200
    async with httpx2.AsyncClient() as client:
        headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        assert (await client.delete(f"{url}/mcp", headers=headers)).status_code == 204
    assert [(await post(url, "ping", session=session)).status_code for _ in range(4)] == [404] * 4


async def test_a_call_at_its_callers_home_ends_with_its_client(url: str):
    arguments = {"sql": ENDLESS, "keep": "endless"}
    running = asyncio.create_task(post(url, "tools/call", name="execute_query", arguments=arguments))
    await until_in_use(url, 1)
    running.cancel()
    await until_in_use(url, 0)


async def test_a_quota_counts_the_calls_of_all_workers(serve: Serve, tmp_path: Path):
    async with serve(tmp_path, rest=ROLES) as (_, url, _):
        answers = await asyncio.gather(*(call(url, "execute_query", sql="SELECT 1 AS n") for _ in range(16)))
        refused = [answer["error"]["code"] for answer in answers if "error" in answer]
        # Each worker by itself would refuse six of them; a slow machine's calls have one more every twelve seconds.
        assert set(refused) == {"QUOTA_EXCEEDED"}
        assert 9 <= len(refused) <= 11


@pytest.mark.parametrize("told", ["first", pytest.param("worker", marks=pytest.mark.full)])
async def test_a_reload_reaches_all_workers_and_the_one_that_replaces_another(serve: Serve, tmp_path: Path, told: str):
    async with serve(tmp_path) as (peer, url, workers):
        write(tmp_path, rest=MORE)
        os.kill(peer.process.pid if told == "first" else workers[1], signal.SIGHUP)
        for index in (0, 1):
            await peer.logged(f"worker {index} has taken the configuration")
        assert (await metrics(url))["dragoman_config_version"] == {"0": 2, "1": 2}
        os.kill(workers[0], signal.SIGKILL)
        await peer.logged(r"worker 0 ended \(SIGKILL\); another takes its place")
        await peer.logged(rf"worker 0 serves, process (?!{workers[0]}\b)")
        answers = [await call(url, "list_tables", database="more") for _ in range(6)]
        assert [answer["tables"] for answer in answers] == [{"main": ["orders"]}] * 6
        assert (await metrics(url))["dragoman_worker_up"] == {"0": 1, "1": 1}


def test_a_process_that_ends_before_it_received_all_has_said_nothing():
    ours, theirs = socket.socketpair()
    with ours:
        ours.send(b"reload")
        theirs.close()
        assert receive(ours, 64) == b""


async def test_an_answer_whose_worker_ends_in_its_middle_is_cut_and_told_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def answer_half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        writer.close()

    async def wait_for_ever(*_: object) -> Any:
        await asyncio.Event().wait()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    sent: list[MutableMapping[str, Any]] = []
    toolbox: Any = None  # nothing of it is asked
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker = Worker(index=0, listener=ours, doors=(ours, theirs), folder=tmp_path, channel=ours)
        siblings = Siblings(worker, toolbox, "/mcp", "/metrics")
        query = b"file=" + b"00000001" + b"0" * 32  # a file of worker 1
        scope = {"type": "http", "method": "GET", "path": EXPORTS, "query_string": query, "headers": []}
        async with await asyncio.start_unix_server(answer_half, worker.path(1)):
            await siblings.around(wait_for_ever)(scope, wait_for_ever, send)
        await siblings.aclose()
    assert [message.get("body") for message in sent] == [None, b"half"]
    assert sent[-1]["more_body"], "the answer does not claim to be complete"
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("server", "rest", "said"),
    [
        ("max_concurrent = 3", "", "the configuration was not applied: server.max_concurrent cannot change"),
        ("", ROLES.replace("main.orders", "main.nothing"), "worker 0 did not take the configuration"),
    ],
)
async def test_a_wrong_configuration_changes_nothing_in_any_worker(
    serve: Serve, tmp_path: Path, server: str, rest: str, said: str
):
    async with serve(tmp_path) as (peer, url, _):
        write(tmp_path, server=server, rest=MORE + rest)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged(said)
        assert (await metrics(url))["dragoman_config_version"] == {"0": 1, "1": 1}
        answers = [await call(url, "list_tables", database="more") for _ in range(4)]
        assert [answer["error"]["code"] for answer in answers] == ["UNKNOWN_DATABASE"] * 4


async def test_a_file_that_no_parser_reads_changes_nothing_in_the_first_process(serve: Serve, tmp_path: Path):
    async with serve(tmp_path) as (peer, url, _):
        for wrong in (f"x = {'[' * 5000}{']' * 5000}", f"x = {'9' * 5000}", 'description = "${file:a\\u0000b}"'):
            write(tmp_path, rest=wrong)
            peer.process.send_signal(signal.SIGHUP)
            await peer.logged("the configuration was not applied")
        assert (await metrics(url))["dragoman_worker_up"] == {"0": 1, "1": 1}


def test_a_file_that_the_first_process_reads_without_its_roles_reaches_no_worker():
    """A worker may read the file later, with its roles, and take it. The next worker would begin without roles."""
    before = Configuration(databases={}, roles={"all": Role(name="all", groups=frozenset({"*"}))})
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener, ours, theirs:
        first = _First(before, lambda: Configuration(databases={}), listener)
        first._children = [_Child(channel=ours, configuration=before, is_up=True)]
        first._reload()
        shutil.rmtree(first._folder)
        for each in (*first._doors, first._wake, first._waker):
            each.close()
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
    assert first._candidate is before


async def test_a_worker_without_a_descriptor_for_a_configuration_refuses_it(tmp_path: Path):
    """Otherwise the first process waits for its answer, and no later configuration reaches any worker."""
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener, ours, theirs:
        worker = Worker(index=0, listener=listener, doors=(), folder=tmp_path, channel=theirs)
        theirs.setblocking(False)
        ours.setblocking(False)
        before = resource.getrlimit(resource.RLIMIT_NOFILE)

        async def reload(configuration: Configuration) -> bool:
            return True

        with worker.attending(lambda: None, reload):
            send_configuration(ours, Configuration(databases={}))
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
            try:
                said = await asyncio.get_running_loop().sock_recv(ours, 1)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert said == b"n"


def test_a_configuration_that_cannot_be_sent_changes_nothing_and_can_be_sent_later():
    """A full memory or a full table of files is no reason to end, or to wait for an answer that never comes."""
    before = Configuration(databases={})
    ours, theirs = socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener, ours, theirs:
        first = _First(before, lambda: Configuration(databases={}), listener)
        first._children = [_Child(channel=ours, configuration=before, is_up=True)]
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit[1]))
        try:
            first._reload()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        assert first._configuration is before
        first._reload()
        shutil.rmtree(first._folder)
        for each in (*first._doors, first._wake, first._waker):
            each.close()
        assert receive_configuration(theirs)[1] == Configuration(databases={})


@pytest.mark.parametrize("later", ["max_concurrent = 3", "[broken"])
async def test_all_workers_take_what_was_read_once(serve: Serve, tmp_path: Path, later: str):
    """Whoever edits the file after the signal, rightly or wrongly, gives no worker another configuration."""
    async with serve(tmp_path) as (peer, url, workers):
        os.kill(workers[1], signal.SIGSTOP)
        write(tmp_path, rest=MORE)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged("worker 0 has taken the configuration")
        write(tmp_path, server=later)
        os.kill(workers[1], signal.SIGCONT)
        await peer.logged("worker 1 has taken the configuration")
        answers = [await call(url, "list_tables", database="more") for _ in range(8)]
        assert [answer["tables"] for answer in answers] == [{"main": ["orders"]}] * 8
    assert "is replaced" not in str(peer.log)


async def test_a_worker_that_refuses_what_another_has_taken_is_replaced(serve: Serve, tmp_path: Path):
    words = tmp_path / "words.md"
    words.write_text("# more\n")
    named = f'{MORE}[databases.more.knowledge]\nfiles = ["words.md"]\n'
    async with serve(tmp_path) as (peer, url, workers):
        os.kill(workers[1], signal.SIGSTOP)
        write(tmp_path, rest=named)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged("worker 0 has taken the configuration")
        words.rename(tmp_path / "away.md")
        os.kill(workers[1], signal.SIGCONT)
        await peer.logged("worker 1 is replaced")
        (tmp_path / "away.md").rename(words)
        await peer.logged(rf"worker 1 serves, process (?!{workers[1]}\b)")
        answers = [await call(url, "list_tables", database="more") for _ in range(8)]
        assert [answer["tables"] for answer in answers] == [{"main": ["orders"]}] * 8


@pytest.mark.parametrize("hung", [0, pytest.param(1, marks=pytest.mark.full)])
async def test_a_worker_that_hangs_keeps_no_new_configuration_and_no_caller_waiting(
    serve: Serve, tmp_path: Path, hung: int
):
    async with serve(tmp_path, program=IMPATIENT) as (peer, url, workers):
        os.kill(workers[hung], signal.SIGSTOP)
        write(tmp_path, rest=MORE)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged(f"worker {hung} does not answer, and is killed")
        await peer.logged(f"worker {1 - hung} has taken the configuration")
        await peer.logged(rf"worker {hung} serves, process (?!{workers[hung]}\b)")
        answers = [await call(url, "list_tables", database="more") for _ in range(8)]
        assert [answer["tables"] for answer in answers] == [{"main": ["orders"]}] * 8
        assert not [line for line in peer.log if f"worker {1 - hung} does not answer" in line]


@pytest.mark.parametrize("ended", [0, 1])
async def test_a_worker_that_cannot_start_again_keeps_no_caller_waiting(serve: Serve, tmp_path: Path, ended: int):
    knowledge = tmp_path / "shop.md"
    knowledge.write_text("Orders are never deleted.")
    async with serve(tmp_path, rest=f'knowledge.files = ["shop.md"]{ROLES}') as (peer, url, workers):
        knowledge.unlink()
        os.kill(workers[ended], signal.SIGKILL)
        await peer.logged(rf"worker {ended} ended \(exit status 2\)")
        answers = [await post(url, "tools/call", name="list_databases", arguments={}) for _ in range(4)]
        assert {answer.status_code for answer in answers} <= {200, 503}


async def test_a_worker_starts_again_where_a_role_names_what_is_gone_and_closes_that_database(
    serve: Serve, tmp_path: Path
):
    more = '[[roles.counted.grants]]\ndatabase = "more"\ntables = ["*"]\n'
    rest = ROLES.replace("calls_per_minute = 5", "calls_per_minute = 500") + more + MORE
    async with serve(tmp_path, rest=rest) as (peer, url, workers):
        with sqlite3.connect(tmp_path / "shop.db") as connection:
            connection.execute("ALTER TABLE orders RENAME TO sales")
        for index, worker in enumerate(workers):
            os.kill(worker, signal.SIGKILL)
            await peer.logged(rf"worker {index} serves, process (?!{worker}\b)")
        assert (await call(url, "list_tables", database="more"))["tables"] == {"main": ["sales"]}
        answer = await call(url, "list_tables", database="shop")
        assert answer["error"]["code"] == "PERMISSION_DENIED"
        await peer.logged("the database shop is closed: roles.counted.grants")


@pytest.mark.full
async def test_a_wrong_configuration_that_comes_while_no_worker_serves_changes_nothing(serve: Serve, tmp_path: Path):
    async with serve(tmp_path) as (peer, url, workers):
        write(tmp_path, rest=ROLES.replace("main.orders", "main.missing"))
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged("worker [01] did not take the configuration")
        assert (await call(url, "list_tables"))["tables"]


async def test_calls_are_answered_before_all_processes_leave(serve: Serve, tmp_path: Path):
    async with serve(tmp_path) as (peer, url, _):
        running = [asyncio.create_task(call(url, "execute_query", sql=ENDLESS)) for _ in range(4)]
        await until_in_use(url, 4)
        peer.process.send_signal(signal.SIGTERM)
        answers = await asyncio.gather(*running)
        assert [answer["error"]["code"] for answer in answers] == ["QUERY_CANCELLED"] * 4
        # The log's pipe ends when the last process that holds it has ended.
        assert await peer.ended(60) == 0


@pytest.mark.full
async def test_no_worker_outlives_the_first_process_and_none_leaves_a_file(serve: Serve, tmp_path: Path):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    async with serve(tmp_path, TMPDIR=str(scratch)) as (peer, _, _):
        assert [*scratch.glob("dragoman-*/[01]")]
        peer.process.kill()
        assert await peer.ended(60) == -signal.SIGKILL
    assert not [*scratch.glob("dragoman-*")]


async def test_what_killed_workers_kept_is_removed_by_those_in_their_place(serve: Serve, tmp_path: Path):
    temporary, folders = tmp_path / "temporary", "dragoman-results-*/process-*"
    temporary.mkdir()
    async with serve(tmp_path, 'tools = "full"', TMPDIR=str(temporary)) as (peer, url, workers):
        await call(url, "execute_query", sql="SELECT 1 AS one", keep="one")
        assert len([*temporary.glob(folders)]) == 1
        for index, worker in enumerate(workers):
            os.kill(worker, signal.SIGKILL)
            await peer.logged(rf"worker {index} serves, process (?!{worker}\b)")
        async with asyncio.timeout(30):
            while [*temporary.glob(folders)]:
                await asyncio.sleep(0)


@pytest.mark.full
async def test_a_worker_that_hangs_does_not_keep_the_server_from_ending(serve: Serve, tmp_path: Path):
    async with serve(tmp_path, server="drain = 0\ngrace = 0") as (peer, _, workers):
        os.kill(workers[1], signal.SIGSTOP)
        peer.process.send_signal(signal.SIGTERM)
        assert await peer.ended(60) == 0


async def test_what_stops_a_worker_at_the_start_is_told_once_and_ends_the_server(run: Any, tmp_path: Path):
    file = write(tmp_path, rest=ROLES.replace("main.orders", "main.missing"))
    async with run(sys.executable, "-m", "dragoman", "serve", "--config", str(file)) as peer:
        assert await peer.ended(60) == 2
        assert sum("missing" in line for line in peer.log) == 1
