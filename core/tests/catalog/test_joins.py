"""Join paths: the shortest, all the parallel ones, always the same, never out of hand."""

import random
from dataclasses import replace

import pytest
from dragoman import PathNotFound
from dragoman.catalog.joins import MAX_PATHS, Graph


@pytest.fixture
def shop(build, facts, make_table, make_key):
    return build(
        facts(
            make_table("users", "id", "manager_id", keys=(make_key("users", "manager_id", "users"),)),
            make_table(
                "orders",
                "id",
                "buyer_id",
                "seller_id",
                "region",
                "branch",
                keys=(
                    make_key("orders", "buyer_id", "users", name="orders_buyer"),
                    make_key("orders", "seller_id", "users", name="orders_seller"),
                    make_key("orders", "region branch", "sales.branch", "region id"),
                ),
            ),
            make_table("order", keys=(replace(make_key("order", "id", "orders"), columns=("Order Id",)),)),
            make_table("sales.branch", "region", "id"),
            make_table("logs", "id", keys=(make_key("logs", "gone_id", "gone"),)),
        )
    )


async def _sql(catalog, source: str, target: str, max_depth: int = 4) -> list[str]:
    paths = await catalog.join_paths(await catalog.find(source), await catalog.find(target), max_depth)
    return [catalog.join_sql(path) for path in paths]


async def test_parallel_keys_make_separate_paths(shop):
    assert await _sql(shop, "orders", "users") == [
        "SELECT t1.*, t2.* FROM orders AS t1 JOIN users AS t2 ON t1.buyer_id = t2.id",
        "SELECT t1.*, t2.* FROM orders AS t1 JOIN users AS t2 ON t1.seller_id = t2.id",
    ]


async def test_a_composite_key_joins_on_all_its_columns_and_names_are_quoted_and_qualified(shop):
    assert await _sql(shop, '"order"', "branch") == [
        'SELECT t1.*, t3.* FROM "order" AS t1 JOIN orders AS t2 ON t1."Order Id" = t2.id'
        " JOIN sales.branch AS t3 ON t2.region = t3.region AND t2.branch = t3.id"
    ]


async def test_keys_are_walked_against_their_direction_too(shop):
    (path,) = await shop.join_paths(await shop.find("branch"), await shop.find("orders"))
    (step,) = path
    assert (step.source.name, step.source_columns, step.target.name, step.target_columns) == (
        "branch",
        ("region", "id"),
        "orders",
        ("region", "branch"),
    )


async def test_a_table_joins_itself_only_by_a_key_of_its_own(shop):
    assert await _sql(shop, "users", "users") == [
        "SELECT t1.*, t2.* FROM users AS t1 JOIN users AS t2 ON t1.manager_id = t2.id"
    ]
    with pytest.raises(PathNotFound, match="orders has no foreign key to itself"):
        await _sql(shop, "orders", "orders")


async def test_no_path_is_an_error_that_names_what_either_side_joins_to(shop):
    with pytest.raises(PathNotFound) as caught:
        await _sql(shop, "orders", "logs")
    assert 'orders joins to "order", users, sales.branch;' in caught.value.suggestion
    assert "logs joins to nothing" in caught.value.suggestion


async def test_depth_bounds_a_path(shop):
    with pytest.raises(PathNotFound, match="at most 1 foreign key"):
        await _sql(shop, '"order"', "users", 1)
    assert len(await _sql(shop, '"order"', "users", 2)) == 2


def _all_paths(keys, source, target, depth):
    """Every simple path by plain depth-first search, as lengths: the truth to compare with."""
    edges = {}
    for one in keys:
        edges.setdefault(one.relation, []).append(one.references)
        if one.relation != one.references:
            edges.setdefault(one.references, []).append(one.relation)

    def walk(node, visited):
        if node == target:
            yield len(visited) - 1
        elif len(visited) <= depth:
            for other in edges.get(node, ()):
                if other not in visited:
                    yield from walk(other, [*visited, other])

    return sorted(walk(source, [source]))


@pytest.mark.parametrize("seed", range(20))
def test_paths_are_the_shortest_there_are(seed, make_table, make_key):
    chance = random.Random(seed)
    names = [f"t{number}" for number in range(9)]
    pairs = [(chance.choice(names), chance.choice(names)) for _ in range(14)]
    keys = [make_key(source, f"c{number}", target) for number, (source, target) in enumerate(pairs)]
    made = [make_table(name, "id", keys=tuple(k for k in keys if k.relation.name == name)) for name in names]
    graph = Graph(made)
    for source in made:
        for target in made:
            if source is not target:
                lengths = _all_paths(keys, source.relation, target.relation, 5)
                found = graph.paths(source.relation, target.relation, 5)
                assert [len(path) for path in found] == lengths[:MAX_PATHS]
                assert len(set(found)) == len(found)
                assert found == graph.paths(source.relation, target.relation, 5)


def test_a_star_schema_with_millions_of_paths_is_answered(make_table, make_key):
    chance = random.Random(1)
    dimensions = [make_table(f"d{number}", "id") for number in range(20)]
    stars = [[f"d{number}" for number in chance.sample(range(20), 8)] for _ in range(300)]
    made = [
        make_table(f"f{number}", keys=tuple(make_key(f"f{number}", f"{name}_id", name) for name in star))
        for number, star in enumerate(stars)
    ]
    graph = Graph([*dimensions, *made])
    for first, second in ((0, 1), (10, 200), (50, 299)):
        paths = graph.paths(made[first].relation, made[second].relation, 6)
        assert len(paths) == MAX_PATHS
        assert len(paths[0]) == 2
