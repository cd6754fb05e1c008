"""What ANALYZE knows of columns reaches a description, as far as the role may read it and the gate lets it pass."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from dragoman import Database, Gateway, KnowledgeSettings, Secret
from dragoman.tools import Answer, Toolbox

SHOP = """
CREATE TABLE branch (id int PRIMARY KEY, name text NOT NULL);
INSERT INTO branch VALUES (1, 'North'), (2, 'South');
CREATE TABLE payment (
    id int PRIMARY KEY, status text, paid_on date, amount numeric(8, 2), email text, channel int, flag_code text,
    note text, branch_id int REFERENCES branch (id), mood text, stage text
);
INSERT INTO payment SELECT n, CASE WHEN n % 10 < 6 THEN 'paid' WHEN n % 10 < 9 THEN 'open' ELSE 'void' END,
    date '2024-01-01' + n % 100, n / 4.0, 'person' || n % 3 || '@example.com', n % 3, '', NULL, n % 2 + 1,
    CASE WHEN n % 2 = 0 THEN 'glad' END, 'stage ' || n % 40 FROM generate_series(1, 1000) AS n;
CREATE TABLE guarded (id int PRIMARY KEY, status text);
INSERT INTO guarded SELECT n, 'a' FROM generate_series(1, 100) AS n;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE VIEW paid AS SELECT * FROM payment WHERE status = 'paid';
CREATE TABLE partly (id int, status text, grade text);
INSERT INTO partly SELECT n, 'x', 'good' FROM generate_series(1, 100) AS n;
CREATE TABLE reading (at date, level text) PARTITION BY RANGE (at);
CREATE TABLE reading_2024 PARTITION OF reading FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO reading SELECT date '2024-01-01' + n % 300, CASE n % 2 WHEN 0 THEN 'low' ELSE 'high' END
    FROM generate_series(1, 500) AS n;
ANALYZE;
"""


@pytest.fixture(scope="module")
async def reader(server, database_name) -> AsyncIterator[Database]:
    """A role that may read, and owns nothing."""
    await server.run(SHOP, database_name)
    role = f"reader_{database_name}"
    await server.run(
        f"CREATE ROLE {role} LOGIN PASSWORD 'x';"
        f"GRANT SELECT ON branch, payment, guarded, paid, reading, reading_2024 TO {role};"
        f"GRANT SELECT (id, grade) ON partly TO {role}",
        database_name,
    )
    yield server.configure(database_name, user=role, password=Secret("x"))
    await server.run(f"DROP OWNED BY {role}; DROP ROLE {role}", database_name)


def structured(answer: Answer) -> dict[str, Any]:
    assert answer.structured is not None
    return answer.structured


async def described(database: Database, table: str, detail: str = "compact") -> dict:
    async with Gateway.open([database]) as gateway:
        answer = await Toolbox(gateway).call("describe_table", {"table_name": table, "detail": detail})
    assert not answer.is_error, answer.text
    tables = structured(answer)["tables"]
    if detail == "full":
        return {column["name"]: column for column in tables[0]["columns"]}
    return {line.split()[0]: line for line in tables[table]}


async def test_few_values_stand_in_the_line_of_their_column_the_most_frequent_first(reader):
    lines = await described(reader, "payment")
    assert lines["status"] == "status text NULL ~{paid|open|void}"
    assert lines["channel"].startswith("channel integer NULL ~{")


async def test_a_foreign_key_into_a_list_of_kinds_leads_to_its_names(reader):
    assert (await described(reader, "branch"))["name"] == "name text ~{North|South}"


async def test_blank_and_missing_values_are_warned_of(reader):
    lines = await described(reader, "payment")
    assert lines["flag_code"] == "flag_code text NULL -- always blank"
    assert lines["note"] == "note text NULL -- always null"
    assert lines["mood"] == "mood text NULL ~{glad} -- 50 % null"
    assert lines["email"] == "email text NULL"


async def test_a_list_that_is_cut_says_so(reader):
    assert (await described(reader, "payment"))["stage"].endswith("|...}")


async def test_the_full_description_tells_numbers_with_their_source_and_day(reader):
    columns = await described(reader, "payment", "full")
    status = columns["status"]
    assert (status["common_values"], status["distinct_values"], status["values_kind"]) == (
        ["paid", "open", "void"],
        3,
        "common",
    )
    assert status["source"].startswith("statistics of 20")
    assert (columns["amount"]["minimum"], columns["amount"]["maximum"]) == ("0.25", "250.00")
    assert (columns["paid_on"]["minimum"], columns["paid_on"]["maximum"]) == ("2024-01-01", "2024-04-09")
    assert columns["mood"]["null_fraction"] == 0.5
    assert "common_values" not in columns["email"]
    assert columns["email"]["distinct_values"] == 3


async def test_what_the_role_may_not_read_is_not_told(reader):
    assert "~{" not in "".join((await described(reader, "guarded")).values())
    assert "~{" not in "".join((await described(reader, "paid")).values())
    assert (await described(reader, "partly")).keys() == {"id", "grade"}


async def test_the_configuration_hides_and_shows_values_and_switches_them_off(reader):
    settings = KnowledgeSettings(hide_values=("payment.status",), show_values=("email",))
    lines = await described(replace(reader, knowledge=settings), "payment")
    assert lines["status"] == "status text NULL"
    assert "person1@example.com" in lines["email"]
    off = await described(replace(reader, knowledge=KnowledgeSettings(values="off")), "payment")
    assert "~{" not in "".join(off.values())


async def test_partitions_stand_under_their_parent(reader):
    async with Gateway.open([reader]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        listed = structured(await toolbox.call("list_tables", {}))["tables"]["public"]
        named = structured(await toolbox.call("list_tables", {"name_pattern": "reading%"}))["tables"]["public"]
        found = structured(await toolbox.call("search_catalog", {"query": "reading"}))["results"]
        lines = structured(await toolbox.call("describe_table", {"table_name": "reading"}))["tables"]["reading"]
        everything = structured(await toolbox.call("search_catalog", {"query": "", "kinds": ["table"]}))["relations"]
        schemas = structured(await toolbox.call("list_schemas", {}))["schemas"]
        texts = [
            structured(await toolbox.call("read_schema", given))["schema"] for given in ({}, {"schema_name": "public"})
        ]
    assert [sorted(listed)] == [sorted(named) for named in everything[reader.name].values()]
    assert {each["name"]: each["table_count"] for each in schemas}["public"] == len(listed)
    assert all("TABLE reading (" in text and "reading_2024" not in text for text in texts)
    assert "reading" in listed
    assert "reading_2024" not in listed
    assert named == ["reading", "reading_2024"]
    assert {result["table"] for result in found} == {"reading"}
    assert "1 part: reading_2024" in lines[0]
