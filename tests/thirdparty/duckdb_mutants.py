"""Careless variants of the DuckDB example, made systematically: each changes one thing of a good dialect.

pytest loads this as a plugin (`-p duckdb_mutants`) in a process of its own; `DUCKDB_MUTANT` names the variant.
"""

import dataclasses
import decimal
import importlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

Change = Callable[[Any], Any]
MUTANTS: dict[str, Callable[[], None]] = {}


def of_the_example(module: str) -> Any:
    """A module of the example's: type checkers know the workspace's own distribution of that name."""
    return importlib.import_module(module)


def flat(items: list[Any]) -> list[Any]:
    return [inner for item in items for inner in (item if isinstance(item, list) else [item])]


# Values: what careless drivers make of each type, at any depth

VALUES: dict[type, dict[str, Change]] = {
    str: {
        "stripped": str.strip,
        "of_255": lambda text: text[:255],
        "of_ascii": lambda text: text.encode("ascii", "replace").decode(),
        "null_when_empty": lambda text: text or None,
        "unseen_dropped": lambda text: "".join(c for c in text if c.isprintable() or c in "\r\n\t"),
        "read_as_json": lambda text: json.dumps(json.loads(text)) if text[:1] == "{" else text,
        "of_one_blank": lambda text: " ".join(text.split()),
        "without_fractions": lambda text: re.sub(r"(:\d\d)\.\d+", r"\1", text),
        "of_short_years": lambda text: re.sub(r"^0+(\d+-\d\d-\d\d)", r"\1", text),
        "as_boolean": lambda text: {"true": True, "false": False}.get(text, text),
    },
    int: {
        "as_float": lambda number: float(number) if abs(number) > 2**53 else number,
        "of_63_bits": lambda n: n % 2**63,
    },
    float: {
        "of_6_digits": lambda number: float(f"{number:.6g}"),
        "of_15_digits": lambda number: float(f"{number:.15g}"),
        "of_16_digits": lambda number: float(f"{number:.16g}"),
        "of_32_bits": lambda number: struct.unpack("f", struct.pack("f", number))[0] if abs(number) < 1e38 else number,
        "flushed": lambda number: 0.0 if abs(number) < 2.3e-308 else number,
        "unsigned_zero": lambda number: number + 0.0,
        "finite": lambda number: number if abs(number) < float("inf") else None,
    },
    decimal.Decimal: {
        "as_float": float,
        "normal": lambda n: n.normalize(),
        "as_int": lambda n: int(n) if n == int(n) else n,
        "of_the_context": lambda n: +n,
    },
    bytes: {
        "as_text": lambda data: data.decode("latin-1"),
        "as_hex": bytes.hex,
        "up_to_zero": lambda d: d.split(b"\0")[0],
        "of_2000": lambda d: d[:2000],
        "without_zeros_at_the_end": lambda d: d.rstrip(b"\0"),
    },
    list: {
        "flat": flat,
        "distinct": lambda items: list({str(item): item for item in items}.values()),
        "null_when_empty": lambda items: items or None,
        "as_text": str,
        "without_nulls": lambda items: [item for item in items if item is not None],
    },
    dict: {
        "in_lower_case": lambda d: {str(k).lower(): v for k, v in d.items()},
        "without_names": lambda entries: tuple(entries.values()),
        "as_text": str,
    },
    type(None): {"as_text": lambda _: "", "as_zero": lambda _: 0},
}


def deep(kind: type, change: Change, value: Any) -> Any:
    if isinstance(value, list):
        value = [deep(kind, change, item) for item in value]
    return change(value) if type(value) is kind else value


def rows_changed(change: Change) -> None:
    """Hand every batch of rows on through `change`."""
    executor = of_the_example("dragoman_duckdb.executor")
    batches = executor._batches

    async def changed(session: Any) -> Any:
        async for rows in batches(session):
            yield change(rows)

    executor._batches = changed


# Types that are handed out as the driver has them, where its own lose something

NATIVE = {"dates": "DATE|", "times": "TIME(?:_NS)?|"}


