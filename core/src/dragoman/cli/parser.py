"""The parser of the command line: argparse, which also names the nearest command or option when a word is wrong."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from dragoman.words import nearest

_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)$", re.DOTALL)
_UNKNOWN = re.compile(r"unrecognized arguments: (.*)$", re.DOTALL)
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` with examples left as they are written and suggestions in its errors."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
        self._commands: Mapping[str, Parser] = {}

    def add_subparsers(self, **options: Any) -> Any:
        """As argparse's; the commands are kept, since their options may be what was meant."""
        action = super().add_subparsers(parser_class=Parser, **options)
        self._commands = action.choices
        return action

    def error(self, message: str) -> NoReturn:
        """Print the usage, the error and the nearest known words to stderr; end with 2."""
        super().error(message + self.suggest(message))

    def options(self) -> set[str]:
        """Return the options of this parser and of its commands."""
        return set(_OPTION.findall(self.format_help())).union(*(each.options() for each in self._commands.values()))

    def suggest(self, message: str) -> str:
        """Return a sentence that names what was probably meant, with a leading line break; else an empty text."""
        if choice := _CHOICE.search(message):
            near = nearest(choice[1], re.findall(r"[\w-]+", choice[2]), 2)
        elif unknown := _UNKNOWN.search(message):
            options = sorted(self.options())
            given = [word.partition("=")[0] for word in unknown[1].split() if word.startswith("-")]
            near = [name for word in given for name in nearest(word, options)]
        else:
            return ""
        return f"\nDid you mean {' or '.join(near)}?" if near else ""
