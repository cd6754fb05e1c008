import copy
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from dragoman.config import STARTER, Configuration, Server, load, show
from dragoman.errors import ConfigurationError
from dragoman.model import DeclaredKey, Secret

FULL = """
default_database = "shop"

[server]
transport = "http"
host = "0.0.0.0"
port = 9000
tools = ["execute_query", "list_databases"]
token = "${DRAGOMAN_TOKEN}"
allowed_hosts = ["gw.example"]

[defaults]
max_rows = 500
timeout = 5

[databases.shop]
url = "postgresql://reader:${SHOP_PASSWORD}@db.example/shop?sslmode=verify-full"
description = "Orders"
schemas = ["public", "sales"]
allow_functions = ["similarity"]
timeout = 2.5

[databases.lake]
dialect = "trino"
host = "trino.example"
port = 443
database = "hive"
schema = "default"
user = "agents"
password = "${TRINO_PASSWORD:-secret}"
options = { http_scheme = "https" }

[[databases.lake.keys]]
table = "sales.orders"
columns = ["customer_id"]
references = "sales.customers"
referenced_columns = ["id"]
"""
ENVIRON = {"DRAGOMAN_TOKEN": "t0ken", "SHOP_PASSWORD": "hunter2"}

Load = Callable[..., Configuration]


@pytest.fixture
def configure(tmp_path: Path) -> Load:
    """Write a configuration into an empty folder and load it from there, in a given environment only."""

    def configure(content: str = "", *, file: str = "dragoman.toml", env: str = "", **arguments: Any) -> Configuration:
        environ: Mapping[str, str] = {"HOME": str(tmp_path), **arguments.pop("environ", {})}
        if content:
            (tmp_path / file).write_text(content)
        if env:
            (tmp_path / ".env").write_text(env)
        return load(folder=tmp_path, environ=environ, **arguments)

    return configure


def problems(configure: Load, content: str = "", **arguments: Any) -> list[dict[str, str]]:
    """Return the problems of a configuration that has some."""
    with pytest.raises(ConfigurationError) as caught:
        configure(content, **arguments)
    found: list[dict[str, str]] = caught.value.context["problems"]
    assert all(problem["key"] in caught.value.message for problem in found)
    return found


def one(content: str) -> str:
    """Return a file with one database and `content` inside it."""
    return f'[databases.a]\nurl = "sqlite:///a.db"\n{content}'


# The file


def test_a_whole_file_becomes_values(configure: Load, tmp_path: Path) -> None:
    configuration = configure(FULL, environ=ENVIRON)
    shop, lake = configuration.databases["shop"], configuration.databases["lake"]
    assert configuration.default_database == "shop"
    assert configuration.source == tmp_path / "dragoman.toml"
    assert configuration.server.tools == ("execute_query", "list_databases")
    assert configuration.server.token == Secret("t0ken")
    assert (shop.password, shop.timeout, shop.max_rows) == (Secret("hunter2"), 2.5, 500)
    assert shop.allow_functions == {"similarity"}
    assert (lake.dialect, lake.port, lake.timeout, lake.options) == ("trino", 443, 5.0, {"http_scheme": "https"})
    assert lake.keys == (DeclaredKey("sales.orders", ("customer_id",), "sales.customers", ("id",)),)


def test_yaml_means_the_same(configure: Load, tmp_path: Path) -> None:
    import tomllib

    import yaml

    configure(FULL, environ=ENVIRON)
    from_toml = show(configure(FULL, environ=ENVIRON))
    (tmp_path / "dragoman.toml").unlink()
    for name in ("dragoman.yaml", "dragoman.yml"):
        from_yaml = show(configure(yaml.safe_dump(tomllib.loads(FULL)), file=name, environ=ENVIRON))
        assert {**from_toml, "source": None, "sources": None} == {**from_yaml, "source": None, "sources": None}
        (tmp_path / name).unlink()


def test_the_starter_file_is_a_valid_configuration(configure: Load) -> None:
    configuration = configure(STARTER)
    assert configuration.databases["shop"].database == "shop.db"
    assert configuration.warnings == ()


def test_default_rows_never_exceed_max_rows(configure: Load) -> None:
    assert configure(one("max_rows = 10")).databases["a"].default_rows == 10
    assert problems(configure, one("max_rows = 10\ndefault_rows = 11"))[0]["key"] == "databases.a.default_rows"


