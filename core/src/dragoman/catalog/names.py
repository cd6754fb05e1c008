"""Names as people and agents write them, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.dialect import Dialect
from dragoman.model import Relation
from dragoman.sql.lexicon import Lexicon
from dragoman.words import LONGEST, nearest

_BARE = re.compile(r"[^\W\d][\w$]*")
_MOST_PARTS = 8
"""The most parts of a name: catalog, schema, relation and column."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a dotted name. `quoted` ones are exact; the others fold as the dialect says."""

    text: str
    quoted: bool = False

    def names(self, stored: str | None, dialect: Dialect) -> bool:
        """Return whether this part means the stored name `stored`."""
        if stored is None:
            return False
        if not self.quoted or dialect.folding == "insensitive":
            return dialect.same(self.text, stored)
        return self.text == stored


def parse_name(text: str, lexicon: Lexicon) -> tuple[Part, ...] | None:
    """Parse a plain, quoted or dotted name as in SQL. None if `text` is not one, or has more parts than any name."""
    parts: list[Part] = []
    position = 0
    while len(parts) < _MOST_PARTS:
        read = _read_part(text, position, lexicon)
        if read is None:
            return None
        part, position = read
        parts.append(part)
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            return None
        position += 1
    return None


def name_pattern(lexicon: Lexicon) -> str:
    """Return the pattern of one name, plain or quoted."""
    return "|".join((*quoted_name_patterns(lexicon), _BARE.pattern))


def quoted_name_patterns(lexicon: Lexicon) -> Iterator[str]:
    """Yield the pattern of a quoted name for each of the lexicon's quotes."""
    patterns = {'"': r'"(?:[^"]|"")+"', "`": r"`(?:[^`]|``)+`", "[": r"\[[^\[\]\d][^\[\]]*\]"}
    yield from (patterns[mark] for mark in lexicon.identifier_quotes if mark in patterns)


def interpretations(written: str, dialect: Dialect) -> Iterator[tuple[Part, ...]]:
    """Yield the meanings that a written name may have: as in SQL first, then exactly as stored."""
    parts = parse_name(written, dialect.lexicon)
    if parts is not None:
        yield parts
    yield (Part(written, quoted=True),)


def _read_part(text: str, start: int, lexicon: Lexicon) -> tuple[Part, int] | None:
    if start < len(text) and text[start] in lexicon.identifier_quotes:
        return _read_quoted(text, start)
    match = _BARE.match(text, start)
    return None if match is None else (Part(match[0]), match.end())


def _read_quoted(text: str, start: int) -> tuple[Part, int] | None:
    close = "]" if text[start] == "[" else text[start]
    position = start + 1
    while (position := text.find(close, position)) != -1:
        doubled = close != "]" and text.startswith(close * 2, position)
        if not doubled:
            name = text[start + 1 : position].replace(close * 2, close)
            return (Part(name, quoted=True), position + 1) if name else None
        position += 2
    return None


@dataclass(frozen=True, slots=True)
class Namespace:
    """The schemas of unqualified names, which decide the shortest way to write a relation."""

    dialect: Dialect
    schema: str | None = None
    catalog: str | None = None

    def schema_name(self, relation: Relation) -> str:
        """Return the relation's schema as in SQL, after its catalog if there is one; empty if it has no schema."""
        return self.join(relation.catalog, relation.schema)

    def join(self, *parts: str | None) -> str:
        """Return the given parts as one dotted name, each quoted only if necessary."""
        return ".".join(self.dialect.quote(part) for part in parts if part is not None)

    def name(self, relation: Relation) -> str:
        """Return the relation as SQL, qualified only as far as necessary."""
        home = relation.catalog is None or relation.catalog == self.catalog
        if home and (relation.schema is None or relation.schema == self.schema):
            return self.dialect.quote(relation.name)
        return self.join(None if home else relation.catalog, relation.schema, relation.name)

    def spellings(self, *parts: str | None) -> Sequence[str]:
        """Return the texts that parts of a statement's name may stand for.

        Where the dialect has no grammar of its own, nobody knows whether they were quoted, so they stand for the exact
        or the folded name.
        """
        there = [part for part in parts if part is not None]
        exact = self.join(*there)
        return (exact,) if self.dialect.read else tuple(dict.fromkeys((exact, ".".join(there))))

    def may_name(self, told: str, relation: Relation) -> bool:
        """Return whether a name that an engine reports may be a relation's, as far as both are qualified.

        The engine reports it in its own case.
        """
        ends = [name.lower() for name in (relation.name, relation.schema, relation.catalog) if name is not None]
        return any(
            all(part.text.lower() == end for part, end in zip(reversed(parts), ends, strict=False))
            for parts in interpretations(told, self.dialect)
        )

    def namespace_of(self, relation: Relation) -> Namespace:
        """Return the namespace in which names of the relation's own schema need no qualification."""
        return Namespace(self.dialect, relation.schema, relation.catalog)


def near(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` of `names` that are similar to `name`, best first, compared without case."""
    wanted = name[:LONGEST].lower()
    by_fold: dict[str, list[str]] = {}
    for candidate in dict.fromkeys(names):
        by_fold.setdefault(candidate.lower(), []).append(candidate)
    close = nearest(wanted, by_fold, count)
    if len(wanted) >= 3 and len(close) < count:
        containing = (fold for fold in by_fold if len(fold) >= 3 and (wanted in fold or fold in wanted))
        close += [fold for fold in sorted(containing, key=len) if fold not in close][: count - len(close)]
    return [candidate for fold in close for candidate in by_fold[fold]][:count]
