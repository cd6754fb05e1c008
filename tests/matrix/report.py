"""The page that shows the matrix: written from a run with DRAGOMAN_MATRIX_PAGE set, compared with every other run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Outcome = Literal["right", "told", "refused"]
PAGE = Path(__file__).parents[2] / "docs" / "matrix.md"
LOOSE = 5
"""By how many constructs of a pair the page may be older than the run."""

_NAMES = {"postgres": "Postgres", "sqlite": "SQLite", "trino": "Trino"}
_MARKS = {"right": "=", "told": "n", "refused": "x"}
_ROW = re.compile(r"\| (\w+) \| (\w+) \| (\d+) \| (\d+) \| (\d+) \|")


@dataclass
class Outcomes:
    """What became of each question and construct: by its name or text, its source and its target."""

    questions: dict[tuple[str, str, str], Outcome] = field(default_factory=dict)
    constructs: dict[tuple[str, str, str], Outcome] = field(default_factory=dict)

    def counted(self, source: str, target: str) -> tuple[int, int, int]:
        """How many constructs of a pair are right, right with a notice, refused."""
        found = Counter(what for (a, b, _), what in self.constructs.items() if (a, b) == (source, target))
        return found["right"], found["told"], found["refused"]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs that ran, in the order of their names."""
        return sorted({(source, target) for _, source, target in self.questions})


def questions_table(outcomes: Outcomes) -> str:
    """TPC-H's questions by pair."""
    pairs = outcomes.pairs
    head = " | ".join(f"{_NAMES[a]} to {_NAMES[b]}" for a, b in pairs)
    names = list(dict.fromkeys(question for question, _, _ in outcomes.questions))
    rows = [
        f"| {name} | {' | '.join(_MARKS[outcomes.questions[name, *pair]] for pair in pairs)} |"
        for name in sorted(names, key=lambda name: int(name[1:]))
    ]
    return "\n".join([f"| | {head} |", "|---" * (len(pairs) + 1) + "|", *rows])


def counts(text: str) -> dict[tuple[str, str], tuple[int, int, int]]:
    """The table of constructs on a page, by pair."""
    ids = {name: key for key, name in _NAMES.items()}
    return {
        (ids[found[1]], ids[found[2]]): (int(found[3]), int(found[4]), int(found[5])) for found in _ROW.finditer(text)
    }


def page(outcomes: Outcomes) -> str:
    """The whole page."""
    rows = [
        f"| {_NAMES[a]} | {_NAMES[b]} | {' | '.join(map(str, outcomes.counted(a, b)))} |" for a, b in outcomes.pairs
    ]
    return _PAGE.format(questions=questions_table(outcomes), constructs="\n".join(rows))


_PAGE = """\
# SQL across dialects

With `from_dialect` you write a query in one SQL and run it on a database of another. sqlglot reads and writes the
SQLs. Where it changes the meaning, the target's plugin rewrites the query, or refuses it with a way out. A plugin
translates only functions and clauses that it knows; it refuses all others.

This page comes from a run of `tests/matrix` on three live engines (PostgreSQL, SQLite and Trino) with the same
generated data. Every query runs on its own engine and, translated, on another. The rows must be the same: exactly for
integers, texts, dates and decimals, and within one part in 10^9 if one side has only binary floats. The test fails if
an answer differs. CI runs the queries of TPC-H and one construct in five. The nightly run does everything, and fails
if this page is no longer true. *Refused* counts queries that are refused before they run, and type errors of the
target, which are refusals of the translation too.

## Constructs

These are small queries that people write, and known traps. *Right with a notice*: the answer is the same, and a notice
says what could differ with other data or other types of columns.

| from | to | right | right with a notice | refused |
|---|---|---|---|---|
{constructs}

## TPC-H

`=`: the same answer. `n`: the same with a notice, mostly about fewer decimal places. `x`: refused.

{questions}

## What a notice stands for

A translation sees the text of a query, not the types of its columns. If the meaning depends on these types, the
translation takes the form that is right for every type. If there is none, it takes the form that is right for most
types, and a notice says what to write instead; or it refuses the query. These can give another answer, and a notice
says so:

- Divisions and averages of decimals keep fewer decimal places on Trino. `sum()` of a bigint is a bigint there, and its
  division drops the fraction. For Postgres' answer, write `sum(x)::numeric`.
- A column of dates minus another is a number of days on Postgres, and an interval on Trino: write `a::date - b::date`.
- A text that looks like a date and is compared with a column is taken as a date.
- `->>` gives NULL for objects and lists on Trino, and numbers as texts in its own spelling.
- `round()` rounds a half of the written decimal away from zero; SQLite rounds the binary float next to it.
- `upper()`, `lower()` and ILIKE know all letters, some, or only ASCII, depending on engine and locale. Texts sort by
  the target's collation.
- `*` beside USING has the columns in another order on SQLite and DuckDB. `t.*` of a table that USING joins is refused
  between Trino and the others: there it leaves out the columns of USING.
- A recursive WITH stops after ten steps on Trino, unless its administrator allows more.

Some queries fail on the target, with its own error, instead of giving another answer: a name in SQLite's WHERE that
is both a column and an output; an inner query with several rows, of which SQLite takes the first; whole numbers that
grow beyond a column's type.

Queries of other sources (MySQL, T-SQL, DuckDB, Snowflake and more) are translated in the same way, with a notice that
no translation rules cover the pair: check the result.
"""
