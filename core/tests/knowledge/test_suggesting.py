"""What names suggest is found without comparing every column with every relation."""

import random
from collections.abc import Callable

import pytest
from dragoman import Constraint, Relation, Table, TableColumn
from dragoman.knowledge import joins

WORDS = "order item customer cust employee staff manager user log code year region note".split()
LAST = ("id", "key", "no", "code", "", "", "name")


def random_tables(seed: int) -> list[Table]:
    chance = random.Random(seed)

    def name(*ends: str) -> str:
        return "_".join([*chance.choices(WORDS, k=chance.randint(1, 2)), *filter(None, ends)])

    tables: dict[Relation, Table] = {}
    for _ in range(40):
        relation = Relation(name(), chance.choice(("public", "public", "app")))
        key = chance.choice(("id", "id", f"{relation.name}_id", name("id"), "code"))
        others = {name(chance.choice(LAST)) for _ in range(6)} | {chance.choice(("parent_id", "manager_id"))}
        columns = (key, *sorted(others - {key}))
        tables[relation] = Table(
            relation=relation,
            columns=tuple(
                TableColumn(name=each, type=chance.choice(("integer", "integer", "text")), nullable=True)
                for each in columns
            ),
            constraints=(Constraint(type="PRIMARY KEY", columns=(key,)),),
        )
    return list(tables.values())


@pytest.mark.parametrize("seed", range(10))
def test_what_is_looked_up_is_what_comparing_with_every_relation_finds(monkeypatch: pytest.MonkeyPatch, seed: int):
    tables = random_tables(seed)
    looked_up = list(joins.suggest(tables))
    targets: list[joins._Target] = []
    init = joins._Targets.__init__

    def keep(self: joins._Targets, given: list[joins._Target]) -> None:
        targets.extend(given)
        init(self, targets)

    monkeypatch.setattr(joins._Targets, "__init__", keep)
    monkeypatch.setattr(joins._Targets, "near", lambda self, written: targets)
    compared = list(joins.suggest(tables))
    assert looked_up == compared
    assert len(looked_up) > 10


def test_a_column_is_compared_with_few_of_many_relations(monkeypatch: pytest.MonkeyPatch):
    ranked: list[object] = []
    rank: Callable[..., int] = joins._rank
    monkeypatch.setattr(joins, "_rank", lambda *pair: ranked.append(pair) or rank(*pair))
    columns = tuple(TableColumn(name=name, type="integer", nullable=False) for name in ("id", "value_a", "value_b"))
    key = Constraint(type="PRIMARY KEY", columns=("id",))
    tables = [Table(relation=Relation(f"thing_{n}"), columns=columns, constraints=(key,)) for n in range(2_000)]
    assert list(joins.suggest(tables)) == []
    assert len(ranked) < 2_000
