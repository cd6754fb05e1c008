"""Exchanges with a model, written to a file and replayed: the same questions without a model, a key or a network.

A file has one exchange per line, as JSON. It holds prompts and replies, and never keys, headers or addresses.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from dragoman.errors import ConfigurationError, ModelError
from dragoman.words import display

from dragoman_ask.models import STRIPPED, Completion, Message, Model, Shape, Usage
from dragoman_ask.prompts import without_fences


class Exchange(msgspec.Struct, frozen=True):
    """A prompt, by which the exchange is found, and the reply. `shape`: the name of the reply's shape."""

    model: str
    shape: str
    messages: tuple[Message, ...]
    reply: str
    input_tokens: int
    output_tokens: int

    @property
    def request(self) -> str:
        """Return the prompt as one text. Two prompts that differ only in the marks around data are equal."""
        return _make_request(self.model, self.shape, self.messages)


class RecordingModel:
    """Another model, whose replies are added to a file. `key`: removed from every text."""

    def __init__(self, inner: Model, name: str, path: Path, key: str = "") -> None:
        self._inner = inner
        self._name = name
        self._path = path
        self._key = key
        self._writing = asyncio.Lock()

    async def complete(self, messages: Sequence[Message], shape: Shape, max_tokens: int) -> Completion:
        """Return the other model's reply. Raises what that raises, and `ConfigurationError` if it cannot be stored."""
        completion = await self._inner.complete(messages, shape, max_tokens)
        kept = tuple(Message(message.role, self._strip(without_fences(message.text))) for message in messages)
        usage = completion.usage
        exchange = Exchange(
            self._name, shape.name, kept, self._strip(completion.text), usage.input_tokens, usage.output_tokens
        )
        async with self._writing:
            await asyncio.to_thread(_append, self._path, exchange)
        return completion

    def _strip(self, text: str) -> str:
        return text.replace(self._key, STRIPPED) if self._key else text

    async def aclose(self) -> None:
        """Release the other model's connections."""
        await self._inner.aclose()


class ReplayedModel:
    """Returns the replies of a file. A reply that was recorded several times is returned in turn, repeatedly."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._known: Mapping[str, Sequence[Exchange]] | None = None
        self._given = Counter[str]()
        self._reading = asyncio.Lock()

    async def complete(self, messages: Sequence[Message], shape: Shape, max_tokens: int) -> Completion:
        """Return the recorded reply. Raises `ModelError` for a request that is not in the file."""
        async with self._reading:
            if self._known is None:
                self._known = await asyncio.to_thread(_read, self._path)
        request = _make_request(self._name, shape.name, messages)
        if (exchanges := self._known.get(request)) is None:
            raise _refuse(request, self._known)
        exchange = exchanges[self._given[request] % len(exchanges)]
        self._given[request] += 1
        return Completion(exchange.reply, Usage(exchange.input_tokens, exchange.output_tokens))

    async def aclose(self) -> None:
        """Do nothing: there is nothing to release."""


def _make_request(model: str, shape: str, messages: Sequence[Message]) -> str:
    lines = [f"{model} replies with a {shape}", *(f"{each.role}:\n{without_fences(each.text)}" for each in messages)]
    return "\n".join(lines)


def _refuse(request: str, known: Iterable[str]) -> ModelError:
    """Return the error for a request that is not in the file.

    It names the first line of the request that no recorded one has at that place.
    """
    lines = request.split("\n")
    shared = max((_count_shared(lines, other.split("\n")) for other in known), default=0)
    line = display(lines[min(shared, len(lines) - 1)], 200)
    return ModelError(
        f"This request to the model was not recorded. It differs from the recorded ones at: {line}",
        suggestion="The question, the schema, the files, the prompts or the settings have changed since. Record it"
        " again with model.record or --record.",
    )


def _count_shared(lines: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of lines that two texts have in common at their beginning."""
    pairs = zip(lines, others, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(lines), len(others)))


def _append(path: Path, exchange: Exchange) -> None:
    """Add a line to a file that only its owner can read."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(msgspec.json.encode(exchange) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path.name}, model.record, cannot be written ({error.strerror}).") from None


def _read(path: Path) -> Mapping[str, Sequence[Exchange]]:
    """Return the exchanges of a file by prompt. Raises `ConfigurationError`, which names the line."""
    known = defaultdict[str, list[Exchange]](list)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigurationError(f"{path.name}, model.replay, cannot be read ({error.strerror}).") from None
    for number, line in enumerate(lines, 1):
        try:
            exchange = msgspec.json.decode(line, type=Exchange)
        except msgspec.DecodeError as error:
            raise ConfigurationError(f"{path.name}:{number} is not a recorded exchange: {error}") from None
        known[exchange.request].append(exchange)
    return dict(known)
