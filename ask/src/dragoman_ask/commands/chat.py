"""`dragoman ask --chat`: questions one after another, each with the context of those before it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dragoman.cli import output, report
from dragoman.cli.common import warn
from dragoman.errors import AmbiguousQuery, DragomanError

if TYPE_CHECKING:
    from dragoman.gateway import Gateway
    from dragoman.gateway.asking import AskAnswer, Question, Turn

HELP = (
    "Ask; an empty line, /quit or Ctrl-D ends. /right and /wrong mark the last answer, /new starts a new conversation."
)
LEAVING = ("", "/quit", "/exit")
TURNS = 8
"""The number of turns that a question remembers."""
Answer = Callable[["Gateway", "Question", argparse.Namespace], Awaitable["AskAnswer"]]


async def chat(gateway: Gateway, first: Question, arguments: argparse.Namespace, answer: Answer) -> None:
    """Answer the questions on stdin, line by line, until it ends."""
    conversation = _Conversation(gateway, first, arguments, answer)
    if sys.stdin.isatty():
        warn(HELP)
    if first.text:
        await conversation.say(first.text)
    async for line in _lines():
        if line.strip() in LEAVING:
            return
        try:
            await conversation.say(line.strip())
        except DragomanError as error:
            report(error)


async def _lines() -> AsyncIterator[str]:
    """Yield the lines of stdin. A daemon thread reads them, for which nobody has to wait at the end."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()
    wanted = threading.Semaphore(0)

    def read() -> None:
        while wanted.acquire():
            if sys.stdin.isatty():
                output.put("> ", sys.stderr, end="")
                sys.stderr.flush()
            loop.call_soon_threadsafe(lines.put_nowait, sys.stdin.readline())

    threading.Thread(target=read, daemon=True).start()
    while True:
        wanted.release()
        if not (line := await lines.get()):
            return
        yield line


class _Conversation:
    """Questions and answers so far. `asked`: the model's question back, which the next line answers."""

    def __init__(self, gateway: Gateway, first: Question, arguments: argparse.Namespace, answer: Answer) -> None:
        self._gateway = gateway
        self._arguments = arguments
        self._answer = answer
        self._question = first
        self._turns: list[Turn] = []
        self._last = ""
        self._asked = ""

    async def say(self, line: str) -> None:
        """Handle one line. Raises what a question raises."""
        if line in ("/right", "/wrong"):
            principal = self._question.principal
            name = await self._gateway.asker().rate(principal, self._last, right=line == "/right")
            warn(f"kept in {name}")
        elif line == "/new":
            self._turns, self._asked = [], ""
        elif line.startswith("/"):
            warn(f"There is no {line}. {HELP}")
        else:
            await self._ask(line)

    async def _ask(self, line: str) -> None:
        from dragoman.gateway.asking import Turn

        text = f"{self._asked}\n{line}" if self._asked else line
        self._asked, self._last = "", text
        try:
            found = await self._answer(self._gateway, self._next(text), self._arguments)
        except AmbiguousQuery as error:
            self._asked = f"{text}\n({error.message})"
            output.put(error.message, sys.stderr)
            return
        self._turns.append(Turn(text, found.sql))

    def _next(self, text: str) -> Question:
        return replace(self._question, text=text, history=tuple(self._turns[-TURNS:]))
