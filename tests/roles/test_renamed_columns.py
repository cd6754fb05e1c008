"""A column that a role hides or masks, and that the owner renames while the gateway runs."""

from pathlib import Path

import apsw
import pytest

from .conftest import Opened, ask

ROLE = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.*"]
{hiding}
"""
HIDING = {
    "a mask": 'masks = {"main.customers.ssn" = "hash"}',
    "a denial": 'deny_columns = ["main.customers.ssn"]',
    "a denial in other letters": 'deny_columns = ["MAIN.Customers.SSN"]',
}
CHANGES = {
    "renamed": "ALTER TABLE customers RENAME COLUMN ssn TO number",
    "dropped and added": "DROP INDEX customers_ssn; ALTER TABLE customers DROP COLUMN ssn; "
    "ALTER TABLE customers ADD COLUMN number TEXT DEFAULT '111'",
}


pytestmark = pytest.mark.usefixtures("at_once")


def change(folder: Path, statement: str) -> None:
    connection = apsw.Connection(str(folder / "shop.db"))
    connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("hiding", HIDING.values(), ids=HIDING)
async def test_a_table_that_loses_a_hidden_column_is_closed(
    opened: Opened, shop: Path, hiding: str, changed: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(ROLE.format(hiding=hiding)) as toolbox:
        assert "111" not in str(await ask(toolbox, "execute_query", sql="SELECT * FROM customers"))
        change(shop, changed)
        answer = await ask(toolbox, "execute_query", sql="SELECT * FROM customers")
        assert answer["error"]["code"] == "TABLE_NOT_FOUND"
        assert "main.customers is closed: it lacks the column of roles.analyst.grants.0" in caplog.text
        assert "customers" not in (await ask(toolbox, "list_tables"))["tables"]["main"]
        assert (await ask(toolbox, "execute_query", sql="SELECT count(*) FROM orders"))["rows"] == [[3]]


async def test_it_is_open_again_once_the_column_is_back(opened: Opened, shop: Path) -> None:
    async with opened(ROLE.format(hiding=HIDING["a denial"])) as toolbox:
        change(shop, CHANGES["renamed"])
        assert "error" in await ask(toolbox, "execute_query", sql="SELECT * FROM customers")
        change(shop, "ALTER TABLE customers RENAME COLUMN number TO ssn")
        answer = await ask(toolbox, "execute_query", sql="SELECT * FROM customers")
        assert answer["columns"] == ["id", "name", "email"]


async def test_a_pattern_closes_no_table_that_never_had_such_a_column(opened: Opened, shop: Path) -> None:
    async with opened(ROLE.format(hiding='deny_columns = ["*.ssn", "main.*.ssn"]')) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT count(*) FROM orders"))["rows"] == [[3]]


async def test_no_table_is_closed_whose_columns_the_role_lists(opened: Opened, shop: Path) -> None:
    listed = 'columns = ["id", "name", "ssn"]\nmasks = {"main.customers.ssn" = "hash"}\n'
    async with opened(ROLE.format(hiding=listed).replace("main.*", "main.customers")) as toolbox:
        change(shop, CHANGES["renamed"])
        assert (await ask(toolbox, "execute_query", sql="SELECT * FROM customers"))["columns"] == ["id", "name"]
