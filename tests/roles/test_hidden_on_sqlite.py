"""What no role grants on SQLite, or a policy hides, is as if it were not there.

A file that has it answers as its twin that does not.
"""

import contextlib
import itertools
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable
from pathlib import Path

import apsw
import pytest
from dragoman import Gateway, Inspection, Scope
from dragoman.catalog import catalog
from dragoman.config import load
from dragoman.model import Principal
from dragoman.tools import Toolbox
from dragoman_sqlite.inspector import SQLiteInspector

ANN = Principal("ann", subject="ann")
BOTH = """
CREATE TABLE shown (id INTEGER PRIMARY KEY, name TEXT, zyx_id INTEGER {key});
INSERT INTO shown VALUES (1, 'a', 1), (2, 'b', 2);
"""
HIDDEN = """
CREATE TABLE zyx (id INTEGER PRIMARY KEY, pin TEXT UNIQUE CHECK (pin <> 'x'));
INSERT INTO zyx VALUES (1, 'mark1'), (2, 'mark2');
CREATE INDEX zyx_i ON zyx (lower(pin));
CREATE VIEW zyx_view AS SELECT pin FROM zyx;
CREATE VIRTUAL TABLE zyx_text USING fts5(body);
INSERT INTO zyx_text VALUES ('marked words');
CREATE VIRTUAL TABLE zyx_words USING fts5vocab(zyx_text, row);
CREATE VIRTUAL TABLE zyx_box USING rtree(id, a, b);
CREATE TRIGGER zyx_trigger AFTER INSERT ON shown BEGIN INSERT INTO zyx (pin) VALUES ('y'); END;
"""
ROLE = """
[roles.r]
principals = ["ann"]
[[roles.r.grants]]
database = "shop"
tables = ["main.shown"]
"""
NAMES = ("zyx", "zyx_view", "zyx_text", "zyx_words", "zyx_box", "zyx_text_data", "zyx_box_node", "sqlite_schema")
# `{}` is a hidden name: a relation wherever the grammar takes one, and where a name may be taken for one.
SHAPES = """
SELECT * FROM {}|SELECT * FROM main.{}|SELECT * FROM temp.{}|SELECT * FROM "{}"|SELECT * FROM [{}]
SELECT 1 IN {}|SELECT id IN main.{} FROM shown|SELECT * FROM shown, {}
SELECT * FROM shown NATURAL JOIN {}|SELECT * FROM (shown JOIN {} USING (id))
SELECT (SELECT count(*) FROM {})|SELECT EXISTS (SELECT 1 FROM {})|WITH {} AS (SELECT 1) SELECT * FROM {}
WITH x AS (SELECT * FROM {}) SELECT 1|WITH {} AS (SELECT * FROM main.{}) TABLE {}|SELECT {}.id FROM shown
SELECT main.{}.id FROM shown|SELECT shown.{} FROM shown|SELECT "{}" FROM shown|SELECT {}(1)
SELECT * FROM {} AS shown|SELECT {}.name FROM shown AS {}|SELECT * FROM shown UNION SELECT * FROM {}
VALUES ((SELECT 1 FROM {}))|SELECT name FROM shown ORDER BY (SELECT 1 FROM {})
SELECT name FROM shown LIMIT (SELECT count(*) FROM {})|SELECT sum(id) FILTER (WHERE 1 IN {}) FROM shown
SELECT rank() OVER (ORDER BY (SELECT 1 FROM {})) FROM shown|SELECT * FROM {}('marked')
SELECT * FROM {} WHERE {} MATCH 'marked'|SELECT * FROM pragma_table_info('{}')|PRAGMA table_info({})
PRAGMA main.table_info({})|PRAGMA table_xinfo({})|PRAGMA index_list({})|PRAGMA foreign_key_list({})
SELECT * FROM pragma_table_list WHERE name = '{}'|EXPLAIN SELECT * FROM {}
EXPLAIN QUERY PLAN SELECT * FROM {}|SELECT name COLLATE {} FROM shown|INSERT INTO {} VALUES (1)
DROP TABLE {}|SELECT * FROM {}, json_each('[1]')|DELETE FROM {}|SELECT * FROM shown INDEXED BY {}
PRAGMA foreign_key_list(shown)|PRAGMA table_list|PRAGMA integrity_check|PRAGMA page_count
PRAGMA foreign_key_check|PRAGMA index_info({}_i)|PRAGMA schema_version|SELECT * FROM sqlite_stat1
SELECT * FROM dbstat|SELECT pin FROM shown|SELECT shown.pin FROM shown"""
STATEMENTS = [shape for line in SHAPES.split("\n") if line for shape in line.split("|")]
TOOLS = (
    ("describe_table", "table_name"),
    ("get_sample_rows", "table_name"),
    ("get_foreign_keys", "table_name"),
    ("get_row", "table_name"),
    ("search_catalog", "query"),
    ("list_tables", "name_pattern"),
    ("list_tables", "schema_name"),
)
WHOLE = ("list_tables", "list_schemas", "search_catalog", "read_schema", "server_info", "list_databases")


