"""A request's tags are what the server shows of it, for as long as it runs."""

import pytest
from dragoman import Request

SHOWN = "SELECT current_setting('application_name') AS name"


async def shown(executor, **tags: str) -> str:
    async with executor.open(Request(statement=SHOWN, tags=tags)) as stream:
        return next(row[0] for batch in [batch async for batch in stream.batches] for row in batch)


async def test_tags_are_the_applications_name_while_the_request_runs(executor):
    assert await shown(executor) == "dragoman"
    assert await shown(executor, team="growth", principal="ada@example") == "dragoman team=growth principal=ada@example"
    assert await shown(executor) == "dragoman"


@pytest.mark.parametrize("value", ["x'; DROP TABLE t; --", "\\'", "ü\n\0", "$1"])
async def test_a_hostile_tag_is_only_a_name(value: str, executor):
    name = await shown(executor, team=value)
    assert name.startswith("dragoman team=")
    assert not set(name) & set("'\\;$\n\0")


async def test_a_long_tag_is_cut(executor):
    assert await shown(executor, team="x" * 200) == ("dragoman team=" + "x" * 200)[:63]
