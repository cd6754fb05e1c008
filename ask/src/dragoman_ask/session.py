"""One question's conversation with the model: its cost is counted, and its replies are parsed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from dragoman.errors import ModelError
from dragoman.gateway import Gateway
from dragoman.gateway.asking import Question
from dragoman.gateway.calls import CallRecord

from dragoman_ask.budgets import Spending
from dragoman_ask.models import (
    CHARACTERS_PER_TOKEN,
    Message,
    Model,
    NoReply,
    Shape,
    Usage,
    estimate,
    read_reply,
    shape_of,
    without_key,
)
from dragoman_ask.prompts import Fence, Prompts

ReplyT = TypeVar("ReplyT", bound=msgspec.Struct)
QUOTED = 2_000
"""The most characters of a reply that could not be parsed, when it is shown to the model again."""
STEPS = 5


@dataclass(slots=True)
class Session:
    """The context of one question. `gateway`: as the caller sees it."""

    gateway: Gateway
    record: CallRecord
    question: Question
    model: Model
    prompts: Prompts
    spending: Spending
    fence: Fence = field(default_factory=Fence)

    async def report(self, step: int, message: str) -> None:
        """Report to the caller what is being done, and the number of the step."""
        if self.question.report is not None:
            await self.question.report(step, STEPS, message)

    def fill(self, name: str, **values: str) -> str:
        """Return a prompt with values inserted; `fence` is always one of them."""
        return self.prompts.fill(name, {"fence": self.fence.mark, "question": self.question.text, **values})

    async def ask(self, messages: Sequence[Message], kind: type[ReplyT]) -> ReplyT:
        """Return the model's parsed reply. A reply that cannot be parsed is asked for once more.

        Raises `ModelError` and `QuotaExceeded`.
        """
        shape = shape_of(kind)
        text = await self._complete(messages, shape)
        try:
            return read_reply(text, kind)
        except ValueError as error:
            told = f"That was not the JSON object that was asked for: {error}. Reply with it, and with nothing else."
        again = [*messages, Message("assistant", text[:QUOTED]), Message("user", told)]
        try:
            return read_reply(await self._complete(again, shape), kind)
        except ValueError:
            raise ModelError("The model did not reply in the requested form.") from None

    async def _complete(self, messages: Sequence[Message], shape: Shape) -> str:
        prompt = estimate(messages) + len(str(shape.schema)) // CHARACTERS_PER_TOKEN
        reply = self.spending.reserve(prompt)
        used: Usage | None = None
        try:
            # Others may use the call's slot meanwhile: the model may take a minute.
            async with self.record.admission.lend():
                completion = await self.model.complete(messages, shape, reply)
            used = completion.usage
        except asyncio.CancelledError:
            used = Usage(prompt)  # the provider counts it all the same
            raise
        except NoReply as error:
            used = error.usage
            raise
        finally:
            self.spending.settle(prompt, reply, used)
        return without_key(completion.text, self.gateway.configuration.model)
