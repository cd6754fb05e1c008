"""The catalog of real files: everything SQLite lets people write, told in bulk, one bad corner spoiling nothing."""

import sqlite3

import apsw
import pytest
from dragoman import ConnectionFailed, Constraint, Index, Scope
from dragoman_sqlite.inspector import SQLiteInspector


def columns(table) -> list[str]:
    return [column.name for column in table.columns]


async def test_tables_views_and_virtual_tables_are_told_apart(bench):
    shop = bench.make(
        """CREATE TABLE a (id); CREATE VIEW b AS SELECT 1 AS one; CREATE VIRTUAL TABLE c USING fts5 (body);
        CREATE VIRTUAL TABLE d USING fts4 (body); CREATE VIRTUAL TABLE e USING rtree (id, x0, x1);
        CREATE TABLE f (id INTEGER PRIMARY KEY AUTOINCREMENT); ANALYZE"""
    )
    inspection = await bench.inspect(shop)
    shown = {table.relation.name: table.type for table in inspection.tables if not table.system}
    virtual = "virtual table"
    assert shown == {"a": "table", "b": "view", "c": virtual, "d": virtual, "e": virtual, "f": "table"}
    assert inspection.notices == ()
    assert {"sqlite_schema", "sqlite_sequence", "sqlite_stat1", "c_data", "d_segdir", "e_node"} <= {
        table.relation.name for table in inspection.tables if table.system
    }


async def test_types_nullability_and_defaults_are_told(bench):
    shop = bench.make(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR ( 40 ) NOT NULL DEFAULT 'a, -- b',"
        " price Decimal(10 , 2) DEFAULT (1 + 2), [big one] UNSIGNED BIG INT, raw BLOB, bare)"
    )
    told = [(c.name, c.type, c.nullable, c.default) for c in (await bench.table(shop, "item")).columns]
    assert told == [
        ("id", "integer", False, None),
        ("name", "varchar", False, "'a, -- b'"),
        ("price", "decimal(10,2)", True, "1 + 2"),
        ("big one", "unsigned big int", True, None),
        ("raw", "blob", True, None),
        ("bare", "any", True, None),
    ]


@pytest.mark.parametrize(
    ("key", "nullable"),
    [
        ("id INTEGER PRIMARY KEY", False),
        ("id INTEGER PRIMARY KEY AUTOINCREMENT", False),
        ("id INTEGER PRIMARY KEY DESC", True),  # not the rowid: documented quirk
        ("id INT PRIMARY KEY", True),
        ("id TEXT PRIMARY KEY", True),
        ("id TEXT PRIMARY KEY NOT NULL", False),
    ],
)
async def test_a_primary_key_is_nullable_as_sqlite_has_it(bench, key, nullable):
    table = await bench.table(bench.make(f"CREATE TABLE t ({key})"), "t")
    assert table.primary_key == ("id",)
    assert table.columns[0].nullable is nullable


async def test_composite_keys_keep_their_order_in_tables_without_rowid(bench):
    table = await bench.table(bench.make("CREATE TABLE t (a, b, c, PRIMARY KEY (c, a)) WITHOUT ROWID"), "t")
    assert table.primary_key == ("c", "a")
    assert [column.nullable for column in table.columns] == [False, True, False]


async def test_strict_and_generated_columns_are_told(bench):
    shop = bench.make(
        """CREATE TABLE t (a INT, v INT GENERATED ALWAYS AS (a * 2) VIRTUAL, s TEXT AS (a || ',)') STORED NOT NULL,
        w ANY) STRICT"""
    )
    table = await bench.table(shop, "t")
    assert columns(table) == ["a", "v", "s", "w"]
    assert [column.generated for column in table.columns] == [None, "a * 2", "a || ',)'", None]


