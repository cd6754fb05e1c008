"""Rows by their key, at random and page by page.

Only the contract defines them, so they are the same for every dialect.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Final

import anyio
import pytest

from dragoman.config import Configuration, Results
from dragoman.dialect import Capability, Dialect
from dragoman.gateway import Gateway
from dragoman.gateway.sampling import CHANCE
from dragoman.model import Database
from dragoman.testing import sample
from dragoman.testing.base import CROSS_JOIN, PATIENCE, SIDE, Suite, ask, product
from dragoman.testing.tiers import recommended, required
from dragoman.tools import Toolbox

KEPT: Final = "kit_kept"
PAGE: Final = 700
MOMENT: Final = 1.5
MOST: Final = 2**40
ENDLESS: Final = f"SELECT t0.id AS n, t1.title AS t FROM {CROSS_JOIN}"
"""A query whose engine produces row after row, for longer than anybody waits."""
TITLES: Final = {id: title for id, _, title in sample.TRACKS}


class RowCases(Suite):
    """Cases for the tools `get_row`, `get_sample_rows` and `get_result`, for which plugins have no code."""

    @pytest.fixture
    def toolbox(self, gateway: Gateway) -> Toolbox:
        """A toolbox with every tool."""
        return Toolbox(gateway, profile="full")

    @required
    async def test_a_row_is_found_by_its_key(self, toolbox: Toolbox, dialect: Dialect) -> None:
        for id, title in TITLES.items():
            key = id if Capability.PRIMARY_KEYS in dialect.capabilities else {"id": id}
            if (told := await find_row(toolbox, dialect, table_name=sample.TRACK, key=key)) is None:
                return
            row = as_written(told["row"], dialect)
            assert (row["id"], row["title"], row["note"]) == (id, title, None), (
                f"get_row of {sample.TRACK} by {key!r} answered {row}."
            )

    @required
    async def test_a_row_is_found_by_a_key_of_several_columns(self, toolbox: Toolbox, dialect: Dialect) -> None:
        key = {"judge": "Ada", "track_id": 2}
        if (told := await find_row(toolbox, dialect, table_name=sample.RATING, key=key)) is None:
            return
        row = as_written(told["row"], dialect)
        assert row == {**key, "stars": 4}, f"get_row of {sample.RATING} by {key} answered {row}."

    @required
    async def test_a_row_comes_with_what_it_refers_to(self, toolbox: Toolbox, dialect: Dialect) -> None:
        if (told := await find_row(toolbox, dialect, table_name=sample.TRACK, key={"id": 4}, follow=1)) is None:
            return
        rows = [as_written(each["row"], dialect) for each in told.get("refers_to", {}).values()]
        wanted = [{"id": 3, "name": "Raï"}] if Capability.FOREIGN_KEYS in dialect.capabilities else []
        assert rows == wanted, f"The track 4 is of the genre 3; get_row returned {rows} as the rows it refers to."

    @required
    async def test_a_sample_has_the_columns_and_rows_that_were_asked_for(self, toolbox: Toolbox) -> None:
        asked = {"columns": ["title", "id"], "where_clause": "id > 1 AND (genre_id = 2 OR id = 2)", "limit": 5}
        told = await answer(toolbox, "get_sample_rows", table_name=sample.TRACK, **asked)
        wanted = [[title, id] for id, title in TITLES.items() if id in (2, 3, 5)]
        rows = sorted(told["rows"], key=lambda row: row[1])
        assert (rows, "truncated" in told) == (wanted, False), f"get_sample_rows with {asked} answered {rows}."

    @required
    async def test_a_sample_by_chance_has_rows_of_the_table(self, toolbox: Toolbox, dialect: Dialect) -> None:
        asked = {"table_name": sample.TRACK, "columns": ["id"], "randomize": True, "limit": 3}
        if not dialect.loaded_rules.functions & {*CHANCE}:
            told = await call(toolbox, "get_sample_rows", **asked)
            assert told.get("error", {}).get("code") == "UNSUPPORTED", (
                f"No random function is allowed, and yet the answer was: {told}."
            )
            return
        told = await answer(toolbox, "get_sample_rows", **asked)
        found = {row[0] for row in told["rows"]}
        assert len(found) == len(told["rows"]) == 3, f"A random sample of 3 is {told['rows']}."
        assert found <= TITLES.keys(), f"A random sample has rows that the table does not have: {found}."

    @required
    async def test_a_kept_result_is_paged_without_loss(self, toolbox: Toolbox) -> None:
        page = await answer(toolbox, "execute_query", sql=product(SIDE), keep=KEPT, limit=1)
        page["next_offset"] = 0
        pages, numbers = [page], list[Any]()
        while (offset := page.get("next_offset")) is not None:
            page = await answer(toolbox, "get_result", result=KEPT, offset=offset, limit=PAGE)
            pages.append(page)
            numbers += (row[0] for row in page["rows"])
        # A slow engine may have told no columns yet when the first answer is due; that one then has no rows.
        columns = [[each["columns"], each["types"]] for each in pages if each["rows"]]
        assert all(each == columns[0] for each in columns), f"Columns differ from page to page: {columns}."
        assert page["status"] == "complete", f"The kept result ended {page['status']}: {page.get('error')}."
        assert (len(numbers), len(set(numbers))) == (SIDE**3, SIDE**3), (
            f"{len(numbers)} rows came page by page, {len(set(numbers))} of them distinct; {SIDE**3} must come, each"
            " once."
        )
        await answer(toolbox, "drop_result", result=KEPT)
        gone = await call(toolbox, "get_result", result=KEPT)
        assert gone.get("error", {}).get("code") == "RESULT_NOT_FOUND", f"A dropped result answered {gone}."

    @required
    async def test_a_page_anywhere_has_the_rows_of_the_whole_answer(self, toolbox: Toolbox) -> None:
        sql = f"SELECT id, title, note FROM {sample.TRACK} ORDER BY id"
        whole = await answer(toolbox, "execute_query", sql=sql)
        await answer(toolbox, "execute_query", sql=sql, keep=KEPT)
        for offset in range(len(TITLES), -1, -1):
            page = await answer(toolbox, "get_result", result=KEPT, offset=offset, limit=2)
            assert page["rows"] == whole["rows"][offset : offset + 2], (
                f"The page at {offset} is {page['rows']}, where the whole answer is {whole['rows']}."
            )

    @recommended
    async def test_a_deadline_hands_out_the_rows_that_came(self, database: Database) -> None:
        roomy = dataclasses.replace(database, max_rows=MOST, max_bytes=MOST)
        async with Gateway.open([roomy]) as gateway:
            await ask(gateway, "SELECT 1 AS a")  # opening and learning the database must not take any of the time
            told = await ask(gateway, ENDLESS, limit=MOST, timeout=MOMENT)
        assert told.truncated, f"An endless answer of {told.row_count} rows is not marked as truncated."
        assert (told.truncated.reason, told.row_count > 0) == ("timeout", True), (
            f"{told.row_count} rows came until the deadline, {told.truncated}. Pass rows on as they arrive."
        )

    @recommended
    async def test_a_deadline_keeps_the_rows_that_came(self, toolbox: Toolbox) -> None:
        milliseconds = int(MOMENT * 1000)
        first = await call(toolbox, "execute_query", sql=ENDLESS, keep=KEPT, limit=1, timeout_ms=milliseconds)
        assert "error" not in first, (
            f"Of an endless answer no row had come within {MOMENT} seconds: {first['error']}. "
            "Pass batches on as they arrive, and make the first one small."
        )
        with anyio.fail_after(PATIENCE):
            while (page := await answer(toolbox, "get_result", result=KEPT, limit=1))["status"] == "running":
                await anyio.sleep(0.05)
        assert (page["status"], page.get("truncated", {}).get("reason")) == ("complete", "timeout"), (
            f"A deadline passed while rows were arriving; the kept result is {page}."
        )
        assert page["rows"], "None of the rows that came before the deadline was kept."

    @required
    async def test_the_same_statement_is_answered_from_what_is_kept(self, database: Database) -> None:
        sql = f"SELECT id, title FROM {sample.TRACK} ORDER BY id"
        configuration = Configuration(databases={database.name: database}, results=Results(reuse=PATIENCE))
        async with Gateway.open(configuration) as gateway:
            toolbox = Toolbox(gateway, profile="full")
            first = await answer(toolbox, "execute_query", sql=sql, keep=KEPT)
            again = await answer(toolbox, "execute_query", sql=sql)
        assert any(f"the kept result {KEPT}" in notice for notice in again.get("notices", ())), (
            f"The same statement was sent to the database again: {again}."
        )
        assert (again["rows"], again["types"]) == (first["rows"], first["types"]), (
            f"The answer was {first['rows']} {first['types']}, then {again['rows']} {again['types']}."
        )


async def call(toolbox: Toolbox, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool returns, including errors."""
    with anyio.fail_after(PATIENCE):
        told: dict[str, Any] = json.loads((await toolbox.call(tool, arguments)).text)
    return told


async def answer(toolbox: Toolbox, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool returns, which must not be an error."""
    told = await call(toolbox, tool, **arguments)
    assert "error" not in told, f"{tool} with {arguments} answered {told['error']}."
    return told


async def find_row(toolbox: Toolbox, dialect: Dialect, **arguments: Any) -> dict[str, Any] | None:
    """Return what `get_row` returns. None if the dialect binds no parameters, and says so."""
    if Capability.PARAMETERS in dialect.capabilities:
        return await answer(toolbox, "get_row", **arguments)
    told = await call(toolbox, "get_row", **arguments)
    code = told.get("error", {}).get("code")
    assert code == "UNSUPPORTED", f"PARAMETERS is not declared; get_row returned {told} and must return UNSUPPORTED."
    return None


def as_written(row: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Return a row with the names of its columns as in the sample."""
    return {name.lower() if dialect.folding == "upper" else name: value for name, value in row.items()}
