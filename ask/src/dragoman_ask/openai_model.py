"""A model behind OpenAI's protocol, at OpenAI's address or any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from dragoman.config import ModelSettings
from dragoman.errors import ModelError

from dragoman_ask.models import (
    Completion,
    Message,
    Shape,
    check_usage,
    estimate,
    explain_status,
    no_text,
    time_is_up,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI = "https://api.openai.com/v1"
RETRIES = 3
"""Retries of one request.

They follow 408, 409, 429, 5xx and broken connections, as `retry-after` says, or else with growing pauses.
"""
FORMATS = ("json_schema", "json_object", "text")
"""Ways to ask for an object, the strictest first. If a server refuses one, the next one is used from then on."""


class OpenAIModel:
    """Speaks OpenAI's chat completions. The library is imported with the first question."""

    def __init__(self, settings: ModelSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._format = 0
        self._client: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()

    async def complete(self, messages: Sequence[Message], shape: Shape, max_tokens: int) -> Completion:
        """Return the model's reply. Raises `ModelError`."""
        client = await self._connect()
        import openai

        try:
            async with asyncio.timeout(self._settings.timeout):
                return _completion(await self._create(client, messages, shape, max_tokens), messages, max_tokens)
        except TimeoutError:
            raise time_is_up(self._settings, messages) from None
        except openai.APIStatusError as error:
            raise explain_status(error.status_code) from None
        except openai.APIConnectionError:
            raise ModelError("The model cannot be reached, or its reply was cut off.") from None
        except (openai.OpenAIError, msgspec.DecodeError, ValueError, RecursionError):
            raise ModelError("The response of the model's server is not a completion.") from None

    async def _create(self, client: AsyncOpenAI, messages: Sequence[Message], shape: Shape, max_tokens: int) -> bytes:
        import openai

        # No overload matches keywords that depend on the server.
        completions: Any = client.chat.completions.with_raw_response
        sent: Any = [{"role": message.role, "content": message.text} for message in messages]
        # Newer models of OpenAI know only one name of the limit; other servers often know only the other.
        limit = "max_tokens" if self._settings.base_url else "max_completion_tokens"
        while True:
            tried = self._format  # other questions may change it meanwhile
            further: dict[str, Any] = {limit: max_tokens, **_response_format(FORMATS[tried], shape)}
            try:
                answer = await completions.create(model=self._name, messages=sent, **further)
                return bytes(answer.content)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if "response_format" not in str(error) or FORMATS[tried] == FORMATS[-1]:
                    raise
                self._format = max(self._format, tried + 1)

    async def _connect(self) -> AsyncOpenAI:
        async with self._connecting:
            if self._client is None:
                # The import takes a second, so it runs in a thread.
                self._client = await asyncio.to_thread(_client, self._settings)
            return self._client

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _client(settings: ModelSettings) -> AsyncOpenAI:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    from dragoman_ask.bounded import bounding

    key = settings.api_key.reveal() if settings.api_key else "none"
    return AsyncOpenAI(
        # Everything is given, so that no environment variable decides where questions go.
        api_key=key,
        base_url=settings.base_url or OPENAI,
        organization="" if settings.base_url else None,
        project="" if settings.base_url else None,
        timeout=settings.timeout,
        max_retries=RETRIES,
        # A redirect would send the question and the schema to whatever host it names.
        http_client=DefaultAsyncHttpxClient(follow_redirects=False, timeout=settings.timeout, event_hooks=bounding()),
    )


def _response_format(kind: str, shape: Shape) -> dict[str, Any]:
    if kind == "json_schema":
        schema = {"name": shape.name, "schema": shape.schema, "strict": True}
        return {"response_format": {"type": kind, "json_schema": schema}}
    return {"response_format": {"type": kind}} if kind == "json_object" else {}


class _Said(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw()


class _Choice(msgspec.Struct):
    message: _Said


class _Used(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _Response(msgspec.Struct):
    """What counts of a server's response. The library would make objects of all of it, which took seconds for 8 MB."""

    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw()


def _completion(body: bytes, messages: Sequence[Message], max_tokens: int) -> Completion:
    """Return a server's response as a reply. Raises `ModelError` for one without text, or a `msgspec.DecodeError`."""
    answer = msgspec.json.decode(body, type=_Response)
    said = bytes(answer.choices[0].message.content) if answer.choices else b""
    text = msgspec.json.decode(said, type=str) if said.startswith(b'"') else ""
    used = _Used()
    with suppress(msgspec.DecodeError):  # servers report what they like
        used = msgspec.json.decode(answer.usage, type=_Used)
    usage = check_usage(used.prompt_tokens, used.completion_tokens, estimate(messages), text, max_tokens)
    if not text:
        raise no_text(usage)
    return Completion(text, usage)