POLICY = """
from dragoman import Inspection, PolicyPlugin, WrappedInspector

class Veiled(WrappedInspector):
    async def tables(self, scope):
        seen = await self.inner.tables(scope)
        return Inspection(tuple(table for table in seen.tables if not table.relation.name.startswith("zyx")))

class Veiling(PolicyPlugin):
    def wrap_inspector(self, inspector, database, dialect):
        return Veiled(inspector)

plugin = Veiling()
"""


@contextlib.contextmanager
def _installed_policy(folder: Path) -> Generator[None]:
    """For gateways that open meanwhile, a policy that hides the relations whose names begin with zyx."""
    (folder / "veiling.py").write_text(POLICY)
    info = folder / "dragoman_veiling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-veiling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dragoman.policies]\nveiling = veiling:plugin\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        yield


@pytest.fixture(scope="module", params=["role", "policy"])
async def twins(
    request: pytest.FixtureRequest, anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[list[Toolbox]]:
    """A file with hidden relations and one without, both as they are seen by who may not see them."""
    made = (BOTH.format(key="REFERENCES zyx (id)") + HIDDEN, BOTH.format(key=""))
    if request.param == "role":
        async with _opened(tmp_path_factory, made, ROLE) as toolboxes:
            yield toolboxes
        return
    async with contextlib.AsyncExitStack() as stack:
        with _installed_policy(tmp_path_factory.mktemp("policy")):
            toolboxes = await stack.enter_async_context(_opened(tmp_path_factory, made, ""))
        yield toolboxes
    sys.modules.pop("veiling", None)


@contextlib.asynccontextmanager
async def _opened(folders: pytest.TempPathFactory, scripts: Iterable[str], role: str) -> AsyncGenerator[list[Toolbox]]:
    """Toolboxes of files made by these scripts, with these roles."""
    async with contextlib.AsyncExitStack() as stack:
        toolboxes: list[Toolbox] = []
        for script in scripts:
            folder = folders.mktemp("twin")
            _make(folder, script, role)
            configuration = load(folder / "dragoman.toml", environ={}, folder=folder)
            toolboxes.append(Toolbox(await stack.enter_async_context(Gateway.open(configuration)), profile="full"))
        yield toolboxes


def _make(folder: Path, script: str, role: str = ROLE) -> None:
    connection = apsw.Connection(str(folder / "shop.db"))
    connection.execute(script)
    connection.close()
    (folder / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{role}')


async def _told(twins: list[Toolbox], tool: str, **arguments: object) -> list[str]:
    return [(await toolbox.call(tool, arguments, principal=ANN)).text for toolbox in twins]


@pytest.mark.parametrize("name", NAMES)
async def test_no_statement_tells_what_is_hidden_or_whether_it_is_there(twins: list[Toolbox], name: str):
    for shape in STATEMENTS:
        sql = shape.replace("{}", name)
        for tool in ("execute_query", "explain_query"):
            one, other = await _told(twins, tool, sql=sql)
            assert one == other, sql
            assert "mark" not in one.replace(sql, "").replace("'marked'", ""), sql


async def test_no_tool_tells_what_is_hidden_or_whether_it_is_there(twins: list[Toolbox]):
    for (tool, argument), name in itertools.product(TOOLS, NAMES):
        more = {"key": 1} if tool == "get_row" else {}
        one, other = await _told(twins, tool, **{argument: name}, **more)
        assert one == other, (tool, name)
    for name in NAMES:
        for ends in ({"from_table": name, "to_table": "shown"}, {"from_table": "shown", "to_table": name}):
            one, other = await _told(twins, "find_join_path", **ends)
            assert one == other, ends
    for tool in WHOLE:
        one, other = await _told(twins, tool)
        assert one == other, tool
    for detail in ("compact", "full"):
        one, other = await _told(twins, "describe_table", table_name="shown", detail=detail)
        assert one == other


@pytest.mark.parametrize("name", NAMES)
async def test_a_hidden_name_costs_as_many_readings_as_one_that_is_not_there(
    twins: list[Toolbox], name: str, monkeypatch: pytest.MonkeyPatch
):
    """Otherwise the time of an answer would tell it."""
    readings = _count_readings(monkeypatch)
    calls: list[tuple[str, dict[str, object]]] = [
        ("execute_query", {"sql": shape.replace("{}", name)}) for shape in STATEMENTS
    ]
    calls += [(tool, {argument: name, **({"key": 1} if tool == "get_row" else {})}) for tool, argument in TOOLS]
    for tool, arguments in calls:
        counted: list[int] = []
        for toolbox in twins:
            before = len(readings)
            await toolbox.call(tool, arguments, principal=ANN)
            counted.append(len(readings) - before)
        assert counted[0] == counted[1], (tool, arguments)


def _count_readings(monkeypatch: pytest.MonkeyPatch) -> list[Scope]:
    """Return a list to which each reading of a file's catalog adds its scope."""
    read, readings = SQLiteInspector.tables, list[Scope]()

    async def tables(self: SQLiteInspector, scope: Scope) -> Inspection:
        readings.append(scope)
        return await read(self, scope)

    monkeypatch.setattr(SQLiteInspector, "tables", tables)
    monkeypatch.setattr(catalog, "_CHEAP", 60.0)  # else a reading that is slow by chance spares the next one
    return readings


async def test_no_plan_tells_where_in_the_file_a_table_lies(tmp_path_factory: pytest.TempPathFactory):
    shown = BOTH.format(key="") + "CREATE INDEX shown_i ON shown (name);"
    async with _opened(tmp_path_factory, ("CREATE TABLE zyx (id);" + shown, shown), ROLE) as twins:
        for sql in ("SELECT * FROM shown", "SELECT id FROM shown WHERE name = 'a'", "SELECT count(*) FROM shown"):
            for options in itertools.product(("text", "json", "yaml"), (True, False)):
                chosen = dict(zip(("format", "verbose"), options, strict=True))
                one, other = await _told(twins, "explain_query", sql=sql, **chosen)
                assert one == other, (sql, chosen)
                assert "error" not in one


async def test_what_is_granted_is_answered_beside_it(twins: list[Toolbox]):
    one, other = await _told(twins, "execute_query", sql="SELECT name FROM shown ORDER BY id")
    assert one == other
    assert '"rows":[["a"],["b"]]' in one


# Virtual tables that tell what another one holds, as SQLite's modules let them be written, and queries of them.
SHOWING = {
    "USING fts5(pin, content='zyx', content_rowid='id')": "SELECT pin FROM telling",
    'USING fts5(pin, content = "zyx", content_rowid=id)': "SELECT * FROM telling WHERE telling MATCH 'mark1'",
    "USING fts5(pin, content=[zyx])": "SELECT highlight(telling, 0, '<', '>') FROM telling",
    'USING fts4(content="zyx", pin)': "SELECT pin FROM telling",
    "USING fts4(content=ZYX, pin, tokenize=porter)": "SELECT pin FROM telling",
    "USING fts5vocab(zyx_text, 'row')": "SELECT term FROM telling",
    "USING fts5vocab('zyx_text', instance)": "SELECT term FROM telling",
    "USING FTS5VOCAB('zyx_text', 'col')": "SELECT term FROM telling",
    "USING fts4aux(zyx_old)": "SELECT term FROM telling",
    "USING fts4aux('zyx_old')": "SELECT term FROM telling",
}
OLD = """
CREATE VIRTUAL TABLE zyx_old USING fts4(body);
INSERT INTO zyx_old VALUES ('marked words');
CREATE VIRTUAL TABLE telling {};
"""
FILLED = "INSERT INTO telling (telling) VALUES ('rebuild')"
NAMED = '"main.*", "main.telling", "main.zyx_text", "main.zyx_old"'
DENIED = '"main.zyx", "main.zyx_text", "main.zyx_old"'


@pytest.mark.parametrize(
    ("granted", "denied", "answered"),
    [('"main.*"', DENIED, False), ('"main.*", "main.telling"', DENIED, False), (NAMED, "", True)],
    ids=["by a pattern", "by its name", "with what it tells"],
)
@pytest.mark.parametrize("module", SHOWING)
async def test_what_tells_another_table_needs_the_grant_of_that_table(
    tmp_path: Path, module: str, granted: str, denied: str, answered: bool
):
    filled = FILLED if "content" in module else ""
    _make(tmp_path, BOTH.format(key="") + HIDDEN + OLD.format(module) + filled)
    role = ROLE.replace('["main.shown"]', f"[{granted}]\ndeny = [{denied}]")
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{role}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        told = (await Toolbox(gateway).call("execute_query", {"sql": SHOWING[module]}, principal=ANN)).text
    assert ("mark" in told.replace("MATCH 'mark1'", "")) is answered, told


async def test_a_vocabulary_of_an_index_of_a_denied_table_is_denied_too(tmp_path: Path):
    """Whichever of the three is told first."""
    made = "CREATE VIRTUAL TABLE {} USING fts5vocab({}, row); CREATE VIRTUAL TABLE {} USING fts5(pin, content=zyx);"
    _make(tmp_path, BOTH.format(key="") + HIDDEN + made.format("a_words", "index_of_it", "index_of_it"))
    role = ROLE.replace('["main.shown"]', '["main.a_words", "main.index_of_it", "main.shown"]')
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{role}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        told = (await Toolbox(gateway).call("list_tables", {}, principal=ANN)).text
    assert "shown" in told
    assert "a_words" not in told
    assert "index_of_it" not in told


PARTLY = """
CREATE TABLE shown (id INTEGER PRIMARY KEY, name TEXT, pin TEXT);
INSERT INTO shown VALUES (1, 'a', 'mark1');
"""
INDEXES = "CREATE INDEX zyx ON shown (pin); CREATE INDEX zyx_i ON shown (name) WHERE pin <> 'x';"
PART = ROLE + 'columns = ["id", "name"]\n'
HINTED = ("SELECT name FROM {} INDEXED BY {}", "SELECT name FROM {} AS s INDEXED BY {} WHERE name > ''")


@pytest.mark.parametrize("role", [PART, PART + "filter = \"name <> 'b'\"\n"], ids=["columns", "filter"])
async def test_an_index_over_hidden_columns_is_as_if_it_were_not_there(
    tmp_path_factory: pytest.TempPathFactory, role: str
):
    async with _opened(tmp_path_factory, (PARTLY + INDEXES, PARTLY), role) as twins:
        for shape, table, index in itertools.product(HINTED, ("shown", "main.shown"), ("zyx", "zyx_i", '"zyx"')):
            for tool in ("execute_query", "explain_query"):
                one, other = await _told(twins, tool, sql=shape.format(table, index))
                assert one == other, (tool, shape)

        one, other = await _told(twins, "execute_query", sql="SELECT name FROM shown")
        assert one == other
        assert '"rows":[["a"]]' in one


# Modules that search, and ways to write a search of the hidden column behind one that is there.
SEARCHED = "CREATE VIRTUAL TABLE shown USING {}(name, {}); INSERT INTO shown VALUES ('a b', '{}'), ('a c', 'other');"
MODULES = ("fts3", "fts4", "fts5")
SEARCHES = (
    "name MATCH {}",
    "s.name MATCH {}",
    "name = {}",
    "{} = name",
    "name LIKE {}",
    "name GLOB {}",
    "match({}, name)",
    "shown MATCH {}",
    "rank MATCH {}",
    "name IN ({})",
    "name BETWEEN {} AND {}",
)
WORDS = (
    "'pin:marked'",
    "'a pin:mark*'",
    "'a OR pin:marked'",
    "'a NOT pin:marked'",
    "'pin : marked'",
    "'{pin} : marked'",
    "'nip : marked'",
    "'marked'",
    "'PIN:marked'",
    "char(112, 105, 110, 58) || 'marked'",
)
ORDERS = ("", " ORDER BY rank", " ORDER BY rowid", " ORDER BY docid", " ORDER BY name LIMIT 1")
COLUMNS = ROLE + 'columns = ["name"]\n'
MASKED = ROLE + 'masks = {{ "*.{}" = "null" }}\n'


@pytest.mark.parametrize("module", MODULES)
async def test_no_search_reaches_a_column_that_is_hidden(tmp_path_factory: pytest.TempPathFactory, module: str):
    """Its twin has another hidden column, with other words."""
    made = SEARCHED.format(module, "pin", "marked"), SEARCHED.format(module, "nip", "absent")
    async with _opened(tmp_path_factory, made, COLUMNS) as twins:
        await _search_alike(twins)


@pytest.mark.parametrize("module", MODULES)
async def test_no_search_reaches_what_a_mask_covers(tmp_path_factory: pytest.TempPathFactory, module: str):
    made = SEARCHED.format(module, "pin", "marked"), SEARCHED.format(module, "pin", "absent")
    async with _opened(tmp_path_factory, made, MASKED.format("pin")) as twins:
        await _search_alike(twins)


async def _search_alike(twins: list[Toolbox]) -> None:
    for search, words, order in itertools.product(SEARCHES, WORDS, ORDERS):
        sql = f"SELECT name FROM shown AS s WHERE {search.format(words, words)}{order}"
        one, other = map(json.loads, await _told(twins, "execute_query", sql=sql))
        for told in (one, other):
            told.pop("notices", None)  # why there are no rows is looked for as long as there is time
        assert one == other, sql
    one, other = await _told(twins, "execute_query", sql="SELECT * FROM shown WHERE name > 'a b'")
    assert one == other
    assert '"a c"' in one