async def test_checks_are_told_and_those_that_list_texts_are_enums(bench):
    shop = bench.make(
        """CREATE TABLE t (state TEXT CHECK (State IN ('new', 'it''s', 'a,  b')),
        size INT CONSTRAINT positive CHECK (size > 0), kind TEXT,
        other TEXT CHECK (other IN ('x', lower('Y'))), CONSTRAINT kinds CHECK (kind in ('p','q')))"""
    )
    table = await bench.table(shop, "t")
    enums = {column.name: column.enum for column in table.columns}
    assert enums == {"state": ("new", "it's", "a,  b"), "size": (), "kind": ("p", "q"), "other": ()}
    assert Constraint(type="CHECK", name="positive", definition="size > 0") in table.constraints
    assert Constraint(type="CHECK", name="kinds", definition="kind in ('p','q')") in table.constraints


async def test_columns_added_later_are_told_like_the_others(bench):
    shop = bench.make(
        """CREATE TABLE t (a INT -- the first
        ); ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'x' CHECK (b IN ('x', 'y'));
        ALTER TABLE t RENAME COLUMN a TO "new a" """
    )
    table = await bench.table(shop, "t")
    assert columns(table) == ["new a", "b"]
    assert (table.columns[1].default, table.columns[1].enum) == ("'x'", ("x", "y"))


async def test_the_comment_behind_a_column_is_its_comment(bench):
    shop = bench.make(
        """CREATE TABLE t ( -- not a column's
            a INT, -- the first, really (yes)
            -- on a line of its own, before b
            b TEXT DEFAULT '-- no', c TEXT, -- of c alone
            d INT --
            , e INT -- the last
        )"""
    )
    told = {column.name: column.comment for column in (await bench.table(shop, "t")).columns}
    assert told == {"a": "the first, really (yes)", "b": None, "c": "of c alone", "d": None, "e": "the last"}


async def test_foreign_keys_are_told_as_they_are_meant(bench):
    shop = bench.make(
        """CREATE TABLE Region (Code TEXT, Country TEXT, PRIMARY KEY (Code, Country), UNIQUE (Country));
        CREATE TABLE shop (id INTEGER PRIMARY KEY, parent INT REFERENCES shop, code TEXT, country TEXT,
          lost INT REFERENCES gone (key), unsaid INT REFERENCES gone, odd TEXT REFERENCES region,
          CONSTRAINT lies_in FOREIGN KEY (code, country) REFERENCES REGION (CODE, country)
            ON UPDATE CASCADE ON DELETE SET NULL,
          FOREIGN KEY (code, country) REFERENCES region)"""
    )
    keys = {(k.columns, k.name): k for k in (await bench.table(shop, "shop")).foreign_keys}
    told = {name: (key.references.name, key.referenced_columns) for name, key in keys.items()}
    assert told == {
        (("parent",), None): ("shop", ("id",)),
        (("lost",), None): ("gone", ("key",)),
        (("unsaid",), None): ("gone", ()),
        (("odd",), None): ("Region", ()),  # a key of two columns is not meant by one
        (("code", "country"), "lies_in"): ("Region", ("Code", "Country")),
        (("code", "country"), None): ("Region", ("Code", "Country")),
    }
    named = keys[("code", "country"), "lies_in"]
    assert (named.on_update, named.on_delete) == ("CASCADE", "SET NULL")


async def test_indexes_are_told_with_expressions_order_and_predicate(bench):
    shop = bench.make(
        """CREATE TABLE t (a TEXT PRIMARY KEY, b INT, "c d" TEXT UNIQUE);
        CREATE INDEX plain ON t (b, "c d");
        CREATE UNIQUE INDEX "odd ""index" ON t (lower(a), b DESC, [c d] COLLATE NOCASE)
        WHERE b IS NOT NULL AND a <> ',)'"""
    )
    indexes = {index.name: index for index in (await bench.table(shop, "t")).indexes}
    assert indexes["plain"] == Index(name="plain", parts=("b", "c d"))
    assert indexes['odd "index'] == Index(
        name='odd "index',
        parts=("lower(a)", "b DESC", "[c d] COLLATE NOCASE"),
        unique=True,
        predicate="b IS NOT NULL AND a <> ',)'",
    )
    own = {index.parts: (index.unique, index.primary) for name, index in indexes.items() if name.startswith("sqlite_")}
    assert own == {("a",): (True, True), ("c d",): (True, False)}


