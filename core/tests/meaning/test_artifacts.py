"""What dbt's artifacts and Ossie's models tell, and what is wrong with those that cannot be read."""

import json
import os
from pathlib import Path

import pytest
from dragoman import ConfigurationError, Database, KnowledgeSettings
from dragoman.meaning import Meaning, Note, WrittenKey, read_meaning

FILES = Path(__file__).parent / "files"


def read(folder: Path, *names: str) -> Meaning:
    files = tuple(Path(name) for name in names)
    return read_meaning(
        Database(name="shop", dialect="sqlite", folder=folder, knowledge=KnowledgeSettings(files=files))
    )


def test_a_manifest_tells_descriptions_values_keys_and_metrics():
    told = read(FILES, "manifest.json")
    orders, customers = told.tables
    assert orders.name == ("analytics", "main", "orders")
    assert orders.description == "One row for each order."
    assert orders.columns["status"].description == "How far it is."
    assert orders.columns["status"].values == ("placed", "shipped", "returned")
    assert orders.columns["amount"].values == ()  # tested of some rows only
    assert orders.primary_key == ("order_id",)
    assert orders.keys == (WrittenKey(("customer_id",), ("analytics", "main", "customers"), ("customer_id",)),)
    assert customers.name == ("analytics", "main", "customers")
    assert told.notes == (
        Note("metric", "All that was ever ordered; sum(amount) of orders; where {{ Dimension('o__ok') }}", "revenue"),
        Note("metric", "Revenue by order; revenue / order_count", "revenue_per_order"),
    )


def test_a_catalog_adds_what_the_manifest_does_not_tell():
    told = {table.name[-1]: table for table in read(FILES, "manifest.json", "catalog.json").tables}
    assert told["customers"].description == "Who ordered"
    assert told["orders"].description == "One row for each order."
    assert told["orders"].columns["amount"].description == "in cents"


def test_a_semantic_manifest_tells_metrics(tmp_path):
    document = json.loads((FILES / "manifest.json").read_text())
    semantic = {
        "metrics": list(document["metrics"].values()),
        "semantic_models": list(document["semantic_models"].values()),
        "project_configuration": {},
    }
    (tmp_path / "semantic_manifest.json").write_text(json.dumps(semantic))
    assert read(tmp_path, "semantic_manifest.json").notes == read(FILES, "manifest.json").notes


def test_an_ossie_model_tells_descriptions_synonyms_keys_and_metrics():
    told = read(FILES, "model.yaml")
    orders, customers = told.tables
    assert told.about == "Sales of the shop"
    assert orders.name == ("analytics", "main", "orders")
    assert orders.description == "Order transactions; also called purchases, sales"
    assert orders.columns["order_date"].description == "When it was placed"
    assert "full_name" not in customers.columns
    assert orders.keys == (WrittenKey(("customer_id",), ("analytics", "main", "customers"), ("customer_id",)),)
    assert customers.primary_key == ("customer_id",)
    assert told.notes == (
        Note("convention", "Use orders for money."),
        Note("term", "Customer full name; first_name || ' ' || last_name of customers", "full_name"),
        Note("metric", "Total revenue; also called turnover; SUM(orders.amount)", "total_revenue"),
    )


def test_an_ossie_source_may_be_an_object(tmp_path):
    (tmp_path / "m.yaml").write_text("""
version: 0.2.0.dev0
semantic_model:
  - name: shop
    datasets:
      - name: orders
        source: {kind: HIVE_CATALOG, format: table, identifier: analytics.main.orders}
      - {name: events, source: {kind: file, format: parquet, locations: ["s3://events/*.parquet"]}}
      - {name: big, source: {kind: SNOWFLAKE_CATALOG, format: SQL_QUERY, query: SELECT 1}}
    relationships:
      - {name: of, from: orders, to: events, from_columns: [event_id], to_columns: [id]}
""")
    (orders,) = read(tmp_path, "m.yaml").tables
    assert (orders.name, orders.keys) == (("analytics", "main", "orders"), ())


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.json", '{\n "nodes": 7,\n oops}', r"x\.json:3: this is not JSON"),
        ("x.json", "{}", r"x\.json:1: the kind of the file is not known"),
        (
            "x.json",
            '{"metadata": {"dbt_schema_version": "/dbt/manifest/v12.json"}, "nodes": 7}',
            r"x\.json:1: .*\$\.nodes",
        ),
        ("x.yaml", "a: [\n", r"x\.yaml:2: this is no YAML"),
        ("x.yaml", "a: 2024-13-45\n", r"x\.yaml:1: this is no YAML"),
        ("x.yaml", "a: 1\n", r"x\.yaml:1: there is no semantic_model"),
        ("x.yaml", "semantic_model:\n  - name: m\n    datasets:\n      - name: d\n", r"x\.yaml:4: .*`source`"),
        ("x.yaml", "version: '9'\nsemantic_model: []\n", "version 9 of Ossie is not known"),
        ("x.json", "[" * 100_000 + "]" * 100_000, r"x\.json:1: the file is nested too deeply"),
        ("x.yaml", "[" * 5_000 + "]" * 5_000, r"x\.yaml:1: the file is nested too deeply"),
        ("x.toml", "", r"x\.toml:1: the kind of the file is not known"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_line(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        read(tmp_path, name)


@pytest.mark.parametrize("kind", ["manifest", "catalog"])
def test_a_relation_without_a_name_is_left_out(tmp_path, kind):
    nodes = {"model.x": {"resource_type": "model", "metadata": {}}}
    document = {"metadata": {"dbt_schema_version": f"/dbt/{kind}/v1.json"}, "nodes": nodes}
    (tmp_path / "x.json").write_text(json.dumps(document))
    assert read(tmp_path, "x.json").tables == ()


def test_every_wrong_file_is_told_and_no_folder(tmp_path):
    (tmp_path / "a.md").write_text("## Glosary\n")
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, "a.md", "gone.md")
    assert "a.md:1: " in caught.value.message
    assert "gone.md:1: the file cannot be read" in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_a_pipe_is_no_file_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(ConfigurationError, match="not a file"):
        read(tmp_path, "a.md")