def of_types() -> Iterator[tuple[str, Callable[[], None]]]:
    for name in NATIVE:
        yield f"types_native_{name}", lambda name=name: natively(name)


def natively(name: str) -> None:
    types = of_the_example("dragoman_duckdb.types")
    pattern = types._INEXACT.pattern
    assert NATIVE[name] in pattern
    types._INEXACT = re.compile(pattern.replace(NATIVE[name], "", 1))


def of_values() -> Iterator[tuple[str, Callable[[], None]]]:
    for kind, changes in VALUES.items():
        for name, change in changes.items():

            def each(rows: Any, kind: type = kind, change: Change = change) -> Any:
                return [tuple(deep(kind, change, value) for value in row) for row in rows]

            yield f"value_{kind.__name__}_{name}", lambda each=each: rows_changed(each)


# Parameters

PARAMETERS: dict[str, Change] = {
    "as_texts": lambda values: [value if value is None else str(value) for value in values],
    "of_32_bits": lambda values: [v % 2**32 if type(v) is int else v for v in values],
    "without_nulls": lambda values: ["" if value is None else value for value in values],
    "of_6_digits": lambda values: [float(f"{v:.6g}") if isinstance(v, float) else v for v in values],
    "reversed": lambda values: values[::-1],
    "none": lambda values: [],
    "of_whole_floats_as_integers": lambda values: [
        int(v) if isinstance(v, float) and v.is_integer() else v for v in values
    ],
    "of_booleans_as_integers": lambda values: [int(v) if isinstance(v, bool) else v for v in values],
    "of_texts_as_numbers": lambda values: [int(v) if isinstance(v, str) and v.isdigit() else v for v in values],
}


def of_parameters() -> Iterator[tuple[str, Callable[[], None]]]:
    for name, change in PARAMETERS.items():

        def apply(change: Change = change) -> None:
            executor = of_the_example("dragoman_duckdb.executor")
            for function in ("_execute", "_ask"):
                original = getattr(executor, function)

                def sent(*arguments: Any, original: Any = original) -> Any:
                    request = arguments[-1]
                    changed = dataclasses.replace(request, parameters=change(list(request.parameters)))
                    return original(*arguments[:-1], changed)

                setattr(executor, function, sent)

        yield f"parameters_{name}", apply


# Results

ROWS: dict[str, Change] = {
    "last_row_lost": lambda rows: rows[:-1] if len(rows) > 400 else rows,
    "first_row_twice": lambda rows: [rows[0], *rows] if len(rows) > 400 else rows,
    "in_another_order": lambda rows: sorted(rows, key=str),
    "as_dicts": lambda rows: [dict(enumerate(row)) for row in rows],
    "one_column_too_few": lambda rows: [row[:-1] for row in rows],
}
COLUMNS: dict[str, Change] = {
    "lower_case": lambda column: dataclasses.replace(column, name=column.name.lower()),
    "stripped": lambda column: dataclasses.replace(column, name=column.name.strip()),
    "of_upper_types": lambda column: dataclasses.replace(column, type=column.type.upper()),
    "of_any_type": lambda column: dataclasses.replace(column, type="any"),
    "as_dict": dataclasses.asdict,
    "as_text": lambda column: column.name,
}
ENDS: dict[str, Callable[[int, BaseException | None], bool]] = {
    "after_500_rows": lambda count, error: count >= 500,
    "after_10000_rows": lambda count, error: count >= 10_000,
    "at_an_error": lambda count, error: error is not None,
}


def of_results() -> Iterator[tuple[str, Callable[[], None]]]:
    for name, change in ROWS.items():
        yield f"rows_{name}", lambda change=change: rows_changed(change)
    for name, change in COLUMNS.items():
        yield f"columns_{name}", lambda change=change: columns_changed(change)
    for name, ends in ENDS.items():
        yield f"rows_end_{name}", lambda ends=ends: rows_ended(ends)


def columns_changed(change: Change) -> None:
    executor = of_the_example("dragoman_duckdb.executor")
    execute = executor._execute
    executor._execute = lambda *arguments: [change(column) for column in execute(*arguments)]