def test_parts_beside_a_url_override_it_and_then_no_whole_url_is_left(configure: Load) -> None:
    database = configure('[databases.a]\nurl = "x://u:p@h:1/d?k=1"\nhost = "other"\noptions = {l = 2}').databases["a"]
    assert (database.host, database.port, database.user, database.url) == ("other", 1, "u", None)
    assert database.options == {"k": "1", "l": 2}


# Where the file is


def test_the_file_asked_for_comes_first_then_the_variable_then_the_folder_then_the_users(
    configure: Load, tmp_path: Path
) -> None:
    home = tmp_path / "xdg" / "dragoman"
    home.mkdir(parents=True)
    places = [tmp_path / "asked.toml", tmp_path / "variable.toml", tmp_path / "dragoman.toml", home / "dragoman.yaml"]
    for place in places[:3]:
        place.write_text(one(""))
    places[3].write_text("databases:\n  a: {url: 'sqlite:///a.db'}\n")
    environ = {"DRAGOMAN_CONFIG": "variable.toml", "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert configure(path="asked.toml", environ=environ).source == places[0]
    assert configure(environ=environ).source == places[1]
    del environ["DRAGOMAN_CONFIG"]
    assert configure(environ=environ).source == places[2]
    places[2].unlink()
    assert configure(environ=environ).source == places[3]
    assert configure(environ=environ).databases["a"].folder == home


def test_a_users_folder_that_cannot_be_looked_into_has_no_file(configure: Load, tmp_path: Path) -> None:
    # The system refuses so long a name as it refuses a folder of somebody else's, the administrator's tests included.
    with pytest.raises(ConfigurationError, match="no database"):
        configure(environ={"XDG_CONFIG_HOME": str(tmp_path / ("x" * 300))})


def test_a_user_whom_the_system_does_not_list_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image that runs as a number, without the variable HOME."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 9)
    with pytest.raises(ConfigurationError, match="no database"):
        load(folder=tmp_path, environ={})


@pytest.mark.parametrize("arguments", [{"path": "no.toml"}, {"environ": {"DRAGOMAN_CONFIG": "no.toml"}}])
def test_a_missing_file_is_an_error_that_says_how_to_write_one(configure: Load, arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"no\.toml") as caught:
        configure(one(""), **arguments)
    assert "config init" in caught.value.suggestion


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("dragoman.toml", b'[databases.a]\npassword = "hunter2'),
        ("dragoman.toml", b"password = hunter2"),
        ("dragoman.toml", b'a = "\xff"'),
        ("dragoman.yaml", b"databases: {a: {password: *hunter2}}"),
        ("dragoman.yaml", b"databases: {a: {password: !hunter2 x}}"),
        ("dragoman.yaml", b"databases: {}\ndatabases: {}"),
        ("dragoman.yaml", b"- a\n- b"),
        ("dragoman.yaml", b"a: [\x01]"),
        ("dragoman.yaml", b"a: 2026-99-99"),
        ("dragoman.yaml", b"databases: &a {shop: *a}"),
        ("dragoman.yaml", b"databases: {shop: {schemas: &a [*a]}}"),
        ("dragoman.yaml", b"? [a]\n: b"),
    ],
)
def test_a_file_that_does_not_parse_is_named_and_its_text_is_not_repeated(
    configure: Load, tmp_path: Path, file: str, content: bytes
) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ConfigurationError, match=file) as caught:
        configure()
    assert "hunter2" not in str(caught.value)


# Interpolation


def test_interpolation_reads_the_environment_and_the_env_file_and_keeps_dollars(configure: Load) -> None:
    content = one('description = "${A} ${B:-b} ${C:-c} ${D} $$ $${A} $x"')
    configuration = configure(content, environ={"A": "env", "C": ""}, env="A=dotenv\nD=dotenv\n")
    assert configuration.databases["a"].description == "env b c dotenv $ ${A} $x"


def test_interpolation_reaches_every_depth_and_every_type(configure: Load) -> None:
    content = one('schemas = ["${S}"]\nmax_rows = "${N}"\noptions = {deep = {er = "${S}"}}')
    database = configure(content, environ={"S": "sales", "N": "7"}).databases["a"]
    assert (database.schemas, database.max_rows, database.options) == (("sales",), 7, {"deep": {"er": "sales"}})


