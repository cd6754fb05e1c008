"""What the server knows of values reaches descriptions, as far as the gate lets it pass."""

import json

import pytest
from dragoman import Gateway, KnowledgeSettings, Relation
from dragoman.model import ProfileBudget, Table, TableColumn
from dragoman.tools import Toolbox
from dragoman_trino.profiles import profile, shows_whole


async def _described(database, table):
    async with Gateway.open([database]) as gateway:
        opened = gateway.database()
        known = (await opened.catalog.snapshot()).listed
        # Ahead: a description waits for two seconds, and a server that has just started takes longer.
        await opened.knowledge.learn(
            [each for each in known if each.relation.name == table], opened.knowledge.budget(60)
        )
        answer = await Toolbox(gateway).call("describe_table", {"table_name": table, "detail": "full"})
        assert answer.structured is not None
        (told,) = answer.structured["tables"]
        return {column["name"]: column for column in told["columns"]}


async def test_statistics_tell_ranges_and_counts_and_no_values(trino_server):
    columns = await _described(trino_server.configure("tpch", "tiny"), "orders")
    assert columns["orderstatus"]["distinct_values"] == 3
    assert "common_values" not in columns["orderstatus"]
    assert (columns["orderdate"]["minimum"], columns["orderdate"]["maximum"]) == ("1992-01-01", "1998-08-02")
    assert columns["totalprice"]["source"] == "statistics"


async def test_a_sample_tells_the_values_that_may_be_shown(trino_server):
    database = trino_server.configure("tpch", "tiny", knowledge=KnowledgeSettings(values="sample"))
    columns = await _described(database, "orders")
    assert sorted(columns["orderstatus"]["common_values"]) == ["F", "O", "P"]
    assert columns["orderstatus"]["values_kind"] == "common"  # 10,000 rows of 15,000
    assert "common_values" not in columns["clerk"]
    assert "common_values" not in columns["comment"]


async def test_a_table_without_statistics_is_told_from_its_rows(trino_server):
    async with trino_server.schema() as schema:
        await trino_server.run(
            "CREATE TABLE tickets (id integer, state varchar, email varchar)",
            "INSERT INTO tickets SELECT n, IF(n % 4 = 0, 'open', 'done'), 'a' || CAST(n % 2 AS varchar) || '@b.com'"
            " FROM UNNEST(sequence(1, 40)) AS t (n)",
            schema=schema,
        )
        database = trino_server.configure(*schema.split("."), knowledge=KnowledgeSettings(values="sample"))
        columns = await _described(database, "tickets")
    assert columns["state"]["common_values"] == ["done", "open"]
    assert columns["state"]["values_kind"] == "all"
    assert "common_values" not in columns["email"]


LOGS = Table(
    relation=Relation("logs", "web", "lake"),
    columns=(TableColumn(name="region", type="varchar"), TableColumn(name="at", type="date")),
)


@pytest.mark.parametrize(
    ("counted", "rows", "values", "kind", "fractions"),
    [
        (True, [("r1", 30), ("r0", 10)], ("r1", "r0"), "all", (0.75, 0.25)),
        (True, [("r1", 30), (None, 10)], ("r1",), "common", (1.0,)),
        (False, [("r0", 0), ("r1", 0)], ("r0", "r1"), "all", ()),
        (False, [(f"r{n}", 0) for n in range(4)], (), "common", ()),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
async def test_partitions_tell_their_values_unless_the_server_hides_some(counted, rows, values, kind, fractions, whole):
    """As the hidden tables of Iceberg, which count rows, and of Hive answer."""
    asked = []

    async def ask(sql):
        asked.append(sql)
        if sql.startswith("SHOW STATS"):
            return [("region", None, 2.0, 0.0, None, None, None), (None, None, None, None, 40.0, None, None)]
        return rows

    async def shows_whole():
        return whole

    parts, budget = ("region", "day(at)"), ProfileBudget(values=3)
    found = await profile(LOGS, parts, budget, ask, counted=counted, whole=shows_whole())
    if not whole:
        assert found == ()
        return
    (told,) = found
    assert (told.values, told.kind, told.fractions) == (values, kind, fractions)
    assert told.distinct == (len(values) if kind == "all" else 2)
    assert len(asked) == 2  # what is computed from a column is not asked for
    assert '"lake"."web"."logs$partitions"' in asked[1]


@pytest.mark.parametrize(
    ("renamed", "read", "is_whole"),
    [
        ([], ["id := 1:id:bigint"], True),
        (["line_1 := line", "line_2 := line_0"], ["line := 2:line_1:varchar", "line_0 := 3:line_2:varchar"], True),
        (["a b := a_b", "a-b := a_b_1"], ["a_b := 5:a b:varchar", "a_b_1 := 8:a-b:varchar"], True),
        (["total_ := total"], ["total := total_:bigint:REGULAR"], True),
        (["line_1 := line", "line_2 := line"], ["line := 2:line_1:varchar"], False),
        (["line_1 := line_0", "line_2 := line"], ["line := 2:line_1:varchar", "line_0 := 3:line_2:varchar"], False),
        (["part := tenant"], ["tenant := 2:tenant:varchar"], False),
        (["date := other"], ["other := 2:other:date"], False),
        (["line_1 := line"], ["line := 0"], False),
    ],
)
def test_columns_whose_names_a_plan_shortens_are_told_from_masked_ones(renamed, read, is_whole):
    """As Trino 476 answered; the last one's connector does not say which column it reads."""
    scan = {"name": "TableScan", "descriptor": {"table": "lake:web.logs"}, "details": read, "children": []}
    plan = {"name": "Output", "descriptor": {}, "details": renamed, "children": [scan]}
    assert shows_whole(json.dumps(plan), pushed=False) is is_whole
