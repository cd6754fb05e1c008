"""Filters and masks of roles: SQL in which `$user`, `$groups` and `$claim.NAME` stand for values."""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman.dialect import Dialect
from dragoman.errors import ConfigurationError, DragomanError, InvalidSql
from dragoman.model import Expression
from dragoman.sql import Statement
from dragoman.sql.expressions import read_expression
from dragoman.validators import read_query

Check = Callable[[Expression, Dialect], None]
MASKS = ("null", "hash", "partial", "year")
_QUOTED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_VALUE = re.compile(
    rf"""{_QUOTED}|(?<![\w$])\$(?:(user|groups)\b|claim\.(?:([A-Za-z_]\w*)|"([^"]+)")|value\.([A-Za-z_]\w*)|())"""
)


def expression(text: str, key: str, policy: str | None = None) -> Expression:
    """Return an expression with its values located.

    `policy`: the policy whose text it is; such a text may name `$value.NAME`.

    Raises `ConfigurationError`.
    """
    texts, values, position = [""], list[str](), 0
    for found in _VALUE.finditer(text):
        name, plain, quoted, own, unknown = found.groups()
        texts[-1] += text[position : found.start()]
        position = found.end()
        if unknown is not None or (own and policy is None):
            raise ConfigurationError(
                f"{key}: a $ stands for no value.", suggestion="Write $user, $groups or $claim.NAME."
            )
        if name or plain or quoted or own:
            values.append(name or (f"value.{policy}.{own}" if own else f"claim.{plain or quoted}"))
            texts.append("")
        else:
            texts[-1] += found[0]
    texts[-1] += text[position:]
    return Expression(tuple(texts), tuple(values))


def check(written: Expression, dialect: Dialect) -> None:
    """Raise `InvalidSql` or `UnsafeSql` unless the text is one expression that binds only values it names."""
    statement = read_expression(_write(written, dialect), "It", sqlglot=dialect.sqlglot, lexicon=dialect.lexicon)
    if sum(token.kind == "parameter" for token in statement.tokens) != len(written.values):
        raise InvalidSql("It has a parameter, or names a value inside a text.")


def check_mask(written: Expression, dialect: Dialect) -> None:
    """Check as `check` does, and raise `InvalidSql` for a mask that reads a relation.

    A filter may: it shows no values.
    """
    check(written, dialect)
    query = f"SELECT (\n{_write(written, dialect)}\n)"
    read = read_query(dialect, Statement.parse(query, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
    if read.relations:
        raise InvalidSql(f"It reads {read.relations[0].relation}: a mask may read only the table's own columns.")


def _write(written: Expression, dialect: Dialect) -> str:
    """Return an expression with a parameter for each of its values."""
    numbers = iter(range(1, len(written.values) + 1))
    return written.write(lambda _: f"${next(numbers)}" if dialect.placeholder == "$1" else "?")


def problem(written: Expression, dialect: Dialect, check: Check = check) -> DragomanError | None:
    """Return the problem of an expression, or None."""
    try:
        check(written, dialect)
    except DragomanError as error:
        return error
    return None


def disjoin(expressions: tuple[Expression, ...]) -> Expression:
    """Return expressions in parentheses with OR between them."""
    joined = Expression(("",))
    for place, each in enumerate(expressions):
        joined = concat(joined, " OR (\n" if place else "(\n", each, "\n)")
    return joined


def concat(*parts: Expression | str) -> Expression:
    """Return expressions and texts concatenated."""
    texts, values = [""], list[str]()
    for part in parts:
        more = Expression((part,)) if isinstance(part, str) else part
        texts[-1] += more.texts[0]
        texts += more.texts[1:]
        values += more.values
    return Expression(tuple(texts), tuple(values))
