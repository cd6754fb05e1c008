"""What the kit holds against a plugin when its database was closed."""

import asyncio
import inspect

from dragoman.testing.lifecycle import LifecycleCases, count_held, list_newer


def test_threads_of_the_event_loop_are_not_the_plugin_s():
    async def work() -> tuple[set[int], set[str]]:
        before = count_held()
        await asyncio.to_thread(int)
        return list_newer(before)

    assert asyncio.run(work()) == (set(), set())


def test_no_case_shares_a_gateway_whose_background_work_would_be_taken_for_a_leftover():
    cases = [case for name, case in vars(LifecycleCases).items() if name.startswith("test_")]
    assert len(cases) > 8
    assert [case.__name__ for case in cases if "gateway" in inspect.signature(case).parameters] == []
