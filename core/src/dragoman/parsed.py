"""What a statement names, as its grammar reads it: plain values, which another process may have made.

A grammar only reads. Whether what it found may run is for the core's rules alone, and for validators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dragoman.errors import DragomanError, InvalidSql, UnsafeSql, WriteDenied
from dragoman.model import Relation

CallKind = Literal["call", "function", "table function", "attribute", "field", "syntax"]
"""How a function is called. `call`: anyhow, where the text does not tell. `function`: as a value, aggregates included.
`table function`: as a relation. `attribute`: as row.name, where the row has no such column. `field`: as (value).name.
`syntax`: by a word of the grammar that older servers take for a function's name."""


class NamedRelation(NamedTuple):
    """A relation that a statement names, as written or qualified by the grammar, and where: in characters from 0."""

    relation: Relation
    offset: int | None = None


class FunctionCall(NamedTuple):
    """A call. `name`, and `schema` when one was written: as the database takes them, folded and without quotes.

    `arguments`: the text of each that is a literal text, None for any other; None as a whole where nobody looked, which
    is so but for the functions that `Rules.forms` lists.
    """

    name: str
    schema: str | None = None
    offset: int | None = None
    kind: CallKind = "call"
    arguments: tuple[str | None, ...] | None = None

    @property
    def dotted(self) -> str:
        """The name with the schema; in double quotes where a dot is part of the name itself."""
        return qualify(self.name, self.schema)


class Named(NamedTuple):
    """An operator or a type that a statement names, as `FunctionCall`, and where first."""

    name: str
    schema: str | None = None
    offset: int | None = None

    @property
    def dotted(self) -> str:
        """As `FunctionCall.dotted`."""
        return qualify(self.name, self.schema)


def qualify(name: str, schema: str | None = None) -> str:
    """Return a name with the schema before it, if there is one. No single name can pass for a dotted one."""
    if "." in name:
        name = f'"{name}"'
    return name if schema is None else f"{schema}.{name}"


def schema_of(parts: Sequence[str]) -> str | None:
    """Return what stands before the last of the parts of a dotted name, or None."""
    return ".".join(map(qualify, parts[:-1])) or None


class NamedSchema(NamedTuple):
    """A schema whose contents a statement lists; None: the session's own."""

    schema: str | None
    catalog: str | None = None
    offset: int | None = None


class Refusal(NamedTuple):
    """Why a statement cannot pass whatever the rules say. `kind`: it writes, it is not safe, or it is no query."""

    kind: Literal["write", "unsafe", "invalid"]
    message: str
    suggestion: str = ""
    offset: int | None = None

    @classmethod
    def of(cls, error: DragomanError) -> Refusal:
        """Return the refusal that an error tells."""
        unsafe: Literal["unsafe", "invalid"] = "unsafe" if isinstance(error, UnsafeSql) else "invalid"
        kind = "write" if isinstance(error, WriteDenied) else unsafe
        return cls(kind, error.message, error.suggestion, error.offset)

    def error(self) -> DragomanError:
        """Return `WriteDenied`, `UnsafeSql` or `InvalidSql`."""
        error = {"write": WriteDenied, "unsafe": UnsafeSql, "invalid": InvalidSql}[self.kind]
        return error(self.message, suggestion=self.suggestion, offset=self.offset)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """What a statement names. Rather too much than too little; everything in it can be pickled.

    `relations`: without what WITH defines. `other_names`: what stands where a relation does and is none, as names that
    WITH defines and functions that are called there; the rules for relations judge them too. `calls`, `operators` and
    `types`: once each is enough, `operators` with those that words imply (IN, USING, BETWEEN), `types` of casts.
    `others`: names of other kinds, such as collations.
    `schemas`: those whose contents it lists; `lists_schemas`: it lists schemas, or what is in several of them.
    `refusal`: a construct that nobody may use, or what keeps the text from being read; the rest then holds what was
    read before it.
    """

    relations: tuple[NamedRelation, ...] = ()
    other_names: tuple[NamedRelation, ...] = ()
    calls: tuple[FunctionCall, ...] = ()
    operators: tuple[Named, ...] = ()
    types: tuple[Named, ...] = ()
    others: tuple[Named, ...] = ()
    schemas: tuple[NamedSchema, ...] = ()
    lists_schemas: bool = False
    refusal: Refusal | None = None

    @property
    def names(self) -> tuple[Relation, ...]:
        """The relations, once each."""
        return tuple(dict.fromkeys(relation for relation, _ in self.relations))

    @property
    def functions(self) -> tuple[str, ...]:
        """The dotted names of the functions it calls, once each."""
        found = (call.dotted for call in self.calls if call.kind in {"call", "function", "table function"})
        return tuple(dict.fromkeys(found))
