"""A download with a token that cannot be checked now is told to come again, whatever its address."""

from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from dragoman.gateway.exporting import PATH, missing
from dragoman.mcp.connections import Limits
from dragoman.mcp.downloads import downloads
from dragoman.mcp.middleware import AccessMiddleware
from dragoman.mcp.origins import Origins
from dragoman.mcp.refusals import RefusalLog, Refused
from starlette.applications import Starlette


class Exports:
    async def open(self, *_: Any) -> Any:
        raise missing()


@pytest.mark.parametrize(
    ("status", "answered"), [(503, (503, "5")), (401, (404, None)), (403, (404, None))], ids=["down", "bad", "narrow"]
)
async def test_only_a_token_that_cannot_be_checked_is_told_to_come_again(status, answered):
    async def refuse(_: Any) -> Any:
        raise Refused(status, "refused", "No.", {"Retry-After": "5"})

    gateway: Any = SimpleNamespace(kept=SimpleNamespace(exports=Exports()))
    app = AccessMiddleware(
        Starlette(routes=[downloads(gateway)]),
        closed={},
        open={PATH: ("GET",)},
        origins=Origins("127.0.0.1", (), ()),
        authenticate=refuse,
        limits=Limits(),
        log=RefusalLog(),
    )
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost") as client:
        answer = await client.get(PATH, headers={"authorization": "Bearer a.b.c"})
    assert (answer.status_code, answer.headers.get("retry-after")) == answered