NAMES = [
    "select",
    "with space",
    'quo"te',
    "it's",
    "--",
    "/* no comment",
    "a,b",
    "a(b",
    "a.b",
    "Größe",
    "😀 x",
    "😀",
    "[brackets]",
    "back`tick",
    "100%",
    "new\nline",
    "check",
    "constraint",
]


@pytest.mark.parametrize("name", NAMES)
async def test_an_odd_name_is_kept_everywhere(bench, name):
    quoted = '"' + name.replace('"', '""') + '"'
    shop = bench.make(
        f"""CREATE TABLE {quoted} ({quoted} TEXT PRIMARY KEY CHECK ({quoted} IN ('a', 'b')), other REFERENCES {quoted});
        CREATE INDEX {quoted[:-1]}_index" ON {quoted} ({quoted}, other); INSERT INTO {quoted} VALUES ('a', NULL)"""
    )
    table = await bench.table(shop, name)
    assert columns(table) == [name, "other"]
    assert (table.primary_key, table.columns[0].enum, table.row_estimate) == ((name,), ("a", "b"), 1)
    assert (table.foreign_keys[0].references.name, table.foreign_keys[0].referenced_columns) == (name, (name,))
    assert next(index for index in table.indexes if index.name == f"{name}_index").parts == (name, "other")


async def test_names_without_quotes_may_hold_any_letter(bench):
    shop = bench.make("CREATE TABLE 😀tab (😀col INT CHECK (😀col > 0), prix€ TEXT, größe$1 INT) -- end")
    table = await bench.table(shop, "😀tab")
    assert columns(table) == ["😀col", "prix€", "größe$1"]


async def test_comments_within_the_definition_confuse_nothing(bench):
    shop = bench.make(
        """CREATE TABLE /* one ( */ t -- two (
        (/* three , */ a INT /* CHECK (a IN ('x')) */ CHECK -- four )
           (a > 0), b TEXT CHECK (b /* , */ IN ('x' -- five
           , 'y')))"""
    )
    table = await bench.table(shop, "t")
    assert columns(table) == ["a", "b"]
    assert [column.enum for column in table.columns] == [(), ("x", "y")]


async def test_columns_of_views_have_names_and_types(bench):
    shop = bench.make(
        """CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(9));
        CREATE VIEW v (number, label, n) AS SELECT id, name, count(*) FROM t"""
    )
    view = await bench.table(shop, "v")
    assert [(column.name, column.type) for column in view.columns] == [
        ("number", "integer"),
        ("label", "varchar"),
        ("n", "any"),
    ]
    assert view.definition is not None
    assert view.definition.startswith("CREATE VIEW v")


async def test_a_broken_view_and_a_missing_module_spoil_nothing_else(bench):
    shop = bench.make("CREATE TABLE t (a); CREATE VIEW broken AS SELECT * FROM gone; CREATE VIEW v AS SELECT a FROM t")
    with sqlite3.connect(bench.folder / "test.db") as connection:
        connection.execute("PRAGMA writable_schema = on")
        connection.execute(
            "INSERT INTO sqlite_schema VALUES"
            " ('table', 'ghost', 'ghost', 0, 'CREATE VIRTUAL TABLE ghost USING absent (a)')"
        )
    connection.close()
    inspection = await bench.inspect(shop)
    told = {table.relation.name: columns(table) for table in inspection.tables if not table.system}
    assert told == {"t": ["a"], "v": ["a"], "broken": [], "ghost": []}
    assert inspection.notices == (
        'The columns of broken cannot be read: "no such table: main.gone".',
        'The columns of ghost cannot be read: "no such module: absent".',
    )