def test_interpolated_text_is_not_interpolated_again(configure: Load) -> None:
    assert configure(one('description = "${A}"'), environ={"A": "${B}"}).databases["a"].description == "${B}"


def test_missing_variables_are_all_named_with_file_and_key(configure: Load) -> None:
    found = problems(configure, FULL)
    assert [(each["file"], each["key"]) for each in found] == [
        ("dragoman.toml", "server.token"),
        ("dragoman.toml", "databases.shop.url"),
    ]
    assert "DRAGOMAN_TOKEN" in found[0]["message"]
    assert "SHOP_PASSWORD" in found[1]["message"]


def test_an_unclosed_reference_is_a_problem(configure: Load) -> None:
    assert "$$" in problems(configure, one('description = "${A"'))[0]["remedy"]


# Precedence


def test_the_command_line_wins_over_environment_over_env_file_over_file(configure: Load) -> None:
    content = '[server]\nport = 1\nhost = "file"\nlog_level = "debug"\ntransport = "http"\n' + one("")
    configuration = configure(
        content,
        env="DRAGOMAN_SERVER__HOST=dotenv\nDRAGOMAN_SERVER__PORT=2\nDRAGOMAN_SERVER__LOG_LEVEL=error\n",
        environ={"DRAGOMAN_SERVER__HOST": "environ", "DRAGOMAN_SERVER__PORT": "3"},
        overrides={"server": {"port": 4}},
    )
    server = configuration.server
    assert (server.port, server.host, server.log_level, server.transport) == (4, "environ", "error", "http")
    assert configuration.sources["server.port"] == "command line"
    assert configuration.sources["server.host"] == "environment"
    assert configuration.sources["server.log_level"] == ".env"
    assert configuration.sources["server.transport"] == "dragoman.toml"


def test_the_environment_configures_every_section(configure: Load) -> None:
    environ = {
        "DRAGOMAN_DATABASES__SHOP__URL": "sqlite:///shop.db",
        "DRAGOMAN_DATABASES__SHOP__SCHEMAS": "main, other",
        "DRAGOMAN_DATABASES__SHOP__ALLOW_FOREIGN_TABLES": "yes",
        "DRAGOMAN_DATABASES__SHOP__OPTIONS__MODE": "x",
        "DRAGOMAN_DATABASES__SHOP__KEYS": json.dumps([{"table": "t", "columns": ["a"]}]),
        "DRAGOMAN_DEFAULTS__MAX_ROWS": "7",
        "DRAGOMAN_DEFAULT_DATABASE": "shop",
        "DRAGOMAN_SERVER__TOOLS": '["execute_query"]',
        "DRAGOMAN_TOKEN": "the user's own variable",
        "DRAGOMAN_MY__THING": "another",
    }
    configuration = configure(environ=environ)
    shop = configuration.databases["shop"]
    assert (shop.schemas, shop.allow_foreign_tables, shop.max_rows) == (("main", "other"), True, 7)
    assert (shop.options, shop.keys) == ({"mode": "x"}, (DeclaredKey("t", ("a",)),))
    assert (configuration.default_database, configuration.server.tools) == ("shop", ("execute_query",))


def test_a_variable_reaches_a_database_with_a_dash_in_its_name(configure: Load) -> None:
    content = '[databases.my-shop]\nurl = "sqlite:///a.db"\n'
    configuration = configure(content, environ={"DRAGOMAN_DATABASES__MY_SHOP__MAX_ROWS": "3"})
    assert {name: database.max_rows for name, database in configuration.databases.items()} == {"my-shop": 3}


def test_database_url_alone_is_enough_and_yields_to_any_other_configuration(configure: Load) -> None:
    environ = {"DATABASE_URL": "postgresql://u:p$${x}@h/Shop"}
    alone = configure(environ=environ).databases
    assert alone["shop"].password == Secret("p$${x}")
    assert set(configure(env="DATABASE_URL=sqlite:///b.db").databases) == {"b"}
    assert set(configure(one(""), environ=environ).databases) == {"a"}


def test_a_url_of_a_stronger_source_replaces_the_whole_connection_and_keeps_the_settings(
    configure: Load, tmp_path: Path
) -> None:
    content = '[databases.a]\ndialect = "x"\nhost = "h"\npassword = "p"\noptions = {k = 1}\ndescription = "kept"\n'
    database = configure(content, urls=["a=sqlite:///other.db"]).databases["a"]
    assert (database.dialect, database.host, database.password, database.options) == ("sqlite", None, None, {})
    assert (database.description, database.folder) == ("kept", tmp_path)


