"""Ways to connect: sockets, several hosts, passwords, TLS with a real chain, service files, and what goes wrong."""

import os
import socket
import ssl
import subprocess
from dataclasses import replace

import asyncpg
import pytest
import trustme
from dragoman import ConfigurationError, ConnectionFailed, Database, Gateway, Secret
from dragoman.config import parse_url
from dragoman.testing.asking import failure_of, value_of
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.failures import translate
from dragoman_postgres.options import Options
from dragoman_postgres.testing import Server, installations

PASSWORD = "pass word/@%?"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def place(server, name, content):
    """Write a file the server may read, and nobody else."""
    path = server.folder / name
    path.write_bytes(content)
    path.chmod(0o600)
    if os.geteuid() == 0:
        owner = server.folder.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def speaks_tls(folder):
    """Whether a server was built with TLS; the embedded ones are not, Debian's are."""
    told = subprocess.run([folder / "pg_config", "--configure"], capture_output=True, text=True, check=True).stdout
    return "ssl" in told


MAJOR = next((major for major, folder in installations().items() if speaks_tls(folder)), None)
needs_tls = pytest.mark.skipif(MAJOR is None, reason="no server here speaks TLS")


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
async def secured(authority, anyio_backend):
    """A server on TCP with a certificate for `localhost`, a role with a password and one that needs a certificate."""
    if not installations():
        pytest.skip("no PostgreSQL server can be started here")
    port = free_port()
    server = Server.start(MAJOR, tcp=port)
    assert server.folder is not None
    certificate = authority.issue_cert("localhost")
    place(server, "server.key", certificate.private_key_pem.bytes())
    place(server, "server.crt", b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    place(server, "ca.crt", authority.cert_pem.bytes())
    rules = "host all known all reject\nhost all reader all scram-sha-256\n"
    rules = ("hostssl all known 127.0.0.1/32 cert\n" if MAJOR else "") + rules
    hba = server.folder / "data" / "pg_hba.conf"
    place(server, "data/pg_hba.conf", (rules + hba.read_text()).encode())
    await server.run(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE known LOGIN")
    for name, value in (
        ()
        if MAJOR is None
        else (
            ("ssl", "on"),
            ("ssl_cert_file", f"{server.folder}/server.crt"),
            ("ssl_key_file", f"{server.folder}/server.key"),
            ("ssl_ca_file", f"{server.folder}/ca.crt"),
        )
    ):
        await server.run(f"ALTER SYSTEM SET {name} = '{value}'")
    await server.run("SELECT pg_reload_conf()")
    yield server
    server.stop()


@pytest.fixture
def over_tcp(secured):
    """A database of that server for the role with the password, with options."""

    def configured(host="localhost", *, user="reader", password=PASSWORD, **options):
        return secured.configure(
            "postgres", user=user, host=host, password=Secret(password) if password else None, options=options
        )

    return configured


async def answer(database, sql="SELECT 1"):
    executor = PostgresExecutor(database)
    try:
        return await value_of(executor, sql)
    finally:
        await executor.aclose()


async def refusal(database):
    executor = PostgresExecutor(database)
    try:
        return await failure_of(executor, "SELECT 1")
    finally:
        await executor.aclose()


ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


# TLS


@needs_tls
@pytest.mark.parametrize(
    ("sslmode", "host", "encrypted"),
    [
        ("disable", "localhost", False),
        ("allow", "localhost", False),
        ("prefer", "localhost", True),
        ("require", "127.0.0.1", True),
        ("verify-ca", "127.0.0.1", True),
        ("verify-full", "localhost", True),
    ],
)
async def test_every_sslmode_encrypts_as_it_says(over_tcp, authority, tmp_path, sslmode, host, encrypted):
    authority.cert_pem.write_to_path(tmp_path / "root.crt")
    database = over_tcp(host, sslmode=sslmode, sslrootcert=str(tmp_path / "root.crt"))
    assert await answer(database, ENCRYPTED) is encrypted


@needs_tls
@pytest.mark.parametrize("given", [{}, {"sslrootcert": "system"}])
async def test_without_a_root_certificate_the_systems_are_trusted(over_tcp, authority, tmp_path, monkeypatch, given):
    authority.cert_pem.write_to_path(tmp_path / "system.crt")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.crt"))
    database = over_tcp(sslmode="verify-full", **given)
    assert await answer(database, ENCRYPTED) is True
    trustme.CA().cert_pem.write_to_path(tmp_path / "system.crt")
    error = await refusal(database)
    assert "certificate" in error.message


@needs_tls
@pytest.mark.parametrize("option", ["sslrootcert", "sslcert", "sslkey", "sslcrl"])
async def test_a_file_that_is_not_there_is_told_by_its_option(over_tcp, authority, tmp_path, option):
    authority.cert_pem.write_to_path(tmp_path / "root.crt")
    given = {"sslrootcert": str(tmp_path / "root.crt"), option: str(tmp_path / "missing")}
    error = await refusal(over_tcp(sslmode="verify-full", **given))
    assert f"option {option}" in error.message
    assert "missing" not in error.message + error.suggestion


@needs_tls
async def test_certificates_are_relative_to_the_configurations_folder(over_tcp, authority, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "root.crt")
    database = replace(over_tcp(sslmode="verify-full", sslrootcert="root.crt"), folder=tmp_path)
    assert await answer(database, ENCRYPTED) is True


async def test_a_password_that_is_wrong_and_one_that_was_not_given_are_told_apart(over_tcp):
    assert "the password is wrong" in (await refusal(over_tcp(password="nonsense"))).message
    error = await refusal(over_tcp(password=None))
    assert "wrong" not in error.message
    assert "asks for a password" in error.message
    assert "password" in error.suggestion


@needs_tls
@pytest.mark.parametrize("wrong", ["host", "authority"])
async def test_a_certificate_that_does_not_fit_is_refused(over_tcp, authority, tmp_path, wrong):
    (authority if wrong == "host" else trustme.CA()).cert_pem.write_to_path(tmp_path / "root.crt")
    host = "127.0.0.1" if wrong == "host" else "localhost"
    error = await refusal(over_tcp(host, sslmode="verify-full", sslrootcert=str(tmp_path / "root.crt")))
    assert isinstance(error, ConnectionFailed)
    assert "TLS" in error.message
    assert "sslrootcert" in error.suggestion


@needs_tls
async def test_a_client_certificate_is_sent(over_tcp, authority, tmp_path):
    certificate = authority.issue_cert(common_name="known")
    authority.cert_pem.write_to_path(tmp_path / "root.crt")
    certificate.private_key_pem.write_to_path(tmp_path / "client.key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "client.crt")
    files = {"sslrootcert": "root.crt", "sslcert": "client.crt", "sslkey": "client.key"}
    given = {name: str(tmp_path / file) for name, file in files.items()}
    assert await answer(over_tcp(user="known", password=None, sslmode="verify-full", **given)) == 1
    assert isinstance(await refusal(over_tcp(user="known", password=None, sslmode="require")), ConnectionFailed)


@needs_tls
async def test_a_client_certificate_of_another_authority_is_said_to_be_refused(over_tcp, tmp_path):
    certificate = trustme.CA().issue_cert(common_name="known")
    certificate.private_key_pem.write_to_path(tmp_path / "client.key")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "client.crt")
    files = {"sslcert": str(tmp_path / "client.crt"), "sslkey": str(tmp_path / "client.key")}
    error = await refusal(
        over_tcp(user="known", password=None, sslmode="require", ssl_max_protocol_version="TLSv1.2", **files)
    )
    assert isinstance(error, ConnectionFailed)
    assert "certificate" in error.message
    assert "sslcert" in error.suggestion


def test_a_client_certificate_that_is_refused_after_the_handshake_is_said_to_be():
    """With TLS 1.3, if the alert comes before the end of the connection, which a busy machine may bring first."""
    lost = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
    lost.__cause__ = alert = ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca")
    alert.reason = "TLSV1_ALERT_UNKNOWN_CA"
    assert "does not accept our certificate" in str(translate(lost, "shop"))
    alert.reason = "UNEXPECTED_EOF_WHILE_READING"
    assert "the connection broke" in str(translate(lost, "shop"))


@pytest.mark.parametrize(
    "content",
    [
        b"root:hush:0:0\n",
        b"[x]\npassword=hush%me\n",
        b"[x]\npassword=%(hush)s\n",
        b"[x]\nport=hush\n",
        b"[x]\nhost=localhost\nhost=hush\n",
        b"[x]\nhush\n",
        b"[x]\nhush=\xff\xfe\n",
        b"\xff\xfehush",
        b"[x",
    ],
    ids=repr,
)
async def test_what_is_no_service_file_is_told_without_a_word_of_it(tmp_path, caplog, content):
    (tmp_path / "services").write_bytes(content)
    options = {"service": "x", "servicefile": str(tmp_path / "services")}
    error = await refusal(Database(name="far", dialect="postgres", user="me", options=options))
    assert isinstance(error, ConnectionFailed)
    assert "service file" in error.message
    assert "hush" not in f"{error.message} {error.suggestion} {error.context} {error.__cause__} {caplog.text}"


# Databases that administrators add


@needs_tls
@pytest.mark.parametrize(
    ("sslmode", "encrypted"),
    [
        (None, True),
        ("disable", False),
        ("allow", True),
        ("prefer", True),
        ("require", True),
        ("verify-ca", True),
        ("verify-full", True),
    ],
)
async def test_an_administrators_database_is_encrypted_as_it_says(
    over_tcp, authority, tmp_path, monkeypatch, sslmode, encrypted
):
    authority.cert_pem.write_to_path(tmp_path / "system.crt")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.crt"))
    given = {"ssl_min_protocol_version": "TLSv1.2", "ssl_max_protocol_version": "TLSv1.3"}
    database = replace(over_tcp(**given, **({"sslmode": sslmode} if sslmode else {})), administered=True)
    assert await answer(database, ENCRYPTED) is encrypted
    if sslmode == "verify-full":
        assert isinstance(await refusal(replace(database, host="127.0.0.1")), ConnectionFailed)
        trustme.CA().cert_pem.write_to_path(tmp_path / "system.crt")
        assert isinstance(await refusal(database), ConnectionFailed)


@needs_tls
@pytest.mark.parametrize("place", ["home", "environment"])
async def test_an_administrators_database_is_shown_no_certificate(over_tcp, authority, tmp_path, monkeypatch, place):
    certificate = authority.issue_cert(common_name="known")
    folder = tmp_path / ".postgresql"
    folder.mkdir()
    certificate.private_key_pem.write_to_path(folder / "postgresql.key")
    certificate.cert_chain_pems[0].write_to_path(folder / "postgresql.crt")
    if place == "home":
        monkeypatch.setenv("HOME", str(tmp_path))
    else:
        monkeypatch.setenv("PGSSLCERT", str(folder / "postgresql.crt"))
        monkeypatch.setenv("PGSSLKEY", str(folder / "postgresql.key"))
    database = over_tcp(user="known", password=None, sslmode="require")
    assert await answer(database) == 1
    assert isinstance(await refusal(replace(database, administered=True)), ConnectionFailed)


async def test_an_administrators_database_needs_no_tls_unless_it_says_so():
    if not installations():
        pytest.skip("no PostgreSQL server can be started here")
    server = Server.start(tcp=free_port())
    try:
        database = replace(server.configure("postgres", host="localhost"), administered=True)
        assert await answer(database) == 1
        assert "no TLS" in (await refusal(replace(database, options={"sslmode": "require"}))).message
    finally:
        server.stop()


async def test_an_administrators_version_of_tls_that_is_none_is_told(over_tcp):
    database = replace(over_tcp(ssl_min_protocol_version="nonsense"), administered=True)
    assert isinstance(await refusal(database), ConnectionFailed)


async def test_a_server_without_tls_is_told_with_both_ways_out():
    if not installations():
        pytest.skip("no PostgreSQL server can be started here")
    server = Server.start(tcp=free_port())
    try:
        error = await refusal(server.configure("postgres", host="localhost", options={"sslmode": "require"}))
    finally:
        server.stop()
    assert isinstance(error, ConnectionFailed)
    assert "no TLS" in error.message
    assert "sslmode=disable" in error.suggestion


# Passwords


async def test_a_password_of_odd_characters_works_and_a_wrong_one_shows_nowhere(over_tcp):
    assert await answer(over_tcp(), "SELECT current_user::text") == "reader"
    error = await refusal(over_tcp(password="hunter2-wrong"))
    assert isinstance(error, ConnectionFailed)
    assert "password" in error.message
    shown = f"{error.as_dict()} {error!r}"
    assert not any(word in shown for word in ("hunter2", "localhost", "reader", str(over_tcp().port)))


async def test_a_password_comes_from_the_passfile(over_tcp, tmp_path):
    (tmp_path / "pass").write_text(f"localhost:*:postgres:reader:{PASSWORD}\n")
    (tmp_path / "pass").chmod(0o600)
    assert await answer(over_tcp(password=None, passfile=str(tmp_path / "pass"))) == 1


async def test_a_service_file_gives_the_address(secured, tmp_path):
    port = secured.configure("postgres").port
    (tmp_path / "services").write_text(f"[shop]\nhost=localhost\nport={port}\nuser=reader\ndbname=postgres\n")
    options = {"service": "shop", "servicefile": str(tmp_path / "services")}
    database = parse_url("postgresql://?service=shop", name="shop")
    given = secured.configure(
        "x", name="shop", host=None, port=None, database=None, user=None, password=Secret(PASSWORD), options=options
    )
    assert dict(database.options) == {"service": "shop"}
    assert await answer(given, "SELECT current_user::text") == "reader"


# Hosts


async def test_the_first_of_several_hosts_that_answers_is_used(secured, over_tcp):
    port = secured.configure("postgres").port
    assert await answer(over_tcp(f"localhost:{free_port()},localhost:{port}")) == 1
    assert await answer(over_tcp(f"localhost,localhost:{free_port()}")) == 1
    error = await refusal(over_tcp(f"localhost:{port}", target_session_attrs="standby"))
    assert isinstance(error, ConnectionFailed)


async def test_a_unix_socket_is_a_host(secured):
    assert await answer(secured.configure("postgres")) == 1


async def test_the_schema_comes_first_in_the_search_path(secured):
    await secured.run('CREATE SCHEMA "My shop"; CREATE TABLE "My shop".here AS SELECT 7 AS n')
    assert await answer(secured.configure("postgres", schema="My shop"), "SELECT n FROM here") == 7


async def test_the_application_name_is_told(secured):
    database = secured.configure("postgres", options={"application_name": "reports"})
    name = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    assert await answer(database, name) == "reports"


async def test_the_time_zone_can_be_chosen(secured):
    database = secured.configure("postgres", options={"timezone": "Asia/Tokyo"})
    assert await answer(database, "SELECT '2024-01-01 00:00+00'::timestamptz") == "2024-01-01 09:00:00+09"


# What goes wrong


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"host": "localhost", "port": 1}, "nothing listens"),
        ({"host": "no-such-host.invalid"}, "host is not known"),
        ({"host": "/nowhere"}, "no socket"),
        ({"database": "nope"}, "no such database"),
        ({"user": "nobody-here"}, "refuses the user"),
        (
            {"options": {"sslmode": "verify-full", "sslrootcert": "/nowhere/root.crt"}, "host": "localhost"},
            "certificate",
        ),
    ],
    ids=str,
)
async def test_what_keeps_us_from_connecting_is_told_without_the_address(secured, changes, words):
    error = await refusal(secured.configure("postgres", **{"name": "shop", **changes}))
    assert isinstance(error, ConnectionFailed)
    assert "'shop'" in error.message
    assert words in error.message
    assert "nowhere" not in error.message + error.suggestion


