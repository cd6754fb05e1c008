"""Models of providers without OpenAI's protocol, through pydantic-ai, which the extra `pydantic-ai` installs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.config import ModelSettings
from dragoman.errors import ModelError

from dragoman_ask.models import Completion, Message, Shape, check_usage, estimate, explain_status, no_text, time_is_up

if TYPE_CHECKING:
    from pydantic_ai.models import Model as Inner


class PydanticAIModel:
    """One model of pydantic-ai. The library is imported with the first question.

    `inner`: the library's model, if it is not created from the settings.
    """

    def __init__(self, settings: ModelSettings, inner: Inner | None = None) -> None:
        self._settings = settings
        self._inner = inner
        self._connecting = asyncio.Lock()

    async def complete(self, messages: Sequence[Message], shape: Shape, max_tokens: int) -> Completion:
        """Return the model's reply. Raises `ModelError`."""
        inner = await self._connect()
        from pydantic_ai.direct import model_request
        from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        wanted = OutputObjectDefinition(json_schema=shape.schema, name=shape.name, strict=True)
        # As the model's own schema if it takes one, else in words.
        mode: Any = "native" if inner.profile.get("supports_json_schema_output") else "prompted"
        try:
            async with asyncio.timeout(self._settings.timeout):
                response = await model_request(
                    inner,
                    _requests(messages),
                    model_settings={"max_tokens": max_tokens},
                    model_request_parameters=ModelRequestParameters(output_mode=mode, output_object=wanted),
                )
        except TimeoutError:
            raise time_is_up(self._settings, messages) from None
        except ModelHTTPError as error:
            raise explain_status(error.status_code) from None
        except (AgentRunError, UserError):
            raise ModelError("The model cannot be reached, or its response is not a reply.") from None
        text, used = response.text or "", response.usage
        usage = check_usage(used.input_tokens, used.output_tokens, estimate(messages), text, max_tokens)
        if not text:
            raise no_text(usage)
        return Completion(text, usage)

    async def _connect(self) -> Inner:
        async with self._connecting:
            if self._inner is None:
                # The import takes seconds, so it runs in a thread.
                self._inner = await asyncio.to_thread(_make, self._settings)
            return self._inner

    async def aclose(self) -> None:
        """Do nothing: the library's clients are shared and close with the process."""


def _make(settings: ModelSettings) -> Inner:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import Provider, infer_provider_class

    def provider(name: str) -> Provider[Any]:
        kind: Any = infer_provider_class(name)
        made: Provider[Any] = kind(**({"api_key": settings.api_key.reveal()} if settings.api_key else {}))
        return made

    try:
        return infer_model(settings.name, provider)
    except (UserError, ImportError, ValueError, TypeError):
        raise ModelError(
            "The model's provider cannot be used.",
            suggestion="Tell the administrator: model.name, model.api_key, and the packages of that provider.",
        ) from None


def _requests(messages: Sequence[Message]) -> list[Any]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    parts: dict[str, Any] = {"system": SystemPromptPart, "user": UserPromptPart}
    return [
        ModelResponse(parts=[TextPart(message.text)])
        if message.role == "assistant"
        else ModelRequest(parts=[parts[message.role](message.text)])
        for message in messages
    ]
