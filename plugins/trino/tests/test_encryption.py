"""Whatever a server that is configured for https answers, nothing is sent to an address without it."""

import asyncio
import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trustme
from dragoman import Busy, ConnectionFailed, Database, QueryTimeout, Secret
from dragoman.testing.asking import ask, failure_of
from dragoman_trino.executor import TrinoExecutor


class StandIn(ThreadingHTTPServer):
    """Answers what it is told to, with what was `heard`. It waits for `hold` first."""

    daemon_threads = True

    def __init__(self, answer=b"{}", headers=(), status=200):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.headers, self.status = answer, dict(headers), status
        self.heard: list[str] = []
        self.hold = threading.Event()
        self.hold.set()


class _Handler(BaseHTTPRequestHandler):
    server: StandIn  # pyright: ignore[reportIncompatibleVariableOverride]

    def handle_any(self):
        self.server.heard.append(f"{self.requestline} {self.headers}")
        self.server.hold.wait(60)
        self.send_response(self.server.status)
        for name, value in {**self.server.headers, "Content-Length": len(self.server.answer)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(self.server.answer)

    do_GET = do_POST = do_DELETE = handle_any

    def log_message(self, format, *args):
        pass


@contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def plain():
    """A server without TLS, which must hear nothing."""
    with serving(StandIn()) as server:
        yield server
    assert server.heard == []


@pytest.fixture
def configured(tmp_path):
    """What makes a server one with TLS, and a database of it that has secrets."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")

    def configure(server):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        options = {
            "verify": "authority.pem",
            "extra_credentials": {"k": Secret("of-the-connector")},
            "transactions": False,
        }
        return Database(
            name="lake",
            dialect="trino",
            host="localhost",
            port=server.server_address[1],
            user="ann",
            pool_size=1,
            password=Secret("of-the-user"),
            folder=tmp_path,
            options=options,
            accept_unenforced=True,
        )

    return configure


def onward(plain):
    return f"http://localhost:{plain.server_address[1]}/v1/statement/queued/x"


def goes_on(plain):
    told = {"id": "x", "infoUri": "https://localhost/", "nextUri": onward(plain), "stats": {"state": "QUEUED"}}
    return StandIn(json.dumps(told).encode(), {"Content-Type": "application/json"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 200])
async def test_a_server_that_goes_on_without_encryption_is_an_error(plain, configured, status):
    server = goes_on(plain) if status == 200 else StandIn(b"", {"Location": onward(plain)}, status)
    database = configured(server)
    with serving(server):
        with pytest.raises(ConnectionFailed, match="not encrypted"):
            await ask(TrinoExecutor(database), "SELECT 1", timeout=30)


async def test_a_statement_that_is_given_up_is_ended_nowhere_without_encryption(plain, configured):
    """Its address arrives when nobody waits for it any more."""
    server = goes_on(plain)
    database = configured(server)
    server.hold.clear()
    with serving(server):
        executor = TrinoExecutor(database)
        with pytest.raises(QueryTimeout):
            await ask(executor, "SELECT 1", timeout=0.5)
        server.hold.set()
        async with asyncio.timeout(60):
            while isinstance(await failure_of(executor, "SELECT 1", timeout=1), Busy):
                pass  # until the statement that was given up is over
