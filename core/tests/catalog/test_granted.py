"""The part of a catalog that the roles of callers leave, without a gateway around it."""

import asyncio
import gc
from dataclasses import replace

import pytest
from dragoman import Database
from dragoman.access import Grants, ReadGrant
from dragoman.catalog import GrantedCatalog, GrantedPlaces
from dragoman.config.roles import Grant


class Check:
    """A check of roles that takes until `passed` is set, and counts how often it is asked for."""

    def __init__(self):
        self.passed = asyncio.Event()
        self.count = 0

    async def __call__(self, seen):
        self.count += 1
        await self.passed.wait()


@pytest.fixture
def check():
    return Check()


@pytest.fixture
def granted(build, facts, make_table, check):
    """The part of a catalog of two tables and a view that a grant gives."""
    inspector = facts(make_table("users", "id"), make_table("secrets", "id"), make_table("used", "id", type="view"))
    whole = build(inspector)
    database = Database(name="facts", dialect="facts")
    grant = Grant(database="facts", tables=("public.us*",), key="grant")
    deciders = [Grants([ReadGrant.read("reader", grant)], whole.namespace.dialect, database)]
    return GrantedCatalog(
        whole,
        GrantedPlaces(database, whole.namespace.dialect, deciders),
        whole.namespace.dialect,
        database,
        deciders=deciders,
        find_sources=lambda table: asyncio.sleep(0, ()),
        check=check,
    )


def names(snapshot):
    return [table.relation.name for table in snapshot.tables]


async def test_garbage_is_collected_while_the_work_for_a_role_waits_for_the_database(granted, check):
    """The database may take long to tell what views read, and the whole process would keep its garbage until then."""
    check.passed.set()
    collects = []

    async def find_sources(table):
        collects.append(gc.isenabled())
        return ()

    granted._find_sources = find_sources
    await granted.snapshot()
    assert collects == [True]


async def test_the_work_for_a_role_goes_on_when_its_callers_leave(granted, check):
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(granted.snapshot(), 0.01)
    check.passed.set()
    assert names(await granted.snapshot()) == ["used", "users"]
    assert check.count == 1


@pytest.mark.parametrize("read", ["refresh", "snapshot"])
async def test_a_role_s_part_stays_its_part_when_everything_is_read_again(granted, check, read):
    check.passed.set()
    await granted.snapshot()
    assert names(await getattr(granted, read)()) == ["used", "users"]


async def test_a_newer_snapshot_that_comes_when_the_work_for_an_older_has_just_ended_blocks_nothing(granted, check):
    check.passed.set()
    older = await granted.snapshot()
    seen = replace(granted._seen, version=older.version + 1)
    newer = replace(seen, version=seen.version + 1)
    first = asyncio.create_task(granted._restrict(seen))
    while granted._seen is not seen:
        await asyncio.sleep(0)
    assert (await granted._restrict(newer)).version == newer.version
    await first
