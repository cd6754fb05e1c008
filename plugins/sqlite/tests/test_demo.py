"""The demo's databases: the same every time, sound, and showing what the plugin can tell."""

from collections.abc import Sequence

import apsw
import pytest
from dragoman import Database
from dragoman_sqlite.demo import build


def dump(path) -> list:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
    found = [(table, connection.execute(f'SELECT * FROM "{table}"').fetchall()) for table in tables]
    connection.close()
    return found


def test_the_demo_is_the_same_every_time(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    databases: Sequence[Database] = ()
    for folder in (first, second):
        folder.mkdir()
        for _ in range(2):  # over what is there already, too
            databases = build(folder)
    assert [database.name for database in databases] == ["shop", "warehouse"]
    for database in databases:
        assert database.database is not None
        assert dump(first / database.database) == dump(second / database.database)


@pytest.mark.parametrize("number", [0, 1])
def test_the_demo_is_sound(tmp_path, number):
    connection = apsw.Connection(str(tmp_path / build(tmp_path)[number].database))
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_the_demo_shows_views_enums_full_text_and_composite_keys(bench):
    (shop, _) = build(bench.folder)
    inspection = await bench.inspect(shop)
    tables = {table.relation.name: table for table in inspection.tables}
    assert inspection.notices == ()
    assert (tables["revenue"].type, tables["review_text"].type) == ("view", "virtual table")
    assert tables["order_item"].primary_key == ("order_id", "line")
    assert next(column.enum for column in tables["order"].columns if column.name == "status")
    assert tables["order"].row_estimate == 1200
    found = await bench.ask(shop, "SELECT count(*) FROM review_text WHERE review_text MATCH 'quickly'")
    assert found.rows[0][0] > 0
