"""Prompts: markdown files with a front matter in YAML. Some are shipped, others are in `server.prompts_dir`."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from dragoman.saved import NAME
from dragoman.text_files import find_visible, read_text
from dragoman.tools.surfaces.items import Prompt, PromptArgument

MAX_BYTES: Final = 64 * 1024
SHIPPED: Final = Path(__file__).with_name("shipped")
_FRONT = re.compile(r"---[ \t]*\r?\n(?P<front>.*?)\r?\n---[ \t]*(?:\r?\n|$)(?P<text>.*)", re.DOTALL)
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,48}")
_log = logging.getLogger(__name__)


class Prompts:
    """The available prompts. Files are read at every use. A faulty file is logged once."""

    def __init__(self, folder: Path | None) -> None:
        self._folders = ((SHIPPED, ("shipped",)), *([(folder, ("own",))] if folder else []))
        self._told: set[str] = set()

    def read(self) -> dict[str, Prompt]:
        """Return the prompts by name. One in the folder replaces a shipped one of the same name."""
        found: dict[str, Prompt] = {}
        for folder, tags in self._folders:
            for path in find_visible(folder, ".md"):
                try:
                    prompt = parse(read_text(path, MAX_BYTES), path.stem, tags)
                except OSError as error:
                    self._tell(f"the prompt {path.name} is left out: the file cannot be read ({error.strerror})")
                except ValueError as wrong:
                    self._tell(f"the prompt {path.name} is left out: {wrong}")
                else:
                    found[prompt.name] = prompt
        return found

    def _tell(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            _log.warning("%s", problem)


def parse(text: str, name: str, tags: tuple[str, ...] = ()) -> Prompt:
    """Return the prompt of a file's text. `name` is used if the front matter has none. Raises `ValueError`."""
    matched = _FRONT.fullmatch(text)
    front = _front(matched["front"]) if matched else {}
    called, description = str(front.get("name", name)), front.get("description", "")
    if not NAME.fullmatch(called):
        raise ValueError(f"a prompt cannot be named {called[:100]!r}")
    if unknown := front.keys() - {"name", "description", "arguments", "tags"}:
        raise ValueError(f"its front matter has no key {min(unknown)!r}")
    body = (matched["text"] if matched else text).strip()
    if not body:
        raise ValueError("there is no text below the front matter")
    return Prompt(
        name=called,
        text=body,
        description=" ".join(str(description).split()),
        arguments=tuple(_argument(each) for each in _read_list(front.get("arguments"))),
        tags=tuple(dict.fromkeys((*tags, *(str(tag) for tag in _read_list(front.get("tags")))))),
    )


def _front(text: str) -> dict[str, Any]:
    import yaml  # only for those who have or use prompts

    try:
        front: Any = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        raise ValueError("its front matter is not YAML") from None
    if front is not None and not isinstance(front, dict):
        raise ValueError("its front matter is not a mapping")
    given: dict[Any, Any] = front or {}  # pyright: ignore[reportUnknownVariableType]
    return {str(key): value for key, value in given.items()}


def _read_list(value: Any) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise ValueError("arguments and tags are lists")
    given: list[Any] = value or []  # pyright: ignore[reportUnknownVariableType]
    return given


def _argument(written: Any) -> PromptArgument:
    """Return an argument, from its name alone, or from name, description and whether it is required."""
    if not isinstance(written, str | dict):
        raise ValueError("an argument is a name, or a mapping with one")
    given = cast("Mapping[str, Any]", {"name": written} if isinstance(written, str) else written)
    name = str(given.get("name", ""))
    if not _ARGUMENT.fullmatch(name) or given.keys() - {"name", "description", "required"}:
        raise ValueError(f"this is not an argument: {name[:100]!r}")
    return PromptArgument(name, " ".join(str(given.get("description", "")).split()), bool(given.get("required")))
