"""What the inspector tells of a real server's catalog."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from dragoman import Constraint, ForeignKey, Index, Relation, Scope
from dragoman_postgres import inspector as inspecting
from dragoman_postgres.inspector import PostgresInspector
from dragoman_postgres.pool import Connections

SCHEMA = (Path(__file__).parent / "catalog.sql").read_text()


async def counted(connection: asyncpg.Connection) -> None:
    """Wait until the server knows how many rows were written: before PostgreSQL 15 a process of its own counts them."""
    async with asyncio.timeout(30):
        while not await connection.fetchval("SELECT pg_stat_get_live_tuples('filled'::regclass)"):
            await connection.execute("SELECT pg_stat_clear_snapshot()")


@pytest.fixture(scope="module")
async def connections(server, database_name):
    await server.run(SCHEMA, database_name)
    watching = await asyncpg.connect(server.address(database_name))
    await counted(watching)
    await watching.close()
    lent = Connections(server.configure(database_name), 3)
    yield lent
    await lent.aclose()


@pytest.fixture(scope="module")
def inspector(connections):
    return PostgresInspector(connections.connector._database, connections)


@pytest.fixture(scope="module")
async def tables(inspector):
    """Every relation that is not the system's, by name."""
    inspection = await inspector.tables(Scope())
    assert inspection.notices == ()
    return {table.relation.name: table for table in inspection.tables if not table.system}


def column(table, name):
    return next(column for column in table.columns if column.name == name)


async def test_the_version_is_the_server_s_own(inspector):
    version = await inspector.version()
    assert int(version.split(".")[0]) >= 13
    assert " " not in version


async def test_schemas_are_told_with_owner_and_comment_and_those_of_the_system_marked(inspector):
    schemas = {schema.name: schema for schema in await inspector.schemas()}
    assert schemas["sales"].comment == "What is sold"
    assert schemas["sales"].owner == "postgres"
    system = {name for name, schema in schemas.items() if schema.system}
    assert system == {"pg_catalog", "information_schema"}
    assert schemas.keys() - system == {"public", "sales", "hidden"}


async def test_the_schemas_of_the_search_path_are_numbered(inspector, server, database_name):
    assert {s.name: s.search_order for s in await inspector.schemas() if s.search_order is not None} == {"public": 0}
    database = server.configure(database_name, schema="sales")
    own = Connections(database, 1)
    try:
        places = {schema.name: schema.search_order for schema in await PostgresInspector(database, own).schemas()}
    finally:
        await own.aclose()
    assert (places["sales"], places["public"], places["hidden"]) == (0, 1, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders", "table"),
        ("v_orders", "view"),
        ("totals", "materialized view"),
        ("remote", "foreign table"),
        ("readings", "partitioned table"),
        ("readings_2024", "table"),
        ("empty", "table"),
    ],
)
async def test_every_kind_of_relation_is_told_as_what_it_is(tables, name, kind):
    assert tables[name].type == kind


async def test_owner_and_comments_are_told(tables):
    assert (tables["orders"].owner, tables["orders"].comment) == ("postgres", "Customer orders")
    assert column(tables["orders"], "total").comment == "With tax"
    assert tables["v_orders"].comment == "Orders in short"
    assert tables["branches"].relation == Relation("branches", "sales")


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("id", "integer"),
        ("customer_id", "bigint"),
        ("region", "varchar"),
        ("status", "order_status"),
        ("past", "order_status[]"),
        ("colour", "sales.colour"),
        ("rating", "smallint"),
        ("total", "numeric(12,2)"),
        ("code", "char"),
        ("flags", "varbit(8)"),
        ("share", "double precision"),
        ("open", "boolean"),
        ("placed", "timestamptz(3)"),
        ("at", "time"),
        ("stamp", "timestamp"),
        ("tags", "varchar[]"),
        ("note", "text"),
    ],
)
async def test_types_have_their_shortest_spelling_and_the_database_accepts_it(tables, connections, name, spelling):
    assert column(tables["orders"], name).type == spelling
    async with connections.borrow() as connection:
        assert await connection.fetchval(f"SELECT NULL::{spelling}") is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("status", ("pending", "paid", 'it\'s "sent"')),
        ("past", ("pending", "paid", 'it\'s "sent"')),
        ("kind", ("pending", "paid", 'it\'s "sent"')),
        ("size", ("S", "M", "L")),
        ("colour", ("red", "green")),
        ("rating", ("1", "2", "3")),
        ("channel", ("web", "it's a shop")),
        ("total", ()),
        ("note", ()),
    ],
)
async def test_the_only_values_of_a_column_are_told(tables, name, values):
    assert column(tables["orders"], name).enum == values


