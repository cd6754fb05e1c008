"""Keys of the configuration count like the database's own."""

from dragoman import Constraint, DeclaredKey


async def test_declared_keys_are_merged(build, facts, make_table):
    keys = (
        DeclaredKey("orders", ("CUSTOMER_ID",), "sales.customers"),
        DeclaredKey("sales.customers", ("id",)),
    )
    catalog = build(facts(make_table("orders", "id", "customer_id"), make_table("sales.customers", "id")), keys=keys)
    orders, customers = await catalog.find("orders"), await catalog.find("customers")
    assert customers.primary_key == ("id",)
    (key,) = orders.foreign_keys
    assert (key.columns, key.references, key.referenced_columns) == (("customer_id",), customers.relation, ("id",))
    assert key.declared
    assert (await catalog.snapshot()).notices == ()


async def test_what_a_declared_key_does_not_find_is_a_notice(build, facts, make_table):
    keys = (
        DeclaredKey("order", ("id",)),
        DeclaredKey("orders", ("nope",)),
        DeclaredKey("orders", ("customer_id",), "customers"),
    )
    catalog = build(facts(make_table("orders", "id", "customer_id"), make_table("customers", "id")), keys=keys)
    told = " ".join((await catalog.snapshot()).notices)
    assert all(part in told for part in ("no table order.", "no column nope.", "no key of 1 columns"))
    assert (await catalog.find("orders")).foreign_keys == ()


async def test_the_databases_own_keys_are_not_doubled(build, facts, make_table, make_key):
    known = facts(
        make_table("orders", "id", "user_id", keys=(make_key("orders", "user_id", "users"),)),
        make_table("users", "id", constraints=(Constraint(type="PRIMARY KEY", columns=("id",)),)),
    )
    keys = (DeclaredKey("orders", ("user_id",), "users", ("id",)), DeclaredKey("users", ("id",)))
    catalog = build(known, keys=keys)
    assert len((await catalog.find("orders")).foreign_keys) == 1
    assert len((await catalog.find("users")).constraints) == 1


async def test_a_key_of_a_table_that_comes_later_is_used_then(build, facts, make_table):
    known = facts(make_table("orders", "id", "user_id"))
    catalog = build(known, keys=(DeclaredKey("orders", ("user_id",), "users", ("id",)),))
    assert len((await catalog.snapshot()).notices) == 1
    known.all.append(make_table("users", "id"))
    await catalog.find("users")
    assert (await catalog.snapshot()).notices == ()
    assert len((await catalog.find("orders")).foreign_keys) == 1