def rows_ended(ends: Callable[[int, BaseException | None], bool]) -> None:
    executor = of_the_example("dragoman_duckdb.executor")
    batches = executor._batches

    async def ended(session: Any) -> Any:
        count = 0
        try:
            async for rows in batches(session):
                yield rows
                count += len(rows)
                if ends(count, None):
                    return
        except Exception as error:
            if not ends(count, error):
                raise

    executor._batches = ended


# The catalog: every field of what an inspector tells, changed as its type allows

FIELDS: dict[type, dict[str, Change]] = {
    bool: {"not": lambda flag: not flag},
    str: {"after_the_dot": lambda name: name.split(".")[-1], "upper": str.upper, "quoted": lambda name: f'"{name}"'},
    tuple: {"reversed": lambda items: items[::-1], "none": lambda items: (), "first": lambda items: items[:1]},
    int: {"zero": lambda _: 0, "float": float, "unknown": lambda _: -1},
}
OPTIONAL = ("Table.definition", "Table.row_estimate", "Table.comment", "TableColumn.comment", "TableColumn.default")


def of_the_catalog() -> Iterator[tuple[str, Callable[[], None]]]:
    import dragoman

    samples: dict[type, dict[str, type]] = {
        dragoman.Table: {
            "columns": tuple,
            "constraints": tuple,
            "foreign_keys": tuple,
            "indexes": tuple,
            "system": bool,
        },
        dragoman.TableColumn: {"name": str, "nullable": bool},
        dragoman.Constraint: {"columns": tuple},
        dragoman.ForeignKey: {"columns": tuple, "referenced_columns": tuple},
        dragoman.Index: {"name": str, "parts": tuple, "unique": bool},
        dragoman.Relation: {"name": str, "schema": str},
    }
    for kind, fields in samples.items():
        for field, type_ in fields.items():
            for name, change in FIELDS[type_].items():
                if kind is dragoman.Table and field != "columns" and name in {"reversed", "first"}:
                    continue  # in any order they say the same, and the sample has one of each
                if name == "after_the_dot" and (kind is dragoman.Index or field == "schema"):
                    continue  # the sample has no such names
                yield f"catalog_{kind.__name__}_{field}_{name}", lambda k=kind, f=field, c=change: told(k, f, c)
    yield "catalog_Table_columns_of_50", lambda: told(dragoman.Table, "columns", lambda columns: columns[:50])
    for name, change in FIELDS[int].items():
        yield f"catalog_estimate_{name}", lambda change=change: told(dragoman.Table, "row_estimate", change)
    for place in OPTIONAL:
        kind, field = place.split(".")
        yield f"catalog_{field}_of_{kind}_none", lambda k=kind, f=field: told(getattr(dragoman, k), f, lambda _: None)


