"""Ossie (OSI) semantic models, versions 0.1 and 0.2: descriptions, synonyms, keys, metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.meaning.values import ColumnText, Meaning, Note, TableText, WrittenKey, WrongFile

_PLAIN = re.compile(r'["`\[]?(\w[\w$]*)["`\]]?')
_NAME = re.compile(r'(?:"[^"]+"|`[^`]+`|[\w$-]+)(?:\.(?:"[^"]+"|`[^`]+`|[\w$-]+)){0,2}')
_PATH = re.compile(r"\$(?P<path>[\w.\[\]]*)")
FIRST = "ANSI_SQL"


class _Context(msgspec.Struct):
    instructions: str = ""
    synonyms: list[str] = []


class _Written(msgspec.Struct, frozen=True):
    dialect: str = ""
    expression: str = ""


class _Expression(msgspec.Struct, frozen=True):
    dialects: tuple[_Written, ...] = ()

    def __str__(self) -> str:
        """Return the expression in standard SQL, or else in the first dialect that has one."""
        plain = [each.expression for each in self.dialects if each.dialect == FIRST]
        return next(iter([*plain, *(each.expression for each in self.dialects)]), "")


class _Field(msgspec.Struct):
    name: str
    expression: _Expression = _Expression()
    description: str | None = None
    label: str | None = None
    ai_context: _Context | str | None = None


class _Metric(msgspec.Struct):
    name: str
    expression: _Expression = _Expression()
    description: str | None = None
    ai_context: _Context | str | None = None


class _Source(msgspec.Struct):
    """A source that is written as an object: a relation of a catalog has an identifier; files and queries have none."""

    identifier: str = ""

    def __str__(self) -> str:
        """Return the relation's name, if there is one."""
        return self.identifier


class _Dataset(msgspec.Struct):
    name: str
    source: _Source | str
    primary_key: list[str] = []
    description: str | None = None
    ai_context: _Context | str | None = None
    fields: list[_Field] = []
    metrics: list[_Metric] = []


class _Relationship(msgspec.Struct):
    origin: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    from_columns: list[str] = []
    to_columns: list[str] = []


class _Model(msgspec.Struct):
    name: str
    description: str | None = None
    ai_context: _Context | str | None = None
    datasets: list[_Dataset] = []
    relationships: list[_Relationship] = []
    metrics: list[_Metric] = []


class _Document(msgspec.Struct):
    semantic_model: list[_Model]
    version: str | float = "0.1"


def is_model(document: Mapping[str, Any]) -> bool:
    """Return whether a document is an Ossie model."""
    return "semantic_model" in document


def read_yaml(text: str, name: str) -> Meaning:
    """Return the contents of a YAML file. Raises `WrongFile`."""
    import yaml  # only for those who have such files

    try:
        document: Any = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise WrongFile(line, f"this is no YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError):  # to YAML 2024-13-45 is a date, although there is no such day
        raise WrongFile(1, "this is no YAML") from None
    if not isinstance(document, dict) or not is_model(document):  # pyright: ignore
        raise WrongFile(1, "there is no semantic_model", "Ossie files begin with `semantic_model:`.")
    try:
        return read(document, name)
    except msgspec.ValidationError as error:
        found = _PATH.search(str(error))
        raise WrongFile(_line_of(text, found["path"] if found else ""), str(error).rstrip(".")) from None


def _line_of(text: str, path: str) -> int:
    """Return the line of a place such as `.semantic_model[0].datasets[1].source`, or of the nearest one around it."""
    import yaml

    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 1
    for key, index in re.findall(r"\.(\w+)|\[(\d*)\]", path):
        if isinstance(node, yaml.MappingNode) and key:
            found = [(name, value) for name, value in node.value if name.value == key]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and index.isdigit() and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line + 1
    return line


def read(document: Any, name: str) -> Meaning:
    """Return the contents of a document. Raises `WrongFile` and `msgspec.ValidationError`."""
    read = msgspec.convert(document, _Document)
    if not str(read.version).startswith(("0.1", "0.2")):
        raise WrongFile(1, f"version {read.version} of Ossie is not known", "Known: 0.1 and 0.2.")
    return Meaning.join([_model(model, name) for model in read.semantic_model])


def _model(model: _Model, name: str) -> Meaning:
    places = {dataset.name: _place(str(dataset.source)) for dataset in model.datasets}
    tables = (_table(dataset, model, places, name) for dataset in model.datasets)
    instructions = [model.ai_context, *(dataset.ai_context for dataset in model.datasets)]
    metrics = [*model.metrics, *(metric for dataset in model.datasets for metric in dataset.metrics)]
    return Meaning(
        about=" ".join((model.description or "").split()),
        tables=tuple(table for table in tables if table.name),
        notes=(
            *(Note("convention", text) for context in instructions if (text := _instructions(context))),
            *_list_computed(model.datasets),
            *(_metric(metric) for metric in metrics),
        ),
    )


def _place(source: str) -> tuple[str, ...]:
    """Return the name of the relation of a dataset; empty if the dataset is a query."""
    return tuple(part.strip('"`') for part in source.split(".")) if _NAME.fullmatch(source.strip()) else ()


def _table(dataset: _Dataset, model: _Model, places: Mapping[str, tuple[str, ...]], file: str) -> TableText:
    keys = tuple(
        WrittenKey(_lower(each.from_columns), places[each.target], _lower(each.to_columns))
        for each in model.relationships
        if each.origin == dataset.name and places.get(each.target) and len(each.from_columns) == len(each.to_columns)
    )
    columns = {column.casefold(): ColumnText(_write_text(each)) for each in dataset.fields if (column := _column(each))}
    return TableText(
        places[dataset.name], _write_text(dataset), MappingProxyType(columns), _lower(dataset.primary_key), keys, file
    )


def _lower(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.casefold() for name in names)


def _column(field: _Field) -> str:
    """Return the column of a field; empty if the field is computed."""
    written = str(field.expression) or field.name
    found = _PLAIN.fullmatch(written.strip())
    return found[1] if found else ""


def _list_computed(datasets: Iterable[_Dataset]) -> Iterator[Note]:
    """Yield a note with the formula of each field that is not a column."""
    for dataset in datasets:
        for each in dataset.fields:
            if not _column(each):
                told = "; ".join(text for text in (_write_text(each), f"{each.expression} of {dataset.name}") if text)
                yield Note("term", told, each.name)


def _metric(metric: _Metric) -> Note:
    told = "; ".join(text for text in (_write_text(metric), str(metric.expression)) if text)
    return Note("metric", told, metric.name)


def _write_text(thing: _Dataset | _Field | _Metric) -> str:
    """Return a description with its synonyms."""
    said = [" ".join((thing.description or "").split())]
    context = thing.ai_context
    if isinstance(context, _Context) and context.synonyms:
        said.append(f"also called {', '.join(context.synonyms)}")
    if isinstance(context, str):
        said.append(" ".join(context.split()))
    return "; ".join(text for text in said if text)


def _instructions(context: _Context | str | None) -> str:
    return " ".join(context.instructions.split()) if isinstance(context, _Context) else ""
