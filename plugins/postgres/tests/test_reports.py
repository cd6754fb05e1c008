"""What a server tells of itself reaches callers as resources, as a plain role may read it."""

import json
from dataclasses import replace

import pytest
from dragoman import Database, Gateway, KnowledgeSettings, Secret
from dragoman.model import LOCAL
from dragoman.tools import Toolbox
from dragoman.tools.surfaces import UnknownResource


@pytest.fixture
def database(server, database_name) -> Database:
    return server.configure(database_name)


async def _report(database: Database, what: str) -> list[dict]:
    async with Gateway.open([database]) as gateway:
        content = await Toolbox(gateway).surfaces.read(f"stat://{database.name}/{what}", LOCAL)
    return json.loads(content.text)["rows"]


async def test_the_server_tells_of_itself(database: Database):
    (info,) = await _report(database, "system_info")
    assert info["encoding"] == "UTF8"
    assert info["is_replica"] is False
    settings = {row["name"]: row["setting"] for row in await _report(database, "settings")}
    assert "work_mem" in settings
    assert not [name for name in settings if "file" in name or "command" in name or "director" in name]
    assert await _report(database, "replication") == []


async def test_the_activity_of_others_is_told_only_where_it_is_named(database: Database):
    with pytest.raises(UnknownResource):
        await _report(database, "activity")
    opened = replace(database, knowledge=KnowledgeSettings(reports=("activity",)))
    assert isinstance(await _report(opened, "activity"), list)


async def test_a_fingerprint_is_another_one_after_a_change_and_the_same_after_rows(server, database_name):
    database = server.configure(database_name)
    async with Gateway.open([database]) as gateway:
        inspector = gateway.database().inspector
        seen = [await inspector.fingerprint()]
        for change in (
            "CREATE TABLE marked (id int PRIMARY KEY, a text)",
            "ALTER TABLE marked ADD COLUMN b int",
            "ALTER TABLE marked ALTER COLUMN a SET NOT NULL",
            "COMMENT ON COLUMN marked.a IS 'what it is'",
            "CREATE INDEX marked_a ON marked (a)",
            "ALTER TABLE marked ADD CHECK (b > 0)",
            "ALTER TABLE marked RENAME COLUMN b TO c",
            "CREATE TYPE mood_of_marked AS ENUM ('ok')",
            "ALTER TYPE mood_of_marked ADD VALUE 'bad'",
            "ALTER TABLE marked ALTER COLUMN c SET DEFAULT 1",
            "ALTER TABLE marked ALTER COLUMN c SET DEFAULT 2",
            "CREATE VIEW marked_view AS SELECT id FROM marked",
            "CREATE OR REPLACE VIEW marked_view AS SELECT id FROM marked WHERE id > 0",
            "CREATE TABLE part_of_marked () INHERITS (marked)",
            "GRANT CREATE ON SCHEMA public TO pg_monitor",
        ):
            await server.run(change, database_name)
            seen.append(await inspector.fingerprint())
        assert None not in seen
        assert len(set(seen)) == len(seen)
        await server.run("INSERT INTO marked VALUES (1, 'x', 2); ANALYZE marked", database_name)
        assert await inspector.fingerprint() == seen[-1]
    await server.run(
        "DROP VIEW marked_view; DROP TABLE marked, part_of_marked; DROP TYPE mood_of_marked;"
        " REVOKE CREATE ON SCHEMA public FROM pg_monitor",
        database_name,
    )


async def test_a_role_that_is_granted_changes_the_fingerprint_of_its_member(server, database_name):
    roles = "CREATE ROLE marked_group; CREATE ROLE marked_outer; CREATE ROLE marked_member LOGIN PASSWORD 'x'"
    await server.run(roles, database_name)
    try:
        member = replace(server.configure(database_name), user="marked_member", password=Secret("x"))
        async with Gateway.open([member]) as gateway:
            inspector = gateway.database().inspector
            before = await inspector.fingerprint()
            await server.run("GRANT marked_group TO marked_member", database_name)
            between = await inspector.fingerprint()
            assert between != before
            await server.run("GRANT marked_outer TO marked_group", database_name)
            assert await inspector.fingerprint() != between
    finally:
        await server.run("DROP ROLE marked_outer, marked_group, marked_member", database_name)
