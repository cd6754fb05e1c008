"""Write docs/reference.md from the docstrings of what plugins may import: `python docs/make_reference.py`."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

PAGE = Path(__file__).with_name("reference.md")
HEAD = """\
# Reference of the contract

What a plugin may import, from its docstrings. `python docs/make_reference.py` writes this page; a test compares it with
the code. [Versions](versioning.md) says what may change here, and how.
"""
SECTIONS = {
    "Hooks": ("dragoman", "dragoman.hookspecs"),
    "What a dialect is made of": (
        "dragoman",
        "dragoman.dialect dragoman.parsed dragoman.sql.lexicon dragoman.sql.statement",
    ),
    "Values": ("dragoman", "dragoman.model"),
    "Errors": ("dragoman", "dragoman.errors"),
    "Functions and the library": (
        "dragoman",
        "dragoman.gateway.gateway dragoman.results.encoding dragoman.profiling dragoman.cleanup",
    ),
    "`dragoman.sqlalchemy`": ("dragoman.sqlalchemy", ""),
    "`dragoman.sql.rewriting`": ("dragoman.sql.rewriting", ""),
    "`dragoman.testing`": ("dragoman.testing", ""),
}
CONSTANTS = {
    "AUDIT_COLUMNS": "The columns of an audit's table beside `seq` and `line`: text, integer, number, list or json.",
    "Batch": "Rows as the driver gave them, or encoded: `Encoded | Sequence[Sequence[Any]]`.",
    "CallKind": "How a function is called: by name, as a table, as a column (`row.name`), or by syntax of its own.",
    "CONTRACT": "The version of this contract, an integer. A plugin states the one it was written for.",
    "NamedPart": "A relation that a statement names, and what callers have of it; None: everything."
    " A tuple: `tuple[NamedRelation, ConfinedRelation | None]`.",
    "Form": "The arguments of a call: for each the pattern a literal must fit, or None for any argument."
    " A tuple: `tuple[re.Pattern[str] | None, ...]`.",
    "KIT": "The version of the kit, an integer: one more whenever a case is added or asks for more; 1 until the first"
    " release, whatever is added.",
    "STANDARD_FUNCTIONS": "For `Rules.functions`: what nearly every engine has, harmless. Add the engine's own.",
    "STANDARD_RESERVED": "For `Dialect.reserved`, in lower case. Add the engine's own.",
    "SYSTEM_SCHEMAS": "What engines call the schemas of their own, in lower case.",
    "Sealing": "Returns the records, numbers and lines, that follow the last one; None: there is none yet.",
    "UNKNOWN": "The notice of a translation that no rewrite was written for.",
    "capability": "A mark for cases of one's own: what is declared works, what is not is refused cleanly.",
    "hookimpl": "Marks a method as a hook: `@hookimpl`.",
    "recommended": "A mark for cases of one's own: without it agents or operators miss something.",
    "required": "A mark for cases of one's own: without it the dialect is wrong.",
}
ALIASES = ("Folding", "RelationType")
"""Names of types that fields have and nobody imports: their values stand where they are used."""
LONGEST_DEFAULT = 40


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for title, (module, homes) in SECTIONS.items():
        parts.append(f"## {title}")
        if module != "dragoman" or title == "Errors":
            parts.append(_text(importlib.import_module(homes if title == "Errors" else module).__doc__))
        parts += [
            _entry(name, value) for name, value in _public(module) if not homes or _home(name, value) in homes.split()
        ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _public(module: str) -> Iterator[tuple[str, Any]]:
    public = importlib.import_module(module)
    for name in public.__all__:
        yield name, getattr(public, name)


def _home(name: str, value: Any) -> str:
    """The module a name is defined in, which constants do not know."""
    known = {
        "AUDIT_COLUMNS": "dragoman.dialect",
        "Batch": "dragoman.model",
        "CONTRACT": "dragoman.dialect",
        "CallKind": "dragoman.parsed",
        "Form": "dragoman.dialect",
        "NamedPart": "dragoman.dialect",
        "STANDARD_FUNCTIONS": "dragoman.dialect",
        "STANDARD_RESERVED": "dragoman.dialect",
        "Sealing": "dragoman.dialect",
        "hookimpl": "dragoman.hookspecs",
    }
    home = known.get(name) or str(value.__module__)
    return "dragoman.model" if home.startswith("dragoman.model.") else home


def _entry(name: str, value: Any) -> str:
    if inspect.isclass(value):
        return "\n\n".join(
            part
            for part in (f"### {name}", _declare(name, value), *_aliases(value), _text(value.__doc__), *_members(value))
            if part
        )
    if inspect.isfunction(value):
        return f"### {name}\n\n{_code(f'{name}{_signature(value)}')}\n\n{_text(value.__doc__)}"
    return f"### {name}\n\n{_constant(name, value)}"


def _aliases(kind: type) -> Iterator[str]:
    """The values of the types that a class's fields have by name."""
    for field in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        if field.type in ALIASES:
            alias = getattr(importlib.import_module(kind.__module__), str(field.type))
            yield f"`{field.type}` is one of {', '.join(f'`{value}`' for value in get_args(alias))}."


