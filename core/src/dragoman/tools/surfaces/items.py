"""Resources and prompts as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.errors import ParameterError

JSON = "application/json"
SQL = "application/sql"


class UnknownResource(ParameterError):
    """No such resource exists for the caller."""

    def __init__(self, message: str = "There is no such resource.", **more: Any) -> None:
        super().__init__(message, **more)


class UnknownPrompt(ParameterError):
    """There is no such prompt."""

    def __init__(self, message: str = "There is no such prompt.", **more: Any) -> None:
        super().__init__(message, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """An entry of a list for clients. `tags`: the list can be filtered by them."""

    uri: str
    name: str
    description: str
    mime: str = JSON
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(_Listed):
    """A resource that can be read, at its address `uri`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(_Listed):
    """Many resources of one kind. `uri`: a template of their addresses (RFC 6570)."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a resource."""

    uri: str
    mime: str
    text: str | bytes


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt: `{name}` in its text."""

    name: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text to start with."""

    name: str
    text: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    tags: tuple[str, ...] = ()

    def fill(self, given: Mapping[str, str]) -> str:
        """Return the text with these arguments. Missing optional ones are empty. Raises `ParameterError`."""
        known = {argument.name for argument in self.arguments}
        missing = [each.name for each in self.arguments if each.required and not given.get(each.name, "").strip()]
        if missing:
            raise ParameterError(f"The prompt {self.name} needs {', '.join(missing)}.", suggestion="Give it.")
        if unknown := sorted(given.keys() - known):
            raise ParameterError(
                f"The prompt {self.name} has no argument {unknown[0][:100]!r}.",
                suggestion=f"Its arguments: {', '.join(sorted(known)) or 'none'}.",
            )
        parts = self.text.split("{")
        return parts[0] + "".join(_fill(part, known, given) for part in parts[1:])


def _fill(part: str, known: set[str], given: Mapping[str, str]) -> str:
    """Return the text after a brace, with its argument's value. Values are never searched for arguments themselves."""
    name, brace, rest = part.partition("}")
    return given.get(name, "") + rest if brace and name in known else "{" + part
