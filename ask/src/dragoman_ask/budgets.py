"""What questions may use: tokens and money, per question and per day of a caller (UTC)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from dragoman.config import ModelSettings
from dragoman.errors import QuotaExceeded
from dragoman.model import Principal
from dragoman.telemetry import ModelUse

from dragoman_ask.models import Usage

SECONDS_PER_DAY = 86_400
LEAST_REPLY = 200
"""The least tokens of a reply. A question with fewer left is not sent."""
MILLION = 1_000_000


@dataclass(slots=True)
class Day:
    """What a caller has used today, with what running requests reserved: `reserved` tokens, for `held` money."""

    tokens: int = 0
    cost: float = 0.0
    reserved: int = 0
    held: float = 0.0


class Budgets:
    """Counts what every caller uses, in this process, since its start."""

    def __init__(self, settings: ModelSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._today = 0
        self._days: dict[tuple[str, str, str], Day] = {}

    def begin(self, principal: Principal) -> Spending:
        """Return the account of one question."""
        today = int(self._clock() // SECONDS_PER_DAY)
        # A clock that is set back over midnight, as time servers do, gives nobody the same day twice.
        if today not in (self._today, self._today - 1):
            self._today, self._days = today, {}
        day = self._days.setdefault(principal.identity, Day())
        left = SECONDS_PER_DAY - int(self._clock() % SECONDS_PER_DAY)
        return Spending(self._settings, day, left, ModelUse(self._settings.name))


@dataclass(slots=True)
class Spending:
    """What one question uses. `seconds_left`: until the caller's day is over."""

    settings: ModelSettings
    day: Day
    seconds_left: int
    use: ModelUse
    reserved: int = field(default=0, init=False)

    def reserve(self, prompt: int) -> int:
        """Return the tokens that a reply may have, given the approximate tokens of the prompt.

        Raises `QuotaExceeded`.
        """
        settings = self.settings
        reply = min(settings.max_tokens, settings.max_tokens_per_call - self.use.tokens - self.reserved - prompt)
        if reply < LEAST_REPLY or self._is_dear(prompt, reply, self.use.cost, settings.max_cost_per_call):
            raise QuotaExceeded(
                "This question needs more tokens or money than one question may use.",
                suggestion="Ask a smaller question; the administrator can raise model.max_tokens_per_call.",
            )
        if settings.max_tokens_per_day is not None:
            reply = min(reply, settings.max_tokens_per_day - self.day.tokens - prompt)
        if reply < LEAST_REPLY or self._is_dear(prompt, reply, self.day.cost, settings.max_cost_per_day):
            raise self._refuse_today(prompt)
        self._reserve(prompt + reply, self._cost(prompt, reply))
        return reply

    def settle(self, prompt: int, reply: int, used: Usage | None) -> None:
        """Replace the reservation by the actual use; None: the server refused the request, or was not there."""
        self._reserve(-prompt - reply, -self._cost(prompt, reply))
        self.use.calls += 1
        if used is None:
            return
        cost = self._cost(used.input_tokens, used.output_tokens)
        self.use.input_tokens += used.input_tokens
        self.use.output_tokens += used.output_tokens
        self.use.cost += cost
        self.day.tokens += used.input_tokens + used.output_tokens
        self.day.cost += cost

    def _reserve(self, tokens: int, cost: float) -> None:
        self.reserved += tokens
        self.day.reserved += tokens
        self.day.held += cost
        self.day.tokens += tokens
        self.day.cost += cost

    def _refuse_today(self, prompt: int) -> QuotaExceeded:
        """Return the error. What running questions do not use of their reservations is free once they are answered."""
        most, day = self.settings.max_tokens_per_day, self.day
        is_used = most is not None and most - (day.tokens - day.reserved) - prompt < LEAST_REPLY
        if is_used or self._is_dear(prompt, LEAST_REPLY, day.cost - day.held, self.settings.max_cost_per_day):
            message, wait = "Your quota of the model for today is used up.", self.seconds_left
        else:
            message = "Running questions have reserved the rest of your quota of the model for today."
            wait = min(self.seconds_left, ceil(self.settings.timeout))
        return QuotaExceeded(message, suggestion=f"Ask again in {wait} seconds.", context={"retry_after": wait})

    def _cost(self, prompt: int, reply: int) -> float:
        return (prompt * self.settings.input_price + reply * self.settings.output_price) / MILLION

    def _is_dear(self, prompt: int, reply: int, spent: float, limit: float | None) -> bool:
        return limit is not None and spent + self._cost(prompt, reply) > limit
