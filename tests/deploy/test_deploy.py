"""What deploy/ holds: what the image and the compose file would run is run here, without a container runtime."""

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from dragoman.cli import main
from dragoman.config import load
from dragoman.mcp.tls import tls_context
from dragoman_postgres.testing import Server

from .rendering import render

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
CHART = DEPLOY / "helm" / "dragoman"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)


def test_the_image_is_built_of_this_repository_and_runs_as_nobody():
    assert {line.split()[0] for line in instructions("FROM")} == {"python:3.13-slim"}
    copied = [line.split()[0] for line in instructions("COPY") if "--from" not in line]
    assert all((ROOT / source).exists() for source in copied)
    installed = re.findall(r"/source/([\w/]+)", instructions("RUN")[0])
    assert all((ROOT / path / "pyproject.toml").is_file() for path in installed)
    assert instructions("USER") == ["65532:65532"]
    assert "http" not in re.sub(r"--transport|\"http\"", "", DOCKERFILE)


@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_what_the_image_installs_is_whole_and_needs_nothing_of_the_repository(tmp_path: Path):
    """The image's own commands, in folders of this machine and with its Python."""
    for source, target in (line.split() for line in instructions("COPY") if "--from" not in line):
        if not target.startswith("/source/"):
            continue
        shutil.copytree(
            ROOT / source, tmp_path / target.lstrip("/"), ignore=shutil.ignore_patterns(".*", "__pycache__")
        )
    moved = re.sub(r"/(source|opt)/", rf"{tmp_path}/\1/", instructions("RUN")[0])
    environment = {"PATH": f"{Path(sys.base_prefix, 'bin')}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTPS_"))}
    done = subprocess.run(moved, shell=True, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(tmp_path / "source")
    (tmp_path / "new.db").touch()
    program = tmp_path / "opt" / "dragoman" / "bin" / "dragoman"
    told = subprocess.run(
        [program, "dialects"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert all(re.search(rf"^\W*{name}\b", told.stdout, re.MULTILINE) for name in ("postgres", "sqlite", "trino"))
    query = [program, "query", "sqlite:///new.db", "SELECT 1 AS one", "--format", "json"]
    told = subprocess.run(query, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["rows"] == [[1]]


def test_every_image_has_a_version_and_a_public_name():
    images = {name: service["image"] for name, service in COMPOSE["services"].items()}
    assert images.pop("gateway") == "dragoman"
    assert all(re.fullmatch(r"[\w-]+(/[\w-]+)?:v?\d[\d.]*", image) for image in images.values())
    mounted = [each.split(":")[0] for service in COMPOSE["services"].values() for each in service.get("volumes", ())]
    files = [each for each in mounted if each.startswith("./")]
    assert all((DEPLOY / "compose" / each).exists() for each in files)
    assert {each for each in mounted if not each.startswith("./")} == COMPOSE["volumes"].keys()
    gateway = COMPOSE["services"]["gateway"]
    # A file that is mounted by itself stays the old one when an editor replaces it, and is never reloaded.
    assert (DEPLOY / "compose" / gateway["volumes"][0].split(":")[0] / "dragoman.toml").is_file()
    assert (gateway["read_only"], gateway["cap_drop"]) == (True, ["ALL"])


def test_the_realm_gives_the_tokens_that_the_gateway_takes():
    settings = tomllib.loads((DEPLOY / "compose" / "gateway" / "dragoman.toml").read_text())
    auth = settings["server"]["auth"]
    realm = json.loads((DEPLOY / "compose" / "realm.json").read_text())
    assert auth["issuer"].endswith(f"/realms/{realm['realm']}")
    scope = next(each for each in realm["clientScopes"] if each["name"] == auth["scopes"][0])
    mapped = [mapper["config"] for mapper in scope["protocolMappers"]]
    assert {"included.custom.audience": auth["audience"][0]}.items() <= {
        key: value for config in mapped for key, value in config.items()
    }.items()
    assert {auth["groups_claim"], auth["user_claim"]} <= {config.get("claim.name") for config in mapped}
    resource = next(each for each in realm["clients"] if each["clientId"] == "dragoman-rs")
    assert resource["attributes"]["resource_url"] == auth["audience"][0]
    groups = {group for role in settings["roles"].values() for group in role["groups"]}
    assert groups == {each["name"] for each in realm["groups"]}


def test_prometheus_reads_the_gateway_s_metrics():
    jobs = yaml.safe_load((DEPLOY / "compose" / "prometheus.yml").read_text())["scrape_configs"]
    settings = tomllib.loads((DEPLOY / "compose" / "gateway" / "dragoman.toml").read_text())["server"]
    (target,) = jobs[0]["static_configs"][0]["targets"]
    assert target in settings["allowed_hosts"]
    assert settings["metrics"] is True


@pytest.fixture(scope="module")
def database() -> Iterator[tuple[Server, int]]:
    """A server with what the compose file's begins with, and its port."""
    psql = shutil.which("psql")
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    server = Server.start(tcp=port)
    psql = psql or str(server.bin and server.bin / "psql")
    passwords = {"SHOP_PASSWORD": "one'", "AUDIT_PASSWORD": "two"}
    script = str(DEPLOY / "compose" / "shop.sql")
    command = [psql, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", script, server.address("postgres")]
    subprocess.run(command, env=os.environ | passwords, check=True, timeout=60)
    yield server, port
    server.stop()


@pytest.fixture
def configuration(database: tuple[Server, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The compose file's configuration, with this machine's addresses."""
    for name in ("SHOP_PASSWORD", "AUDIT_PASSWORD"):
        monkeypatch.setenv(name, "any")
    text = (DEPLOY / "compose" / "gateway" / "dragoman.toml").read_text()
    text = text.replace("@postgres/", f"@127.0.0.1:{database[1]}/")
    (tmp_path / "dragoman.toml").write_text(text)
    return tmp_path / "dragoman.toml"


def test_the_compose_file_s_callers_see_what_their_roles_grant(configuration: Path, capsys: pytest.CaptureFixture[str]):
    def query(who: str, database: str, sql: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as ended:
            main(["query", database, sql, "--as", who, "--format", "json", "--config", str(configuration)])
        return ended.value.code, "".join(capsys.readouterr())

    assert query("ann:analysts", "shop", "SELECT sum(total) AS s FROM orders")[0] == 0
    code, told = query("ann:analysts", "shop", "SELECT email FROM customers")
    assert (code, "COLUMN_NOT_FOUND" in told) == (1, True)
    code, told = query("ann:analysts", "audit", "SELECT 1")
    assert (code, "UNKNOWN_DATABASE" in told) == (2, True)
    code, told = query("olga:auditors", "audit", "SELECT principal, outcome FROM calls ORDER BY seq LIMIT 2")
    assert code == 0
    assert json.loads(told)["rows"] == [["ann", "ok"], ["ann", "COLUMN_NOT_FOUND"]]


def test_the_role_of_the_audit_owns_no_database_and_needs_not_own_its_table(
    database: tuple[Server, int], configuration: Path, capsys: pytest.CaptureFixture[str]
):
    def ask() -> object:
        with pytest.raises(SystemExit) as ended:
            main(["query", "shop", "SELECT 1", "--as", "ann:analysts", "--config", str(configuration)])
        capsys.readouterr()
        return ended.value.code

    def run(sql: str) -> str:
        psql = shutil.which("psql") or str(database[0].bin and database[0].bin / "psql")
        command = [psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, database[0].address("audit")]
        return subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout

    assert ask() == 0
    assert run("SELECT count(*) FROM pg_database WHERE pg_get_userbyid(datdba) = 'audit'") == "0\n"
    script = (DEPLOY / "compose" / "shop.sql").read_text()
    run(next(line.removeprefix("--") for line in script.splitlines() if "OWNER TO" in line))
    before = int(run("SELECT count(*) FROM calls"))
    assert ask() == 0
    assert int(run("SELECT count(*) FROM calls")) == before + 1


def test_the_image_s_command_serves_and_ends_in_time(configuration: Path):
    command = [*json.loads(instructions("ENTRYPOINT")[0]), *json.loads(instructions("CMD")[0])]
    assert command[0] == "dragoman"
    command = [sys.executable, "-m", "dragoman", *command[1:-1], "0"]
    environment = os.environ | {"DRAGOMAN_CONFIG": str(configuration), "DRAGOMAN_SERVER__DRAIN": "0"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stderr is not None
        begun = (re.search(r"serving on http://[\d.]+:(\d+)", line) for line in process.stderr)
        port = next(found[1] for found in begun if found)

        def get(path: str, data: bytes | None = None) -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=30) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, f"{error.headers}"

        assert get("/health")[0] == 200
        assert get("/ready") == (200, '{"status":"ready"}')
        assert "dragoman_config_version 1" in get("/metrics")[1]
        status, told = get("/mcp", b"{}")
        assert (status, "resource_metadata=" in told) == (401, True)
        document = json.loads(get("/.well-known/oauth-protected-resource/mcp")[1])
        assert document["authorization_servers"] == ["http://localhost:8180/realms/team"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0


def check_of(port: str) -> str:
    """Return the image's health check as a command of this machine."""
    command = instructions("HEALTHCHECK")[0].partition("CMD ")[2].replace("8080", port)
    for source, target in (line.split() for line in instructions("COPY") if "--from" not in line):
        command = command.replace(target, str(ROOT / source))
    return re.sub(r"\bpython\b", sys.executable, command)


@pytest.mark.parametrize("tls", ["none", "of the file", "of the environment"])
def test_the_health_check_passes_with_and_without_tls_and_the_server_warns_of_nothing(tmp_path: Path, tls: str):
    certificate = trustme.CA().issue_cert("gateway.example")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "tls.pem")
    file = tmp_path / "dragoman.toml"
    server = "[server]\ntls_cert = 'tls.pem'\n" if tls == "of the file" else ""
    file.write_text(f"{server}[databases.shop]\nurl = 'sqlite:///new.db'\n")
    (tmp_path / "new.db").touch()
    environment = os.environ | {"DRAGOMAN_CONFIG": str(file), "HTTP_PROXY": "http://127.0.0.1:9"}
    if tls == "of the environment":
        environment["DRAGOMAN_SERVER__TLS_CERT"] = str(tmp_path / "tls.pem")
    command = [sys.executable, "-m", "dragoman", "serve", "--transport", "http", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        begun = (re.search(r"serving on https?://[\d.]+:(\d+)", line) for line in process.stderr)
        check = check_of(next(found[1] for found in begun if found))
        assert [subprocess.run(check, shell=True, env=environment, timeout=30).returncode for _ in range(2)] == [0, 0]
        process.send_signal(signal.SIGTERM)
        assert "refused" not in process.communicate(timeout=30)[1]
    assert subprocess.run(check, shell=True, env=environment, timeout=30).returncode != 0


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path):
    unit = configparser.RawConfigParser(strict=False, comment_prefixes=("#",))
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    file = DEPLOY / "systemd" / "dragoman.service"
    unit.read(file)
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert words[0] == "serve"
    assert shlex.split(unit["Service"]["ExecReload"])[1:3] == ["reload", "$MAINPID"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed here")
    (tmp_path / file.name).write_text(file.read_text().replace(program, sys.executable))
    found = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / file.name)], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_what_the_server_starts_makes_no_system_call_that_the_unit_refuses(tmp_path: Path):
    pytest.importorskip("vl_convert")
    if shutil.which("systemd-analyze") is None or shutil.which("strace") is None:
        pytest.skip("systemd or strace is not installed here")
    unit = (DEPLOY / "systemd" / "dragoman.service").read_text()
    (words,) = re.findall("^SystemCallFilter=(.*)$", unit, re.MULTILINE)
    allowed = {call for word in words.split() for call in system_calls(word)}
    (tmp_path / "new.db").touch()
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    requests = [{"method": "initialize", "params": begin}]
    requests += [
        {"method": "tools/call", "params": {"name": "export_result", "arguments": {"sql": SERIES, "format": form}}}
        for form in ("csv", "parquet", "xlsx", "png")
    ]
    serve = [sys.executable, "-m", "dragoman", "serve", "--tools", "full", "sqlite:///new.db"]
    trace = tmp_path / "trace"
    with subprocess.Popen(
        ["strace", "-f", "-c", "-o", str(trace), *serve],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for number, request in enumerate(requests):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n")
            process.stdin.flush()
            answer = next(each for each in map(json.loads, process.stdout) if each.get("id") == number)
            assert not answer["result"].get("isError"), answer
        process.stdin.close()
    made = set(re.findall(r"^ *[\d.]+ .* (\w+)$", trace.read_text(), re.MULTILINE)) - {"total", "syscall"}
    assert "execve" in made
    assert not made - allowed


SERIES = "SELECT 'a' AS name, 1 AS number UNION ALL SELECT 'b', 2"


def system_calls(word: str) -> Iterator[str]:
    """The system calls of a group of systemd's, or the only one."""
    if not word.startswith("@"):
        yield word
        return
    listed = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True)
    for line in listed.stdout.splitlines():
        if line.startswith("    ") and not line.strip().startswith("#"):
            yield from system_calls(line.strip())


def documents(**changed: Any) -> dict[str, Any]:
    values = yaml.safe_load((CHART / "values.yaml").read_text()) | changed
    rendered = [render(file.read_text(), values) for file in sorted((CHART / "templates").glob("*.yaml"))]
    return {each["kind"]: each for each in map(yaml.safe_load, rendered)}


def test_the_chart_makes_pods_that_write_nothing_and_end_in_time(tmp_path: Path):
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {"apiVersion", "name", "version"} <= chart.keys()
    made = documents()
    assert made.keys() == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    pod = made["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = made[kind]["spec"]
        chosen = spec.get("podSelector") or spec["selector"]
        assert chosen.get("matchLabels", chosen) == labels
    (tmp_path / "dragoman.toml").write_text(made["ConfigMap"]["data"]["dragoman.toml"])
    environment = {"DRAGOMAN_TOKEN": "t", "SHOP_PASSWORD": "p"}
    server = load(tmp_path / "dragoman.toml", environ=environment, folder=tmp_path).server
    assert pod["terminationGracePeriodSeconds"] > server.drain + server.grace
    server.check_exposure()


def test_the_chart_s_service_sends_a_client_to_one_pod():
    assert documents()["Service"]["spec"]["sessionAffinity"] == "ClientIP"
    assert documents(sessionAffinity="None")["Service"]["spec"]["sessionAffinity"] == "None"


def test_the_chart_s_pods_serve_and_are_asked_over_tls_where_a_secret_is_named(tmp_path: Path):
    (plain,) = documents()["Deployment"]["spec"]["template"]["spec"]["containers"]
    pod = documents(tlsSecretName="certificate")["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    probes = [(each["livenessProbe"], each["readinessProbe"]) for each in (plain, container)]
    assert [[probe["httpGet"].get("scheme") for probe in pair] for pair in probes] == [[None] * 2, ["HTTPS"] * 2]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "tls"]
    assert {"name": "tls", "secret": {"secretName": "certificate", "defaultMode": 0o440}} in pod["volumes"]
    certificate = trustme.CA().issue_cert("gateway.example")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    certificate.private_key_pem.write_to_path(tmp_path / "tls.key")
    given = {each["name"]: each["value"].replace(mount["mountPath"], str(tmp_path)) for each in container["env"]}
    file = tmp_path / "dragoman.toml"
    file.write_text("[databases.shop]\nurl = 'sqlite:///:memory:'\n")
    server = load(file, environ=given, folder=tmp_path).server
    assert tls_context(server) is not None
    assert server.watch, "nobody sends a signal to a pod whose secret is renewed"


def test_the_chart_says_who_may_connect_where_that_is_given():
    ingress = documents()["NetworkPolicy"]["spec"]["ingress"]
    assert ingress == [{"ports": [{"port": "http"}]}]
    peer = {"namespaceSelector": {"matchLabels": {"team": "agents"}}}
    ingress = documents(networkPolicy={"from": [peer]})["NetworkPolicy"]["spec"]["ingress"]
    assert ingress[0]["from"] == [peer]
