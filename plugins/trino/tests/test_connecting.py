"""Signing in, proven on a server that wants it, and what every statement says of itself."""

import base64
import hashlib
import hmac
import json
import urllib.request

import pytest
import trustme
from dragoman import (
    ConfigurationError,
    ConnectionFailed,
    Database,
    Encoded,
    Gateway,
    Principal,
    QueryTimeout,
    Request,
    Secret,
)
from dragoman.model import Confinement
from dragoman.testing.asking import ask, failure_of, value_of
from dragoman_trino.connecting import DEADLINE, STATISTICS, Connector
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.testing.fixtures import start_server
from dragoman_trino.testing.server import free_port

PASSWORD = "correct horse"
RULES = {
    "catalogs": [{"allow": "read-only"}],
    "impersonation": [{"original_user": "alice", "new_user": "dave"}],
    "system_session_properties": [{"user": "bob", "allow": False}, {"allow": True}],
}
KEY = b"0123456789abcdef0123456789abcdef"


def hashed(password):
    """A password as the server's file of passwords has it: rounds, salt and PBKDF2's hash."""
    salt = b"salt of the tests"
    return f"1000:{salt.hex()}:{hashlib.pbkdf2_hmac('sha1', password.encode(), salt, 1000, 32).hex()}"


def web_token(subject, key=KEY):
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": subject}]
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = hmac.new(key, text, "sha256").digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def secure_port(authority):
    """The https port of a server that lets in by password, token and certificate only."""
    port = free_port()
    own = authority.issue_cert("localhost")
    pem = own.private_key_pem.bytes() + b"".join(blob.bytes() for blob in own.cert_chain_pems)
    server = start_server(
        catalogs={"tpch": {"connector.name": "tpch"}},
        settings={
            "http-server.https.enabled": "true",
            "http-server.https.port": str(port),
            "http-server.https.keystore.path": "{etc}/server.pem",
            "http-server.https.truststore.path": "{etc}/authority.pem",
            "http-server.authentication.type": "PASSWORD,JWT,CERTIFICATE",
            "http-server.authentication.jwt.key-file": "{etc}/token.key",
            "http-server.authentication.certificate.user-mapping.pattern": "CN=(.*?),.*",
            "internal-communication.shared-secret": "of the tests",
        },
        files={
            "server.pem": pem.decode(),
            "authority.pem": authority.cert_pem.bytes().decode(),
            "token.key": base64.b64encode(KEY).decode(),
            "password-authenticator.properties": (
                "password-authenticator.name=file\nfile.password-file={etc}/passwords\n"
            ),
            "passwords": f"alice:{hashed(PASSWORD)}\n",
            "access-control.properties": "access-control.name=file\nsecurity.config-file={etc}/rules.json\n",
            "rules.json": json.dumps(RULES),
        },
    )
    yield port
    server.stop()


@pytest.fixture(scope="module")
def folder(authority, tmp_path_factory):
    """Where the configuration is: the authority's certificate and one of a client."""
    folder = tmp_path_factory.mktemp("certificates")
    client = authority.issue_cert("carol@example.com", common_name="carol", organization_name="tests")
    authority.cert_pem.write_to_path(folder / "authority.pem")
    client.private_key_pem.write_to_path(folder / "client.key")
    client.cert_chain_pems[0].write_to_path(folder / "client.pem")
    return folder


@pytest.fixture
def database(secure_port, folder):
    """The server as configured with some options; the authority is known."""

    def configured(user=None, password=None, **options):
        return Database(
            name="lake",
            dialect="trino",
            host="localhost",
            port=secure_port,
            user=user,
            password=Secret(password) if password else None,
            folder=folder,
            options={"verify": "authority.pem", **options},
        )

    return configured


async def asked(database, sql="SELECT current_user"):
    executor = TrinoExecutor(database)
    try:
        return await value_of(executor, sql)
    finally:
        await executor.aclose()


