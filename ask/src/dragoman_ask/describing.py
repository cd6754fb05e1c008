"""`dragoman learn --describe`: the model describes what nobody has described, and people review it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec
from dragoman.catalog import Insight
from dragoman.catalog.insight import is_complete
from dragoman.config import ModelSettings
from dragoman.errors import ConfigurationError, DragomanError
from dragoman.gateway import Gateway
from dragoman.gateway.asking import Question
from dragoman.gateway.emptiness import is_empty
from dragoman.gateway.opened import OpenDatabase
from dragoman.meaning import Example
from dragoman.model import LOCAL, ColumnProfile, Table, TableColumn

from dragoman_ask.budgets import Budgets
from dragoman_ask.described_file import DescribedFile, NewText, names_of
from dragoman_ask.linking import link, tell
from dragoman_ask.models import Message, Model, ReplyT
from dragoman_ask.prompts import Prompts
from dragoman_ask.providers import make_model
from dragoman_ask.session import Session

EXAMPLES = 5
"""The number of example questions that are asked for."""
UNIQUE = 0.5
"""A column with more different values than this share of its rows is not a list of kinds."""
_log = logging.getLogger(__name__)


class ColumnText(msgspec.Struct, forbid_unknown_fields=True):
    """The meaning of a column; empty if its name says everything."""

    name: str
    description: str


class Kinds(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the values of a column are a fixed list of kinds, and why."""

    name: str
    fixed: bool
    reason: str


