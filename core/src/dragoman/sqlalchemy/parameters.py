"""Translates placeholders from the way agents write them (`?`, `?2` or `$2`) to the driver's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman.errors import ParameterError
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.text import Token, tokens

Bound = tuple[str, tuple[Any, ...] | dict[str, Any] | None]

# For each DB-API paramstyle, how it writes the parameter with a given index, counted from 1.
_STYLES: Final[dict[str, Callable[[int], str]]] = {
    "qmark": lambda index: "?",
    "format": lambda index: "%s",
    "numeric": lambda index: f":{index}",
    "numeric_dollar": lambda index: f"${index}",
    "named": lambda index: f":p{index}",
    "pyformat": lambda index: f"%(p{index})s",
}
_BY_POSITION: Final = frozenset({"qmark", "format"})
_BY_NAME: Final = frozenset({"named", "pyformat"})
_PERCENT_DOUBLED: Final = frozenset({"format", "pyformat"})
_QUOTED: Final = frozenset({"string", "name"})


def bind(
    statement: str, values: Sequence[Any], lexicon: Lexicon, paramstyle: str, *, percents_in_quotes: bool = True
) -> Bound:
    """Return the statement and its parameters in a driver's paramstyle; None instead of parameters if it has none.

    Texts and quoted names keep their meaning: their `%` is doubled where the driver interprets it, which it does within
    quotes too unless `percents_in_quotes` is False. Raises `ParameterError` when values and placeholders do not match.
    """
    read = tokens(statement, lexicon)
    found = [token for token in read if token.kind == "parameter"]
    indexes = _indexes(found)
    wanted = max(indexes, default=0)
    if wanted != len(values):
        raise ParameterError(
            f"The statement has {wanted} parameters, {len(values)} values were given.",
            suggestion="Give one value in params for each placeholder.",
        )
    if not found:
        return statement, None
    kept = () if percents_in_quotes else [token for token in read if token.kind in _QUOTED and "%" in token.text]
    text = _rewrite(statement, _replacements(found, indexes, kept, paramstyle), paramstyle)
    if paramstyle in _BY_NAME:
        return text, {f"p{index}": values[index - 1] for index in set(indexes)}
    if paramstyle in _BY_POSITION:
        return text, tuple(values[index - 1] for index in indexes)
    return text, tuple(values)


def _indexes(found: Sequence[Token]) -> list[int]:
    """Return the value that each placeholder takes, counted from 1: by its number, or by its place."""
    numbered = [token.text[1:] for token in found]
    if all(numbered):
        return [_number(text) for text in numbered]
    if any(numbered):
        raise ParameterError(
            "Numbered and plain placeholders are mixed.", suggestion="Number all of them, or none of them."
        )
    return list(range(1, len(found) + 1))


def _number(text: str) -> int:
    number = int(text) if len(text) < 6 else 0
    if number < 1:
        raise ParameterError(f"There is no parameter {text[:20]}.", suggestion="Number placeholders from 1.")
    return number


def _replacements(
    found: Sequence[Token], indexes: Sequence[int], kept: Sequence[Token], paramstyle: str
) -> list[tuple[Token, str]]:
    """Return what replaces each token, in the order of the text: placeholders, and quoted tokens as they are."""
    write = _STYLES[paramstyle]
    written = [(token, write(index)) for token, index in zip(found, indexes, strict=True)]
    return sorted([*written, *((token, token.text) for token in kept)], key=lambda each: each[0].start)


def _rewrite(statement: str, replacements: Sequence[tuple[Token, str]], paramstyle: str) -> str:
    parts: list[str] = []
    copied = 0
    for token, text in replacements:
        parts += (_literal(statement[copied : token.start], paramstyle), text)
        copied = token.end
    return "".join((*parts, _literal(statement[copied:], paramstyle)))


def _literal(text: str, paramstyle: str) -> str:
    return text.replace("%", "%%") if paramstyle in _PERCENT_DOUBLED else text
