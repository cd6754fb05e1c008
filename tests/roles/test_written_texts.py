"""Whatever people wrote about a database: callers who see a part of it are told nothing of the rest, by any surface.

Schemas, grants, comments and files are made up. Everything hidden has a name or a value from a list of stones, so that
one of them in any answer is a leak; texts of what is seen name trees, and some name stones as well.
"""

import json
import random
import re
import sqlite3
import sys
import unicodedata
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.tools import Toolbox
from dragoman.tools.surfaces import Surfaces
from dragoman.tools.surfaces.completing import complete

from .conftest import ANALYST

TREES = "alder birch cedar elm fir hazel larch maple oak poplar rowan willow".split()
STONES = "agate beryl garnet jasper malachite obsidian opal quartz ruby topaz turquoise zircon".split()
SHOP = """
[databases.shop]
url = "sqlite:///shop.db"
[databases.shop.knowledge]
files = ["shop.md", "manifest.json"]
"""
POLICY = """
from dataclasses import dataclass
from dragoman import PolicyPlugin, Restriction, Restrictor

DENIED = {denied}

@dataclass(frozen=True)
class Part(Restrictor):
    def restrict(self, table, dialect):
        denied = DENIED.get(table.relation.name)
        if denied is None:
            return Restriction(hidden=True)
        return Restriction(filter="tenant = 'a'", hidden_columns=frozenset(denied))

class Parting(PolicyPlugin):
    def restrictor(self, database, principal):
        return Part()

plugin = Parting()
"""
WRITINGS = (
    str,
    str.title,
    str.upper,
    lambda name: name.replace("_", " "),
    lambda name: f"{name}s",
    lambda name: name.replace("_", ""),
    lambda name: name.title().replace("_", ""),
    lambda name: name[:3].title() + name[3:].title(),
    lambda name: "\u00ad".join((name[:3], name[3:])),
    lambda name: "".join(chr(ord(letter) + 0xFEE0) if letter != "_" else letter for letter in name),
)
"""How a text may write a name, up to invisible hyphens and wide letters."""


@dataclass
class Made:
    """A table, the columns that are denied, and what is written of it and of its columns."""

    name: str
    columns: list[str]
    denied: list[str] = field(default_factory=list)
    about: str = ""
    texts: dict[str, str] = field(default_factory=dict)


