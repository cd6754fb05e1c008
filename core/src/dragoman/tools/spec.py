"""Tools as data: their descriptions, their arguments, and the descriptors for clients."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.tools.arguments import Argument

MAX_NAMED = 20
"""The most databases that are enumerated in the schemas."""

Reach = Literal["none", "one", "any"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients list it. `output_schema` is None if only text is returned."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A tool as declared.

    - `reach`: whether it uses no database, one, or any number of them.
    - `read_only`: whether it changes nothing, here or in a database.
    - `handler`: the name of the handler, if several tools share one.
    - `binds`: whether its arguments are values that a statement binds, so that records treat them as such.
    - `answers`: the keys of the answer with their JSON types; an empty type varies. Those in `always` are always there.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...] = ()
    reach: Reach = "one"
    read_only: bool = True
    handler: str = ""
    binds: bool = False
    answers: dict[str, str]
    always: tuple[str, ...]

    @property
    def all_arguments(self) -> tuple[Argument, ...]:
        """All arguments of a call. The gateway decides whether a missing database has a default."""
        return self.arguments if self.reach == "none" else (Argument(name="database"), *self.arguments)

    def tool(
        self, databases: Sequence[str], default: str | None, *, structured: bool, offered: Collection[str] = ()
    ) -> Tool:
        """Return the descriptor for these databases, if the tools `offered` are offered beside it.

        If there is only one database, `database` is not shown.
        """
        shown = [argument for argument in self.arguments if not argument.beside or argument.beside in offered]
        properties = {argument.name: argument.schema for argument in shown}
        required = [argument.name for argument in self.arguments if argument.required]
        if self.reach != "none" and len(databases) != 1:
            named = {"type": "string", "enum": list(databases)} if len(databases) <= MAX_NAMED else {"type": "string"}
            properties = {"database": named, **properties}
            required = ["database", *required] if self.reach == "one" and default is None else required
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        description = self.description
        if len(databases) > MAX_NAMED and "database" in properties:
            description += " Databases: see list_databases."
        output = self._output() if structured else None
        return Tool(self.name, self.title, description, schema, output, self.read_only)

    def _output(self) -> dict[str, Any]:
        """Return a shallow schema. Clients check it value by value, and deep ones took a second for 10,000 rows."""
        properties = {key: {"type": kind} if kind else {} for key, kind in self.answers.items()}
        return {"type": "object", "properties": properties, "required": list(self.always)}


def text(name: str, *, required: bool = False) -> Argument:
    """Return an argument that is a name or a word."""
    return Argument(name=name, required=required)


def sql(name: str, *, required: bool = False) -> Argument:
    """Return an argument for SQL. Its length is checked later, with a message of its own."""
    return Argument(name=name, required=required, longest=None)


def flag(name: str, *, default: bool | None = False) -> Argument:
    """Return an argument that is true or false."""
    return Argument(name=name, type="boolean", default=default)


def count(name: str, default: int | None, *, maximum: int | None = None) -> Argument:
    """Return an argument that is a whole number of at least 1."""
    return Argument(name=name, type="integer", default=default, minimum=1, maximum=maximum)
