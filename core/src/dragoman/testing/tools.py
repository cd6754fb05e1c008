"""Every tool of the gateway with the dialect: what an agent sees, and the types of it."""

from __future__ import annotations

import json
from typing import Any, Final

import anyio
import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.gateway import Gateway
from dragoman.testing import sample
from dragoman.testing.base import PATIENCE, Suite
from dragoman.testing.tiers import required
from dragoman.tools import Toolbox

CALLS: Final[dict[str, dict[str, Any]]] = {
    "list_databases": {},
    "search_catalog": {"query": "track"},
    "describe_table": {"table_name": sample.TRACK},
    "execute_query": {"sql": f"SELECT id, title FROM {sample.TRACK} ORDER BY id"},
    "list_schemas": {},
    "list_tables": {},
    "get_sample_rows": {"table_name": sample.TRACK},
    "get_foreign_keys": {"table_name": sample.TRACK},
    "find_join_path": {"from_table": sample.RATING, "to_table": sample.GENRE},
    "explain_query": {"sql": f"SELECT id FROM {sample.TRACK}"},
}
_JSON: Final[dict[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
_OURS: Final = frozenset({"INTERNAL_ERROR", "DIALECT_ERROR"})


class ToolCases(Suite):
    """Cases that call the tools as a client does, including the full description of every relation."""

    @required
    @pytest.mark.parametrize("tool", list(CALLS))
    async def test_every_tool_answers_with_the_types_it_promises(
        self, gateway: Gateway, dialect: Dialect, tool: str
    ) -> None:
        toolbox = Toolbox(gateway)
        answer = await _call(toolbox, tool, CALLS[tool])
        if "error" in answer and _may_refuse(tool, dialect, answer["error"]["code"]):
            return
        assert "error" not in answer, f"{tool} answered {answer['error']}."
        schema = next(each.output_schema for each in toolbox.tools if each.name == tool) or {}
        for key, promised in schema.get("properties", {}).items():
            wanted = _JSON.get(promised.get("type", ""))
            assert key not in answer or wanted is None or isinstance(answer[key], wanted), (
                f"{tool} returned {key} as {answer[key]!r:.80}, which is not of type {promised['type']}."
            )

    @required
    async def test_every_relation_is_described_in_full(self, gateway: Gateway) -> None:
        toolbox = Toolbox(gateway)
        for name in (sample.GENRE, sample.TRACK, sample.RATING, sample.LISTING, sample.ODD):
            for detail in ("compact", "full"):
                answer = await _call(toolbox, "describe_table", {"table_name": name, "detail": detail})
                assert "error" not in answer, f"describe_table of {name!r} ({detail}) answered {answer['error']}."


async def _call(toolbox: Toolbox, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    with anyio.fail_after(PATIENCE):
        answer = await toolbox.call(tool, arguments)
    told: dict[str, Any] = json.loads(answer.text)
    return told


def _may_refuse(tool: str, dialect: Dialect, code: str) -> bool:
    """Return whether a dialect without these capabilities may refuse a tool. Its own faults are never allowed."""
    if code in _OURS:
        return False
    return (tool == "explain_query" and Capability.EXPLAIN not in dialect.capabilities) or (
        tool == "find_join_path" and Capability.FOREIGN_KEYS not in dialect.capabilities
    )
