"""A statement: the text that is judged and sent, and the facts about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dragoman.model import Relation
from dragoman.parsed import FunctionCall
from dragoman.sql import text as texts
from dragoman.sql.calls import find_calls, verbs
from dragoman.sql.lexicon import Lexicon

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

    from dragoman.sql.facts import Effect, Facts


class Statement:
    """One statement, tokenized with a dialect's lexicon.

    - `original`: as it was sent by the caller.
    - `text`: what is judged and sent to the database. Comments are spaces, a trailing semicolon and white space are
      gone, and offsets are the original's.
    - `hash`: the first 16 hexadecimal digits of the original's SHA-256.
    - `sqlglot`: sqlglot's name of its SQL.
    - `judged_relations`, `judged_columns`: what its judge found in it, for the audit; columns only if a validator asked
      for them.
    - `judged_types`: the types of users that its judge found, each as `Named.dotted`, in lower case.
    - `tokens`: those of `text`, each with its `kind` (word, name, string, number, parameter, open, close or mark), its
      `text` as written, `start` and `end`.

    Everything else is computed on first use. No attribute can be set: validators of policies get the statement, and
    what was judged must be what is sent.
    """

    original: str
    text: str
    sqlglot: str
    lexicon: Lexicon
    judged_relations: tuple[Relation, ...] = ()
    judged_columns: tuple[str, ...] = ()
    judged_types: tuple[str, ...] = ()

    def __init__(self, original: str, text: str, *, sqlglot: str, lexicon: Lexicon) -> None:
        self.__dict__.update(original=original, text=text, sqlglot=sqlglot, lexicon=lexicon)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A statement does not change: {name!r} cannot be set.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A statement does not change: {name!r} cannot be deleted.")

    @classmethod
    def parse(cls, text: str, *, sqlglot: str, lexicon: Lexicon, most: int = texts.MAX_BYTES) -> Statement:
        """Return the statement in `text`, which has at most `most` bytes.

        Raises `InvalidSql` for text that no query needs or that has no certain meaning, and `UnsafeSql` for several
        statements. It is parsed only when `tree` is used.
        """
        return cls(text, texts.clean(text, lexicon, most), sqlglot=sqlglot, lexicon=lexicon)

    def after(self, offset: int) -> Statement:
        """Return the part of this statement from `offset` on as a statement, with unchanged offsets."""
        return Statement(self.original, " " * offset + self.text[offset:], sqlglot=self.sqlglot, lexicon=self.lexicon)

    def note_judged(self, relations: Iterable[Relation], columns: Iterable[str], types: Iterable[str]) -> None:
        """Record what its judge found in it."""
        found = {"judged_relations": relations, "judged_columns": columns, "judged_types": types}
        self.__dict__.update({name: tuple(each) for name, each in found.items()})

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs. Tokens and trees are larger than the text, so it makes its own."""
        return {name: self.__dict__[name] for name in ("original", "text", "sqlglot", "lexicon")}

    def __repr__(self) -> str:
        # Literals of a statement may be secrets, and a repr ends up in logs.
        return f"Statement({self.hash})"

    @cached_property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the text as it was sent."""
        return hashlib.sha256(self.original.encode()).hexdigest()[:16]

    @cached_property
    def tokens(self) -> tuple[texts.Token, ...]:
        """The tokens of `text`."""
        return texts.tokens(self.text, self.lexicon)

    @cached_property
    def first_word(self) -> str:
        """The first word outside quotes, in lower case; empty if there is none."""
        found = (token.text for token in texts.each_token(self.text, self.lexicon) if token.kind == "word")
        return next(found, "").lower()

    @cached_property
    def tree(self) -> Expr:
        """The statement as a sqlglot tree. Raises `InvalidSql` if sqlglot cannot parse it."""
        from dragoman.sql.tree import parse

        return parse(self)

    @cached_property
    def facts(self) -> Facts:
        """The facts of the tree. Raises `InvalidSql`."""
        return self.survey()

    def survey(self, *, exact: bool = False) -> Facts:
        """Return the facts of the tree. `exact`: names that differ in case are different. Raises `InvalidSql`."""
        from dragoman.sql.facts import survey

        return survey(self.tree, self.text, self.lexicon, exact=exact)

    @cached_property
    def verbs(self) -> tuple[texts.Token, ...]:
        """The words that begin statements in it: the whole one, what follows its WITH, and writes in parentheses."""
        return tuple(verbs(self.tokens))

    @cached_property
    def written_calls(self) -> tuple[FunctionCall, ...]:
        """Every name before a parenthesis that is not a word of the grammar, from its tokens alone.

        Names with columns (`WITH a(b) AS`) are included: only a grammar can distinguish them.
        """
        return tuple(find_calls(self.tokens))

    @cached_property
    def calls(self) -> tuple[FunctionCall, ...]:
        """Every function that it calls by name, found in its tokens and in its tree, in order. Raises `InvalidSql`."""
        facts = self.facts
        found = {call.offset: call for call in facts.calls}
        found |= {call.offset: call for call in self.written_calls if call.offset not in facts.aliases}
        for call in map(self._find_written, facts.placed):
            found[call.offset] = found.get(call.offset, call)._replace(kind=call.kind)
        return tuple(call for _, call in sorted(found.items(), key=lambda each: each[0] or 0))

    def _find_written(self, placed: FunctionCall) -> FunctionCall:
        """Return a call in the place of a relation as it is written.

        sqlglot tells of some neither the place nor the name: json_table is a j_s_o_n_table.
        """
        if placed.offset is not None:
            return placed
        name = placed.name.replace("_", "")
        same = (call for call in reversed(self.written_calls) if call.name.replace("_", "") == name)
        return next(same, placed)._replace(kind=placed.kind)

    def functions(self) -> tuple[str, ...]:
        """The names of the functions that it calls, in lower case and dotted as written. Raises `InvalidSql`."""
        return tuple(dict.fromkeys(call.dotted for call in self.calls))

    def relations(self) -> tuple[Relation, ...]:
        """The relations that it names, as written, without those that WITH defines. Raises `InvalidSql`."""
        return tuple(self.facts.relations)

    @property
    def table_calls(self) -> frozenset[int]:
        """The places of calls that read a relation and are among `relations()`. Raises `InvalidSql`."""
        return frozenset(self.facts.table_calls)

    @property
    def effect(self) -> Effect | None:
        """The first thing that makes it more than a query: a write, a lock, INTO, a command. Raises `InvalidSql`."""
        return self.facts.effect
