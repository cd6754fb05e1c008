"""Random queries of one column `a`, in which WITH, also WITH RECURSIVE, defines names of tables at every level."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

NAMES = ("t", "u", "v")
"""Tables, each with the column `a`."""
_FORMS = ("{}", "{}", "{}", '"{}"')


@dataclass
class Maker:
    """Makes queries. `joined`: a name may stand in parentheses."""

    random: Random
    joined: bool
    made: int = 0

    def query(self, depth: int) -> str:
        """Return a query with at most so many others around its innermost one."""
        parts = [self.select(depth - 1)]
        while self.chance(0.25):
            parts.append(self.select(depth - 1))
        head = self.head(depth - 1) if depth and self.chance(0.6) else ""
        return head + self.random.choice((" UNION ALL ", " UNION ")).join(parts)

    def head(self, depth: int) -> str:
        names = self.random.sample(NAMES, self.random.choice((1, 1, 2, 3)))
        members = ", ".join(f"{self.spell(name)} (a) AS ({self.query(depth)})" for name in names)
        return f"WITH {self.random.choice(('', 'RECURSIVE ', 'RECURSIVE '))}{members} "

    def select(self, depth: int) -> str:
        first, alias = self.source(depth)
        text = f"SELECT {alias}.a FROM {first}"
        if self.chance(0.2):
            text += f", {self.source(depth)[0]}"
        if depth > 0 and self.chance(0.25):
            return f"{text} WHERE {alias}.a IN ({self.query(depth)})"
        return text

    def source(self, depth: int) -> tuple[str, str]:
        self.made += 1
        alias, chance = f"s{self.made}", self.random.random()
        if depth > 0 and chance < 0.4:
            return f"({self.query(depth)}) AS {alias}", alias
        named = f"{self.spell(self.random.choice(NAMES))} AS {alias}"
        return f"({named})" if self.joined and chance < 0.5 else named, alias

    def spell(self, name: str) -> str:
        return self.random.choice(_FORMS).format(name)

    def chance(self, share: float) -> bool:
        return self.random.random() < share


def query(random: Random, *, joined: bool = True) -> str:
    """Return a random query. `joined`: a name may stand in parentheses."""
    return Maker(random, joined).query(3)
