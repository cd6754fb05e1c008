"""What a model is shown, and what it costs."""

import json

import pytest
from dragoman import ConfigurationError, Database, Gateway
from dragoman.tools import PROFILES, Toolbox
from dragoman.tools.spec import MAX_NAMED

ANNOTATIONS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
BUDGETS = [("minimal", 1250, 2600), ("standard", 3400, 7000)]


def _toolbox(*names: str, **settings) -> Toolbox:
    """A toolbox of databases nobody connects to."""
    databases = [Database(name=name, dialect="sqlite", database=f"{name}.db") for name in names]
    return _Unopened.of(databases, **settings)


class _Unopened(Toolbox):
    @classmethod
    def of(cls, databases: list[Database], **settings) -> Toolbox:
        from dragoman.config import Configuration
        from dragoman.plugins import Plugins

        by_name = {database.name: database for database in databases}
        return cls(Gateway(Configuration(databases=by_name), Plugins.discover()), **settings)


def _size(value) -> int:
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


@pytest.mark.parametrize(("profile", "shown", "whole"), BUDGETS)
@pytest.mark.parametrize("names", [("shop", "crm"), ("chinook", "northwind")])
def test_the_list_of_tools_keeps_its_budget(profile, shown, whole, names):
    tools = _toolbox(*names, profile=profile).tools
    seen = [{"name": t.name, "description": t.description, "inputSchema": t.input_schema} for t in tools]
    assert _size(seen) <= shown
    told = [
        {**entry, "title": tool.title, "outputSchema": tool.output_schema, "annotations": ANNOTATIONS}
        for entry, tool in zip(seen, tools, strict=True)
    ]
    assert _size(told) <= whole


def test_instructions_name_the_databases_and_keep_their_budget():
    text = _toolbox("shop", "crm").instructions
    assert "shop (sqlite), crm (sqlite)" in text
    assert len(text.encode()) <= 190


def test_the_schemas_list_the_databases():
    for tool in _toolbox("shop", "crm").tools:
        if tool.name != "list_databases":
            assert tool.input_schema["properties"]["database"] == {"type": "string", "enum": ["shop", "crm"]}
            assert ("database" in tool.input_schema.get("required", ())) == (tool.name != "search_catalog")


def test_one_database_alone_is_not_shown():
    for tool in _toolbox("shop").tools:
        assert "database" not in tool.input_schema["properties"]


def test_many_databases_are_not_enumerated():
    toolbox = _toolbox(*(f"shard{number}" for number in range(MAX_NAMED + 1)))
    tool = next(tool for tool in toolbox.tools if tool.name == "execute_query")
    assert tool.input_schema["properties"]["database"] == {"type": "string"}
    assert "list_databases" in tool.description
    assert "shard1" not in toolbox.instructions


def test_text_alone_has_no_output_schema():
    tools = _toolbox("shop", result_format="text").tools
    assert tools
    assert all(tool.output_schema is None for tool in tools)


def test_output_schemas_are_shallow():
    for tool in _toolbox("shop").tools:
        assert tool.output_schema is not None
        assert all(set(schema) <= {"type"} for schema in tool.output_schema["properties"].values())


def test_profiles_are_what_they_say():
    assert {name: len(tools) for name, tools in PROFILES.items()} == {"minimal": 4, "standard": 10}
    assert [tool.name for tool in _toolbox("shop", profile=["execute_query"]).tools] == ["execute_query"]
    mixed = _toolbox("shop", profile=["minimal", "explain_query"]).tools
    assert {tool.name for tool in mixed} == {*PROFILES["minimal"], "explain_query"}
    assert {tool.name for tool in _toolbox("shop", profile="full").tools} >= set(PROFILES["standard"])


@pytest.mark.parametrize(("profile", "near"), [("minimum", "minimal"), (["execute_querry"], "execute_query")])
def test_an_unknown_profile_or_tool_names_the_nearest(profile, near):
    with pytest.raises(ConfigurationError) as caught:
        _toolbox("shop", profile=profile)
    assert near in caught.value.suggestion


def test_every_tool_has_a_description_and_every_argument_a_type():
    """Some clients refuse a tool without, and Gemini and OpenAI's strict schemas an array whose items have none."""
    for tool in _toolbox("shop", "crm", profile="full").tools:
        assert tool.description.endswith(".")
        for name, schema in tool.input_schema["properties"].items():
            kinds = schema.get("anyOf", [schema])
            assert all(isinstance(kind.get("type"), str) for kind in kinds), (tool.name, name)
            assert all(kind["items"]["type"] for kind in kinds if kind["type"] == "array"), (tool.name, name)
