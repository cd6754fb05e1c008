"""What the kit holds against a plugin when its database was closed."""

import asyncio

from dragoman.testing.lifecycle import count_held, list_newer


def test_threads_of_the_event_loop_are_not_the_plugin_s():
    async def work() -> tuple[set[int], set[str]]:
        before = count_held()
        await asyncio.to_thread(int)
        return list_newer(before)

    assert asyncio.run(work()) == (set(), set())
