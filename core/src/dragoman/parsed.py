"""What a grammar finds in a statement: plain values, which another process may have made.

A grammar only parses. The core's rules and the validators alone decide whether a statement may run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dragoman.errors import DragomanError, InvalidSql, UnsafeSql, WriteDenied
from dragoman.model import Relation

CallKind = Literal["call", "function", "table function", "attribute", "field", "syntax"]
"""How a function is called.

- `call`: in a way that the text does not show.
- `function`: as a value, aggregates included.
- `table function`: as a relation.
- `attribute`: as `row.name`, where the row has no such column.
- `field`: as `(value).name`.
- `syntax`: by a word of the grammar that older servers take for a function's name.
"""


class NamedRelation(NamedTuple):
    """A relation that a statement names, as written or as the grammar qualified it.

    `offset`: its place, in characters from 0. Where sqlglot reads, that of its own name, behind the schema; where the
    dialect has a grammar, what its `read` returns. A relation that is named several times has an entry for each place.
    """

    relation: Relation
    offset: int | None = None


class FunctionCall(NamedTuple):
    """A function call. `name` and, if one was written, `schema` are as the database takes them: folded, without quotes.

    `arguments`: for each argument its text if it is a literal text, else None. None as a whole where nobody looked:
    only the arguments of the functions in `Rules.forms` are read.
    """

    name: str
    schema: str | None = None
    offset: int | None = None
    kind: CallKind = "call"
    arguments: tuple[str | None, ...] | None = None

    @property
    def dotted(self) -> str:
        """The name with its schema, in double quotes where a dot is part of the name itself."""
        return qualify(self.name, self.schema)


class Named(NamedTuple):
    """An operator or a type that a statement names, with the first place where it stands.

    Fields as in `FunctionCall`.
    """

    name: str
    schema: str | None = None
    offset: int | None = None

    @property
    def dotted(self) -> str:
        """The name with its schema, as `FunctionCall.dotted`."""
        return qualify(self.name, self.schema)


def qualify(name: str, schema: str | None = None) -> str:
    """Return a name with its schema, if there is one, in front. No single name can look like a dotted one."""
    if "." in name:
        name = f'"{name}"'
    return name if schema is None else f"{schema}.{name}"


def schema_of(parts: Sequence[str]) -> str | None:
    """Return the schema of a dotted name, given its parts, or None."""
    return ".".join(map(qualify, parts[:-1])) or None


class NamedSchema(NamedTuple):
    """A schema whose contents a statement lists. None: the session's own schema."""

    schema: str | None
    catalog: str | None = None
    offset: int | None = None


class Refusal(NamedTuple):
    """The reason why a statement cannot pass, whatever the rules say.

    `kind`: it writes, it is unsafe, or it is not a query.
    """

    kind: Literal["write", "unsafe", "invalid"]
    message: str
    suggestion: str = ""
    offset: int | None = None

    @classmethod
    def of(cls, error: DragomanError) -> Refusal:
        """Return the refusal that reports this error."""
        unsafe: Literal["unsafe", "invalid"] = "unsafe" if isinstance(error, UnsafeSql) else "invalid"
        kind = "write" if isinstance(error, WriteDenied) else unsafe
        return cls(kind, error.message, error.suggestion, error.offset)

    def error(self) -> DragomanError:
        """Return `WriteDenied`, `UnsafeSql` or `InvalidSql`."""
        error = {"write": WriteDenied, "unsafe": UnsafeSql, "invalid": InvalidSql}[self.kind]
        return error(self.message, suggestion=self.suggestion, offset=self.offset)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """What a statement names: rather too much than too little. It can be pickled.

    - `relations`: the relations, without those that WITH defines.
    - `versions`: those of the relations of which an older version is read, which may have other columns.
    - `other_names`: names that stand in the place of a relation but are none, such as names that WITH defines, or
      functions. The rules for relations judge them too.
    - `calls`, `operators`, `types`: each at least once. `operators` includes those that words imply (IN, USING,
      BETWEEN). `types` are those of casts.
    - `others`: names of other kinds, such as collations.
    - `schemas`: the schemas whose contents it lists.
    - `lists_schemas`: it lists schemas, or the contents of several schemas.
    - `refusal`: a construct that nobody may use, or the reason why the text cannot be parsed. The other fields then
      hold what was found before it.
    """

    relations: tuple[NamedRelation, ...] = ()
    versions: tuple[NamedRelation, ...] = ()
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
