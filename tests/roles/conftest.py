"""A shop whose roles see different parts of it, on every engine."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.model import Claims, Principal
from dragoman.tools import Toolbox

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, ssn TEXT, UNIQUE (email));
CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, customer_id INTEGER REFERENCES customers(id),
  total NUMERIC, note TEXT);
CREATE TABLE salaries (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), amount INTEGER);
CREATE INDEX customers_ssn ON customers (ssn);
CREATE VIEW paid AS SELECT id, total FROM orders WHERE total > 0;
CREATE VIEW rich AS SELECT customer_id FROM salaries WHERE amount > 100;
INSERT INTO customers VALUES (1, 'Ada', 'ada@x.example', '111'), (2, 'Bob', 'bob@x.example', '222');
INSERT INTO orders VALUES (1, 'a', 1, 10, 'first'), (2, 'b', 2, 20, 'second'), (3, 'a', 1, 30, 'third');
INSERT INTO salaries VALUES (1, 1, 1000), (2, 2, 50);
"""
ANALYST = Principal("ann", subject="ann", groups=frozenset({"analysts"}), claims=Claims({"tenant": "a"}))
ALL_BUT_ZYX = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["{schema}.*"]
deny = ["{schema}.zyx"]
"""
"""A role, as the configuration writes it, for all tables of a schema but one."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder of the shop's database."""
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    connection.execute(SHOP)
    connection.close()
    return tmp_path


Opened = Callable[[str], AbstractAsyncContextManager[Toolbox]]


@pytest.fixture
def opened(shop: Path) -> Opened:
    """`opened(roles)`: the tools over the shop with these roles, as TOML."""

    @asynccontextmanager
    async def open_with(roles: str) -> AsyncIterator[Toolbox]:
        (shop / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{roles}')
        async with Gateway.open(load(shop / "dragoman.toml", environ={}, folder=shop)) as gateway:
            yield Toolbox(gateway)

    return open_with


async def ask(toolbox: Toolbox, tool: str, principal: Principal = ANALYST, **arguments: Any) -> Any:
    """Return a tool's answer, or the error it is, as JSON values."""
    answer = await toolbox.call(tool, arguments, principal=principal)
    return json.loads(answer.text)
