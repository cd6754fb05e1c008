"""The compact and the full form, fact by fact."""

import pytest
from dragoman import Constraint, ForeignKey, Index, Relation, Table, TableColumn
from dragoman.catalog import Namespace, compact, full, summary

PUBLIC = Relation("orders", "public")


def _key(columns: str, target: Relation, referenced: str, name: str | None = None) -> ForeignKey:
    return ForeignKey(
        relation=PUBLIC,
        columns=tuple(columns.split()),
        references=target,
        referenced_columns=tuple(referenced.split()),
        name=name,
        on_update="CASCADE",
        on_delete="NO ACTION",
    )


USERS, REGION, BRANCH = Relation("users", "public"), Relation("region", "public"), Relation("branch", "sales")
ORDERS = Table(
    relation=PUBLIC,
    comment="Customer\n  orders",
    row_estimate=890_000,
    size_bytes=4096,
    columns=(
        TableColumn(name="id", type="bigint", nullable=False, identity="ALWAYS"),
        TableColumn(name="user_id", type="integer", nullable=False),
        TableColumn(name="region_code", type="varchar", nullable=False),
        TableColumn(name="branch", type="integer"),
        TableColumn(name="status", type="order_status", nullable=False, enum=("pending", "paid", "shipped")),
        TableColumn(name="grade", type="grade", nullable=False, enum=tuple("abcdefghijklmn")),
        TableColumn(name="total", type="numeric(12,2)", default="0"),
        TableColumn(name="Full Name", type="text", nullable=False, generated="a || b"),
        TableColumn(name="code", type="text", nullable=False),
        TableColumn(name="slug", type="text", nullable=False),
        TableColumn(name="note", type="text", comment="free text"),
        TableColumn(name="odd", type=""),
    ),
    constraints=(
        Constraint(type="PRIMARY KEY", name="orders_pkey", columns=("id",)),
        Constraint(type="UNIQUE", name="orders_code", columns=("code",)),
        Constraint(type="UNIQUE", columns=("code", "Full Name")),
        Constraint(type="CHECK", name="positive", definition="(total >= 0)"),
        Constraint(type="CHECK", definition="(total) < (5)"),
        Constraint(type="CHECK", definition="CHECK ((total <> 7))"),
        Constraint(type="EXCLUDE", definition="EXCLUDE USING gist (code WITH =)"),
    ),
    foreign_keys=(
        _key("user_id", USERS, "id", "orders_user"),
        _key("region_code", REGION, "region_code"),
        _key("region_code branch", BRANCH, "region id", "orders_branch"),
    ),
    indexes=(
        Index(name="orders_pkey", parts=("id",), unique=True, primary=True, method="btree"),
        Index(name="orders_day", parts=("date_trunc('day', placed_at)",), method="btree", predicate="status = 'paid'"),
        Index(name="Odd Index", parts=("Full Name", "code"), method="gin"),
        Index(name="orders_slug", parts=("slug",), unique=True),
        Index(name="orders_part", parts=("note",), unique=True, predicate="note > ''"),
    ),
)

COMPACT = [
    "-- Customer orders; ~890000 rows",
    "id bigint PK IDENTITY",
    "user_id integer -> users.id",
    "region_code varchar -> region",
    "branch integer NULL",
    "status order_status {pending|paid|shipped}",
    "grade grade {a|b|c|d|e|f|g|h|i|j|k|l|...}",
    "total numeric(12,2) NULL",
    '"Full Name" text GENERATED',
    "code text UNIQUE",
    "slug text UNIQUE",
    "note text NULL -- free text",
    "odd NULL",
    "(region_code, branch) -> sales.branch(region, id)",
]
INDEXES = [
    "INDEX orders_day (date_trunc('day', placed_at)) WHERE status = 'paid'",
    'INDEX "Odd Index" USING gin ("Full Name", code)',
    "UNIQUE INDEX orders_slug (slug)",
    "UNIQUE INDEX orders_part (note) WHERE note > ''",
]
CONSTRAINTS = [
    'UNIQUE (code, "Full Name")',
    "CHECK (total >= 0)",
    "CHECK ((total) < (5))",
    "CHECK ((total <> 7))",
    "EXCLUDE USING gist (code WITH =)",
]


@pytest.fixture
def namespace(dialect) -> Namespace:
    return Namespace(dialect, "public")


def test_compact_is_a_line_per_column(namespace):
    assert compact(ORDERS, namespace) == COMPACT


