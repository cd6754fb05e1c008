"""What a tool is, as data: its words, its arguments, and how it is described to a client."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.tools.arguments import Argument

MAX_NAMED = 20
"""More databases than this are not enumerated in the schemas."""

Reach = Literal["none", "one", "any"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as clients list it. `output_schema` is None when only text is answered."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A tool as declared. `reach`: whether it asks no database, one, or any number of them.

    `read_only`: whether it changes nothing, here or in a database. `handler`: the name of the handler where several
    tools share one.
    `answers` maps the keys of the answer to their JSON type, empty when it differs; those in `always` are always there.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...] = ()
    reach: Reach = "one"
    read_only: bool = True
    handler: str = ""
    answers: dict[str, str]
    always: tuple[str, ...]

    @property
    def taken(self) -> tuple[Argument, ...]:
        """All arguments of a call. Whether a missing database can be guessed is the gateway's to say."""
        return self.arguments if self.reach == "none" else (Argument(name="database"), *self.arguments)

    def tool(
        self, databases: Sequence[str], default: str | None, *, structured: bool, offered: Collection[str] = ()
    ) -> Tool:
        """Return the descriptor for these databases, beside the tools that are `offered`.

        One database alone is not shown: naming it says nothing.
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
        """Return a shallow schema: clients check it value by value, and deep ones took a second for 10,000 rows."""
        properties = {key: {"type": kind} if kind else {} for key, kind in self.answers.items()}
        return {"type": "object", "properties": properties, "required": list(self.always)}


def text(name: str, *, required: bool = False) -> Argument:
    """A name or a word."""
    return Argument(name=name, required=required)


def sql(name: str, *, required: bool = False) -> Argument:
    """SQL, whose length the gate bounds, with words of its own."""
    return Argument(name=name, required=required, longest=None)


def flag(name: str, *, default: bool | None = False) -> Argument:
    """True or false."""
    return Argument(name=name, type="boolean", default=default)


def count(name: str, default: int | None, *, maximum: int | None = None) -> Argument:
    """A whole number of at least 1."""
    return Argument(name=name, type="integer", default=default, minimum=1, maximum=maximum)