async def test_null_is_no_value_where_the_column_or_its_domain_says_so(tables):
    nullable = {each.name for each in tables["orders"].columns if each.nullable}
    assert not {"id", "customer_id", "status", "size"} & nullable
    assert {"total", "note", "kind"} <= nullable


async def test_identities_defaults_and_generated_columns_are_told_apart(tables):
    orders = tables["orders"]
    assert column(tables["customers"], "id").identity == "ALWAYS"
    assert column(orders, "id").identity == "BY DEFAULT"
    assert column(orders, "status").default == "'pending'::order_status"
    assert column(orders, "placed").default == "now()"
    assert column(orders, "net").default is None
    assert column(orders, "net").generated == "(total / 1.2)"
    assert column(orders, "note").default is None


async def test_keys_and_checks_are_told(tables):
    orders = tables["orders"]
    assert orders.primary_key == ("id",)
    assert tables["branches"].primary_key == ("region", "branch")
    told = {constraint.name: constraint for constraint in orders.constraints}
    assert told["orders_day_total"] == Constraint(type="UNIQUE", name="orders_day_total", columns=("day", "total"))
    assert told["orders_total_check"].definition == "CHECK (total >= 0::numeric)"
    (exclusion,) = tables["stays"].constraints
    assert (exclusion.type, exclusion.columns) == ("EXCLUDE", ("during",))
    assert exclusion.definition == "EXCLUDE USING gist (during WITH &&)"


async def test_foreign_keys_are_told_with_their_actions_in_column_order(tables):
    orders, customers = Relation("orders", "public"), Relation("customers", "public")
    assert tables["orders"].foreign_keys == (
        ForeignKey(
            relation=orders,
            columns=("region", "branch"),
            references=Relation("branches", "sales"),
            referenced_columns=("region", "branch"),
            name="orders_branch",
            on_update="NO ACTION",
            on_delete="NO ACTION",
        ),
        ForeignKey(
            relation=orders,
            columns=("customer_id",),
            references=customers,
            referenced_columns=("id",),
            name="orders_customer_id_fkey",
            on_update="CASCADE",
            on_delete="RESTRICT",
            definition="FOREIGN KEY (customer_id) REFERENCES customers(id)"
            " ON UPDATE CASCADE ON DELETE RESTRICT DEFERRABLE INITIALLY DEFERRED",
        ),
    )
    (own,) = tables["customers"].foreign_keys
    assert (own.relation, own.references, own.on_delete) == (customers, customers, "SET NULL")


async def test_keys_from_and_to_a_partitioned_table_are_told_once(tables):
    assert [key.references.name for key in tables["readings"].foreign_keys] == ["customers"]
    assert [key.references.name for key in tables["alerts"].foreign_keys] == ["readings"]
    assert tables["readings_2024"].foreign_keys == ()
    assert tables["readings_2024"].primary_key == ("id", "day")


async def test_a_key_with_a_period_is_told_as_no_join(server, inspector, database_name):
    script = (
        "CREATE TABLE open (room int4range, during int4range, PRIMARY KEY (room, during WITHOUT OVERLAPS));"
        "CREATE TABLE visit (room int4range, during int4range,"
        " FOREIGN KEY (room, PERIOD during) REFERENCES open (room, PERIOD during))"
    )
    try:
        await server.run(script, database_name)
    except asyncpg.PostgresSyntaxError:
        pytest.skip("keys with periods came with PostgreSQL 18")
    inspection = await inspector.tables(Scope(names=frozenset({"open", "visit"})))
    told = {table.relation.name: table for table in inspection.tables}
    assert told["visit"].foreign_keys == ()
    assert [each.type for each in told["open"].constraints] == ["PRIMARY KEY"]


