"""A database that cannot hold callers to what a role or its identity says does not open; nothing runs unfiltered."""

from pathlib import Path

import duckdb
import pytest
from dragoman import ConfigurationError, Gateway
from dragoman.config import load


@pytest.mark.parametrize(
    ("extra", "identity", "told"),
    [
        ("filter = \"tenant = 'a'\"", "gateway", "roles.reader.grants.0: duckdb cannot filter rows or mask columns"),
        ('masks = { tenant = "null" }', "gateway", "roles.reader.grants.0: duckdb cannot filter rows or mask columns"),
        ("", "role", "databases.lake.identity: duckdb cannot keep the rights of callers"),
        ("", "session", "databases.lake.identity: duckdb cannot keep the rights of callers"),
        ("", "user", "databases.lake.identity: duckdb cannot keep the rights of callers"),
    ],
)
async def test_what_duckdb_cannot_hold_stops_the_start(tmp_path: Path, extra: str, identity: str, told: str) -> None:
    with duckdb.connect(str(tmp_path / "lake.duckdb")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, tenant VARCHAR)")
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f'[databases.lake]\nurl = "duckdb:///lake.duckdb"\nidentity = "{identity}"\n'
        'database_roles = { reader = "reader" }\n'
        '[roles.reader]\ngroups = ["readers"]\n[[roles.reader.grants]]\ndatabase = "lake"\ntables = ["main.*"]\n'
        f"{extra}\n"
    )
    with pytest.raises(ConfigurationError) as raised:
        async with Gateway.open(load(file, environ={}, folder=tmp_path)):
            pass
    assert told in raised.value.message
    assert "dragoman.toml" in raised.value.message
