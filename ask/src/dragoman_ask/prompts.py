"""The model's instructions: markdown files, shipped or the administrator's own, filled with fenced data."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from dragoman.words import visible_lines

NAMES = ("system", "choose", "write", "repair", "look", "check", "describe", "overview")
_PLACE = re.compile(r"\{(\w+)\}")
_FENCE = re.compile(r"data-[0-9a-f]{16}")


@lru_cache(maxsize=1)
def _read_shipped() -> Mapping[str, str]:
    folder = files("dragoman_ask").joinpath("prompts")
    return {name: folder.joinpath(f"{name}.md").read_text(encoding="utf-8") for name in NAMES}


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts by name. Files of the folder `ask` in `prompts_dir` replace the shipped ones.

    They are read for each question, so that a change takes effect at once.
    """

    prompts_dir: Path | None = None

    def fill(self, name: str, values: Mapping[str, str]) -> str:
        """Return a text with `{name}` replaced. Inserted text is not searched again."""
        return _PLACE.sub(lambda place: values.get(place[1], place[0]), self._text(name)).strip()

    def _text(self, name: str) -> str:
        own = self.prompts_dir / "ask" / f"{name}.md" if self.prompts_dir else None
        if own is not None and own.is_file():
            return own.read_text(encoding="utf-8-sig")
        return _read_shipped()[name]


@dataclass(frozen=True, slots=True)
class Fence:
    """A mark around data that the authors of the data cannot know."""

    mark: str = field(default_factory=lambda: f"data-{secrets.token_hex(8)}")

    def around(self, data: str, what: str) -> str:
        """Return data between marks. Invisible characters, and those that a terminal obeys, are spelled out."""
        return f'<{self.mark} of="{what}">\n{visible_lines(data)}\n</{self.mark}>'


def without_fences(text: str) -> str:
    """Return a text with every mark replaced by a constant one, so that conversations can be compared."""
    return _FENCE.sub("data", text)