def _constant(name: str, value: Any) -> str:
    shown = f"{len(value)} words: {', '.join(sorted(value))}." if isinstance(value, frozenset) else ""
    return "\n\n".join(part for part in (CONSTANTS.get(name, ""), shown) if part)


def _declare(name: str, kind: type) -> str:
    bases = [base.__name__ for base in kind.__bases__ if base.__module__.startswith("dragoman")]
    lines = [f"class {name}({', '.join(bases)})" if bases else f"class {name}"]
    if dataclasses.is_dataclass(kind):
        by_keyword = all(field.kw_only for field in dataclasses.fields(kind) if field.init)
        lines[0] += "  # built by keyword" if by_keyword else ""
        lines += [f"    {_field(each)}" for each in dataclasses.fields(kind)]
    elif "code" in vars(kind):
        lines.append(f"    code = {kind.code!r}")
    elif not issubclass(kind, enum.Enum | Exception) and "__init__" in vars(kind):
        lines = [f"class {name}{_signature(kind.__init__, skip_self=True)}"]
    return _code("\n".join(lines))


def _field(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"{field.name}: {field.type} = {_short(field.default)}"
    if field.default_factory is dataclasses.MISSING:
        return f"{field.name}: {field.type}"
    made = field.default_factory()
    return f"{field.name}: {field.type} = " + ("{}" if isinstance(made, Mapping) and not made else _short(made))


def _members(kind: type) -> Iterator[str]:
    """The members of an enumeration; else the public methods and properties a class has of its own."""
    if issubclass(kind, enum.Enum):
        yield "\n".join(f"- `{member.name}`: {member.value}" for member in kind)
        return
    for name, member in vars(kind).items():
        function = inspect.unwrap(getattr(member, "__func__", getattr(member, "fget", member)))
        if name == "__contains__" and member.__doc__:
            yield f"**`in`**\n{_text(member.__doc__)}"
        if name.startswith(("_", "test_")) or not inspect.isfunction(function) or not function.__doc__:
            continue
        shown = (
            name
            if isinstance(member, property)
            else f"{name}{_signature(function, skip_self=not isinstance(member, staticmethod))}"
        )
        awaited = "async " if inspect.iscoroutinefunction(function) else ""
        yield f"**`{awaited}{shown}`**\n{_text(function.__doc__)}"


def _signature(function: Any, *, skip_self: bool = False) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if skip_self else 0 :]
    shown = [
        each.replace(default=_Shown(each.default)) if each.default is not each.empty else each for each in parameters
    ]
    if function.__name__ == "__init__":
        signature = signature.replace(return_annotation=signature.empty)
    return str(signature.replace(parameters=shown)).replace("'", "") if parameters or skip_self else str(signature)


class _Shown:
    """A default as the page shows it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return _short(self._value)


def _short(value: Any) -> str:
    shown = repr(value) if value != "" else '""'  # other quotes are taken away with those of annotations
    return "..." if len(shown) > LONGEST_DEFAULT or "<" in shown else shown


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _text(doc: str | None) -> str:
    """A docstring as Markdown: a drawing stays one."""
    text = inspect.cleandoc(doc or "")
    return re.sub(r"(?ms)^(DragomanError\n.*?)(?=\n\n)", r"```\n\1\n```", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
