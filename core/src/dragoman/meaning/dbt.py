"""dbt's artifacts: descriptions, tests that imply values and keys, metrics. Reads some 15 of hundreds of fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.meaning.values import ColumnText, Meaning, Note, TableText, WrittenKey

RELATIONS = frozenset({"model", "seed", "snapshot", "source"})


class _Column(msgspec.Struct):
    name: str = ""
    description: str | None = None
    comment: str | None = None


class _Depends(msgspec.Struct):
    nodes: list[str] = []


class _TestMetadata(msgspec.Struct):
    name: str = ""
    kwargs: dict[str, Any] = {}


class _Config(msgspec.Struct):
    where: str | None = None
    enabled: bool = True
    severity: str | None = None


class _Node(msgspec.Struct):
    """A model, a seed, a snapshot, a source, or a test of one of them."""

    resource_type: str = ""
    name: str = ""
    database: str | None = None
    schema: str | None = None
    alias: str | None = None
    identifier: str | None = None
    description: str | None = None
    columns: dict[str, _Column] = {}
    primary_key: list[str] | None = None
    column_name: str | None = None
    attached_node: str | None = None
    test_metadata: _TestMetadata | None = None
    depends_on: _Depends | None = None
    config: _Config | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """The relation's name in the project."""
        parts = (self.database, self.schema, self.identifier or self.alias or self.name)
        return tuple(part for part in parts if part)


class _Measure(msgspec.Struct):
    name: str = ""
    agg: str = ""
    expr: str | int | None = None
    description: str | None = None


class _SemanticModel(msgspec.Struct):
    name: str = ""
    description: str | None = None
    measures: list[_Measure] = []


class _Named(msgspec.Struct):
    name: str = ""


class _MetricParams(msgspec.Struct):
    measure: _Named | str | None = None
    numerator: _Named | str | None = None
    denominator: _Named | str | None = None
    expr: str | int | None = None


class _Filter(msgspec.Struct):
    where_sql_template: str = ""


class _Filters(msgspec.Struct):
    where_filters: list[_Filter] = []


class _Metric(msgspec.Struct):
    name: str = ""
    label: str | None = None
    description: str | None = None
    type: str | None = None
    type_params: _MetricParams | None = None
    filter: _Filters | str | None = None


class _Manifest(msgspec.Struct):
    nodes: dict[str, _Node] = {}
    sources: dict[str, _Node] = {}
    metrics: dict[str, _Metric] = {}
    semantic_models: dict[str, _SemanticModel] = {}


class _Semantic(msgspec.Struct):
    metrics: list[_Metric] = []
    semantic_models: list[_SemanticModel] = []


class _CatalogFacts(msgspec.Struct):
    name: str = ""
    schema: str | None = None
    database: str | None = None
    comment: str | None = None


class _CatalogTable(msgspec.Struct):
    metadata: _CatalogFacts
    columns: dict[str, _Column] = {}


class _Catalog(msgspec.Struct):
    nodes: dict[str, _CatalogTable] = {}
    sources: dict[str, _CatalogTable] = {}


def _version(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("dbt_schema_version", "")) if isinstance(metadata, dict) else ""  # pyright: ignore


