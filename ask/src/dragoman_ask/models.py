"""The interface of a language model: messages in, one JSON object of a given shape out, with the tokens used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from dragoman.config import ModelSettings
from dragoman.errors import ModelError

Role = Literal["system", "user", "assistant"]
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)
CHARACTERS_PER_TOKEN = 4
"""The approximate characters of a token, for texts that no server has counted."""
STRIPPED = "***"
"""Replaces the key, if a server repeats it in a reply."""
SHORTEST_KEY = 8
"""The fewest characters of a key that is removed. Servers without keys take any word for one."""
MOST_TOKENS = 32
"""The most tokens per estimated one: one for every byte, and as many again for what a server adds."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of prompt and reply."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, as text that should be JSON, and the tokens used."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a reply: a name and a JSON Schema of an object."""

    name: str
    schema: dict[str, Any]


class NoReply(ModelError):
    """No reply to a request that the provider counts all the same. `usage`: what it counts, as far as is known."""

    def __init__(self, message: str, usage: Usage, *, suggestion: str) -> None:
        super().__init__(message, suggestion=suggestion)
        self.usage = usage


class Model(Protocol):
    """A language model. Makes no connection before its first use."""

    async def complete(self, messages: Sequence[Message], shape: Shape, max_tokens: int) -> Completion:
        """Return the model's reply. Cancelling ends the request. Raises `ModelError`, whose message has no secrets.

        `NoReply` means that the request was counted nevertheless.
        """
        ...

    async def aclose(self) -> None:
        """Release its connections."""
        ...


def estimate(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take."""
    return sum(len(message.text) for message in messages) // CHARACTERS_PER_TOKEN + 8 * len(messages)


def check_usage(prompt: object, reply: object, guess: int, text: str, max_tokens: int) -> Usage:
    """Return the use that a server reports, if it is plausible, else an estimate: limits depend on these numbers.

    `guess`: the approximate tokens of the prompt. `max_tokens`: the most tokens of the reply, including its thinking.
    """
    said = len(text) // CHARACTERS_PER_TOKEN + 1
    return Usage(_check_count(prompt, guess, 0), _check_count(reply, said, max_tokens))


def _check_count(told: object, guess: int, allowed: int) -> int:
    return told if type(told) is int and 0 < told <= max(guess * MOST_TOKENS, allowed) else guess


def shape_of(kind: type[msgspec.Struct]) -> Shape:
    """Return the shape of a reply that is parsed as `kind`, whose fields are all plain and required."""
    known = {name: _close(schema) for name, schema in msgspec.json.schema(kind)["$defs"].items()}
    own = known.pop(kind.__name__)
    return Shape(kind.__name__.lower(), {**own, "$defs": known} if known else own)


def _close(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these keys and no others."""
    plain = {key: value for key, value in schema.items() if key in ("type", "properties", "required")}
    return {**plain, "additionalProperties": False}


def read_reply(text: str, kind: type[ReplyT]) -> ReplyT:
    """Return a reply as `kind`. Raises `ValueError` with what is wrong with it."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(str(error)[:200]) from None


def without_key(text: str, settings: ModelSettings | None) -> str:
    """Return a reply, or another text, without the key of the model's server, which may repeat it."""
    key = settings.api_key.reveal() if settings is not None and settings.api_key else ""
    return text.replace(key, STRIPPED) if len(key) >= SHORTEST_KEY else text


def time_is_up(settings: ModelSettings, messages: Sequence[Message]) -> ModelError:
    """Return the error for a model that does not reply in time: the provider has read the messages."""
    return NoReply(
        f"The model did not reply within {settings.timeout:g} seconds.",
        Usage(estimate(messages)),
        suggestion="Try again in a moment; the administrator can raise model.timeout.",
    )


def no_text(usage: Usage) -> ModelError:
    """Return the error for a reply without text: the model refused, or used all its tokens for thinking."""
    return NoReply("The model gave no reply to this question.", usage, suggestion="Ask it in other words.")


def explain_status(status: int) -> ModelError:
    """Return the error for a status of a model's server other than success."""
    if status in (401, 403):
        return ModelError("The model's server refused the key.", suggestion="Tell the administrator: model.api_key.")
    if 300 <= status < 400:
        return ModelError(
            "The model's server redirects to another address, which is not asked.",
            suggestion="Tell the administrator: model.base_url.",
        )
    if status == 404:
        return ModelError(
            "The model's server does not know the model.",
            suggestion="Tell the administrator: model.name, model.base_url.",
        )
    if status == 429:
        return ModelError("The model's server accepts no more requests now.", suggestion="Try again in a minute.")
    return ModelError(f"The model's server failed with status {status}.")