def told(kind: type, field: str, change: Change) -> None:
    inspector = of_the_example("dragoman_duckdb.inspector").DuckDBInspector
    tables = inspector.tables

    def walk(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(walk(item) for item in value)
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        inner = {each.name: walk(getattr(value, each.name)) for each in dataclasses.fields(value)}
        if isinstance(value, kind):
            inner[field] = change(inner[field])
        return dataclasses.replace(value, **inner)

    async def changed(self: Any, scope: Any) -> Any:
        return walk(await tables(self, scope))

    inspector.tables = changed


# Life: a line of the session left out or turned round. Not the slots, the end of the threads and the look for the file:
# the pool of threads, its garbage collection and DuckDB itself see to the same.

LIFE = {
    "no_interrupt": ("Session", "close", "connection.interrupt()", "pass"),
    "no_wait_for_the_end": ("Session", "close", "while self._job and not self._job.done():", "while False:"),
    "no_deadline": ("Session", "run", "max(0.0, remaining)", "None"),
    "no_translation": ("Session", "run", "translate_errors(self._database)", "__import__('contextlib').nullcontext()"),
    "closed_behind": (
        "Engine",
        "session",
        "await finish(session.close())",
        "asyncio.get_running_loop().create_task(session.close())",
    ),
    "on_the_loop": ("Session", "run", "asyncio.wrap_future(self._threads.submit(work))", "_at_once(work)"),
    "for_writing": ("Engine", "_open", "read_only=True", "read_only=False"),
    "sharing_one_connection": (
        "Session",
        "begin",
        "self.connection = await self.run(root.cursor)",
        "self.connection = root",
    ),
}


def of_life() -> Iterator[tuple[str, Callable[[], None]]]:
    for name, place in LIFE.items():
        yield f"life_{name}", lambda place=place: rewritten(*place)


def rewritten(owner: str, method: str, old: str, new: str) -> None:
    """Compile a method again with one text of it replaced."""
    import asyncio
    import inspect
    import textwrap

    sessions = of_the_example("dragoman_duckdb.sessions")

    def at_once(work: Callable[[], Any]) -> Any:
        future = asyncio.get_running_loop().create_future()
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)
        return future

    source = textwrap.dedent(inspect.getsource(getattr(getattr(sessions, owner), method)))
    assert old in source, (owner, method, old)
    names = {**vars(sessions), "_at_once": at_once}
    exec(compile(source.replace(old, new), f"{owner}.{method}", "exec"), names)
    setattr(getattr(sessions, owner), method, names[method])


# What the dialect says of itself, and the engine's own locks

SEALS = ("enable_external_access",)
LISTED = ("read_text", "getenv", "nextval", "read_csv", "setseed", "sleep_ms", "glob", "current_setting")
LEXED = (
    "nested_comments",
    "dollar_quotes",
    "escape_strings",
    "backslash_escapes",
    "hash_comments",
    "colon_casts",
    "spaced_comments",
    "unclosed_comment_ends",
    "tables_in_lists",
)


def of_safety() -> Iterator[tuple[str, Callable[[], None]]]:
    for name in LISTED:
        yield f"listed_{name}", lambda name=name: described(rules=lambda r: _listing(r, name))
    for name in LEXED:
        yield (
            f"lexed_{name}",
            lambda n=name: described(lexicon=lambda x: dataclasses.replace(x, **{n: not getattr(x, n)})),
        )
    for name in SEALS:
        yield f"unsealed_{name}", lambda name=name: unsealed(name)
    yield "only_one_schema", lambda: described(only_schema=lambda _: True)
    yield "implicit_columns_that_are_listed", lambda: described(implicit_columns=lambda names: names | {"id"})
    yield "reserved_but_one", lambda: described(reserved=lambda words: words - {"left"})
    yield "reserved_none", lambda: described(reserved=lambda _: frozenset())
    yield "quoted_otherwise", lambda: described(quote_marks=lambda _: "``")
    for name in ("FOREIGN_KEYS", "PRIMARY_KEYS", "INDEXES", "ROW_ESTIMATES", "EXPLAIN", "DESCRIBE"):
        yield f"undeclared_{name.lower()}", lambda name=name: described(capabilities=lambda c: _other(c, name))
    for name in ("ANALYZE", "CATALOGS", "GRAMMAR"):
        yield f"declared_{name.lower()}", lambda name=name: described(capabilities=lambda c: _other(c, name))


def _listing(rules: Any, name: str) -> Any:
    return dataclasses.replace(
        rules, functions=rules.functions | {name}, table_functions=rules.table_functions | {name}
    )


def _other(capabilities: Any, name: str) -> Any:
    from dragoman import Capability

    return capabilities ^ {Capability[name]}


def described(**changes: Change) -> None:
    plugin = of_the_example("dragoman_duckdb").DuckDBPlugin
    old = plugin.dialect
    plugin.dialect = dataclasses.replace(
        old, **{field: change(getattr(old, field)) for field, change in changes.items()}
    )


def unsealed(name: str) -> None:
    sessions = of_the_example("dragoman_duckdb.sessions")
    sessions.SEALED[name] = True


# Schemas: each field changed, and those left out that are not the default one