class Maker:
    """Makes a database of which a role sees a part, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        trees, stones = self._names(TREES), self._names(STONES)
        # The first name of stones is a denied column's, the last two are of tables that nobody grants.
        self.seen = [Made(next(trees), [next(trees) for _ in range(3)], [next(stones)]) for _ in range(2)]
        self.hidden = [Made(next(stones), [next(stones)]) for _ in range(2)]
        self.secrets = (
            [made.name for made in self.hidden]
            + [name for made in self.seen for name in made.denied]
            + [name for made in self.hidden for name in made.columns]
        )
        for made in (*self.seen, *self.hidden):
            made.about = self._text()
            made.texts = {name: self._text() for name in (*made.columns, *made.denied)}

    def _names(self, words: Sequence[str]) -> Iterator[str]:
        """Names of one or two words; no word is of two names."""
        left = self.random.sample(words, len(words))
        while left:
            two = len(left) > 8 and self.random.random() < 0.5
            yield "_".join(left.pop() for _ in range(2 if two else 1))

    def _text(self) -> str:
        """A sentence that names one thing, seen or hidden."""
        open_ = [made.name for made in self.seen]
        name = self.random.choice(self.secrets if self.random.random() < 0.6 else open_)
        return f"As it is in {self.random.choice(WRITINGS)(name)}, written down."

    def sql(self) -> Iterator[str]:
        """The tables, rows of a tenant that is seen and of one that is not."""
        for made in (*self.hidden, *self.seen):
            others = ", ".join(f"{name} TEXT DEFAULT ('' /* {made.about} */)" for name in (*made.columns, *made.denied))
            refers = f", up INTEGER REFERENCES {self.hidden[0].name} (id)" if made in self.seen else ""
            yield f"CREATE TABLE {made.name} (id INTEGER PRIMARY KEY, tenant TEXT, {others}{refers})"
            for number in range(60):
                tenant = "ab"[number % 2] if made in self.seen else "b"
                words = [TREES[number % 4] if tenant == "a" else STONES[number % 3] for _ in made.columns]
                row = [tenant, *words, *(STONES[number % 4] for _ in made.denied)]
                columns = ", ".join(("tenant", *made.columns, *made.denied))
                yield f"INSERT INTO {made.name} ({columns}) VALUES ({', '.join(map(repr, row))})"
        for made in self.seen:
            of, condition = f"id /* {made.about} */ FROM {made.name}", f"{made.denied[0]} > ''"
            yield f"CREATE VIEW {made.name}_view AS SELECT {of} WHERE {condition}"
        below = self.hidden[1]
        yield f"CREATE VIEW {below.name}_view AS SELECT {below.columns[0]} FROM {below.name}"

    def role(self) -> str:
        """A role over what is seen."""
        lines = ["[roles.analyst]", 'groups = ["analysts"]']
        for made in self.seen:
            lines += ["[[roles.analyst.grants]]", 'database = "shop"', f'tables = ["main.{made.name}"]']
            lines += [f"deny_columns = {json.dumps(made.denied)}", 'filter = "tenant = $claim.tenant"']
            lines += ["[[roles.analyst.grants]]", 'database = "shop"', f'tables = ["main.{made.name}_view"]']
        return "\n".join(lines)

    def policy(self) -> str:
        """The module of a policy that leaves the same."""
        return POLICY.format(denied={made.name: made.denied for made in self.seen})

    def markdown(self) -> str:
        """Everything a file may say of the whole database and of its tables."""
        secret, column = self.hidden[0].name, self.hidden[0].columns[0]
        lines = [f"# Shop\n\nOf {secret}.\n", "## Glossary", f"- **{column}**: a word"]
        lines += ["## Metrics", f"- **all**: `sum({column})`", "## Conventions", f"- {secret} first", "## Tables"]
        for made in (self.seen[0], self.hidden[0]):
            lines += [f"### {made.name}", made.about]
            lines += [f"- `{name}`: {text}" for name, text in made.texts.items()]
        example = f"SELECT {column} FROM {secret}"
        return "\n".join([*lines, "## Examples", f"### What {column} is there?", "```sql", example, "```", ""])

    def manifest(self) -> str:
        """The other tables as models of dbt, with tests that tell values and keys."""
        nodes: dict[str, Any] = {}
        for made in (self.seen[1], self.hidden[1]):
            columns = {name: {"name": name, "description": text} for name, text in made.texts.items()}
            facts = {"name": made.name, "schema": "main", "description": made.about, "columns": columns}
            nodes[f"model.{made.name}"] = {"resource_type": "model", **facts}
            for name in made.denied:
                nodes[f"test.{name}"] = _test(made.name, name, "accepted_values", {"values": [STONES[0]]})
        of, to = self.seen[1].name, self.hidden[1].name
        kept = {"field": "id", "to": f"ref('{to}')"}
        nodes["test.up"] = _test(of, "up", "relationships", kept, f"model.{to}")
        version = {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json"}
        metric = {"name": self.hidden[1].columns[0], "description": "secret"}
        return json.dumps({"metadata": version, "nodes": nodes, "metrics": {"m": metric}})


def _test(table: str, column: str, name: str, arguments: dict[str, Any], *upon: str) -> dict[str, Any]:
    own = f"model.{table}"
    return {
        "resource_type": "test",
        "attached_node": own,
        "column_name": column,
        "test_metadata": {"name": name, "kwargs": {**arguments, "column_name": column}},
        "depends_on": {"nodes": [own, *upon]},
    }


@asynccontextmanager
async def opened(made: Maker, folder: Path, by: str) -> AsyncIterator[Toolbox]:
    with sqlite3.connect(folder / "shop.db") as connection:
        for statement in made.sql():
            connection.execute(statement)
    connection.close()
    (folder / "shop.md").write_text(made.markdown())
    (folder / "manifest.json").write_text(made.manifest())
    (folder / "dragoman.toml").write_text(SHOP + (made.role() if by == "role" else ""))
    with pytest.MonkeyPatch.context() as patched:
        if by == "policy":
            (folder / "parting.py").write_text(made.policy())
            info = folder / "dragoman_parting-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-parting\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text("[dragoman.policies]\nparting = parting:plugin\n")
            patched.syspath_prepend(folder)
        async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
            yield Toolbox(gateway, profile="full")
    sys.modules.pop("parting", None)


def calls(made: Maker) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls of every tool that tells of a schema, by names that are seen."""
    one, other = (table.name for table in made.seen)
    for name in ("list_databases", "list_schemas", "list_tables", "server_info", "read_resource"):
        yield name, {}
    for query in ("", "written down", "secret", "word", "b", one, made.seen[0].columns[0], *TREES[:4]):
        yield "search_catalog", {"query": query}
        yield "search_catalog", {"query": query, "kinds": ["value", "column", "table"]}
    for form in ("sql", "mermaid", "json"):
        yield "read_schema", {"format": form}
    yield "find_join_path", {"from_table": one, "to_table": other}
    for table in made.seen:
        for detail in ("compact", "full"):
            yield "describe_table", {"table_name": [table.name, f"{table.name}_view"], "detail": detail}
        yield "get_foreign_keys", {"table_name": table.name}
        yield "get_sample_rows", {"table_name": table.name}
        yield "get_row", {"table_name": table.name, "key": 1}
        yield "get_row", {"table_name": table.name, "key": 2}  # the other tenant's
        for condition in ("1 = 1", f"{table.columns[0]} = 'Alder'", f"{table.columns[0]} = 'ash'", "id < 0"):
            yield "execute_query", {"sql": f"SELECT * FROM {table.name} WHERE {condition}"}
        yield "explain_query", {"sql": f"SELECT * FROM {table.name}"}