async def refused(database):
    executor = TrinoExecutor(database)
    try:
        return await failure_of(executor, "SELECT 1")
    finally:
        await executor.aclose()


async def test_a_password_signs_in(database):
    assert await asked(database("alice", PASSWORD)) == "alice"


async def test_a_token_signs_in_as_whom_it_names(database):
    token = Secret(web_token("bob"))
    assert await asked(database(token=token)) == "bob"
    assert await asked(database("bob", token=token)) == "bob"


async def test_a_certificate_signs_in(database):
    assert await asked(database(cert="client.pem", key="client.key")) == "carol"


async def test_statements_may_run_as_another_user_where_the_server_allows_it(database):
    assert "impersonate" in (await refused(database("alice", PASSWORD, session_user="erin"))).message
    assert await asked(database("alice", PASSWORD, session_user="dave")) == "dave"


@pytest.mark.parametrize(
    ("user", "password", "options", "words"),
    [
        ("alice", "wrong", {}, "credentials"),
        ("nobody", PASSWORD, {}, "credentials"),
        (None, None, {"token": Secret(web_token("bob", b"x" * 32))}, "credentials"),
        ("alice", None, {"http_scheme": "https"}, "credentials"),
        ("alice", PASSWORD, {"verify": True}, "TLS"),
        ("alice", PASSWORD, {"verify": "missing.pem"}, "certificate"),
        (None, None, {"cert": "missing.pem"}, "certificate"),
    ],
)
async def test_who_is_not_let_in_is_told_and_no_secret_is(database, user, password, options, words):
    error = await refused(database(user, password, **options))
    assert isinstance(error, ConnectionFailed)
    assert words in error.message
    told = str(error.as_dict())
    assert not any(secret in told for secret in (PASSWORD, "wrong", "eyJ", "localhost", "missing.pem"))


async def test_the_server_s_certificate_can_be_left_unverified_on_request(database):
    with pytest.warns(Warning, match="Unverified HTTPS"):
        assert await asked(database("alice", PASSWORD, verify=False)) == "alice"


async def test_the_host_must_be_the_certificates(database):
    import dataclasses

    error = await refused(dataclasses.replace(database("alice", PASSWORD), host="127.0.0.1"))
    assert "TLS" in error.message


# Without a server


def configured(**fields):
    options = fields.pop("options", {})
    return Database(name="lake", dialect="trino", options=options, **fields)


def test_a_secret_is_never_sent_in_the_clear():
    for fields in (
        {"user": "a", "password": Secret("b"), "options": {"http_scheme": "http"}},
        {"options": {"token": Secret("b"), "http_scheme": "http"}},
        {"options": {"extra_credentials": {"a": Secret("b")}, "http_scheme": "http"}},
    ):
        with pytest.raises(ConfigurationError):
            Connector(configured(host="h", **fields))


def test_to_do_without_transactions_must_be_said_twice():
    with pytest.raises(ConfigurationError, match="transactions"):
        Connector(configured(options={"transactions": False}))
    assert Connector(configured(options={"transactions": False}, accept_unenforced=True))


async def test_what_cannot_go_together_is_told_through_the_gateway(trino_server):
    for options, words in (({"token": "x", "http_scheme": "http"}, "plain http"), ({"tokn": "x"}, "tokn")):
        with pytest.raises(ConfigurationError, match=words):
            async with Gateway.open([trino_server.configure(options=options)]) as gateway:
                await gateway.query(None, "SELECT 1")


async def test_statements_run_without_transactions_when_that_is_accepted(trino_server):
    database = trino_server.configure(options={"transactions": False}, accept_unenforced=True)
    assert await asked(database) == "admin"