SCHEMAS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "system_not": lambda all: [dataclasses.replace(each, system=not each.system) for each in all],
    "all_searched_first": lambda all: [dataclasses.replace(each, search_order=0) for each in all],
    "without_the_engines": lambda all: [each for each in all if not each.system],
    "without_comments": lambda all: [dataclasses.replace(each, comment=None) for each in all],
    "the_default_alone": lambda all: [each for each in all if each.name == "main"],
    "one_more": lambda all: [*all, dataclasses.replace(all[0], name="ghost", system=False, search_order=None)],
}


def of_schemas() -> Iterator[tuple[str, Callable[[], None]]]:
    for name, change in SCHEMAS.items():
        yield f"schemas_{name}", lambda change=change: schemas_changed(change)
    yield "relations_without_quotes_in_their_names", lambda: relations_kept(lambda t: '"' not in t.relation.name)
    yield "relations_of_the_default_schema_alone", lambda: relations_kept(lambda table: table.relation.schema == "main")


NAMESAKES = ("columns", "constraints", "foreign_keys", "comment", "definition", "type")


def of_namesakes() -> Iterator[tuple[str, Callable[[], None]]]:
    yield "namesakes_one_of_each_name", lambda: tables_changed(lambda all: {t.relation.name: t for t in all}.values())
    for field in NAMESAKES:
        yield f"namesakes_one_{field}", lambda field=field: tables_changed(lambda all: _shared(all, field))


def _shared(tables: Any, field: str) -> list[Any]:
    """Give relations of one name the same value of a field, whatever their schemas are."""
    values: dict[str, Any] = {}
    for table in tables:
        values[table.relation.name] = getattr(table, field) or values.get(table.relation.name)
    empty = {"columns": (), "constraints": (), "foreign_keys": ()}
    return [dataclasses.replace(table, **{field: values[table.relation.name] or empty.get(field)}) for table in tables]


def tables_changed(change: Callable[[Any], Any]) -> None:
    inspector = of_the_example("dragoman_duckdb.inspector").DuckDBInspector
    tables = inspector.tables

    async def changed(self: Any, scope: Any) -> Any:
        told = await tables(self, scope)
        return dataclasses.replace(told, tables=tuple(change(told.tables)))

    inspector.tables = changed


def schemas_changed(change: Callable[[list[Any]], list[Any]]) -> None:
    inspector = of_the_example("dragoman_duckdb.inspector").DuckDBInspector
    schemas = inspector.schemas

    async def changed(self: Any) -> Any:
        return change(list(await schemas(self)))

    inspector.schemas = changed


def relations_kept(keep: Callable[[Any], bool]) -> None:
    inspector = of_the_example("dragoman_duckdb.inspector").DuckDBInspector
    tables = inspector.tables

    async def kept(self: Any, scope: Any) -> Any:
        told = await tables(self, scope)
        return dataclasses.replace(told, tables=tuple(table for table in told.tables if keep(table)))

    inspector.tables = kept


# Looks at values: the budget

BUDGETS = {"of_all_rows": {"rows": 10_000}, "of_all_the_time": {"seconds": 60.0}, "of_all_values": {"values": 50}}


def of_profiles() -> Iterator[tuple[str, Callable[[], None]]]:
    for name, changes in BUDGETS.items():
        yield f"profiles_{name}", lambda changes=changes: budget_changed(changes)


def budget_changed(changes: dict[str, Any]) -> None:
    inspector = of_the_example("dragoman_duckdb.inspector").DuckDBInspector
    profiles = inspector.profiles

    async def changed(self: Any, tables: Any, budget: Any) -> Any:
        return await profiles(self, tables, dataclasses.replace(budget, **changes))

    inspector.profiles = changed


for generate in (
    of_values,
    of_parameters,
    of_results,
    of_the_catalog,
    of_life,
    of_safety,
    of_types,
    of_schemas,
    of_namesakes,
    of_profiles,
):
    MUTANTS.update(generate())
if wanted := os.environ.get("DUCKDB_MUTANT"):
    MUTANTS[wanted]()
