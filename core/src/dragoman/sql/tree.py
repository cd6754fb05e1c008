"""Parses a statement to its sqlglot tree. This module, `facts` and `translate` import sqlglot, on first use."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from dragoman.errors import InvalidSql
from dragoman.sql.calls import type_tails
from dragoman.sql.text import Token

if TYPE_CHECKING:
    from dragoman.sql.statement import Statement

# sqlglot logs text that it cannot parse, and a statement may hold secrets.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

MAX_STEPS = 40
"""The most parts, subscripts and calls one name may have in a row."""


def parse(statement: Statement) -> exp.Expr:
    """Return the tree of `statement`. Raises `InvalidSql` for any error of sqlglot."""
    try:
        return parse_text(statement, numberless(statement))
    except InvalidSql:
        plainer = _plainer(statement)
        if plainer == numberless(statement):
            raise
        return parse_text(statement, plainer)


def parse_text(statement: Statement, text: str) -> exp.Expr:
    """Return the tree of `text`, which stands for `statement`. Raises `InvalidSql`."""
    _check_chains(statement.tokens)
    try:
        trees = sqlglot.parse(text, read=statement.sqlglot)
    except ParseError as error:
        raise _invalid(statement, error) from None
    except RecursionError:
        raise InvalidSql(
            "The statement is nested too deeply.", suggestion="Use WITH to name inner queries instead of nesting them."
        ) from None
    except Exception:  # sqlglot's tokenizer and builders raise errors of many types for odd input; all mean the same
        raise _invalid(statement, None) from None
    if len(trees) != 1 or trees[0] is None:
        raise _invalid(statement, None)
    _check_queries(statement, trees[0])
    return _take_lists_for_tables(trees[0]) if statement.lexicon.tables_in_lists else trees[0]


def _check_queries(statement: Statement, tree: exp.Expr) -> None:
    """Refuse a query of which a part is not in its tree: sqlglot leaves out arguments that a function does not take."""
    written = sum(token.kind == "word" and token.text.lower() == "select" for token in statement.tokens)
    if written > 1 and isinstance(tree, exp.Query) and written > sum(1 for _ in tree.find_all(exp.Select)):
        raise InvalidSql(
            "A query in parentheses is an argument of a function that takes no such argument.",
            suggestion="Check the arguments of the statement's functions.",
        )


def _take_lists_for_tables(tree: exp.Expr) -> exp.Expr:
    """Change `a IN (t)` to `a IN t`, which reads t if there is such a table."""
    for node in tree.find_all(exp.In):
        if len(node.expressions) == 1 and isinstance(name := node.expressions[0].unnest(), exp.Column):
            node.set("expressions", None)
            node.set("field", name)
    return tree


def _check_chains(tokens: Iterable[Token]) -> None:
    """Refuse a name or value with too many steps after it: sqlglot's time for `a[1][1]` or `a.f().f()` is quadratic.

    Raises `InvalidSql`.
    """
    outer: list[int] = []
    steps, before = 0, ""
    for token in tokens:
        if token.kind == "open":
            outer.append(steps + 1 if before in {"close", "word", "name"} else 0)
            steps = 0
        elif token.kind == "close":
            steps = outer.pop() if outer else 0
        elif token.text == ".":
            steps += 1
        elif before != ".":
            steps = 0
        if steps > MAX_STEPS:
            raise InvalidSql(
                f"A name has more than {MAX_STEPS} parts, subscripts and calls in a row.",
                suggestion="Name inner results with WITH, and go on from there.",
                offset=token.start,
            )
        before = "." if token.text == "." else token.kind


def numberless(statement: Statement) -> str:
    """Return the text with `?2` written as `? `, since sqlglot knows only parameters without numbers.

    Offsets do not change.
    """
    numbered = (token for token in statement.tokens if token.kind == "parameter" and token.text[0] == "?")
    return _replace(statement.text, [(token, "?") for token in numbered]) if "?" in statement.text else statement.text


def _plainer(statement: Statement) -> str:
    """Return the text with constructs that sqlglot cannot parse replaced. Relations, calls and offsets do not change.

    `VALUES (1), (2)` becomes a SELECT of the same rows, `a LIKE b ESCAPE c` another expression of the three, the frame
    `GROUPS` becomes ROWS, `.5` the number 05, `CAST(a AS DOUBLE PRECISION)` a cast to one word; COLLATE is removed.
    """
    changes = [(token, "") for token in type_tails(statement.tokens)]
    for token, after in pairwise(statement.tokens):
        match token.text.lower():
            case "values" if after.text == "(":
                changes.append((token, "SELECT"))
            case "collate":
                changes += ((token, ""), (after, ""))
            case "escape":
                changes.append((token, "||"))
            case "groups" if after.kind == "number" or after.text.lower() in {"between", "current", "unbounded"}:
                changes.append((token, "ROWS"))
            case word if token.kind == "number" and word[0] == ".":
                changes.append((token, "0" + word[1:]))
            case _:
                pass
    return _replace(numberless(statement), changes)


def _replace(text: str, changes: list[tuple[Token, str]]) -> str:
    parts: list[str] = []
    copied = 0
    last = {token.start: (token, new) for token, new in changes}
    for _, (token, new) in sorted(last.items()):
        parts += (text[copied : token.start], new.ljust(len(token.text)))
        copied = token.end
    return "".join((*parts, text[copied:]))


def _invalid(statement: Statement, error: ParseError | None) -> InvalidSql:
    """Return the refusal of a text that does not parse, with the place where sqlglot stopped, if it reports one."""
    offset = None
    if error and error.errors and error.errors[0].get("line"):
        found = error.errors[0]
        lines = statement.text.splitlines(keepends=True)
        before = sum(len(line) for line in lines[: found["line"] - 1])
        offset = max(0, min(before + found["col"] - len(found.get("highlight") or "x"), len(statement.text) - 1))
    return InvalidSql("The statement does not parse.", suggestion="Check its syntax.", offset=offset)
