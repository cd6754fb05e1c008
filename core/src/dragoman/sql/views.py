"""Finds the query of a view in the definition that a database reports."""

from __future__ import annotations

from dragoman.errors import InvalidSql
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.statement import Statement
from dragoman.sql.text import MOST_MADE


def defining_query(definition: str, sqlglot: str, lexicon: Lexicon) -> Statement:
    """Return the query of a view. Its definition is that query, or the CREATE statement around it.

    Raises what `Statement.parse` raises, and `InvalidSql` for a CREATE without AS.
    """
    statement = Statement.parse(definition, sqlglot=sqlglot, lexicon=lexicon, most=MOST_MADE)
    if statement.tokens[0].text.lower() != "create":
        return statement
    depth = 0
    for token in statement.tokens:
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        if depth == 0 and token.text.lower() == "as":
            return statement.after(token.end)
    raise InvalidSql("The definition of a view holds no query.")