async def test_indexes_are_told_with_method_expressions_predicate_and_uniqueness(tables):
    told = {index.name: index for index in tables["orders"].indexes}
    assert told["orders_key"] == Index(
        name="orders_key", parts=("id",), unique=True, primary=True, method="btree", predicate=None
    )
    placed = told["orders_placed"]
    assert placed.parts[1:] == ("id",)
    assert placed.parts[0].startswith("date_trunc('day'::text, ")
    assert placed.predicate == "status = 'paid'::order_status"
    assert (told["orders_tags"].method, told["orders_tags"].parts) == ("gin", ("tags",))
    assert (told["orders_note"].unique, told["orders_note"].parts) == (True, ("note",))
    assert [index.name for index in tables["stays"].indexes] == ["stays_during_excl"]


async def test_a_partitioned_table_has_the_rows_and_bytes_of_its_partitions(tables):
    parts = [tables["readings_2023"], tables["readings_2024"]]
    assert [part.row_estimate for part in parts] == [1000, 500]
    assert tables["readings"].row_estimate == 1500
    assert tables["readings"].size_bytes == sum(part.size_bytes for part in parts) > 0


async def test_a_table_never_analyzed_is_looked_at(tables):
    assert tables["filled"].row_estimate == 300
    assert tables["filled"].size_bytes >= 8192
    assert tables["unlogged"].row_estimate == 0


async def test_what_has_no_rows_of_its_own_has_no_estimate(tables):
    assert (tables["v_orders"].row_estimate, tables["v_orders"].size_bytes) == (None, None)
    assert (tables["remote"].row_estimate, tables["remote"].size_bytes) == (None, None)


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("v_orders", "SELECT count(*) AS number\n   FROM orders"),
        ("readings", "PARTITION BY RANGE (day)"),
        ("readings_2024", "PARTITION OF readings FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')"),
        ("capitals", "INHERITS (cities)"),
        ("orders", None),
    ],
)
async def test_views_partitions_and_heirs_have_a_definition(tables, name, definition):
    assert tables[name].definition == definition


async def test_odd_names_are_told_as_stored(tables):
    odd = tables['Odd "name"']
    assert [each.name for each in odd.columns] == ["select", "Zoë's col"]
    assert odd.primary_key == ("select",)
    assert {index.name: index.parts for index in odd.indexes}["Odd index"] == ("Zoë's col",)


async def test_a_dropped_column_leaves_no_trace(tables):
    assert [each.name for each in tables["unlogged"].columns] == ["a", "b"]
    assert tables["empty"].columns == ()


async def test_relations_of_the_system_are_told_and_marked(inspector):
    inspection = await inspector.tables(Scope(names=frozenset({"pg_class", "columns"})))
    found = {str(table.relation): table for table in inspection.tables}
    assert found.keys() == {"pg_catalog.pg_class", "information_schema.columns"}
    assert all(table.system and table.columns for table in found.values())


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        (Scope(names=frozenset({"orders", "nothing"})), {"orders"}),
        (Scope(schemas=frozenset({"sales"})), {"branches"}),
        (Scope(schemas=frozenset({"sales"}), names=frozenset({"orders"})), set()),
        (Scope(names=frozenset({"x' OR '1'='1"})), set()),
        (Scope(names=frozenset({"n" * 100})), set()),
        (Scope(catalogs=frozenset({"elsewhere"})), set()),
    ],
)
async def test_a_scope_restricts(inspector, scope, names):
    assert {table.relation.name for table in (await inspector.tables(scope)).tables} == names


async def test_references_out_of_the_scope_are_told(inspector):
    (orders,) = (await inspector.tables(Scope(names=frozenset({"orders"})))).tables
    assert [str(key.references) for key in orders.foreign_keys] == ["sales.branches", "public.customers"]


async def test_a_role_is_told_only_what_it_may_read(server, database_name, connections):
    role = f"clerk_{database_name}"
    await server.run(
        f"""
        CREATE ROLE {role} LOGIN;
        CREATE TABLE hidden.plans (id integer PRIMARY KEY);
        GRANT SELECT ON hidden.plans TO {role};
        CREATE TABLE partly (id integer PRIMARY KEY, secret integer UNIQUE CHECK (secret > 0), plan integer
          REFERENCES hidden.plans, customer bigint REFERENCES customers);
        GRANT SELECT (id, plan, customer) ON partly TO {role};
        GRANT SELECT ON sales.branches, orders TO {role};
        GRANT USAGE ON SCHEMA public TO {role};
        """,
        database_name,
    )
    own = Connections(server.configure(database_name, user=role), 1)
    try:
        inspector = PostgresInspector(server.configure(database_name), own)
        schemas = {schema.name for schema in await inspector.schemas() if not schema.system}
        told = {t.relation.name: t for t in (await inspector.tables(Scope())).tables if not t.system}
    finally:
        await own.aclose()
        await server.run(f"DROP OWNED BY {role}; DROP ROLE {role}; DROP TABLE partly, hidden.plans", database_name)
    assert schemas == {"public"}
    assert told.keys() == {"partly", "orders"}
    partly = told["partly"]
    assert [each.name for each in partly.columns] == ["id", "plan", "customer"]
    assert [constraint.type for constraint in partly.constraints] == ["PRIMARY KEY"]
    assert [index.name for index in partly.indexes] == ["partly_pkey"]
    assert (partly.foreign_keys, told["orders"].foreign_keys) == ((), ())