@pytest.mark.parametrize("way", ["password", "jwt", "certificate"])
def test_a_way_of_signing_in_without_what_it_needs_is_told(way):
    with pytest.raises(ConfigurationError, match=way):
        Connector(configured(options={"auth": way}))


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ({"host": "h"}, "http://h:8080"),
        ({"host": "h", "port": 443}, "https://h:443"),
        ({"host": "h", "password": Secret("x")}, "https://h:443"),
        ({"host": "h", "port": 8443, "options": {"token": Secret("x")}}, "https://h:8443"),
        ({"host": "h", "options": {"http_scheme": "https"}}, "https://h:443"),
        ({"host": "::1", "port": 8080}, "http://[::1]:8080"),
        ({}, "http://localhost:8080"),
    ],
)
def test_the_address_follows_from_what_is_given(fields, origin):
    assert Connector(configured(**fields)).origin == origin


# What statements say of themselves


@pytest.fixture
def info(trino_server):
    """What the server knows of a query."""

    def told(query):
        request = urllib.request.Request(f"{trino_server.origin}/v1/query/{query}", headers={"X-Trino-User": "admin"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    return told


async def test_every_statement_says_who_asks_and_with_which_settings(trino_server, info):
    options = {
        "source": "gateway of the tests",
        "client_tags": ("a", "b"),
        "session_properties": {"query_priority": 7, "spill_enabled": False},
        "timezone": "Europe/Berlin",
        "roles": {"system": "NONE"},
    }
    executor = TrinoExecutor(trino_server.configure("tpch", "tiny", options=options))
    request = Request(
        statement="SELECT query_id FROM system.runtime.queries WHERE source = 'gateway of the tests'"
        " AND state = 'RUNNING'",
        principal=Principal("zoë, of sales"),
        tags={"tool": "execute_query"},
        call_id="c-1",
    )
    async with executor.open(request) as stream:
        batches = [batch async for batch in stream.batches]
    (query,) = [row[0] for batch in batches if isinstance(batch, Encoded) for row in batch.values]
    session = info(query)["session"]
    await executor.aclose()
    assert (session["user"], session["source"], session["catalog"], session["schema"]) == (
        "admin",
        "gateway of the tests",
        "tpch",
        "tiny",
    )
    assert {"a", "b", "principal=zo%C3%AB%2C of sales", "tool=execute_query", "call=c-1"} == set(session["clientTags"])
    assert session["systemProperties"] == {
        "query_priority": "7",
        "spill_enabled": "false",
        "query_max_run_time": "30000ms",
    }
    assert session["timeZoneKey"] is not None


async def test_session_properties_may_stand_in_a_url(trino_server):
    executor = TrinoExecutor(
        trino_server.configure(options={"session_properties": "query_priority:3;spill_enabled:true"})
    )
    _, rows = await ask(executor, "SHOW SESSION LIKE 'query\\_priority' ESCAPE '\\'")
    assert rows[0][:2] == ["query_priority", "3"]
    await executor.aclose()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"session_properties": {"no_such_thing": 1}}, "no_such_thing"),
        ({"roles": {"system": "no_such_role"}}, "no_such_role"),
    ],
)
async def test_settings_the_server_refuses_are_told_as_the_configurations(trino_server, options, words):
    error = await refused(trino_server.configure(options=options))
    assert isinstance(error, ConnectionFailed)
    assert words in error.message
    assert "configuration" in error.suggestion


async def test_without_a_right_to_set_properties_the_deadline_is_ours_alone(database):
    executor = TrinoExecutor(database("bob", token=Secret(web_token("bob"))))
    for _ in range(2):
        assert await value_of(executor, "SELECT current_user") == "bob"
    assert executor._client.connector.refused == {DEADLINE}
    for _ in range(2):
        async with executor.open(Request(statement="SELECT 1", confinement=Confinement(relations=()))) as stream:
            assert [batch async for batch in stream.batches]
    assert executor._client.connector.refused == {DEADLINE, STATISTICS}
    slow = "SELECT count(*) FROM tpch.sf1000.lineitem a JOIN tpch.sf1000.lineitem b ON a.comment < b.comment"
    assert isinstance(await failure_of(executor, slow, timeout=0.3), QueryTimeout)
    await executor.aclose()