def test_a_file_is_relative_to_the_configuration_and_a_url_of_the_command_line_to_the_current_folder(
    configure: Load, tmp_path: Path
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "c.toml").write_text(one(""))
    databases = configure(path="deep/c.toml", urls=["sqlite:///b.db"]).databases
    assert (databases["a"].folder, databases["b"].folder) == (tmp_path / "deep", tmp_path)


@pytest.mark.parametrize(
    ("content", "urls"),
    [
        ("", ["sqlite:///shop.db", "postgresql://h/shop"]),
        ("", ["shop=sqlite:///a.db", "shop=sqlite:///b.db"]),
        ('[databases.shop]\nurl = "sqlite:///shop.db"', ["postgresql://h/shop"]),
    ],
)
def test_a_second_database_of_one_name_is_an_error_that_shows_how_to_name_it(
    configure: Load, content: str, urls: list[str]
) -> None:
    found = problems(configure, content, urls=urls)
    assert "NAME=URL" in found[0]["remedy"]


# Problems

PROBLEMS = [
    ("[servr]\nport = 1", "servr", "Did you mean server?"),
    ("[server]\nprot = 1", "server.prot", "Did you mean port?"),
    ("port = 1", "port", "It belongs under [server]."),
    ("[databases.a]\nurk = 1\n", "databases.a.urk", "Did you mean url?"),
    ("[defaults]\nurl = 'sqlite:///a.db'", "defaults.url", "Known:"),
    ("[server]\nport = 'eighty'", "server.port", "a whole number from 0 to 65535"),
    ("[server]\nport = 70000", "server.port", "a whole number from 0 to 65535"),
    ("[server]\nport = true", "server.port", "a whole number from 0 to 65535"),
    ("[server]\nport = 1.5", "server.port", "a whole number from 0 to 65535"),
    ("[server]\ntransport = 'htp'", "server.transport", "Did you mean http?"),
    ("[server]\ntools = [1]", "server.tools", "a list of texts"),
    ("[server]\nhost = 1", "server.host", "expected text"),
    ("server = 1", "server", "a table of keys"),
    ("[defaults]\ntimeout = 0", "defaults.timeout", "seconds, more than 0"),
    ("[defaults]\ntimeout = nan", "defaults.timeout", "seconds, more than 0"),
    ("[defaults]\ntimeout = 'soon'", "defaults.timeout", "seconds, more than 0"),
    ("[defaults]\ncatalog_ttl = -1", "defaults.catalog_ttl", "seconds, 0 or more"),
    ("[defaults]\nmax_rows = 0", "defaults.max_rows", "at least 1"),
    ("[model]\nmax_tokens = 100", "model.max_tokens", "at least 200"),
    ("[defaults]\nallow_foreign_tables = 1", "defaults.allow_foreign_tables", "true or false"),
    ("[defaults]\noptions = 'x'", "defaults.options", "JSON"),
    ("[databases]\na = 'sqlite:///a.db'", "databases.a", "a table of keys"),
    ("[databases.a]\ndescription = 'x'", "databases.a", "neither url nor dialect"),
    ("[databases.A]\nurl = 'sqlite:///a.db'", "databases.A", "cannot have this name"),
    ("[databases.a]\nurl = 'x+y://h'", "databases.a.url", "not a driver"),
    ("[[databases.a.keys]]\ntabel = 't'", "databases.a.keys.0.tabel", "Did you mean table?"),
    ("[[databases.a.keys]]\ntable = 't'", "databases.a.keys.0", "columns missing"),
    ("[[databases.a.keys]]\ntable = 't'\ncolumns = ['a']\nreferenced_columns = ['b']", "databases.a.keys.0", "without"),
    (
        "[[databases.a.keys]]\ntable = 't'\ncolumns = ['a']\nreferences = 'u'\nreferenced_columns = ['b', 'c']",
        "databases.a.keys.0",
        "differ in length",
    ),
    ("default_database = 'b'\n[databases.shop]\nurl = 'sqlite:///a.db'", "default_database", "Known: shop"),
    ("default_database = 'shup'\n[databases.shop]\nurl = 'sqlite:///a.db'", "default_database", "Did you mean shop?"),
    (
        "default_database = 'shup'\n[databases.shop]\nurl = 'sqlite:///a.db'\nmax_row = 1",
        "default_database",
        "Did you mean shop? Known: shop.",
    ),
    (
        "[databases.shop]\nurl = 'sqlite:///a.db'\nmax_row = 1\n"
        "[roles.r]\nprincipals = ['*']\n[[roles.r.grants]]\ndatabase = 'shup'\ntables = ['*']",
        "roles.r.grants.0.database",
        "Did you mean shop?",
    ),
    ("default_database = 'b'\ndatabases = 3", "databases", "a table of keys"),
    ("default_database = 'b'\n[[databases]]\nurl = 'sqlite:///a.db'", "databases", "a table of keys"),
]