class Described(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a table."""

    description: str
    columns: list[ColumnText]
    kinds: list[Kinds]


class ExampleText(msgspec.Struct, forbid_unknown_fields=True):
    """A question and its query."""

    question: str
    sql: str


class Overview(msgspec.Struct, forbid_unknown_fields=True):
    """The description of a database, and questions that it can answer."""

    description: str
    examples: list[ExampleText]


@dataclass(slots=True)
class Learned:
    """The number of descriptions, and of examples that were dropped because they failed."""

    tables: int = 0
    columns: int = 0
    examples: int = 0
    dropped: int = 0


class Describer:
    """Describes one database. The model sees only what `send` allows. The caller is the local one."""

    def __init__(self, gateway: Gateway, name: str, settings: ModelSettings, path: Path, model: Model) -> None:
        self._gateway = gateway
        self._opened: OpenDatabase = gateway.database(name)
        self._settings = settings
        self._model = model
        self._prompts = Prompts(gateway.configuration.server.prompts_dir)
        self._budgets = Budgets(settings)
        self._file = DescribedFile(path, name, f"{settings.name}, {date.today().isoformat()}")
        self.learned = Learned()

    async def run(self, advance: Callable[[int], None]) -> Learned:
        """Describe what nobody has described. The file is written after every table.

        Raises errors that stop all of it.
        """
        tables = (await self._opened.catalog.snapshot()).listed
        for table in tables:
            await self._describe(table)
            advance(1)
        await self._overview()
        self._file.write()
        return self.learned

    async def _describe(self, table: Table) -> None:
        name = self._opened.catalog.namespace.name(table.relation).replace('"', "")
        known = names_of(self._file.meaning())
        told = known.get(name.casefold(), frozenset())
        silent = self._file.silent_columns(name)
        columns = [
            each
            for each in table.columns
            if _lacks(each) and each.name.casefold() not in told and each.name not in silent
        ]
        wanted = not table.comment and name.casefold() not in known
        if not (wanted or columns) or _is_odd(table):
            return
        insight = (await self._opened.insights([table]))[table.relation]
        candidates = {} if self._settings.send == "schema" else _candidates(table, columns, insight)
        lists = {"columns": [column.name for column in columns], "kinds": list(candidates)}
        described = await self._ask(Described, "describe", [table], lists)
        self._add(name, described, columns, candidates, wanted=wanted)

    def _add(
        self,
        name: str,
        told: Described,
        columns: Sequence[TableColumn],
        candidates: Mapping[str, ColumnProfile],
        *,
        wanted: bool,
    ) -> None:
        asked = [column.name for column in columns]
        texts = {
            each.name: each.description for each in told.columns if each.name in asked and each.description.strip()
        }
        kinds = [each for each in told.kinds if each.name in candidates]
        values: dict[str, Sequence[str]] = {each.name: candidates[each.name].values for each in kinds if each.fixed}
        new = NewText(
            description=told.description if wanted else "",
            columns=texts,
            values=values,
            verdicts={each.name: _verdict(each) for each in kinds},
            silent=[name for name in asked if name not in texts and name not in values],
        )
        self._file.add_table(name, new)
        self._file.write()
        self.learned.tables += bool(new.description)
        self.learned.columns += len(texts.keys() | values.keys())

    async def _overview(self) -> None:
        """Add the description of the database, and examples, if there are none."""
        meaning = self._file.meaning()
        wants_about = not (self._opened.config.description or meaning.about)
        if not wants_about and (meaning.examples or await self._opened.written.examples()):
            return
        told = await self._ask(Overview, "overview", None, {}, count=str(EXAMPLES))
        if wants_about and told.description.strip():
            self._file.add_about(told.description)
        if not meaning.examples:
            for example in told.examples[:EXAMPLES]:
                await self._try(example)

    async def _try(self, example: ExampleText) -> None:
        """Add an example if its query runs and finds something."""
        sql = example.sql.strip().rstrip(";")
        try:
            result = await self._gateway.query(self._opened.config.name, sql, limit=1, principal=LOCAL, tool="ask")
        except DragomanError as error:
            _log.info("an example is dropped: %s", error.message)
            self.learned.dropped += 1
            return
        if is_empty(result) or "```" in sql or not example.question.strip():
            self.learned.dropped += 1
            return
        self._file.add_example(Example(example.question, sql))
        self.learned.examples += 1

    async def _ask(
        self,
        kind: type[ReplyT],
        prompt: str,
        tables: Sequence[Table] | None,
        lists: Mapping[str, Sequence[str]],
        **values: str,
    ) -> ReplyT:
        """Ask the model about tables, or about the database. Each reply gets one record in the audit.

        `lists`: names that others chose, which stand in the prompt between marks.
        """
        name, send = self._opened.config.name, self._settings.send
        spending = self._budgets.begin(LOCAL)
        async with self._gateway.call("ask", LOCAL, name) as record:
            record.model_use = spending.use
            session = Session(
                self._gateway, record, Question(text="", database=name), self._model, self._prompts, spending
            )
            text = (
                (await link(self._opened, "", send)).text if tables is None else await tell(self._opened, tables, send)
            )
            names = {name: session.fence.around(", ".join(each), name) for name, each in lists.items()}
            schema = session.fence.around(text, "schema")
            filled = session.fill(prompt, schema=schema, dialect=self._opened.dialect.name, **names, **values)
            return await session.ask([Message("user", filled)], kind)


def _verdict(kinds: Kinds) -> str:
    return f"holds {'' if kinds.fixed else 'no '}fixed list of values: {kinds.reason}"


def _lacks(column: TableColumn) -> bool:
    return not column.comment and "`" not in column.name


def _is_odd(table: Table) -> bool:
    """Return whether a table's name cannot be a heading."""
    relation = table.relation
    return any(set(part) & set('."`') for part in (relation.name, relation.schema, relation.catalog) if part)


def _candidates(table: Table, columns: Sequence[TableColumn], insight: Insight) -> dict[str, ColumnProfile]:
    """Return the columns whose values may be a fixed list: all of them known and harmless, each in several rows."""
    keys = {name for key in table.foreign_keys for name in key.columns} | {*table.primary_key}
    found: dict[str, ColumnProfile] = {}
    for column in columns:
        profile = insight.profiles.get(column.name)
        if profile is None or not profile.values or column.enum or column.name in keys or not is_complete(profile):
            continue
        if profile.distinct and profile.rows and profile.distinct / profile.rows > UNIQUE:
            continue
        if not any(set(value) & set("{}|\n") for value in profile.values):
            found[column.name] = profile
    return found


async def describe(gateway: Gateway, name: str, path: Path, advance: Callable[[int], None]) -> list[str]:
    """Describe a database into a file. Return the messages for the person who asked for it.

    Raises `ConfigurationError` if no model is configured, `ModelError`, `QuotaExceeded`. The file then has what was
    described before.
    """
    settings = gateway.configuration.model
    if settings is None:
        raise ConfigurationError("No model is configured.", suggestion='Add [model] with name = "provider:model".')
    model = make_model(settings)
    try:
        describer = Describer(gateway, name, settings, path, model)
        learned = await describer.run(advance)
    finally:
        await model.aclose()
    files = gateway.configuration.databases[name].knowledge.files
    dropped = f", {learned.dropped} examples dropped" if learned.dropped else ""
    lines = [
        f"{name}: {learned.tables} tables, {learned.columns} columns and {learned.examples} examples written to"
        f" {path.name}{dropped}"
    ]
    if path.absolute() not in {(gateway.configuration.databases[name].folder / file).absolute() for file in files}:
        lines.append(f"Read it, correct it, and name it in databases.{name}.knowledge.files.")
    return lines
