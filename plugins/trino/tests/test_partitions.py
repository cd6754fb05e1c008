"""What the hidden tables say, connector by connector."""

import pytest
from dragoman import Relation
from dragoman_trino.partitions import partitioning, source

LOGS = Relation("logs", "web", "lake")
COUNTED = [("logs$partitions", "record_count", "bigint"), ("logs$partitions", "file_count", "bigint")]


def partition(row_type):
    return [("logs$partitions", "partition", row_type), *COUNTED]


def answering(connector, rows):
    """Ask a server that knows one catalog, and remember what was asked."""
    asked = []

    async def ask(sql):
        asked.append(sql)
        return [("lake", connector)] if "system.metadata.catalogs" in sql else rows

    return ask, asked


CASES = [
    ("iceberg", partition("row(region varchar, at_day date)"), ("region", "at_day")),
    ("iceberg", [("logs", "at", "timestamp"), *partition("row(at_hour integer)")], ("hour(at)",)),
    ("iceberg", [("logs", "a", "date"), ("logs", "a_year", "date"), *partition("row(a_year date)")], ("a_year",)),
    ("iceberg", partition('row("odd, name" row(x integer, y decimal(3, 2)), b date)'), ("odd, name", "b")),
    ("iceberg", COUNTED, ()),
    ("hive", [("logs$partitions", "ds", "varchar"), ("logs$partitions", "hour", "integer")], ("ds", "hour")),
    ("hive", [], ()),
]


@pytest.mark.parametrize(("connector", "rows", "parts"), CASES)
async def test_the_parts_are_read(connector, rows, parts):
    ask, _ = answering(connector, rows)
    assert await partitioning([LOGS], ask) == ({LOGS: parts} if parts else {})


async def test_connectors_that_do_not_partition_are_not_asked():
    ask, asked = answering("memory", [])
    assert await partitioning([LOGS], ask) == {}
    assert len(asked) == 1


async def test_tables_of_one_schema_are_asked_about_together():
    ask, asked = answering("hive", [])
    await partitioning([LOGS, Relation("o'clock", "web", "lake")], ask)
    (sql,) = asked[1:]
    assert "table_schema IN ('web')" in sql
    assert "table_name IN ('logs', 'logs$partitions', 'o''clock', 'o''clock$partitions')" in sql


@pytest.mark.parametrize(("part", "column"), [("day(at)", "at"), ("region", "region"), ("truncate(a b)", "a b")])
def test_the_column_behind_a_part(part, column):
    assert source(part) == column
