"""Random schemas and queries in which few words name everything: tables, columns, aliases, members of WITH, outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

WORDS = ("a", "b", "c", "d", "t", "u", "v")
SPARE = "z"
"""A column that every table has and no query names."""
Engine = Literal["sqlite", "postgres", "trino"]
Schema = Mapping[str, Sequence[str]]


def schema(random: Random) -> Schema:
    """Return four tables by name, with three or four columns each beside the spare one."""
    tables = random.sample(WORDS, 4)
    return {name: (*random.sample(WORDS, random.randint(3, 4)), SPARE) for name in tables}


@dataclass(frozen=True)
class Item:
    """What stands in a FROM clause: its alias, its columns, and whether it is a table under its own name."""

    alias: str
    columns: Sequence[str]
    table: bool = False


Levels = Sequence[Sequence[Item]]
"""The items that are visible, those of the innermost SELECT first."""


@dataclass
class Maker:
    """Makes queries that are mostly valid: names are mostly those that are visible. `home`: where the tables are."""

    random: Random
    engine: Engine
    tables: Schema
    home: str
    members: list[tuple[str, Sequence[str]]] = field(default_factory=list[tuple[str, Sequence[str]]])
    taken: set[str] = field(default_factory=set[str])
    """The aliases of the FROM clause that is being made."""

    def query(self, depth: int, outer: Levels = ()) -> tuple[str, Sequence[str]]:
        """Return a query and the columns it brings."""
        before = list(self.members)
        head = self.with_(depth, outer) if depth and self.chance(0.3) else ""
        text, outputs = self.body(depth, outer)
        self.members = before
        return head + text, outputs

    def with_(self, depth: int, outer: Levels) -> str:
        recursive = self.chance(0.2)
        parts: list[str] = []
        for name in self.random.sample(WORDS, self.random.randint(1, 2)):
            text, columns = self.query(depth - 1, outer)
            renamed = ""
            if recursive or self.chance(0.3):
                columns = self.random.sample(WORDS, len(columns)) if len(columns) <= len(WORDS) else columns
                renamed = f" ({', '.join(columns)})"
            if recursive and self.chance(0.5):
                loop = f"SELECT {', '.join(f'{name}.{column}' for column in columns)} FROM {name} WHERE 1 = 0"
                text = f"SELECT * FROM ({text}) AS {self.word()} UNION ALL {loop}"
            parts.append(f"{self.spelled(name)}{renamed} AS ({text})")
            self.members.append((name, columns))
        return f"WITH {'RECURSIVE ' * recursive}{', '.join(parts)} "

    def body(self, depth: int, outer: Levels) -> tuple[str, Sequence[str]]:
        if depth and self.chance(0.15):
            text, outputs = self.select(depth, outer, width=1, ordered=False)
            other, _ = self.select(depth - 1, outer, width=1, ordered=False)
            text = f"{text} {self.random.choice(('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT'))} {other}"
            return text + f" ORDER BY {outputs[0]}" * self.chance(0.5), outputs
        if self.engine != "sqlite" and self.chance(0.04):
            name = self.random.choice(tuple(self.tables))
            return f"TABLE {self.spelled(name)}", self.columns_of(name)
        if self.engine == "postgres" and depth and self.chance(0.04):
            return f"VALUES ({self.value(depth - 1, ((), *outer))})", ["column1"]
        return self.select(depth, outer)

    def columns_of(self, name: str) -> Sequence[str]:
        """The columns a name brings here, where a member of WITH hides a table."""
        return {**self.tables, **dict(self.members)}[name]

    def select(self, depth: int, outer: Levels, width: int = 0, *, ordered: bool = True) -> tuple[str, Sequence[str]]:
        """Return a SELECT of `width` columns, or of any number."""
        sources, items = self.sources(depth, outer)
        levels = (items, *outer)
        outputs: list[str] = []
        parts: list[str] = []
        for _ in range(width or self.random.choice((1, 1, 2, 3))):
            part, names = self.output(depth, levels, starred=not width)
            parts.append(part)
            outputs += names
        text = f"{self.distinct(levels)}{', '.join(parts)} FROM {sources}"
        if self.chance(0.4):
            text += f" WHERE {self.condition(depth, levels)}"
        if self.chance(0.12):
            # Where aliases count as columns do.
            value = self.random.choice((self.column(levels), *outputs))
            grouped = f"ROLLUP ({value})" if self.engine != "sqlite" and self.chance(0.3) else value
            text = f"SELECT count(*) AS {outputs[0]} FROM {sources} GROUP BY {grouped} HAVING max({value}) > 0"
            return text, outputs[:1]
        if self.chance(0.1):
            name = self.word()
            text = f"SELECT count(*) OVER {name} AS {outputs[0]} FROM {sources} WINDOW {name} AS ({self.over(levels)})"
            return text, outputs[:1]
        if ordered and self.chance(0.2):
            text += f" ORDER BY {self.random.choice((self.column(levels), self.value(0, levels), *outputs))}"
        return text, outputs

    def distinct(self, levels: Levels) -> str:
        if self.engine == "postgres" and self.chance(0.05):
            return f"SELECT DISTINCT ON ({self.column(levels)}) "
        return self.random.choice(("SELECT ", "SELECT ", "SELECT ALL ", "SELECT DISTINCT "))

    def over(self, levels: Levels) -> str:
        return self.random.choice(("PARTITION BY ", "ORDER BY ")) + self.column(levels)

    def output(self, depth: int, levels: Levels, *, starred: bool) -> tuple[str, Sequence[str]]:
        here = levels[0]
        if starred and self.chance(0.08):
            return "*", [column for item in here for column in item.columns]
        if starred and self.chance(0.08):
            item = self.random.choice(here)
            return f"{self.spelled(item.alias)}.*", item.columns
        if self.chance(0.3):
            item = self.random.choice(here)
            column = self.random.choice(item.columns)
            return f"{self.spelled(item.alias)}.{self.spelled(column)}", [column]
        name = self.word()
        return f"{self.value(depth, levels)}{self.random.choice((' AS', ' AS', ''))} {self.spelled(name)}", [name]

    # FROM

    def sources(self, depth: int, outer: Levels) -> tuple[str, list[Item]]:
        around, self.taken = self.taken, set()
        text, items = self.joined(depth, outer)
        self.taken = around
        return text, items

    def joined(self, depth: int, outer: Levels) -> tuple[str, list[Item]]:
        text, items = self.source(depth, outer, [])
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            more, others = self.source(depth - 1, outer, items)
            common = [name for name in self.columns(items) if name in self.columns(others) and name != SPARE]
            kind = self.random.randrange(8)
            if kind == 0 and common:
                text = f"{text} {self.random.choice(('', 'LEFT ', 'FULL '))}JOIN {more} USING ({self.using(common)})"
            elif kind == 1:
                text = f"{text} NATURAL JOIN {more}"
            elif kind in {2, 3}:
                # ON sees its own two sides only, in some databases.
                text = f"{text} JOIN {more} ON {self.condition(depth - 1, ([*items, *others], *outer))}"
            elif kind in {4, 5}:
                text = f"{text} CROSS JOIN {more}"
            else:
                text = f"{text}, {more}"
            items = [*items, *others]
        return text, items

    def source(self, depth: int, outer: Levels, beside: Sequence[Item]) -> tuple[str, list[Item]]:
        kind = self.random.randrange(10)
        if kind == 0 and depth > 0:
            return self.group(depth, outer)
        if kind in {1, 2} and depth > 0:
            lateral = self.engine != "sqlite" and bool(beside) and self.chance(0.6)
            around, self.taken = self.taken, set()
            text, columns = self.query(depth - 1, (beside, *outer) if lateral else outer)
            self.taken = around
            return self.named(f"{'LATERAL ' * lateral}({text})", columns)
        if kind == 3 and beside:
            return self.function(beside)
        if self.members and self.chance(0.5):
            name, columns = self.random.choice(self.members)
            return self.named(self.spelled(name), columns, own=name)
        name = self.random.choice(tuple(self.tables))
        if name in dict(self.members) and self.chance(0.9):
            return self.named(self.spelled(name), dict(self.members)[name], own=name)
        own = f"{self.home}.{self.spelled(name)}" if self.chance(0.2) else self.spelled(name, text=True)
        return self.named(own, self.tables[name], own=name)

    def group(self, depth: int, outer: Levels) -> tuple[str, list[Item]]:
        """A join in parentheses, with an alias of its own or without."""
        around, self.taken = self.taken, set()
        text, items = self.joined(depth - 1, outer)
        inner, self.taken = self.taken, around
        if len(items) < 2 or text.count("(") or " JOIN " not in text or "," in text:
            return self.source(0, outer, ())
        if self.engine == "trino" or self.chance(0.3):
            self.taken |= inner
            return f"({text})", items
        return self.named(f"({text})", list(self.columns(items)))

    def named(self, text: str, columns: Sequence[str], own: str = "") -> tuple[str, list[Item]]:
        if own and own not in self.taken and self.chance(0.4):
            self.taken.add(own)
            return text, [Item(own, columns, table=True)]
        alias = self.alias()
        text = f"{text}{self.random.choice((' AS', ''))} {self.spelled(alias)}"
        if self.engine != "sqlite" and self.chance(0.15) and len(columns) <= len(WORDS):
            columns = self.random.sample(WORDS, len(columns))
            text += f" ({', '.join(columns)})"
        return text, [Item(alias, columns)]

    def function(self, beside: Sequence[Item]) -> tuple[str, list[Item]]:
        value, alias = self.column([beside]), self.alias()
        match self.engine:
            case "sqlite":
                return f"json_each({value}) AS {alias}", [Item(alias, ("value", "key"))]
            case "postgres":
                return f"generate_series(1, {value}) AS {alias}", [Item(alias, (alias,))]
            case "trino":
                name = self.word()
                return f"UNNEST(sequence(1, {value})) AS {alias} ({name})", [Item(alias, (name,))]

    def alias(self) -> str:
        """A new alias; now and then one that is taken."""
        free = [word for word in WORDS if word not in self.taken or self.chance(0.05)]
        name = self.random.choice(free or WORDS)
        self.taken.add(name)
        return name

    def using(self, common: Sequence[str]) -> str:
        return self.spelled(self.random.choice(common), text=True)

    @staticmethod
    def columns(items: Sequence[Item]) -> list[str]:
        return list(dict.fromkeys(column for item in items for column in item.columns))

    # Values

    def condition(self, depth: int, levels: Levels) -> str:
        kind = self.random.randrange(8 if depth > 0 else 3)
        if kind == 3:
            return f"EXISTS ({self.query(depth - 1, levels)[0]})"
        if kind == 4:
            return f"{self.value(0, levels)} IN ({self.select(depth - 1, levels, width=1)[0]})"
        if kind == 5 and self.engine == "sqlite":
            return (
                f"{self.value(0, levels)} IN {self.random.choice((*self.tables, *(name for name, _ in self.members)))}"
            )
        if kind == 6:
            return f"({self.value(0, levels)}, {self.value(0, levels)}) IN ((1, {self.value(0, levels)}))"
        return f"{self.value(depth - 1, levels)} > {self.random.randrange(3)}"

    def value(self, depth: int, levels: Levels) -> str:
        kind = self.random.randrange(13 if depth > 0 else 5)
        if kind < 4:
            return self.column(levels)
        if kind == 4:
            return self.odd(levels)
        if kind == 5:
            return f"(SELECT max(q.x) FROM ({self.inner(depth, levels)}) AS q)"
        if kind == 6:
            return f"CASE WHEN {self.condition(depth - 1, levels)} THEN {self.value(depth - 1, levels)} ELSE 1 END"
        if kind == 7:
            return f"coalesce({self.value(depth - 1, levels)}, {self.value(depth - 1, levels)})"
        if kind == 8:
            return f"row_number() OVER ({self.over(levels)})"
        if kind == 9:
            return f"({self.select(depth - 1, levels, width=1)[0]} LIMIT 1)"
        return f"{self.value(depth - 1, levels)} + {self.value(depth - 1, levels)}"

    def inner(self, depth: int, levels: Levels) -> str:
        text, outputs = self.select(depth - 1, levels, width=1)
        name = self.word()
        return f"SELECT {name}.{outputs[0]} AS x FROM ({text}) AS {name}"

    def column(self, levels: Levels) -> str:
        visible = [level for level in levels if level]
        if not visible or self.chance(0.05):
            return self.spelled(self.word())
        level = visible[0] if self.chance(0.75) else self.random.choice(visible)
        item = self.random.choice(level)
        name = self.spelled(self.random.choice(item.columns))
        if self.chance(0.4) and sum(column in other.columns for other in level for column in [name.lower()]) < 2:
            return name
        alias = self.spelled(item.alias, text=True)
        return f"{self.home}.{alias}.{name}" if item.table and self.chance(0.2) else f"{alias}.{name}"

    def odd(self, levels: Levels) -> str:
        """What only some database has: whole rows, columns written as calls, texts as names, row numbers."""
        items = [item for level in levels for item in level]
        if not items:
            return "1"
        item = self.random.choice(items)
        alias, column = self.spelled(item.alias), self.spelled(self.random.choice(item.columns))
        match self.engine:
            case "sqlite":
                choices = (f"'{item.alias}'.{column}", f"{alias}.'{column.strip(MARKS)}'", f"{alias}.rowid", "rowid")
            case "postgres":
                choices = (
                    f"({alias}).{column}",
                    f"{column}({alias})",
                    f"(SELECT count({alias}))",
                    f"({alias}.*)::text::int",
                    f"jsonb_array_length(to_jsonb({alias}))",
                    f"{alias}.tableoid::int",
                    f"(SELECT ({alias}).{column})",
                    f"({alias} IS NULL)::int",
                )
            case "trino":
                name = self.word()
                choices = (
                    f"reduce(ARRAY[1], 0, ({name}, x) -> {name} + {column}, x -> x)",
                    f"CAST(ROW({alias}.{column}) AS ROW({name} integer)).{name}",
                    f"element_at(transform(ARRAY[{column}], {name} -> {name} + {self.column(levels)}), 1)",
                )
        return self.random.choice(choices)

    # Words

    def word(self) -> str:
        return self.random.choice(WORDS)

    def spelled(self, name: str, *, text: bool = False) -> str:
        """A name in one of its spellings; `text`: where SQLite takes a text for a name."""
        kind = self.random.randrange(12)
        if kind == 0:
            return f'"{name}"'
        if kind == 1:
            return name.upper()
        if kind == 2 and self.engine == "sqlite":
            return self.random.choice((f"[{name}]", f"`{name}`", f"'{name}'" if text else name))
        return name

    def chance(self, share: float) -> bool:
        return self.random.random() < share


MARKS = "'\"`[]"


def query(random: Random, engine: Engine, tables: Schema, home: str) -> str:
    """Return a random query over `tables`, which are in the schema `home`."""
    return Maker(random, engine, tables, home).query(random.choice((1, 2, 2, 3)))[0]
