"""An expression that callers or roles write, and that is put in parentheses."""

from __future__ import annotations

from dragoman.errors import InvalidSql, UnsafeSql
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.statement import Statement

STATEMENTS = frozenset({"select", "values", "with"})
EXAMPLE = "Give one boolean expression, such as status = 'paid'; subqueries stand in parentheses."


def read_expression(text: str, what: str, *, sqlglot: str, lexicon: Lexicon) -> Statement:
    """Return the text as a statement, if it stays within the parentheses it is put into. `what`: its name in errors.

    Raises what `Statement.parse` raises, `InvalidSql` for a statement and `UnsafeSql` for text that closes a
    parenthesis.
    """
    statement = Statement.parse(text, sqlglot=sqlglot, lexicon=lexicon)
    first = statement.tokens[0]
    if first.text.lower() in STATEMENTS:
        raise InvalidSql(f"{what} is a statement, not an expression.", suggestion=EXAMPLE, offset=first.start)
    depth = 0
    for token in statement.tokens:
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        if depth < 0:
            raise UnsafeSql(f"{what} closes a parenthesis it did not open.", suggestion=EXAMPLE, offset=token.start)
        if depth == 0 and token.text == ",":  # in parentheses, some engines make a row of two expressions
            raise InvalidSql(f"{what} is more than one expression.", suggestion=EXAMPLE, offset=token.start)
    return statement
