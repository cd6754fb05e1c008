"""What a language model is here: messages in, one JSON object of a given shape out, with the tokens it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from dragoman.config import ModelSettings
from dragoman.errors import ConfigurationError, ModelError

Role = Literal["system", "user", "assistant"]
ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)
CHARACTERS_PER_TOKEN = 4
"""About, for what no server has counted."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that went in and came out."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, as text that should be JSON, and what it took."""

    text: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Shape:
    """What a reply must be: a name and a JSON Schema of an object."""

    name: str
    schema: dict[str, Any]


class Model(Protocol):
    """A language model. Makes no connection before its first use."""

    async def complete(self, messages: Sequence[Message], shape: Shape, max_tokens: int) -> Completion:
        """Return the model's reply. Cancelling ends the request. Raises `ModelError`, in words without secrets."""
        ...

    async def aclose(self) -> None:
        """Release its connections."""
        ...


def estimate(messages: Sequence[Message]) -> int:
    """Return about how many tokens messages take."""
    return sum(len(message.text) for message in messages) // CHARACTERS_PER_TOKEN + 8 * len(messages)


def shape_of(kind: type[msgspec.Struct]) -> Shape:
    """Return the shape of a reply that is read as `kind`, whose fields are all plain and required."""
    known = {name: _close(schema) for name, schema in msgspec.json.schema(kind)["$defs"].items()}
    own = known.pop(kind.__name__)
    return Shape(kind.__name__.lower(), {**own, "$defs": known} if known else own)


def _close(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has these keys and no others."""
    plain = {key: value for key, value in schema.items() if key in ("type", "properties", "required")}
    return {**plain, "additionalProperties": False}


def read_reply(text: str, kind: type[ReplyT]) -> ReplyT:
    """Return a reply as `kind`. Raises `ValueError`, saying what is wrong with it."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(str(error)[:200]) from None


def make_model(settings: ModelSettings) -> Model:
    """Return the configured model, recorded or replayed where that is configured.

    Raises `ConfigurationError` for a provider that needs more than is given.
    """
    if settings.replay is None and settings.record is None:
        return _live_model(settings)
    from dragoman_ask.recording import RecordingModel, ReplayedModel

    if settings.replay is not None:
        return ReplayedModel(settings.name, settings.replay)
    assert settings.record is not None
    key = settings.api_key.reveal() if settings.api_key else ""
    return RecordingModel(_live_model(settings), settings.name, settings.record, key)


def _live_model(settings: ModelSettings) -> Model:
    provider, _, name = settings.name.partition(":")
    if provider != "openai" and not settings.base_url:
        return _other_provider(settings, provider)
    from dragoman_ask.openai_model import OpenAIModel

    if provider == "openai" and not settings.base_url and settings.api_key is None:
        raise ConfigurationError(
            "model.api_key is missing.", suggestion='Set model.api_key = "${OPENAI_API_KEY}", or a base_url.'
        )
    return OpenAIModel(settings, name)


def _other_provider(settings: ModelSettings, provider: str) -> Model:
    """A model of a provider with a protocol of its own."""
    if find_spec("pydantic_ai") is None:
        raise ConfigurationError(
            f"model.base_url is missing: where {provider} is reached is not known.",
            suggestion="Set model.base_url to the provider's address that speaks OpenAI's protocol, or install"
            " 'dragoman-ask[pydantic-ai]'.",
        )
    from dragoman_ask.pydantic_ai_model import PydanticAIModel

    return PydanticAIModel(settings)


def time_is_up(settings: ModelSettings) -> ModelError:
    """Return the error for a model that keeps us waiting."""
    return ModelError(
        f"The model did not reply within {settings.timeout:g} seconds.",
        suggestion="Try again in a moment; the administrator can raise model.timeout.",
    )


def explain_status(status: int) -> ModelError:
    """Return the error for a status of a model's server that is no success."""
    if status in (401, 403):
        return ModelError("The model's server refused the key.", suggestion="Tell the administrator: model.api_key.")
    if status == 404:
        return ModelError(
            "The model's server does not know the model.",
            suggestion="Tell the administrator: model.name, model.base_url.",
        )
    if status == 429:
        return ModelError("The model's server takes no more requests now.", suggestion="Try again in a minute.")
    return ModelError(f"The model's server failed with status {status}.")
