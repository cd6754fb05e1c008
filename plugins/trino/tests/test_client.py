"""Statements of ours: their values, their errors, and that the event loop goes on meanwhile."""


async def test_rows_are_the_protocols_own_values(client):
    assert await client.rows("SELECT 1, 'a', ARRAY[1, 2], true, 1.50") == [[1, "a", [1, 2], True, "1.50"]]