async def test_no_connection_to_spare_is_told(secured):
    await secured.run("ALTER ROLE reader CONNECTION LIMIT 0")
    error = await refusal(secured.configure("postgres", user="reader", host="localhost", password=Secret(PASSWORD)))
    await secured.run("ALTER ROLE reader CONNECTION LIMIT -1")
    assert isinstance(error, ConnectionFailed)
    assert "to spare" in error.message


@pytest.mark.parametrize(("option", "words"), [("sslmod=require", "'sslmode'"), ("sslmode=sometimes", "verify-full")])
async def test_options_are_checked_with_a_near_name(option, words):
    with pytest.raises(ConfigurationError) as error:
        async with Gateway.open([parse_url(f"postgresql://u@h/shop?{option}")]) as gateway:
            gateway.database()
    assert words in f"{error.value.message} {error.value.suggestion}"


def test_the_options_of_a_url_reach_the_plugin():
    given = parse_url("postgresql://u@h/shop?sslmode=verify-full&connect_timeout=3&application_name=x&pgbouncer=true")
    assert set(given.options) <= set(Options.__dataclass_fields__)


async def test_a_server_that_never_answers_does_not_hold_us():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        server = Server(f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}")
        error = await refusal(server.configure("shop", options={"connect_timeout": 0.3, "sslmode": "disable"}))
    assert isinstance(error, ConnectionFailed)
    assert "in time" in error.message


async def test_connections_are_what_they_should_be(secured):
    settings = {
        "DateStyle": "ISO, MDY",
        "IntervalStyle": "iso_8601",
        "standard_conforming_strings": "on",
        "default_transaction_read_only": "on",
        "transaction_read_only": "on",
        "client_connection_check_interval": "500ms",
    }
    executor = PostgresExecutor(secured.configure("postgres"))
    for name, value in settings.items():
        assert await value_of(executor, f"SHOW {name}") == value
    await executor.aclose()