def is_manifest(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a manifest.json."""
    return "/dbt/manifest/" in _version(document)


def is_catalog(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a catalog.json."""
    return "/dbt/catalog/" in _version(document)


def is_semantic(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a semantic_manifest.json."""
    return document.keys() >= {"semantic_models", "metrics", "project_configuration"}


def read_manifest(document: Any, name: str) -> Meaning:
    """Return the contents of a manifest. Raises `msgspec.ValidationError`."""
    manifest = msgspec.convert(document, _Manifest)
    nodes = {**manifest.nodes, **manifest.sources}
    relations = {key: node for key, node in nodes.items() if node.resource_type in RELATIONS and node.place}
    tests: dict[str | None, list[_Node]] = {}
    for node in nodes.values():
        if node.resource_type == "test" and _counts(node):
            tests.setdefault(_relation_of(node, relations), []).append(node)
    tables = tuple(_table(node, relations, tests.get(key, ()), name) for key, node in relations.items())
    return Meaning(tables=tables, notes=_metrics(manifest.metrics.values(), manifest.semantic_models.values()))


def _counts(test: _Node) -> bool:
    """Return whether a test applies to all rows. A test that only warns lets wrong rows stay."""
    config = test.config or _Config()
    warns = (config.severity or "").casefold() == "warn"
    return test.test_metadata is not None and config.enabled and not config.where and not warns


def _table(node: _Node, relations: Mapping[str, _Node], own: Sequence[_Node], name: str) -> TableText:
    values = {_column_of(test): _values(test) for test in own if _is(test, "accepted_values")}
    columns = {name.casefold(): ColumnText(_line(column.description)) for name, column in node.columns.items()}
    for column, told in values.items():
        columns[column] = ColumnText(columns.get(column, ColumnText()).description, told)
    return TableText(
        node.place,
        _line(node.description),
        MappingProxyType(columns),
        tuple(node.primary_key or _unique(own)),
        tuple(_keys(own, relations)),
        name,
        optional=True,
    )


def _relation_of(test: _Node, relations: Mapping[str, _Node]) -> str | None:
    """Return the relation that a test is about. Manifests before v11 list only its dependencies, the relation last."""
    if test.attached_node:
        return test.attached_node
    upon = [node for node in (test.depends_on or _Depends()).nodes if node in relations]
    return upon[-1] if upon else None


def _is(test: _Node, name: str) -> bool:
    return test.test_metadata is not None and test.test_metadata.name == name


def _arguments(test: _Node) -> Mapping[str, Any]:
    given = test.test_metadata.kwargs if test.test_metadata else {}
    nested = given.get("arguments")
    return {**given, **nested} if isinstance(nested, dict) else given


def _column_of(test: _Node) -> str:
    return str(test.column_name or _arguments(test).get("column_name") or "").strip('"`').casefold()


def _values(test: _Node) -> tuple[str, ...]:
    values = _arguments(test).get("values")
    return tuple(map(str, values)) if isinstance(values, list) else ()  # pyright: ignore


def _unique(tests: Sequence[_Node]) -> list[str]:
    """Return the key: a column that is tested as unique and never null, if the project has exactly one."""
    unique = [_column_of(test) for test in tests if _is(test, "unique")]
    filled = {_column_of(test) for test in tests if _is(test, "not_null")}
    both = [column for column in dict.fromkeys(unique) if column in filled]
    return both if len(both) == 1 else []


def _keys(tests: Iterable[_Node], relations: Mapping[str, _Node]) -> Iterator[WrittenKey]:
    for test in tests:
        field = _arguments(test).get("field")
        if not _is(test, "relationships") or not isinstance(field, str):
            continue
        own = _relation_of(test, relations)
        upon = [node for node in (test.depends_on or _Depends()).nodes if node in relations]
        target = next((node for node in upon if node != own), own)
        if target is not None:
            yield WrittenKey((_column_of(test),), relations[target].place, (field.strip('"`').casefold(),))


def read_catalog(document: Any, name: str) -> Meaning:
    """Return the comments in a catalog. Raises `msgspec.ValidationError`."""
    catalog = msgspec.convert(document, _Catalog)
    tables = (*catalog.nodes.values(), *catalog.sources.values())
    return Meaning(tables=tuple(_read_cataloged(table, name) for table in tables if table.metadata.name))


def _read_cataloged(table: _CatalogTable, name: str) -> TableText:
    facts = table.metadata
    place = tuple(part for part in (facts.database, facts.schema, facts.name) if part)
    columns = {key.casefold(): ColumnText(_line(column.comment)) for key, column in table.columns.items()}
    return TableText(place, _line(facts.comment), MappingProxyType(columns), place=name, optional=True)


def read_semantic(document: Any, name: str) -> Meaning:
    """Return the metrics of a semantic manifest. Raises `msgspec.ValidationError`."""
    semantic = msgspec.convert(document, _Semantic)
    return Meaning(notes=_metrics(semantic.metrics, semantic.semantic_models))


def _metrics(metrics: Iterable[_Metric], models: Iterable[_SemanticModel]) -> tuple[Note, ...]:
    measures = {measure.name: (measure, model) for model in models for measure in model.measures}
    return tuple(_metric(metric, measures) for metric in metrics if metric.name)


def _metric(metric: _Metric, measures: Mapping[str, tuple[_Measure, _SemanticModel]]) -> Note:
    params = metric.type_params or _MetricParams()
    formula = _formula(params, measures)
    said = [_line(metric.description) or _line(metric.label), *([formula] if formula else [])]
    said += [f"where {text}" for text in _filters(metric.filter)]
    return Note("metric", "; ".join(each for each in said if each), metric.name)


def _formula(params: _MetricParams, measures: Mapping[str, tuple[_Measure, _SemanticModel]]) -> str:
    if params.numerator and params.denominator:
        return f"{_name(params.numerator)} / {_name(params.denominator)}"
    if params.measure is None:
        return str(params.expr or "")
    known = measures.get(_name(params.measure))
    if known is None:
        return _name(params.measure)
    measure, model = known
    return f"{measure.agg}({measure.expr or measure.name}) of {model.name}"


def _name(named: _Named | str) -> str:
    return named if isinstance(named, str) else named.name


def _filters(filters: _Filters | str | None) -> Iterator[str]:
    texts = (
        [filters]
        if isinstance(filters, str)
        else [each.where_sql_template for each in filters.where_filters]
        if filters
        else []
    )
    yield from (_line(text) for text in texts if text)


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