@pytest.mark.parametrize(("content", "key", "words"), PROBLEMS, ids=[key for _, key, _ in PROBLEMS])
def test_a_problem_names_file_key_and_remedy(configure: Load, content: str, key: str, words: str) -> None:
    found = next(each for each in problems(configure, content) if each["key"] == key)
    assert found["file"] == "dragoman.toml"
    assert words in f"{found['message']} {found['remedy']}"


def test_all_problems_are_told_at_once(configure: Load) -> None:
    content = "[server]\nport = -1\nhots = 'x'\n" + one("max_rows = 'x'\n[databases.b]\nurl = 'nonsense'")
    keys = {"server.port", "server.hots", "databases.a.max_rows", "databases.b.url"}
    assert {each["key"] for each in problems(configure, content)} == keys


def test_a_thousand_problems_of_a_long_file_are_told_with_their_lines(configure: Load) -> None:
    """The file is read once for all: read for each problem it takes minutes."""
    content = "databases:\n" + "".join(f"  d{n}:\n    url: sqlite:///a.db\n    odd: 1\n" for n in range(1000))
    with pytest.raises(ConfigurationError) as caught:
        configure(content, file="dragoman.yaml")
    assert [each["line"] for each in caught.value.context["problems"]] == [4 + 3 * n for n in range(1000)]


def test_a_wrong_variable_is_named_as_the_user_wrote_it(configure: Load) -> None:
    environ = {"DRAGOMAN_SERVER__PRT": "1", "DRAGOMAN_DATABASES__A__MAX_ROWS": "x"}
    found = problems(configure, one(""), environ=environ)
    assert [(each["file"], each["key"]) for each in found] == [
        ("environment", "DRAGOMAN_SERVER__PRT"),
        ("environment", "DRAGOMAN_DATABASES__A__MAX_ROWS"),
    ]


def test_nothing_configured_is_an_error_that_shows_the_ways_to_start(configure: Load) -> None:
    remedy = problems(configure)[0]["remedy"]
    assert "dragoman serve sqlite:///shop.db" in remedy
    assert "DATABASE_URL" in remedy


# Secrets


def test_no_secret_appears_in_what_is_shown_or_printed(configure: Load) -> None:
    content = (
        FULL + '\n[databases.x]\nurl = "x://u:hunter2@h/d?sslpassword=hunter2"\noptions = {access_token = "hunter2"}'
    )
    configuration = configure(content, environ=ENVIRON)
    shown = json.dumps(show(configuration))
    assert "postgresql://reader:***@db.example/shop?sslmode=verify-full" in shown
    for secret in ("hunter2", "t0ken"):
        assert secret not in shown
        assert secret not in repr(configuration)


def test_a_wrong_secret_is_not_repeated(configure: Load) -> None:
    for content in ("[server]\ntoken = 4711", one("password = 4711"), one("port = 'hunter2'"), one("keys = 'hunter2'")):
        found = json.dumps(problems(configure, content))
        assert "4711" not in found
        assert "hunter2" not in found


def test_a_readable_file_with_a_literal_password_is_warned_about(configure: Load, tmp_path: Path) -> None:
    content = '[databases.a]\nurl = "x://u:hunter2@h/d"\n'
    (tmp_path / "dragoman.toml").write_text(content)
    (tmp_path / "dragoman.toml").chmod(0o644)
    warnings = configure().warnings
    assert len(warnings) == 1
    assert "databases.a.url" in warnings[0]
    assert "hunter2" not in warnings[0]
    (tmp_path / "dragoman.toml").chmod(0o600)
    assert configure().warnings == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("server.state_dir", "kept"),
        ("server.queries_dir", "kept"),
        ("results.dir", "kept"),
        ("audit.path", "kept/a.jsonl"),
    ],
)
def test_a_folder_that_everybody_may_write_in_is_warned_about(
    configure: Load, tmp_path: Path, key: str, value: str
) -> None:
    section, name = key.split(".")
    content = one("") + f"\n[{section}]\n{name} = {value!r}\n"
    assert configure(content).warnings == ()  # the server makes it
    for mode, warned in ((0o700, 0), (0o775, 0), (0o757, 1), (0o1777, 1)):
        (tmp_path / "kept").mkdir(exist_ok=True)
        (tmp_path / "kept").chmod(mode)
        warnings = configure(content).warnings
        assert len(warnings) == warned, oct(mode)
        assert all(warning.startswith(f"{key}: ") and str(tmp_path / "kept") in warning for warning in warnings)


