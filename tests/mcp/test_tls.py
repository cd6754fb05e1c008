"""The server with a certificate of its own, as docs/tls-and-proxy.md says: clients verify it, and it is renewed."""

import asyncio
import json
import os
import signal
import sqlite3
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from certificates import certify, trusting
from contents import text_of
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PAGE = (Path(__file__).parents[2] / "docs" / "tls-and-proxy.md").read_text(encoding="utf-8")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1), (2);")
    section = PAGE.split("## TLS of its own")[1].split("```toml\n")[1].split("```")[0]
    section = section.replace('host = "0.0.0.0"\n', "").replace("port = 8443", "port = 0")
    (tmp_path / "dragoman.toml").write_text(f'{section}\n[databases.shop]\nurl = "sqlite:///shop.db"\n')
    return tmp_path


@pytest.fixture
async def server(folder: Path, authority: trustme.CA, run: Any, monkeypatch: Any) -> AsyncIterator[tuple[Any, str]]:
    certify(folder, authority)
    monkeypatch.setenv("DRAGOMAN_TOKEN", "hush")
    async with run(sys.executable, "-m", "dragoman", "serve", "--config", str(folder / "dragoman.toml")) as peer:
        yield peer, (await peer.logged(r"serving on (https://[^\s\"]+)/mcp"))[1]


async def test_a_client_that_trusts_the_authority_calls_and_another_does_not(server, authority):
    _, url = server
    headers = {"authorization": "Bearer hush"}
    async with (
        httpx2.AsyncClient(headers=headers, verify=trusting(authority)) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        answer = await client.call_tool("execute_query", {"sql": "SELECT count(*) AS n FROM orders"})
        assert json.loads(text_of(answer))["rows"] == [[2]]
    async with httpx2.AsyncClient(verify=trusting(trustme.CA())) as stranger:
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await stranger.get(f"{url}/health")


def hello(authority: trustme.CA) -> bytes:
    """What a client says first."""
    said = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        trusting(authority).wrap_bio(ssl.MemoryBIO(), said, server_hostname="localhost").do_handshake()
    return said.read()


@pytest.mark.parametrize(
    "part",
    [
        pytest.param("nothing", marks=pytest.mark.full),
        "half a hello",
        pytest.param("a hello and no more", marks=pytest.mark.full),
    ],
)
async def test_those_who_do_not_agree_on_tls_make_room_for_new_clients(folder, authority, run, monkeypatch, part):
    certify(folder, authority)
    monkeypatch.setenv("DRAGOMAN_TOKEN", "hush")
    serve = f'ulimit -n 160; exec "{sys.executable}" -m dragoman serve --config "{folder / "dragoman.toml"}"'
    whole = hello(authority)
    said = {"nothing": b"", "half a hello": whole[: len(whole) // 2], "a hello and no more": whole}[part]
    async with run("sh", "-c", serve) as peer:
        url = (await peer.logged(r"serving on (https://[^\s\"]+)/mcp"))[1]
        crowd = [await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2])) for _ in range(300)]
        for _, writer in crowd:
            writer.write(said)
        async with httpx2.AsyncClient(verify=trusting(authority)) as http:
            assert (await http.get(f"{url}/health")).status_code == 200
        await peer.logged("makes room")
        for reader, writer in crowd:
            async with asyncio.timeout(30):
                with suppress(ConnectionError):
                    await reader.read()
            writer.close()


async def test_who_speaks_no_tls_is_refused_with_a_line_in_the_log(server, authority):
    peer, url = server
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
    async with asyncio.timeout(30):
        assert b"200" not in await reader.read()
    writer.close()
    await peer.logged("refused 127.0.0.1: it does not agree on TLS")
    async with httpx2.AsyncClient(verify=trusting(authority)) as http:
        assert (await http.get(f"{url}/health")).status_code == 200


async def test_a_renewed_certificate_is_taken_at_a_reload(server, authority, folder):
    peer, url = server
    async with httpx2.AsyncClient(verify=trusting(authority)) as http:
        assert (await http.get(f"{url}/health")).status_code == 200  # it has read its certificate
    number = certify(folder, authority)
    peer.process.send_signal(signal.SIGHUP)
    await peer.logged("configuration was applied")
    async with httpx2.AsyncClient(verify=trusting(authority)) as http, http.stream("GET", f"{url}/health") as answer:
        shown = answer.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
    assert int(shown["serialNumber"], 16) == number
    (folder / "tls" / "key.pem").write_text("nothing")
    peer.process.send_signal(signal.SIGHUP)
    await peer.logged(r"configuration was not applied: server\.tls_cert, server\.tls_key")
    async with httpx2.AsyncClient(verify=trusting(authority)) as http:
        assert (await http.get(f"{url}/health")).status_code == 200


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_renewed_certificate_is_taken_by_itself_where_the_server_watches(
    workers, folder, authority, run, monkeypatch
):
    certify(folder, authority)
    environment = {"DRAGOMAN_TOKEN": "hush", "DRAGOMAN_SERVER__WATCH": "true", "DRAGOMAN_SERVER__WORKERS": workers}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with run(sys.executable, "-m", "dragoman", "serve", "--config", str(folder / "dragoman.toml")) as peer:
        url = (await peer.logged(r"serving on (https://[^\s\"]+)/mcp"))[1]
        async with httpx2.AsyncClient(verify=trusting(authority)) as http:
            assert (await http.get(f"{url}/health")).status_code == 200  # it has begun to watch
        renewed = trustme.CA()
        certify(folder, renewed)
        await peer.logged("configuration was applied")
        if workers == "2":
            await peer.logged("worker 1 has taken the configuration")
        async with httpx2.AsyncClient(verify=trusting(renewed)) as http:
            assert (await http.get(f"{url}/health")).status_code == 200


@pytest.mark.parametrize("name", ["cert.pem", "key.pem"])
@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
async def test_what_is_no_file_keeps_a_reload_from_nothing_but_itself(server, authority, folder, name, put):
    peer, url = server
    async with httpx2.AsyncClient(verify=trusting(authority)) as http:
        assert (await http.get(f"{url}/health")).status_code == 200  # it has read its certificate
        (folder / "tls" / name).unlink()
        put(folder / "tls" / name)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged(r"configuration was not applied: server\.tls_cert, server\.tls_key.*it is no file")
    async with httpx2.AsyncClient(verify=trusting(authority)) as http:
        assert (await http.get(f"{url}/health")).status_code == 200


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_files_that_are_no_pair_stop_the_start(workers, folder, authority, run, monkeypatch):
    certify(folder, authority)
    (folder / "tls" / "cert.pem").write_bytes(trustme.CA().cert_pem.bytes())
    monkeypatch.setenv("DRAGOMAN_TOKEN", "hush")
    monkeypatch.setenv("DRAGOMAN_SERVER__WORKERS", workers)
    async with run(sys.executable, "-m", "dragoman", "serve", "--config", str(folder / "dragoman.toml")) as peer:
        await peer.logged(r"server\.tls_cert, server\.tls_key: the certificate cannot be used")
        assert await peer.process.wait() == 2
    assert "serving on" not in str(peer.log)


async def test_a_certificate_that_has_ended_is_a_warning_in_the_log(server, authority, folder):
    peer, _ = server
    certify(folder, authority, days=-1)
    peer.process.send_signal(signal.SIGHUP)
    await peer.logged("clients refuse the certificate, which is valid from")
