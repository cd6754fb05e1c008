"""Random queries of one column `x`, in which names mean different things at different places."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from dragoman_postgres.testing import Server
from dragoman_trino.testing.fixtures import trino_server

__all__ = ["trino_server"]

TABLES = ("plain", "other", '"Odd"')
MEMBERS = ("plain", "fresh", "other")
"""Names of WITH: two of them hide tables."""


@dataclass
class Maker:
    """Makes queries. `qualified`: a table with its schema. `wide`: with what PostgreSQL has and SQLite does not."""

    random: Random
    qualified: str
    wide: bool
    made: int = 0

    def query(self, depth: int, names: Sequence[str] = ()) -> str:
        head, fresh = self.members(depth, names) if depth and self.chance(0.4) else ("", ())
        body = self.select(depth, (*names, *fresh), fresh)
        while depth and self.chance(0.2):
            kind = self.random.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
            more = self.select(depth - 1, (*names, *fresh))
            body = f"({body}) {kind} ({more})" if self.wide else f"{body} {kind} {more}"
        return head + body

    def members(self, depth: int, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        fresh = tuple(self.random.sample(MEMBERS, self.random.randint(1, 2)))
        parts = [f"{name} AS ({self.query(depth - 1, (*names, *fresh[:place]))})" for place, name in enumerate(fresh)]
        if self.chance(0.3):
            parts.append(f"loop (x) AS (SELECT {self.value(0)} UNION SELECT x + 1 FROM loop WHERE x < 3)")
            return f"WITH RECURSIVE {', '.join(parts)} ", (*fresh, "loop")
        return f"WITH {', '.join(parts)} ", fresh

    def select(self, depth: int, names: Sequence[str], used: Sequence[str] = ()) -> str:
        """A SELECT that reads at least the members `used`: SQLite never looks at others."""
        aliases = [self.alias() for _ in range(max(1, len(used)))]
        sources = [f"{name} AS {alias}" for name, alias in zip(used, aliases, strict=False)]
        sources = sources or [self.source(depth, names, aliases[0])]
        while depth and self.chance(0.3):
            aliases.append(self.alias())
            sources.append(self.source(depth - 1, names, aliases[-1]))
        value = self.value(depth, names, aliases)
        if self.chance(0.15):
            value = f"row_number() OVER (PARTITION BY {value} ORDER BY {self.value(0, (), aliases)})"
        text = f"SELECT {value} AS x FROM {self.joined(depth, names, aliases, sources)}"
        conditions = [f"{self.value(depth, names, aliases)} > 0"] if self.chance(0.5) else []
        if not self.wide:
            # Of a table no column of which is read SQLite does not tell for certain that it is one.
            conditions += [f"{alias}.x IS NOT NULL" for alias in aliases]
        return text + " WHERE " * bool(conditions) + " AND ".join(conditions)

    def joined(self, depth: int, names: Sequence[str], aliases: Sequence[str], sources: Sequence[str]) -> str:
        *sources, last = sources
        if not sources or self.chance(0.5):
            return ", ".join([*sources, last])
        # ON sees its own two sides only.
        return f"{', '.join(sources)} JOIN {last} ON {self.value(depth - 1, names, aliases[-2:])} > 1"

    def source(self, depth: int, names: Sequence[str], alias: str) -> str:
        kind = self.random.randrange(6)
        if kind == 0 and depth > 0:
            return f"({self.query(depth - 1, names)}) AS {alias}"
        if kind == 1 and self.wide:
            return f"probe_set({self.value(depth - 1, names)}) AS {alias} (x)"
        if kind == 2 and self.wide:
            rows = f"probe_set({self.value(0)}), generate_series(1, {self.value(depth - 1, names)})"
            return f"ROWS FROM ({rows}) AS {alias} (x, y)"
        if kind == 3 and self.wide and depth > 0:
            return f"LATERAL ({self.query(depth - 1, names)}) AS {alias}"
        if kind == 4:
            return f"{self.qualified} AS {alias}"
        return f"{self.random.choice((*TABLES, *names))} AS {alias}"

    def value(self, depth: int, names: Sequence[str] = (), aliases: Sequence[str] = ()) -> str:
        kind = self.random.randrange(9 if depth > 0 else 3)
        inner = depth - 1
        if kind < 2 or (kind == 2 and not aliases):
            return str(self.random.randrange(5))
        if kind == 2:
            return f"{self.random.choice(aliases)}.x"
        if kind == 3:
            return f"{self.random.choice(('probe_a', 'probe_b', 'abs'))}({self.value(inner, names, aliases)})"
        if kind == 4:
            return f"coalesce({self.value(inner, names, aliases)}, probe_c({self.value(inner, names, aliases)}))"
        if kind == 5:
            return f"(SELECT max(q.x) FROM ({self.query(inner, names)}) AS q)"
        if kind == 6:
            some = f"{self.value(inner, names, aliases)} IN ({self.query(inner, names)})"
            return f"CASE WHEN {some} THEN {self.value(inner, names, aliases)} ELSE 1 END"
        if kind == 7:
            return f"CASE WHEN EXISTS ({self.query(inner, names)}) THEN 2 END"
        return f"{self.value(inner, names, aliases)} + {self.value(inner, names, aliases)}"

    def alias(self) -> str:
        self.made += 1
        return f"s{self.made}"

    def chance(self, share: float) -> bool:
        return self.random.random() < share


@pytest.fixture(scope="session")
def query() -> Callable[..., str]:
    """`query(random, qualified=..., wide=...)`: a random query."""

    def make(random: Random, *, qualified: str, wide: bool) -> str:
        return Maker(random, qualified, wide).query(3)

    return make


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server is enough: grammars of other versions have more, not other meanings."""
    running = Server.start()
    yield running
    running.stop()
