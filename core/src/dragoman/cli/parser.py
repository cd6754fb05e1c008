"""The parser of the command line: argparse, plus the nearest command or option for a misspelled word."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, cast

from dragoman.words import nearest, visible_lines

_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)$", re.DOTALL)
_UNKNOWN = re.compile(r"unrecognized arguments: (.*)$", re.DOTALL)
_MISSING = "the following arguments are required"
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Writes an option as Python does from 3.13 on, with its value once: `-n, --limit N`."""

    if sys.version_info < (3, 13):

        def _format_action_invocation(self, action: argparse.Action) -> str:
            if not action.option_strings or action.nargs == 0:
                return super()._format_action_invocation(action)
            value = self._format_args(action, self._get_default_metavar_for_optional(action))
            return f"{', '.join(action.option_strings)} {value}"


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that keeps examples as written and adds suggestions to its errors."""

    def __init__(self, *, above: Parser | None = None, **options: Any) -> None:
        options.setdefault("formatter_class", _Help)
        super().__init__(**options)
        self._above = above
        self._commands: Mapping[str, Parser] = {}
        self._given: Sequence[str] = ()

    def add_subparsers(self, **options: Any) -> Any:
        """As in argparse, but keeps the commands, since their options may have been meant."""
        # argparse would format its usage for `prog`, and import the modules for that.
        below = cast("type[Parser]", partial(Parser, above=self))
        action = super().add_subparsers(parser_class=below, prog=self.prog, **options)
        self._commands = action.choices
        return action

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """As in argparse, but a command reports unknown words itself, with its own usage."""
        self._given = list(args or ())
        known, unknown = super().parse_known_args(args, namespace)
        if unknown and not self._commands and args is not None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def format_help(self) -> str:
        """As in argparse, but a command without examples shows those of the command above it that call it."""
        if self.epilog is None and self._above is not None:
            told = [line for line in (self._above.epilog or "").splitlines() if f"{self.prog} " in f"{line} "]
            self.epilog = "\n".join(["examples:", *told]) if told else None
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Print the usage, the error and the nearest known words to stderr. Exits with 2."""
        super().error(visible_lines(message + self.suggest(message)))

    def options(self) -> set[str]:
        """Return the options of this parser and of its commands."""
        return set(_OPTION.findall(self.format_help())).union(*(each.options() for each in self._commands.values()))

    def suggest(self, message: str) -> str:
        """Return a sentence with the probable words, after a line break; else an empty text."""
        if choice := _CHOICE.search(message):
            near = nearest(choice[1], re.findall(r"[\w-]+", choice[2]), 2)
        elif unknown := _UNKNOWN.search(message):
            words = unknown[1].split()
            near = self._near_options(words) or self._as_urls(words)
        elif message.startswith(_MISSING):  # a misspelled option takes the next word as its argument
            near = self._near_options([word for word in self._given if word.startswith("--")])
        else:
            return ""
        return f"\nDid you mean {' or '.join(near)}?" if near else ""

    def _as_urls(self, words: Sequence[str]) -> list[str]:
        """Return the option that takes a database, for a command that was given one in place of an argument."""
        given = [word for word in words[:1] if "://" in word or os.path.isfile(word)]  # pathlib is slow to import
        return [f"--url {word}" for word in given if "--url" in self.options()]

    def _near_options(self, words: Sequence[str]) -> list[str]:
        """Return the options similar to unknown ones among the words."""
        options = sorted(self.options())
        given = [word.partition("=")[0] for word in words if word.startswith("-")]
        unknown = [word for word in given if not any(option.startswith(word) for option in options)]
        return [name for word in unknown for name in nearest(word, options)]
