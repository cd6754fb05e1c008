"""The scaffold's policy holds against every attack of the kit on engines with servers too."""

import sys
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest
from dragoman.cli.new_dialect import fill, write_values
from dragoman.testing import PolicyConformance
from dragoman_trino.testing.fixtures import trino_server

from .conftest import write_policy

__all__ = ["trino_server"]

pytestmark = pytest.mark.timeout(900)
KEYLESS = tuple(
    statement.replace(" PRIMARY KEY", "").replace(" REFERENCES customer (id)", "").replace("TEXT", "VARCHAR")
    for statement in PolicyConformance.sample
    if "INDEX" not in statement
)
HIDDEN = (
    "INSERT INTO customer VALUES (7, 'b', 'hidden', 'hidden@x', '777'), (8, 'c', 'zed', '{', '888')",
    "INSERT INTO orders VALUES (7, 'b', 7, 700, 'hidden'), (8, 'c', 1, -9, '{')",
)


@pytest.fixture(scope="module", autouse=True)
def policy(tmp_path_factory: pytest.TempPathFactory):
    """The scaffold's policy, installed for this module."""
    source = fill("policy.py.tmpl", set(), write_values("tenants", "mit"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(write_policy(tmp_path_factory.mktemp("site") / "packages", "tenants", source))
        yield
    sys.modules.pop("policy_tenants", None)


class OfTenants(PolicyConformance):
    """What both engines have in common."""

    policy = "tenants"
    hidden = HIDDEN


@pytest.mark.full
class TestPostgres(OfTenants):
    failing: ClassVar = ("1 / (length(CAST({c} AS text)) - 3) > -5", "CAST(CAST({c} AS text) AS integer) > 0")

    @pytest.fixture(scope="class")
    @classmethod
    async def databases(cls, server, anyio_backend) -> AsyncIterator[list]:
        """Two databases of one server."""
        scripts = (cls.sample, (*cls.sample, *cls.hidden))
        names = [await server.create("; ".join((*script, "ANALYZE"))) for script in scripts]
        yield [server.configure(name, name="twin") for name in names]
        for name in names:
            await server.drop(name)


@pytest.mark.nightly
class TestTrino(OfTenants):
    sample = KEYLESS
    volatile = (r"memory:\d+",)
    deadline = 600.0
    failing: ClassVar = ("1 / (length(CAST({c} AS varchar)) - 3) > -5", "CAST(CAST({c} AS varchar) AS integer) > 0")

    @pytest.fixture(scope="class")
    @classmethod
    async def databases(cls, trino_server, anyio_backend) -> AsyncIterator[list]:
        """Two schemas of one server."""
        async with trino_server.schema() as one, trino_server.schema() as other:
            found = []
            for schema, script in ((one, cls.sample), (other, (*cls.sample, *cls.hidden))):
                catalog, name = schema.split(".")
                configured = trino_server.configure(catalog, name, name="twin", schemas=(schema,))
                await trino_server.run(*(within(statement, schema) for statement in script))
                found.append(configured)
            yield found


def within(statement: str, schema: str) -> str:
    """Return a statement of the sample with its relations in a schema."""
    for table in ("customer", "orders", "country", "contact", "spent", "place"):
        for word in ("TABLE", "VIEW", "INTO", "FROM"):
            statement = statement.replace(f"{word} {table}", f"{word} {schema}.{table}")
    return statement


del OfTenants, PolicyConformance