async def told(made: Maker, tools: Toolbox) -> AsyncIterator[tuple[str, str]]:
    """Everything that the caller is told, and by what."""
    for name, arguments in calls(made):
        yield f"{name} {arguments}", (await tools.call(name, arguments, principal=ANALYST)).text
    surfaces = Surfaces(tools.gateway)
    listed = await surfaces.resources(ANALYST)
    yield "resources", repr(listed)
    for uri in (*(each.uri for each in listed), *(f"schema://shop/main/{table.name}" for table in made.seen)):
        text = (await surfaces.read(uri, ANALYST)).text
        assert isinstance(text, str)
        yield uri, text
    for argument in ("database", "schema", "table", "query", "result", "what"):
        given = {"database": "shop", "schema": "main"}
        yield f"complete {argument}", repr(await complete(surfaces, ANALYST, argument, "", given, None))


def leaks(answer: str) -> list[str]:
    letters = re.sub(r"[^a-z]", "", unicodedata.normalize("NFKC", answer).lower())
    return [stone for stone in STONES if stone in letters]


async def check(seed: int, folder: Path, by: str) -> int:
    """Return how many texts of what is seen were told; fails where a stone was."""
    made = Maker(seed)
    found: list[str] = []
    async with opened(made, folder, by) as tools:
        async for what, answer in told(made, tools):
            found.append(answer)
            assert not leaks(answer), (seed, what, leaks(answer), answer)
    return sum("written down" in answer for answer in found)


@pytest.mark.parametrize("by", ["role", "policy"])
@pytest.mark.parametrize("seed", range(4))
async def test_no_text_tells_of_what_is_hidden(seed: int, by: str, tmp_path: Path):
    await check(seed, tmp_path, by)


async def test_texts_of_what_is_seen_alone_are_told(tmp_path: Path):
    assert await check(0, tmp_path, "role") > 5


@pytest.mark.nightly
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("by", ["role", "policy"])
@pytest.mark.parametrize("seed", range(100, 300))
async def test_no_text_tells_of_what_is_hidden_in_many_databases(seed: int, by: str, tmp_path: Path):
    await check(seed, tmp_path, by)