async def test_a_locked_table_costs_only_its_expressions(server, database_name, inspector):
    holder = await asyncpg.connect(server.address(database_name))
    try:
        await holder.execute("BEGIN; LOCK TABLE orders, readings_2024 IN ACCESS EXCLUSIVE MODE")
        async with asyncio.timeout(30):
            inspection = await inspector.tables(Scope())
    finally:
        await holder.close()
    told = {table.relation.name: table for table in inspection.tables}
    orders = told["orders"]
    assert column(orders, "status").default is None
    assert {constraint.type for constraint in orders.constraints} == {"PRIMARY KEY", "UNIQUE"}
    assert {index.name for index in orders.indexes} == {"orders_day_total", "orders_key", "orders_note", "orders_tags"}
    assert (told["readings_2024"].definition, told["v_orders"].definition) == ("PARTITION OF readings", None)
    assert [notice.split()[0] for notice in inspection.notices] == ["public.orders", "public.readings_2024"]


async def test_a_lock_taken_meanwhile_is_seen_at_the_next_attempt(server, database_name, inspector, monkeypatch):
    holder = await asyncpg.connect(server.address(database_name))
    read, attempts = inspecting._read, []

    async def interrupted(connection, scope):
        attempts.append(scope)
        if len(attempts) == 1:
            await connection.execute("SET LOCAL lock_timeout = '50ms'")
            await holder.execute("BEGIN; LOCK TABLE filled IN ACCESS EXCLUSIVE MODE")
            await connection.fetch("SELECT FROM filled")
        return await read(connection, scope)

    monkeypatch.setattr(inspecting, "_read", interrupted)
    try:
        inspection = await inspector.tables(Scope(names=frozenset({"filled"})))
    finally:
        await holder.close()
    assert len(attempts) == 2
    assert [table.relation.name for table in inspection.tables] == ["filled"]


async def test_a_null_from_before_a_constraint_is_still_there(server, inspector, database_name):
    script = "CREATE TABLE old (a integer); ALTER TABLE old ADD CONSTRAINT told NOT NULL a NOT VALID"
    try:
        await server.run(script, database_name)
    except asyncpg.PostgresSyntaxError:
        pytest.skip("NOT NULL constraints that are not valid came with PostgreSQL 18")
    (old,) = (await inspector.tables(Scope(names=frozenset({"old"})))).tables
    assert column(old, "a").nullable


async def test_a_check_that_is_not_valid_lists_no_values(server, inspector, database_name):
    script = "CREATE TABLE loose (a text); ALTER TABLE loose ADD CHECK (a IN ('x', 'y')) NOT VALID"
    await server.run(script, database_name)
    (loose,) = (await inspector.tables(Scope(names=frozenset({"loose"})))).tables
    assert column(loose, "a").enum == ()
    assert loose.constraints[0].definition == "CHECK (a = ANY (ARRAY['x'::text, 'y'::text])) NOT VALID"


async def test_nothing_in_the_search_path_takes_the_place_of_what_the_queries_call(server, database_name):
    await server.run((Path(__file__).parent / "hostile.sql").read_text(), database_name)
    database = server.configure(database_name, schema="hostile")
    own = Connections(database, 1)
    try:
        inspector = PostgresInspector(database, own)
        assert "hostile" in {schema.name for schema in await inspector.schemas()}
        assert "orders" in {table.relation.name for table in (await inspector.tables(Scope())).tables}
        async with own.borrow() as connection:
            with pytest.raises(asyncpg.RaiseError, match="taken over"):
                await connection.fetch("SELECT FROM pg_class WHERE relname ~ '^pg_'")
    finally:
        await own.aclose()
