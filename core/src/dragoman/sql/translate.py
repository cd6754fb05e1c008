"""Translates one SQL to another through a sqlglot tree. A statement that cannot be translated exactly is refused.

The core handles parameters and decides when to refuse. The dialect's `rewrite` handles what is particular to a target.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.dialect import Dialects
from sqlglot.errors import SqlglotError

from dragoman.errors import InvalidSql, ParameterError, Unsupported
from dragoman.sql.facts import is_query
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.literals import Change, written_out
from dragoman.sql.precedence import check_chains, check_complements, check_roots, write_out_precedence
from dragoman.sql.rewriting import UNKNOWN
from dragoman.sql.spelling import check_spelling
from dragoman.sql.stars import check_stars
from dragoman.sql.statement import Statement
from dragoman.sql.text import clean, tokens
from dragoman.sql.tree import parse_text
from dragoman.words import nearest

Rewrite = Callable[[exp.Expr], exp.Expr]
Placeholder = Literal["$1", "?"]

# sqlglot's generators take time that grows faster than the text.
MAX_LENGTH = 16 * 1024
LONGEST_WORD = 1000
"""The most characters of a number or a name. Python refuses to read much longer numbers."""
MOST_PARAMETERS = 100_000
# A call that no dialect has: every grammar reads it as a value, and every generator writes it unchanged.
_MARK = "DRAGOMAN_PARAMETER"
_POSTGRES = frozenset({"postgres", "redshift", "materialize", "risingwave", "duckdb"})
"""SQLs with the grammar of Postgres."""
_BOTH_PARAMETERS = frozenset({"duckdb"})
"""SQLs with `$1` in which a plain `?` is a parameter, too, and no operator."""
_ALIASES = {"postgresql": "postgres", "sqlserver": "tsql", "mariadb": "mysql"}


@dataclass(frozen=True, slots=True)
class Translation:
    """SQL for the target, and `notices` of what changed, in words.

    `order`: for its parameters, from first to last, the number of the source's value (from 1) that each takes; None if
    they are the source's own, in order.
    """

    sql: str
    order: tuple[int, ...] | None = None
    notices: tuple[str, ...] = ()


def translate(
    text: str, *, source: str, target: str, rewrite: Rewrite | None = None, placeholder: Placeholder = "?"
) -> Translation:
    """Translate one query from the SQL called `source` to sqlglot's `target`.

    `rewrite` gets the source's tree. Its parameters are named placeholders (`exp.Placeholder(this="2")`), and its
    `meta["source"]` names the SQL it was written in. It may add sentences to `meta["notices"]`. `placeholder` is the
    target's first parameter. Raises `ParameterError` for an unknown source, `InvalidSql` for what does not parse,
    `Unsupported` for what the target cannot express.
    """
    source = _grammar_name(source)
    if source == target:
        return Translation(text)
    if len(text) > MAX_LENGTH:
        raise InvalidSql(
            f"A statement of more than {MAX_LENGTH} characters is not translated.",
            suggestion=f"Write it in {target}, or pass long values as parameters.",
        )
    statement = Statement.parse(text, sqlglot=source, lexicon=_lexicon(source))
    if any(token.kind in ("word", "number") and len(token.text) > LONGEST_WORD for token in statement.tokens):
        raise InvalidSql(
            f"A number or a name of more than {LONGEST_WORD} characters is not translated.",
            suggestion="Pass long values as parameters.",
        )
    tree = tree_with_parameters(statement)
    if not is_query(tree):
        raise Unsupported("Only queries are translated.", suggestion="Send one SELECT, VALUES or WITH.")
    check_spelling(tree, source, target)
    if source == "sqlite":
        check_chains(tree)
    if source in _POSTGRES:
        check_complements(tree)
        check_roots(statement.text, statement.tokens)
    tree.meta.update(source=source, notices=check_stars(tree, source, target))
    tree = write_out_precedence(_rewrite(tree, rewrite))
    notices = tuple(dict.fromkeys((f"Translated from {source} to {target}.", *tree.meta["notices"])))
    sql, order = _number_parameters(_generate(tree, target), target, placeholder)
    return Translation(sql, order, notices)


def tree_with_parameters(statement: Statement) -> exp.Expr:
    """Return a statement's tree, in which parameters are named placeholders (`exp.Placeholder(this="2")`).

    Raises `InvalidSql`, and `ParameterError` for a parameter without a place among the values.
    """
    if _MARK in statement.text.upper():
        raise InvalidSql(f"{_MARK} is a reserved name.", suggestion="Use another name.")
    tree = parse_text(statement, _mark_parameters(statement))
    if named := tree.find(exp.Placeholder):
        raise _without_place(named.sql())
    return _with_placeholders(tree)


def write(tree: exp.Expr, target: str, placeholder: Placeholder) -> tuple[str, tuple[int, ...]]:
    """Return such a tree as text, and for each parameter, from first to last, the number of its value (from 1).

    Removes the tree's placeholders. Raises `Unsupported` for what the target cannot express.
    """
    text, numbers = _parameters(_generate(tree, target), target, placeholder, renumber=True)
    return text, tuple(numbers)


def _grammar_name(name: str) -> str:
    known = {grammar.value for grammar in Dialects if grammar.value} - {"prql", "dax", "solr"}
    found = _ALIASES.get(name.lower(), name.lower())
    if found not in known:
        near = nearest(found, sorted(known | _ALIASES.keys()), 3)
        raise ParameterError(
            f"from_dialect {name!r} is not known.",
            suggestion=f"Did you mean {', '.join(near)}?" if near else f"Use one of {', '.join(sorted(known))}.",
        )
    return found


@cache
def _lexicon(name: str) -> Lexicon:
    """Return a lexicon as far as sqlglot's tokenizer defines it. What runs is judged again with the dialect's own."""
    lexer = Grammar.get_or_raise(name).tokenizer_class
    dollars = "$" in lexer.HEREDOC_STRINGS
    quotes = "".join(quote[0] for quote in lexer.IDENTIFIERS)
    return Lexicon(
        identifier_quotes=quotes,
        backslash_escapes="\\" in lexer.STRING_ESCAPES,
        escape_strings=any(quote[0].lower() == "e'" for quote in lexer.BYTE_STRINGS),
        dollar_quotes=dollars,
        nested_comments=lexer.NESTED_COMMENTS,
        hash_comments="#" in lexer.COMMENTS,
        dollar_names=dollars,
        colon_casts="::" in lexer.KEYWORDS,
        parameters="$" if dollars else "?",
    )


# Parameters


def _mark_parameters(statement: Statement) -> str:
    """Return the text with a call for every parameter, which holds its number, and literals as sqlglot reads them."""
    changes = list(written_out(statement.text, statement.tokens, statement.sqlglot))
    last = 0
    for token in statement.tokens:
        is_mark = token.text == "?" and token.kind == "mark" and statement.sqlglot in _BOTH_PARAMETERS
        if token.kind == "parameter" or is_mark:
            # A plain ? takes the number after the largest so far, as in SQLite.
            number = _place(token.text[1:] or str(last + 1))
            last = max(last, number)
            changes.append(Change(token.start, token.end, f" {_MARK}({number}) "))
    parts: list[str] = []
    copied = 0
    for change in sorted(changes):
        parts += (statement.text[copied : change.start], change.text)
        copied = change.end
    return "".join((*parts, statement.text[copied:]))


def _place(written: str) -> int:
    """Return the place of a parameter among the values, from 1."""
    number = int(written) if re.fullmatch(r"[0-9]{1,6}", written) else 0
    if not 0 < number <= MOST_PARAMETERS:
        raise _without_place(written)
    return number


def _without_place(written: str) -> ParameterError:
    return ParameterError(
        f"The parameter {written[:100]!r} has no place among the values.",
        suggestion="Write ? or $1, $2, ..., as the source's dialect has them, and send the values in params, in order.",
    )


def _is_mark(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == _MARK


def _with_placeholders(tree: exp.Expr) -> exp.Expr:
    for node in list(tree.find_all(exp.Anonymous)):
        if _is_mark(node):
            node.replace(exp.Placeholder(this=node.expressions[0].name))
    return tree


def _generate(tree: exp.Expr, target: str) -> str:
    for node in list(tree.find_all(exp.Placeholder)):
        node.replace(exp.Anonymous(this=_MARK, expressions=[exp.Literal.number(node.name)]))
    try:
        return tree.sql(dialect=target, unsupported_level=ErrorLevel.RAISE, comments=False)
    except SqlglotError as error:
        raise Unsupported(
            f"It cannot be expressed in {target}: {error}.", suggestion=f"Write the query in {target} itself."
        ) from None
    except RecursionError:
        raise InvalidSql("The statement is nested too deeply.", suggestion="Shorten its chains of operators.") from None


def _number_parameters(sql: str, target: str, placeholder: Placeholder) -> tuple[str, tuple[int, ...] | None]:
    text, numbers = _parameters(sql, target, placeholder)
    straight = placeholder == "$1" or numbers == list(range(1, len(numbers) + 1))
    return text, None if straight else tuple(numbers)


def _parameters(sql: str, target: str, placeholder: Placeholder, *, renumber: bool = False) -> tuple[str, list[int]]:
    """Return the generated text with the target's own parameters instead of the calls, and their numbers.

    `renumber`: numbers in the text count from 1, in its order.
    """
    lexicon = _lexicon(target)
    found = tokens(clean(sql, lexicon), lexicon)
    parts: list[str] = []
    numbers: list[int] = []
    copied = 0
    for index, token in enumerate(found):
        if token.text.upper() == _MARK:
            numbers.append(int(found[index + 2].text))
            number = len(numbers) if renumber else numbers[-1]
            parts += (sql[copied : token.start], "?" if placeholder == "?" else f"${number}")
            copied = found[index + 3].end
    return "".join((*parts, sql[copied:])), numbers


# The target's own rewrite


def _rewrite(tree: exp.Expr, rewrite: Rewrite | None) -> exp.Expr:
    if rewrite is None:
        tree.meta["notices"].append(UNKNOWN)
        return tree
    kept = tree.meta
    tree = rewrite(tree)
    tree.meta.update(kept)
    return tree