async def test_what_python_s_sqlite_lacks_is_asked_of_the_workers(bench):
    """Views over newer functions and modules: Python brings the system's SQLite, the workers a current one."""
    shop = bench.make("CREATE VIEW v AS SELECT unistr('x') AS u; CREATE VIRTUAL TABLE g USING geopoly (label)")
    inspection = await bench.inspect(shop)
    told = {table.relation.name: columns(table) for table in inspection.tables}
    assert (told["v"], told["g"], inspection.notices) == (["u"], ["_shape", "label"], ())


async def test_a_definition_in_another_encoding_is_read(bench):
    shop = bench.make("CREATE TABLE t (a INT, -- the cafe\nb INT)")
    path = bench.folder / "test.db"
    path.write_bytes(path.read_bytes().replace(b"cafe", "café".encode("latin-1")))
    assert [column.comment for column in (await bench.table(shop, "t")).columns] == ["the caf\ufffd", None]


ROWS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"


@pytest.mark.parametrize(
    ("script", "estimate"),
    [
        (f"CREATE TABLE t (a); {ROWS} INSERT INTO t SELECT i FROM n", 500),
        (f"CREATE TABLE t (a, rowid TEXT); {ROWS} INSERT INTO t SELECT i, 'x' FROM n", 500),
        ("CREATE TABLE t (rowid, oid, _rowid_); INSERT INTO t VALUES (1, 1, 1)", None),
        ("CREATE TABLE t (a)", 0),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (-9e18), (9e18)", None),
        (f"CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID; {ROWS} INSERT INTO t SELECT i FROM n", None),
        (f"CREATE TABLE t (a PRIMARY KEY) WITHOUT ROWID; {ROWS} INSERT INTO t SELECT i FROM n; ANALYZE", 500),
        (
            f"CREATE TABLE t (a); CREATE INDEX i ON t (a); {ROWS} INSERT INTO t SELECT i FROM n;"
            " ANALYZE; DELETE FROM t",
            500,
        ),
    ],
)
async def test_rows_are_estimated_without_counting(bench, script, estimate):
    assert (await bench.table(bench.make(script), "t")).row_estimate == estimate


async def test_a_thousand_tables_take_a_handful_of_statements_and_no_scan(bench, monkeypatch):
    shop = bench.make("".join(f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, up REFERENCES t{n}); " for n in range(1000)))
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.set_trace_callback(statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    inspection = await bench.inspect(shop)
    assert len(inspection.tables) == 1001
    # The pragmas behind the table-valued functions are traced as comments.
    assert len([text for text in statements if not text.startswith("--")]) <= 12
    with connect(bench.folder / "test.db") as reader:
        spans = next(text for text in statements if "max(rowid)" in text)
        steps = [row[-1] for row in reader.execute("EXPLAIN QUERY PLAN " + spans.split(" UNION ALL ")[0])]
    reader.close()
    assert not [step for step in steps if step.startswith("SCAN t")]


async def test_a_scope_restricts_what_is_told(bench):
    shop = bench.make("CREATE TABLE a (x); CREATE TABLE b (x)")
    inspector = SQLiteInspector(shop, bench.executor(shop))
    told = [
        [table.relation.name for table in (await inspector.tables(scope)).tables]
        for scope in (
            Scope(names=frozenset({"b"})),
            Scope(schemas=frozenset({"main"}), names=frozenset({"a"})),
            Scope(schemas=frozenset({"temp"})),
        )
    ]
    assert told == [["b"], ["a"], []]


async def test_version_and_schemas_prove_that_the_file_is_a_database(bench):
    shop = bench.make("CREATE TABLE a (x)")
    inspector = SQLiteInspector(shop, bench.executor(shop))
    assert await inspector.version() == apsw.sqlite_lib_version()
    assert [schema.name for schema in await inspector.schemas()] == ["main"]
    (bench.folder / "text.db").write_text("no database " * 100)
    broken = bench.configure("text.db")
    for question in (
        SQLiteInspector(broken, bench.executor(broken)).version,
        SQLiteInspector(broken, bench.executor(broken)).schemas,
    ):
        with pytest.raises(ConnectionFailed, match="'shop' cannot be read"):
            await question()
