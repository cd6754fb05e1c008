"""A watched catalog is asked whether it still holds: what callers may read depends on what views read now."""

import asyncio

import pytest
from dragoman import Busy, TableNotFound
from dragoman.catalog.watch import CONFIRMED, PATIENCE


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def watched(build, facts, make_table, clock):
    """A function that makes a watched catalog of one table; `tell`: tells its fingerprint."""

    def make(tell, **settings):
        class Marked(facts):
            async def fingerprint(self):
                return await tell() if asyncio.iscoroutinefunction(tell) else tell()

        known = Marked(make_table("users", "id"))
        catalog = build(known, clock=clock, **settings)
        catalog.watch()
        return known, catalog

    return make


async def test_a_database_with_the_same_fingerprint_is_not_read_again(watched, clock):
    known, catalog = watched(lambda: "same")
    for _ in range(5):
        await catalog.snapshot()
        clock.now += CONFIRMED
    assert len(known.scopes) == 1


async def test_a_database_with_another_fingerprint_is_read_again_once_it_is_due(watched, clock, make_table):
    marks = ["one"]
    known, catalog = watched(lambda: marks[-1])
    await catalog.snapshot()
    known.all.append(make_table("fresh", "id"))
    marks.append("two")
    clock.now += CONFIRMED * 0.9
    assert len((await catalog.snapshot()).tables) == 1
    clock.now += CONFIRMED * 0.1
    assert len((await catalog.snapshot()).tables) == 2


async def test_a_database_without_a_fingerprint_is_read_again_each_time(watched, clock):
    known, catalog = watched(lambda: None)
    for _ in range(3):
        await catalog.snapshot()
        clock.now += CONFIRMED
    assert len(known.scopes) == 3


async def test_a_slow_answer_is_asked_for_less_often(watched, clock):
    asked = 0

    def tell():
        nonlocal asked
        asked += 1
        clock.now += 1
        return "same"

    _, catalog = watched(tell)
    await catalog.snapshot()
    clock.now = PATIENCE - 0.1
    await catalog.snapshot()
    assert asked == 1
    clock.now = PATIENCE
    await catalog.snapshot()
    assert asked == 2


@pytest.mark.parametrize("mark", ["same", None])
async def test_the_time_that_reading_takes_counts_only_without_a_fingerprint(watched, clock, mark):
    known, catalog = watched(lambda: mark if mark is None else f"{mark} {len(known.scopes)}")
    read = known.tables

    async def read_slowly(scope):
        clock.now += 1
        return await read(scope)

    known.tables = read_slowly
    await catalog.snapshot()
    clock.now = 1 + CONFIRMED
    await catalog.snapshot()
    assert len(known.scopes) == (1 if mark is None else 2)
    clock.now = max(clock.now, PATIENCE)
    await catalog.snapshot()
    assert len(known.scopes) == (2 if mark is None else 3)


async def test_what_is_old_is_read_again_though_nothing_changed(watched, clock):
    known, catalog = watched(lambda: "same", catalog_ttl=10)
    await catalog.snapshot()
    clock.now = 10
    await catalog.snapshot()
    assert len(known.scopes) == 2


async def test_a_missing_name_is_looked_for_again_only_if_the_database_has_changed(watched, clock, make_table):
    marks = ["one"]
    known, catalog = watched(lambda: marks[-1])
    await catalog.snapshot()
    with pytest.raises(TableNotFound):
        await catalog.find("fresh")
    assert len(known.scopes) == 1
    known.all.append(make_table("fresh", "id"))
    marks.append("two")
    assert (await catalog.find("fresh")).relation.name == "fresh"


async def test_a_missing_name_is_looked_for_again_where_the_database_cannot_say_whether_it_changed(watched):
    known, catalog = watched(lambda: None)
    await catalog.snapshot()
    with pytest.raises(TableNotFound):
        await catalog.find("fresh")
    assert len(known.scopes) == 2


async def test_a_missing_name_is_looked_for_again_if_not_everything_could_be_read(watched, make_table):
    known, catalog = watched(lambda: "same")
    known.notices = ("public.fresh is locked by another session.",)
    await catalog.snapshot()
    known.all.append(make_table("fresh", "id"))
    known.notices = ()
    assert (await catalog.find("fresh")).relation.name == "fresh"


async def test_a_name_that_appears_while_another_is_looked_for_is_found(build, facts, make_table):
    known = facts(make_table("users", "id"))
    catalog = build(known)
    await catalog.snapshot()
    asked = asyncio.Event()
    tables, gate = known.tables, asyncio.Event()

    async def read_late(scope):
        found = await tables(scope)  # what is there now
        asked.set()
        await gate.wait()
        return found

    known.tables = read_late
    first = asyncio.create_task(catalog.find("nothing"))
    await asked.wait()
    known.all.append(make_table("fresh", "id"))
    second = asyncio.create_task(catalog.find("fresh"))
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(TableNotFound):
        await first
    assert (await second).relation.name == "fresh"


async def test_everything_is_read_again_on_request_though_nothing_changed(watched):
    known, catalog = watched(lambda: "same")
    await catalog.snapshot()
    await catalog.refresh()
    assert len(known.scopes) == 2


async def test_nothing_is_told_while_the_database_cannot_say_whether_it_changed(watched, clock):
    failing = []

    def tell():
        if failing:
            raise Busy("no place")
        return "same"

    _, catalog = watched(tell)
    await catalog.snapshot()
    clock.now += CONFIRMED
    failing.append(True)
    with pytest.raises(Busy):
        await catalog.snapshot()
    failing.clear()
    assert len((await catalog.snapshot()).tables) == 1


async def test_a_look_that_ends_late_does_not_replace_a_newer_one(build, facts, make_table):
    known = facts(make_table("old", "id"))
    catalog = build(known)
    await catalog.snapshot()
    scope, told = known.scopes[0], known.tables

    async def answer_late(scope):
        seen = await told(scope)
        known.tables, known.all = told, [make_table("new", "id")]
        await catalog.find("new")  # a look that begins later, and ends before
        return seen

    known.tables = answer_late
    assert [table.relation.name for table in (await catalog.look(scope)).tables] == ["new"]
