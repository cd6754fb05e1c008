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

`from_dialect` takes a query in one SQL and runs it on a database of another. sqlglot reads and writes the SQLs; what
it carries over without its meaning is rewritten by the target's plugin, or refused with a way out. The plugins go by
a closed world: a function or clause that nobody has looked at is refused, not passed on.

This page comes from a run of `tests/matrix`: three live engines (PostgreSQL, SQLite and Trino) over the same generated
data, every query asked of its own engine and, translated, of another, and the answers compared: the same rows, exact
for integers, texts, dates and decimals, within one part in 10^9 where one side has binary floats only. The test fails
when an answer differs. CI asks TPC-H's questions and one construct in five; the nightly run asks everything, and fails
when this page is no longer true. *Refused* counts what is refused before it runs, and the type errors of targets,
which come as refusals of the translation too.

## Constructs

Small queries that people write, and the traps we know. *Right with a notice*: the answer is the same, and a sentence
beside it says what could differ with other data or other types of columns.

| from | to | right | right with a notice | refused |
|---|---|---|---|---|
{constructs}

## TPC-H

`=` the same answer, `n` the same with a notice (fewer decimal places, mostly), `x` refused.

{questions}

## What a notice stands for

A translation sees the text of a query, not the types of its columns. Where the meaning hangs on them, it takes the form
that is right for every type, where there is one. Where there is none, the form that is right for most is taken, and a
notice names what to write instead, or the query is refused. These can give another answer, and say so:

- Divisions and averages of decimals keep fewer decimal places on Trino; `sum()` of a bigint is a bigint there, whose
  division drops the fraction. Postgres' answer needs `sum(x)::numeric`.
- A column of dates minus another is a number of days on Postgres, an interval on Trino: write `a::date - b::date`.
- A text that looks like a date, beside a column, is taken as a date.
- `->>` gives NULL for objects and lists on Trino, and numbers as texts in its own spelling.
- `round()` of a half: away from zero of the decimal that is written, where SQLite rounds the binary float beside it.
- `upper()`, `lower()` and ILIKE know all letters, some or ASCII only, by engine and locale. Texts sort by the target's
  collation.
- A recursive WITH stops after ten steps on Trino, unless its administrator allows more.

Some queries fail on the target, with its own error, rather than answer otherwise: a name that is both a column's and
an output's in SQLite's WHERE; an inner query of several rows where SQLite takes the first; whole numbers that grow
beyond a column's type.

Other sources (MySQL, T-SQL, DuckDB, Snowflake and more) go through the same closed world, with the notice that no rules
of its own cover the pair: check the result.
"""
