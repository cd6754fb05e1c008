"""Queries and calls of tools, made up from a seed, over tables of which a caller sees a part.

Two databases that differ only in what the caller does not see must answer every one of them alike.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
from dragoman.gateway import failures, hints
from dragoman.model import Claims, Principal
from dragoman.tools import Toolbox

ANALYST = Principal("ann", subject="ann", groups=frozenset({"analysts"}), claims=Claims({"tenant": "a"}))

AT_ONCE = 3
"""Calls under way at once for each twin: fewer than places of its pool."""

NUMBERS = {"orders": ("id", "customer_id", "total"), "customers": ("id", "age"), "accounts": ("id", "balance")}
TEXTS = {
    "orders": ("tenant", "note"),
    "customers": ("name", "email", "born"),
    "accounts": ("holder", "email", "born", "iban"),
}
HIDDEN = {"orders": ("secret",), "customers": ("ssn",), "accounts": ("pin",)}


@dataclass(frozen=True)
class Flavour:
    """What an engine's SQL has of its own.

    `schema` stands before tables. `failing`: conditions over a number {n} or a text {t} that fail for some values.
    `lateral`: FROM may look at what stands before it. `row`: a whole row as a text, of the table called {t}. `tables`:
    those that are asked, as often as they stand there.
    """

    schema: str
    failing: tuple[str, ...]
    lateral: bool = False
    row: str = ""
    recursive: bool = True
    tables: tuple[str, ...] = ("orders", "orders", "customers")

    def call(self, seed: int) -> tuple[str, dict[str, Any]]:
        """Return the name of a tool and its arguments."""
        return Generator(seed, self).call()


class Generator:
    """Makes calls of tools, the same ones for the same seed."""

    def __init__(self, seed: int, flavour: Flavour) -> None:
        self.random = random.Random(seed)
        self.flavour = flavour
        self.names = 0

    def call(self) -> tuple[str, dict[str, Any]]:
        """Return the name of a tool and its arguments."""
        pick = self.random.random()
        table = self._table()
        if pick < 0.80:
            return "execute_query", {"sql": self.query()}
        if pick < 0.86:
            where = self._condition({table: table}, 1) if self.random.random() < 0.7 else "1 = 1"
            return "get_sample_rows", {"table_name": table, "where_clause": where, "limit": 50}
        if pick < 0.92:
            return "explain_query", {"sql": self.query(), "analyze": self.random.random() < 0.3}
        if pick < 0.95:
            return "describe_table", {"table_name": table, "detail": "full"}
        if pick < 0.97:
            return "search_catalog", {"query": self.random.choice((*HIDDEN[table], *TEXTS[table], "zyxmark"))}
        if pick < 0.98:
            return "get_foreign_keys", {"table_name": table}
        return "list_tables", {}

    def query(self) -> str:
        """Return one query whose rows have a certain order, or none that matters."""
        shape = self.random.choice(
            (
                self._plain,
                self._plain,
                self._grouped,
                self._counted,
                self._joined,
                self._set,
                self._with,
                self._nested,
                self._windowed,
                self._near,
            )
        )
        return shape()

    # Shapes of queries

    def _plain(self) -> str:
        source, scope = self._source()
        some = self.random.choice(("*", f"{self._value(scope)}, {self._number(scope, 2)}", self._text(scope)))
        return f"SELECT {some} FROM {source} WHERE {self._condition(scope, 2)}"

    def _grouped(self) -> str:
        source, scope = self._source()
        by = self._value(scope)
        return (
            f"SELECT {by} AS g, count(*), sum({self._number(scope, 1)}), min({self._text(scope)}) FROM {source}"
            f" WHERE {self._condition(scope, 1)} GROUP BY {by} HAVING count(*) > {self.random.choice((0, 0, 1))}"
        )

    def _counted(self) -> str:
        source, scope = self._source()
        return f"SELECT count(*), max({self._number(scope, 2)}) FROM {source} WHERE {self._condition(scope, 2)}"

    def _joined(self) -> str:
        (left, a), (right, b) = self._source(), self._source()
        scope = a | b
        kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN" if self.flavour.lateral else "JOIN", "CROSS JOIN"))
        on = "" if kind == "CROSS JOIN" else f" ON {self._number(a, 0)} = {self._number(b, 0)}"
        return f"SELECT {self._number(a, 0)}, {self._value(b)} FROM {left} {kind} {right}{on}" + (
            f" WHERE {self._condition(scope, 1)}"
        )

    def _set(self) -> str:
        word = self.random.choice(("UNION", "INTERSECT", "EXCEPT", "UNION ALL"))
        (left, a), (right, b) = self._source(), self._source()
        return (
            f"SELECT {self._number(a, 1)} FROM {left} WHERE {self._condition(a, 1)} {word}"
            f" SELECT {self._number(b, 1)} FROM {right}"
        )

    def _with(self) -> str:
        table, name = self._table(), self.random.choice(("orders", "customers", "q"))
        inner = f"SELECT * FROM {self._written(table)} WHERE {self._condition({table: table}, 1)}"
        if self.flavour.recursive and self.random.random() < 0.3:
            step = "SELECT n + 1 FROM q WHERE n < 4"
            return f"WITH RECURSIVE q(n) AS (SELECT min(id) FROM {self._written(table)} UNION {step}) SELECT n FROM q"
        return f"WITH {name} AS ({inner}) SELECT {self._value({name: table})} FROM {name}"

    def _nested(self) -> str:
        table = self._table()
        name = self._name()
        inner = f"SELECT * FROM {self._written(table)} WHERE {self._condition({table: table}, 1)}"
        if self.flavour.lateral and self.random.random() < 0.4:
            source, scope = self._source()
            number = self._number(scope, 0)
            side = f"LATERAL (SELECT count(*) AS n FROM {self._written(table)} WHERE id > {number}) {name}"
            return f"SELECT {number}, {name}.n FROM {source} CROSS JOIN {side}"
        return f"SELECT * FROM ({inner}) {name} WHERE {self._condition({name: table}, 1)}"

    def _windowed(self) -> str:
        source, scope = self._source()
        number = self._number(scope, 0)
        total = f"sum({number}) OVER (ORDER BY {number})"
        return f"SELECT {number}, {total} FROM {source} WHERE {self._condition(scope, 1)}"

    def _near(self) -> str:
        """What is hidden, by its name: it is reported as what is not there."""
        table = self._table()
        column = self.random.choice((*HIDDEN[table], "rowid", "sekret", "ctid"))
        return self.random.choice(
            (
                f"SELECT {column} FROM {self._written(table)}",
                f"SELECT count(*) FROM {self._written(table)} WHERE {column} > '0'",
                f"SELECT id FROM {self._written(table)} ORDER BY {column}",
                f"SELECT * FROM {self._written('salaries')}",
                self.flavour.row.format(t=table) or "SELECT 1",
            )
        )

    # Parts of queries

    def _table(self) -> str:
        return self.random.choice(self.flavour.tables)

    def _written(self, table: str) -> str:
        return self.random.choice((table, f"{self.flavour.schema}.{table}", f'{self.flavour.schema}."{table}"'))

    def _name(self) -> str:
        self.names += 1
        return f"x{self.names}"

    def _source(self) -> tuple[str, dict[str, str]]:
        table, name = self._table(), self._name()
        return f"{self._written(table)} AS {name}", {name: table}

    def _column(self, scope: dict[str, str], kinds: dict[str, tuple[str, ...]]) -> str:
        name = self.random.choice(sorted(scope))
        return f"{name}.{self.random.choice(kinds[scope[name]])}"

    def _value(self, scope: dict[str, str]) -> str:
        return self._column(scope, NUMBERS if self.random.random() < 0.5 else TEXTS)

    def _number(self, scope: dict[str, str], depth: int) -> str:
        if depth == 0 or self.random.random() < 0.5:
            return self._column(scope, NUMBERS)
        left, right = self._number(scope, depth - 1), self._number(scope, depth - 1)
        return self.random.choice(
            (
                f"({left} + {right})",
                f"abs({left} - {right})",
                f"coalesce({left}, {right})",
                f"length({self._text(scope)})",
                f"CASE WHEN {left} > {self._constant()} THEN {right} END",
            )
        )

    def _text(self, scope: dict[str, str]) -> str:
        column = self._column(scope, TEXTS)
        return self.random.choice((column, f"upper({column})", f"substr({column}, 1, 2)", f"({column} || 'x')"))

    def _constant(self) -> str:
        return str(self.random.choice((0, 1, 2, 3, 5, 8, 20, 100, -7)))

    def _condition(self, scope: dict[str, str], depth: int) -> str:
        pick = self.random.random()
        if pick < 0.30:
            failing = self.random.choice(self.flavour.failing)
            number, text = self._column(scope, NUMBERS), self._column(scope, TEXTS)
            return failing.format(n=number, t=text, k=self._constant())
        if pick < 0.45:
            table, number = self._table(), self._number(scope, 0)
            inner = f"SELECT id FROM {self._written(table)}"
            return self.random.choice(
                (
                    f"{number} IN ({inner})",
                    f"{number} NOT IN ({inner} WHERE {self._condition({table: table}, 0)})" if depth else "1 = 1",
                    f"EXISTS (SELECT 1 FROM {self._written(table)} AS inside WHERE inside.id = {number})",
                    f"{number} > (SELECT min(id) FROM {self._written(table)})",
                )
            )
        if pick < 0.6 and depth:
            word = self.random.choice(("AND", "OR", "AND NOT"))
            return f"({self._condition(scope, depth - 1)} {word} {self._condition(scope, depth - 1)})"
        if pick < 0.8:
            return f"{self._number(scope, depth)} {self.random.choice(('<', '>', '=', '<>'))} {self._constant()}"
        pattern = self.random.choice(("%a%", "zyx%", "_%", "%b", "a***", "first"))
        return f"{self._text(scope)} {self.random.choice(('LIKE', '='))} '{pattern}'"


def _comparable(texts: Iterable[str]) -> list[Any]:
    """Return answers without what depends on time, and their rows in one order: none was asked for."""
    answers = [json.loads(text) for text in texts]
    patient = all("notices" in answer for answer in answers)
    for answer in answers:
        for taken in ("elapsed_ms", "actual_time_ms"):
            answer.pop(taken, None)
        if not patient:
            answer.pop("notices", None)  # why nothing was found is told where it is found out in time
        if answer.get("truncated"):  # which rows it has depends on their order
            del answer["rows"], answer["row_count"]
        if isinstance(answer.get("rows"), list):
            answer["rows"].sort(key=json.dumps)
    return answers


Written = Callable[[str, int], str]


class Maker(Protocol):
    """Makes calls of tools, the same one for the same seed."""

    def call(self, seed: int) -> tuple[str, dict[str, Any]]:
        """Return the name of a tool and its arguments."""
        ...


async def differences(
    twins: list[Toolbox], maker: Maker, seeds: Iterable[int], within: Written = lambda text, twin: text
) -> tuple[int, list[object]]:
    """Return how many calls were answered with no error, and those that the twins answered differently.

    `within`: turns a text of a twin's into the text that both share, and where it has `{schema}`, back.
    """
    answered, different = 0, list[object]()
    left = iter(seeds)

    async def ask(tool: str, arguments: dict[str, Any], twin: int) -> str:
        sent = json.loads(within(json.dumps(arguments), twin))
        return within((await twins[twin].call(tool, sent, principal=ANALYST)).text, twin)

    async def answers(seed: int) -> list[Any]:
        tool, arguments = maker.call(seed)
        return _comparable(await asyncio.gather(*(ask(tool, arguments, twin) for twin in (0, 1))))

    async def compare() -> None:
        nonlocal answered
        for seed in left:
            one, other = await answers(seed)
            for _ in range(3):
                # How much is found out of why nothing was found depends on time, and so not on the twin.
                if one.get("notices") == other.get("notices"):
                    break
                one, other = await answers(seed)
            answered += "error" not in one
            if one != other:
                different.append((seed, *maker.call(seed), one, other))

    with pytest.MonkeyPatch.context() as patched:
        for module in failures, hints:  # else a slow read of the catalog leaves one twin without near names
            patched.setattr(module, "PATIENCE", 60.0)
        await asyncio.gather(*(compare() for _ in range(AT_ONCE)))
    return answered, different
