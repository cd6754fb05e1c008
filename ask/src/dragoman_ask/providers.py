"""The configured model: over OpenAI's protocol, over pydantic-ai, recorded or replayed."""

from __future__ import annotations

from importlib.util import find_spec

from dragoman.config import ModelSettings
from dragoman.errors import ConfigurationError

from dragoman_ask.models import Model


def make_model(settings: ModelSettings) -> Model:
    """Return the configured model, recorded or replayed if that is configured.

    Raises `ConfigurationError` for a provider that needs further settings.
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
    """Return a model of a provider with a protocol of its own."""
    if find_spec("pydantic_ai") is None:
        raise ConfigurationError(
            f"model.base_url is missing: the address of {provider} is unknown.",
            suggestion="Set model.base_url to the provider's address that speaks OpenAI's protocol, or install"
            " 'dragoman-ask[pydantic-ai]'.",
        )
    from dragoman_ask.pydantic_ai_model import PydanticAIModel

    return PydanticAIModel(settings)