# Exposure


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1"])
def test_loopback_needs_no_token(host: str) -> None:
    Server(transport="http", host=host).check_exposure()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "gw.example", ""])
def test_any_other_host_needs_a_token_or_an_explicit_word(host: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Server(transport="http", host=host).check_exposure()
    assert "--allow-unauthenticated" in caught.value.suggestion
    Server(transport="http", host=host).check_exposure(allow_unauthenticated=True)
    Server(transport="http", host=host, token=Secret("x")).check_exposure()
    Server(transport="stdio", host=host).check_exposure()


# Cost


def test_loading_a_toml_file_imports_no_heavy_module(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text(one(""))
    code = "import sys; from dragoman.config import load; load(); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not {"pydantic", "yaml", "asyncio", "mcp", "sqlglot", "msgspec"} & set(result.stdout.split())


def test_a_variable_of_a_section_that_is_not_there_is_the_users_own_and_a_near_miss_is_told(configure: Load) -> None:
    environ = {
        "DRAGOMAN_MY__THING": "1",
        "DRAGOMAN_SEVER__PORT": "2",
        "DRAGOMAN_DATABASES__SHOP__URL": "sqlite:///shop.db",
    }
    configuration = configure("", environ=environ, env="DRAGOMAN_OURS__A__B=1\n")
    assert list(configuration.databases) == ["shop"]
    (warning,) = configuration.warnings
    assert "DRAGOMAN_SEVER__PORT" in warning
    assert "server" in warning


def places(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value within `values`."""
    if path:
        yield path
    inner = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def replaced(values: Any, path: tuple[Any, ...], odd: object) -> Any:
    """Return a copy of `values` with another value at `path`."""
    changed = copy.deepcopy(values)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = odd
    return changed


ODD = (
    "\0", "a\0b", "${file:a\0b}", "${file:/dev/null}", "${" + "x" * 5000 + "}", "ENC:v1:", "\ud7ff" * 300, "",
    10**400, -1, True, None, [], [[]], {}, {"": ""}, float("inf"), float("nan"), [None] * 3, "9" * 5000, "://", "a://[::1",
)  # fmt: skip


def test_an_env_file_that_is_no_text_is_told(configure: Load, tmp_path: Path):
    (tmp_path / ".env").write_bytes("SHOP_PASSWORD=pässword".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"\.env cannot be read"):
        configure(FULL)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_whatever_a_value_is_it_is_read_or_refused(odd: object, configure: Load, tmp_path: Path):
    """An error of another kind would end a server whose configuration is read again."""
    more = (
        "[audit]\npath = 'a.jsonl'\n[results]\ndir = 'kept'\n[[server.tokens]]\nname = 'x'\nhash = 'y'\nexpires = 'z'\n"
    )
    values = tomllib.loads(
        FULL.replace("[server]", "[server]\nstate_dir = 's'\nqueries_dir = 'q'\ntls_cert = 't'", 1) + more
    )
    for path in places(values):
        written = json.dumps(replaced(values, path, odd))
        with suppress(ConfigurationError):
            configure(written, file="dragoman.yaml", environ=ENVIRON)


@pytest.mark.parametrize(
    "odd",
    [f"{'[' * 5000}{']' * 5000}", "{a=" * 3000 + "1" + "}" * 3000, "9" * 5000, "[" * 5000, f"{'a.' * 20000}b = 1"],
    ids=["lists", "tables", "digits", "open", "dots"],
)
def test_a_value_that_no_parser_reads_is_told(odd: str, configure: Load):
    with pytest.raises(ConfigurationError):
        configure(f'x = {odd}\n[databases.a]\nurl = "sqlite:///a.db"')
