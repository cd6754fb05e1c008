import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from dragoman.cli import COMMANDS
from dragoman.config import STARTER, load
from dragoman.model import Secret

from .conftest import Dragoman

# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples_and_takes_config_and_url(dragoman: Dragoman, command: str) -> None:
    outcome = dragoman(command, "-h")
    assert outcome.code == 0
    assert f"dragoman {command}" in outcome.out.split("examples:")[1]
    actions = {"audit": "verify", "config": "show", "queries": "list", "token": "create", "secrets": "init"}
    action = actions.get(command)
    help_text = dragoman(command, action, "-h").out if action else outcome.out
    assert "--config" in help_text
    assert "--url" in help_text


def test_the_program_lists_its_commands(dragoman: Dragoman) -> None:
    outcome = dragoman("-h")
    assert all(command in outcome.out for command in COMMANDS)


def test_python_m_dragoman_is_the_same_program() -> None:
    result = subprocess.run([sys.executable, "-m", "dragoman", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("dragoman ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("arguments", [["dialects"], ["check", "SELECT 1", "--dialect", "sqlite", "--json"]])
def test_output_that_cannot_be_written_is_no_bug(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        program = [sys.executable, "-m", "dragoman", *arguments]
        result = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == (
        "INTERNAL_ERROR: The output cannot be written (No space left on device).\nWrite it elsewhere.\n"
    )


def test_output_whose_encoding_lacks_a_character_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "shop.db").touch()
    program = [sys.executable, "-m", "dragoman", "query", "shop.db", "SELECT '\u2603' AS x"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(program, capture_output=True, env=environment, cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert b"PYTHONIOENCODING=utf-8" in result.stderr, result


# databases, describe, dialects


@pytest.mark.usefixtures("configured")
def test_databases_tells_what_list_databases_tells(dragoman: Dragoman) -> None:
    human = dragoman("databases", "--url", "gone=sqlite:///gone.db")
    assert human.code == 0
    assert "A small shop" in human.out
    assert "unreachable" in human.out
    answer = json.loads(dragoman("databases", "--json").out)
    assert [(each["name"], each["dialect"], each["status"]) for each in answer["databases"]] == [
        ("shop", "sqlite", "ready")
    ]


TOO_LONG = "9" * 5000


@pytest.mark.parametrize(
    "words",
    [
        ("databases", "--config", TOO_LONG),
        ("databases", "--config", "~nosuchuser/dragoman.toml"),
        ("query", f"/{TOO_LONG}.db", "SELECT 1"),
        ("query", f"sqlite:///{TOO_LONG}.db", "SELECT 1"),
    ],
    ids=["config", "home of nobody", "path", "url"],
)
def test_a_name_that_no_file_can_have_is_one_that_is_not_there(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    outcome = dragoman(*words)
    assert outcome.code == 2
    assert outcome.err.startswith("CONFIGURATION_ERROR: There is no ")


def test_a_folder_that_no_name_can_have_is_a_problem_of_the_configuration(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman.toml").write_text(f'[server]\nqueries_dir = "{TOO_LONG}"\nprompts_dir = "~nosuchuser/x"\n')
    assert "INTERNAL_ERROR" not in dragoman("config", "check").err


@pytest.mark.parametrize("words", [("databases",), ("describe", "shop"), ("describe", "shop", "orders")])
def test_a_caller_without_a_role_is_told_to_say_who_calls(dragoman: Dragoman, folder: Path, words: tuple[str]) -> None:
    (folder / "dragoman.toml").write_text(
        '[databases.shop]\nurl = "sqlite:///shop.db"\n[roles.eu]\ngroups = ["eu"]\ntools = ["list_databases"]\n'
    )
    outcome = dragoman(*words)
    assert outcome.code == 1
    assert outcome.err.startswith("PERMISSION_DENIED: No role grants the tool ")
    assert "--as USER:GROUP" in outcome.err


@pytest.mark.usefixtures("configured")
def test_describe_lists_tables_and_describes_one(dragoman: Dragoman) -> None:
    listed = dragoman("describe", "shop")
    assert listed.out.split() == ["main", "customers", "orders", "main", "(views)", "big_orders"]
    table = dragoman("describe", "shop", "orders").out
    assert "  customer_id integer -> customers.id\n" in table
    assert "  INDEX orders_customer (customer_id)\n" in table
    assert "  CHECK " in table


@pytest.mark.usefixtures("configured")
def test_describe_gives_the_tools_own_answer_as_json(dragoman: Dragoman) -> None:
    compact = json.loads(dragoman("describe", "shop", "orders", "--json").out)
    assert compact["tables"]["orders"][0] == "id integer PK"
    full = json.loads(dragoman("describe", "shop", "orders", "--full").out)
    assert full["tables"][0]["columns"][0]["name"] == "id"


@pytest.mark.usefixtures("configured")
def test_describe_of_an_unknown_table_names_the_near_ones(dragoman: Dragoman) -> None:
    outcome = dragoman("describe", "shop", "ordres")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("TABLE_NOT_FOUND")
    assert "orders" in outcome.err


def test_dialects_lists_what_is_installed(dragoman: Dragoman) -> None:
    installed = {each["name"]: each for each in json.loads(dragoman("dialects", "--json").out)}
    sqlite = installed["sqlite"]
    assert sqlite.keys() == {"name", "distribution", "version", "driver", "capabilities", "status", "error", "kind"}
    assert (sqlite["distribution"], sqlite["status"], sqlite["error"]) == ("dragoman-sqlite", "ok", "")
    assert "sqlite" in dragoman("dialects").out


# config


def test_config_init_writes_a_starter_once(dragoman: Dragoman, folder: Path) -> None:
    assert dragoman("config", "init", "--stdout").out == STARTER
    assert dragoman("config", "init").code == 0
    path = folder / "dragoman.toml"
    assert path.read_text() == STARTER
    path.write_text("mine")
    again = dragoman("config", "init")
    assert (again.code, path.read_text()) == (2, "mine")
    assert "--force" in again.err
    assert dragoman("config", "init", "--force").code == 0
    assert path.read_text() == STARTER


def test_config_show_prints_a_file_that_loads_with_secrets_masked(
    dragoman: Dragoman, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dragoman.toml").write_text(
        '[databases.a]\nurl = "x://u:${PW}@h/d"\noptions = { n = 1, api_token = "${PW}", jwt = "eyJ" }\n'
        '[[databases.a.keys]]\ntable = "t"\ncolumns = ["c"]\n'
    )
    monkeypatch.setenv("PW", "hunter2")
    monkeypatch.setenv("DRAGOMAN_SERVER__PORT", "81")
    human, as_json = dragoman("config", "show").out, dragoman("config", "show", "--json").out
    assert "port = 81  # environment" in human
    assert 'url = "x://u:***@h/d"  # dragoman.toml' in human
    assert "hunter2" not in human + as_json
    assert json.loads(as_json)["databases"]["a"]["options"] == {"n": 1, "api_token": "***", "jwt": "***"}
    import tomllib

    assert tomllib.loads(human)["databases"]["a"]["keys"] == [
        {"table": "t", "columns": ["c"], "referenced_columns": []}
    ]


def test_config_check_tells_every_problem(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman.toml").write_text("[server]\nprot = 1\nport = 70000\n[databases.a]\nurl = 'sqlite:///a.db'\n")
    outcome = dragoman("config", "check")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines() == [
        "dragoman.toml:2: server.prot: unknown key. Did you mean port?",
        "dragoman.toml:3: server.port: expected a whole number from 0 to 65535.",
    ]
    problems = json.loads(dragoman("config", "check", "--json").out)["problems"]
    assert [problem["key"] for problem in problems] == ["server.prot", "server.port"]


@pytest.mark.parametrize(
    ("database", "words"),
    [("url = 'nosuch://h/d'", "nosuch"), ("url = 'sqlite:///a.db?nosuch=1'", "nosuch")],
)
def test_config_check_asks_the_plugins_too(dragoman: Dragoman, folder: Path, database: str, words: str) -> None:
    (folder / "dragoman.toml").write_text(f"[databases.a]\n{database}\n")
    outcome = dragoman("config", "check")
    assert outcome.code == 2
    assert outcome.err.startswith("dragoman.toml:1: databases.a: ")
    assert words in outcome.err


CHECKED = """
[server]
transport = "http"
host = "0.0.0.0"
tools = "standrd"
[databases.shop]
url = "sqlite:///shop.db"
schemas = ["public"]
[[databases.shop.keys]]
table = "ordrs"
columns = ["id"]
[databases.gone]
url = "sqlite:///gone.db"
"""


def test_config_check_tells_what_serve_would_refuse(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman.toml").write_text(CHECKED)
    server, host, *databases = dragoman("config", "check").err.splitlines()
    assert server.startswith("dragoman.toml:5: server.tools: ")
    assert server.endswith("Did you mean 'standard'?")
    assert host.startswith("dragoman.toml:4: server.host: The server would listen on 0.0.0.0 for anyone")
    assert [line.split(":")[1] for line in databases] == ["8", "9", "13"]


def test_config_check_names_a_tool_of_a_role_that_is_none(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman.toml").write_text(
        '[databases.shop]\nurl = "sqlite:///shop.db"\n[roles.eu]\ngroups = ["eu"]\ntools = ["list_tabels"]\n'
    )
    (told,) = dragoman("config", "check").err.splitlines()
    assert told.startswith("dragoman.toml:5: roles.eu.tools: ")
    assert told.endswith("Did you mean 'list_tables'?")


def test_config_check_tells_files_schemas_and_keys_that_are_not_there(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman.toml").write_text(CHECKED.replace("0.0.0.0", "127.0.0.1").replace("standrd", "standard"))
    schema, key, file = dragoman("config", "check").err.splitlines()
    assert schema == "dragoman.toml:8: databases.shop.schemas.0: there is no schema public. There are: main."
    assert key.startswith("dragoman.toml:9: databases.shop.keys: A declared key of ordrs is not used")
    assert file.startswith("dragoman.toml:13: databases.gone.url: The database 'gone' cannot be read")


def test_config_check_notes_a_server_that_does_not_answer(dragoman: Dragoman, folder: Path) -> None:
    pytest.importorskip("dragoman_postgres")
    (folder / "dragoman.toml").write_text("[databases.a]\nurl = 'postgresql://a@127.0.0.1:1/x'\n")
    outcome = dragoman("config", "check")
    assert (outcome.code, outcome.out) == (0, "no problems found\n")
    assert "schemas and keys were not checked" in outcome.err


def test_config_check_notes_roles_that_it_had_no_time_to_check(
    dragoman: Dragoman, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = "[roles.all]\nprincipals = ['*']\n[[roles.all.grants]]\ndatabase = 'shop'\ntables = ['main.*']\n"
    (folder / "dragoman.toml").write_text("[databases.shop]\nurl = 'sqlite:///shop.db'\n" + roles)
    assert dragoman("config", "check").err == ""
    monkeypatch.setattr("dragoman.gateway.gateway.PATIENCE", 0.0)
    outcome = dragoman("config", "check")
    assert (outcome.code, outcome.out) == (0, "no problems found\n")
    assert "databases.shop: roles were not checked" in outcome.err


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [("dragoman.toml", "[server]\nport = = 1\n", 2), ("dragoman.yaml", "server:\n  port: [\n", 3)],
)
def test_config_check_tells_the_line_of_a_malformed_file(
    dragoman: Dragoman, folder: Path, name: str, text: str, line: int
) -> None:
    (folder / name).write_text(text)
    outcome = dragoman("config", "check")
    assert (outcome.code, outcome.err.startswith(f"{name}:{line}: not valid ")) == (2, True)


def test_config_init_writes_the_databases_of_urls_without_their_secrets(dragoman: Dragoman, folder: Path) -> None:
    assert dragoman("config", "init", "--url", "crm=postgresql://r:p%40s@h/d", "--url", "shop.db").code == 0
    written = (folder / "dragoman.toml").read_text()
    assert "p%40s" not in written
    (folder / ".env").write_text("CRM_PASSWORD=p%40s\n")
    databases = load(folder=folder, environ={}).databases
    assert (databases["crm"].password, databases["shop"].database) == (Secret("p@s"), "shop.db")


@pytest.mark.usefixtures("configured")
def test_config_check_of_a_good_file_says_so(dragoman: Dragoman) -> None:
    outcome = dragoman("config", "check")
    assert (outcome.code, outcome.out) == (0, "no problems found\n")


# client-config


@pytest.mark.parametrize(
    ("client", "key"), [("claude-desktop", "mcpServers"), ("cursor", "mcpServers"), ("vscode", "servers")]
)
def test_a_snippet_starts_the_program_with_absolute_paths(
    dragoman: Dragoman, configured: Path, client: str, key: str
) -> None:
    entry = json.loads(dragoman("client-config", client).out)[key]["dragoman"]
    assert entry["command"] == sys.executable
    assert entry["args"] == ["-m", "dragoman", "serve", "--config", str(configured)]
    assert json.loads(dragoman("client-config").out) == json.loads(dragoman("client-config", "generic").out)


@pytest.mark.usefixtures("configured")
def test_claude_code_gets_a_command(dragoman: Dragoman) -> None:
    words = shlex.split(dragoman("client-config", "claude-code").out)
    assert words[:5] == ["claude", "mcp", "add", "dragoman", "--"]
    assert words[5:9] == [sys.executable, "-m", "dragoman", "serve"]


@pytest.mark.parametrize("url", ["my=sqlite:///shop.db", "sqlite:///shop.db?busy_timeout=1"])
def test_a_url_of_a_relative_file_is_made_absolute(dragoman: Dragoman, folder: Path, url: str) -> None:
    entry = json.loads(dragoman("client-config", "--url", url).out)["mcpServers"]["dragoman"]
    given = entry["args"][3]
    assert given == url.replace("/shop.db", f"/{folder}/shop.db")
    (database,) = load(urls=[given], environ={}, folder=Path("/")).databases.values()
    assert database.database == str(folder / "shop.db")


def test_variables_are_left_to_fill_in_and_never_printed(
    dragoman: Dragoman, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "dragoman.toml").write_text('[databases.a]\nurl = "sqlite:///shop.db"\npassword = "${PW}"\n')
    monkeypatch.setenv("PW", "hunter2")
    outcome = dragoman("client-config")
    assert json.loads(outcome.out)["mcpServers"]["dragoman"]["env"] == {"PW": "<PW>"}
    assert "hunter2" not in outcome.out + outcome.err
    assert "PW" in outcome.err


def test_an_http_server_is_told_by_its_address(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman.toml").write_text(
        '[server]\ntransport = "http"\nport = 81\ntoken = "x"\n[databases.a]\nurl = "sqlite:///shop.db"\n'
    )
    entry = json.loads(dragoman("client-config", "vscode").out)["servers"]["dragoman"]
    assert (entry["type"], entry["url"]) == ("http", "http://127.0.0.1:81/mcp")
    assert entry["headers"] == {"Authorization": "Bearer <token>"}
    assert "--transport http dragoman http://127.0.0.1:81/mcp" in dragoman("client-config", "claude-code").out
    desktop = json.loads(dragoman("client-config", "claude-desktop").out)["mcpServers"]["dragoman"]
    assert desktop["args"][-2:] == ["--transport", "stdio"]


# serve


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--transport", "http", "--host", "0.0.0.0"], "--allow-unauthenticated"),
        (["--port", "81"], "--transport http"),
        (["--tools", "standrd"], "standard"),
        (["--port", "x", "--transport", "http"], "server.port"),
        (["sqlite:///other.db", "sqlite:///other.db"], "NAME=URL"),
    ],
)
@pytest.mark.usefixtures("configured")
def test_serve_refuses_what_cannot_be_meant(dragoman: Dragoman, argv: list[str], words: str) -> None:
    outcome = dragoman("serve", *argv)
    assert outcome.code == 2
    assert outcome.err.startswith("CONFIGURATION_ERROR")
    assert words in outcome.err


def test_serve_without_any_database_says_how_to_name_one(dragoman: Dragoman) -> None:
    outcome = dragoman("serve")
    assert outcome.code == 2
    assert "dragoman serve sqlite:///shop.db" in outcome.err


# The command line's own words


def test_hints_for_agents_are_told_in_the_words_of_the_command_line(dragoman: Dragoman) -> None:
    outcome = dragoman("query", "shop.db", "SELECT * FROM ordrs_of_nobody_at_all")
    assert outcome.code == 1
    assert "list_tables" not in outcome.err
    cut = dragoman("query", "shop.db", "SELECT * FROM orders", "--limit", "1")
    assert "`limit`" not in cut.err
    assert "--limit" in cut.err


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SHOW TABLES", "`dragoman describe DATABASE` lists the tables"),
        (".tables", "use `dragoman describe DATABASE [TABLE]`"),
        (r"\d orders", "use `dragoman describe DATABASE [TABLE]`"),
        ("EXPLAIN ANALYZE SELECT 1", "SELECT"),
    ],
)
def test_what_shells_list_tables_with_is_answered_with_our_word(dragoman: Dragoman, sql: str, hint: str) -> None:
    outcome = dragoman("query", "shop.db", sql)
    assert hint in outcome.err
    assert not re.search("list_tables|describe_table|list_schemas|explain_query", outcome.err)


def test_describe_of_a_broken_view_says_why_it_has_no_columns(dragoman: Dragoman, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("CREATE VIEW broken AS SELECT * FROM gone")
    outcome = dragoman("describe", "shop.db", "broken")
    assert outcome.err == 'note: The columns of broken cannot be read: "no such table: main.gone".\n'
    assert "broken" not in dragoman("describe", "shop.db", "orders").err


def test_an_empty_database_says_that_it_is_empty(dragoman: Dragoman, folder: Path) -> None:
    (folder / "empty.db").touch()
    outcome = dragoman("describe", "empty.db")
    assert (outcome.code, outcome.out) == (0, "")
    assert "there are no tables" in outcome.err


def test_a_password_on_the_command_line_is_warned_about_where_it_is_pasted(dragoman: Dragoman) -> None:
    outcome = dragoman("client-config", "--url", "postgresql://reader:hunter2@db/shop")
    assert "this text contains a password" in outcome.err
    assert "a password" not in dragoman("client-config", "--url", "postgresql://reader@db/shop").err
