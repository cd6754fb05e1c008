"""The demo's lake: asked for by name, queried, joined by declared keys."""

import pytest
from dragoman import ConnectionFailed, Gateway
from dragoman_trino import embedded
from dragoman_trino.plugin import plugin

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]


def test_it_is_built_on_request_only():
    assert plugin.demo_on_request


async def test_the_lake_answers_and_comes_back_when_its_server_is_gone(tmp_path):
    (database,) = plugin.demo(tmp_path)
    port = database.port
    assert port is not None
    try:
        async with Gateway.open([database]) as gateway:
            result = await gateway.query("lake", "SELECT count(*) FROM lineitem JOIN orders USING (orderkey)")
            assert result.rows == [[60_175]]
            embedded._running.pop(port).stop()
            with pytest.raises(ConnectionFailed, match="is starting"):
                embedded.wake("lake", port, 0.1)
            embedded.wake("lake", port)
            assert (await gateway.query("lake", "SELECT 1", timeout=60)).rows == [[1]]
    finally:
        embedded._running.pop(port).stop()