def test_indexes_and_constraints_are_lines_when_asked_for(namespace):
    lines = compact(ORDERS, namespace, indexes=True, constraints=True)
    assert lines == [*COMPACT, *INDEXES, *CONSTRAINTS]


def test_a_composite_primary_key_is_numbered_in_its_own_order(namespace):
    columns = tuple(TableColumn(name=name, type="int", nullable=False) for name in ("a", "b"))
    key = Constraint(type="PRIMARY KEY", columns=("b", "a"))
    table = Table(relation=Relation("t", "public"), columns=columns, constraints=(key,), row_estimate=9_999)
    assert compact(table, namespace) == ["a int PK2", "b int PK1"]


def test_targets_are_qualified_when_they_leave_the_tables_own_schema(namespace):
    source = Relation("leads", "crm")
    keys = tuple(
        ForeignKey(relation=source, columns=(column,), references=target, referenced_columns=("id",))
        for column, target in (("a", Relation("people", "crm")), ("b", USERS))
    )
    columns = tuple(TableColumn(name=name, type="int", nullable=False) for name in ("a", "b"))
    table = Table(relation=source, columns=columns, foreign_keys=keys)
    assert compact(table, namespace) == ["a int -> people.id", "b int -> public.users.id"]


def test_full_tells_every_fact_and_leaves_out_what_says_nothing(namespace):
    table = full(ORDERS, namespace)
    columns = {column["name"]: column for column in table.pop("columns")}
    assert columns["id"] == {
        "name": "id",
        "data_type": "bigint",
        "is_nullable": False,
        "is_primary_key": True,
        "identity": "ALWAYS",
    }
    assert columns["user_id"]["foreign_key"] == {
        "constraint_name": "orders_user",
        "referenced_schema": "public",
        "referenced_table": "users",
        "referenced_column": "id",
    }
    assert columns["branch"]["foreign_key"]["referenced_column"] == "id"
    assert columns["status"]["enum_values"] == ["pending", "paid", "shipped"]
    assert columns["total"] == {"name": "total", "data_type": "numeric(12,2)", "default_value": "0"}
    assert columns['"Full Name"']["generated"] == "a || b"
    assert columns["code"]["is_unique"] is True
    assert columns["note"]["description"] == "free text"
    assert table.pop("constraints")[0] == {"name": "orders_pkey", "type": "PRIMARY KEY", "columns": ["id"]}
    assert table.pop("indexes")[1] == {
        "name": "orders_day",
        "expressions": ["date_trunc('day', placed_at)"],
        "index_type": "btree",
        "predicate": "status = 'paid'",
    }
    assert table == {
        "name": "orders",
        "schema_name": "public",
        "type": "table",
        "description": "Customer\n  orders",
        "estimated_row_count": 890_000,
    }


def test_what_a_table_is_partitioned_by_and_a_view_s_query_are_told(namespace):
    logs = Table(relation=Relation("logs", "public"), partitioned_by=("day(at)", "region"), row_estimate=20_000)
    assert compact(logs, namespace) == ["-- ~20000 rows; partitioned by day(at), region"]
    assert full(logs, namespace)["partitioned_by"] == ["day(at)", "region"]
    view = Table(relation=Relation("v", "public"), type="view", definition="SELECT 1")
    assert compact(view, namespace) == []
    assert full(view, namespace)["definition"] == "SELECT 1"


def test_full_constraints_hold_foreign_keys_whole(namespace):
    by_name = {constraint.get("name"): constraint for constraint in full(ORDERS, namespace)["constraints"]}
    assert by_name["orders_branch"] == {
        "name": "orders_branch",
        "type": "FOREIGN KEY",
        "columns": ["region_code", "branch"],
        "referenced_schema": "sales",
        "referenced_table": "branch",
        "referenced_columns": ["region", "id"],
        "on_update": "CASCADE",
        "on_delete": "NO ACTION",
    }
    assert by_name["positive"] == {"name": "positive", "type": "CHECK", "definition": "CHECK (total >= 0)"}


def test_full_leaves_indexes_and_constraints_out_when_told(namespace):
    assert {"indexes", "constraints"}.isdisjoint(full(ORDERS, namespace, indexes=False, constraints=False))


def test_a_summary_has_the_facts_of_a_list(namespace):
    assert summary(ORDERS, namespace) == {
        "name": "orders",
        "schema_name": "public",
        "type": "table",
        "description": "Customer\n  orders",
        "estimated_row_count": 890_000,
        "size_bytes": 4096,
        "has_primary_key": True,
        "column_count": 12,
    }
