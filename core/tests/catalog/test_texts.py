"""Texts of a relation that callers see only if they name nothing hidden."""

from random import Random

import pytest
from dragoman import Dialect, Relation, Rules, Table, TableColumn
from dragoman.catalog.texts import Texts
from dragoman.sql.lexicon import Lexicon

RULES = Rules(functions=frozenset({"lower", "concat"}), types=frozenset({"text", "integer", "regclass"}))
DIALECT = Dialect(name="any", contract=1, sqlglot="postgres", lexicon=Lexicon(colon_casts=True), rules=RULES)
# `shown` has the columns id, "it's" and "say ""hi""", and so the sequence shown_id_seq.
IN = [
    "id",
    '"it\'s"',
    '"say ""hi"""',
    "'it''s hidden'",
    "'a \"hidden\" one'",
    "''",
    "lower('hidden')",
    "nextval('shown_id_seq')",
    "nextval('shown_id_seq'::regclass)",
    "nextval(('main.shown_id_seq'::text)::regclass)",
    "'hidden'::text",
    "(",
    ")",
]
OUT = [
    "hidden",
    '"hidden"',
    "hidden('x')",
    "lower('x', hidden)",
    "'x'::hidden",
    "nextval('hidden')",
    "NEXTVAL('hidden')",
    "currval('main.hidden')",
    "'hidden'::regclass",
    "('hidden'::text)::regclass",
]


def shows(text: str) -> bool:
    """Whether a default of the relation `shown` is told to a caller from whom something is hidden."""
    names = ("it's", 'say "hi"')
    others = [TableColumn(name=name, type="text", nullable=True) for name in names]
    columns = (TableColumn(name="id", type="integer", nullable=True, default=text), *others)
    table = Table(relation=Relation("shown", "main"), type="table", columns=columns)
    return Texts(DIALECT, hides=True).prune(table).columns[0].default is not None


@pytest.mark.parametrize("seed", range(200))
def test_a_text_is_told_unless_it_names_something_hidden(seed: int):
    chance = Random(seed)
    pieces = chance.choices(IN, k=6)
    assert shows(", ".join(pieces))
    pieces.insert(chance.randrange(7), chance.choice(OUT))
    assert not shows(", ".join(pieces))
