"""What the words of a statement show, even if it does not parse: a write is refused as a write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.parsed import Refusal
from dragoman.sql.calls import verbs
from dragoman.sql.statement import Statement
from dragoman.sql.text import Token

if TYPE_CHECKING:
    from dragoman.sql.facts import Facts

READ_ONLY = "Only queries are run here: SELECT, VALUES, and WITH in front of them."
_QUERY_WORDS = frozenset({"select", "values", "with", "from"})
# Words that begin a statement that is not a query, in any SQL that we know. The first word shows what was meant even if
# no parser here can parse the rest.
_OTHER_WORDS = frozenset(
    "abort alter analyse analyze attach backup begin cache call checkpoint checksum clear close cluster comment commit"
    " copy create deallocate declare delete deny desc describe detach discard do drop dump end exec execute explain"
    " export fetch flush grant handler import insert install kill listen load lock merge move msck notify optimize"
    " pragma prepare purge reassign refresh reindex release rename repair replace reset resignal restore revoke"
    " rollback savepoint security set show shutdown signal start summarize truncate uncache undrop unlisten unload"
    " unlock update upsert use vacuum".split()
)
# Where a dialect reserves these they cannot be names, so no query has them outside quotes.
_WRITE_WORDS = frozenset("alter create delete drop insert into set update".split())
# An engine may read a statement of these in parentheses as a relation or a value: FROM (SHOW TABLES), 'x' = ANY (SHOW
# TABLES). sqlglot reads it as a table or a column with an alias.
_INSPECTING_WORDS = frozenset("desc describe explain pragma show summarize".split())
# What an engine may read as a statement, and as a relation in parentheses.
_RELATIONS = frozenset({"PIVOT", "UNPIVOT"})
_TOOLS = {
    "explain": "Use explain_query with the query itself.",
    "describe": "Use describe_table.",
    "desc": "Use describe_table.",
    "show": "Use list_tables, describe_table or list_schemas.",
    "summarize": "Select what is asked for, such as count(*), min(x), max(x) and approx_count_distinct(x).",
    "pragma": "Use list_databases, list_tables or describe_table; only PRAGMAs that read the catalog are run.",
}


def no_query(statement: Statement, reserved: frozenset[str]) -> Refusal | None:
    """Return why its words alone show that it is not a query, or None.

    `reserved`: the dialect's words, in lower case.
    """
    meant = next(filter(None, map(_other_statement, verbs(statement.tokens))), None)
    if meant:
        return meant
    first = next(verbs(statement.tokens), None)
    if first is None or first.text.lower() not in _QUERY_WORDS:
        word = first.text.upper() if first else ""
        write = f"Write SELECT * FROM ({word} ...)." if word in _RELATIONS else READ_ONLY
        return Refusal("invalid", "The statement does not begin as a query.", write, first.start if first else None)
    writes = _WRITE_WORDS & reserved
    for token in statement.tokens:
        if token.kind == "word" and token.text.lower() in writes:
            return Refusal("write", f"{token.text.upper()} is not part of a query.", READ_ONLY, token.start)
    return None


def no_names(facts: Facts, reserved: frozenset[str]) -> Refusal | None:
    """Return why names without quotes may be words of a statement instead, or None.

    A column may have such a name where the dialect does not reserve it.
    """
    words = _INSPECTING_WORDS | (_OTHER_WORDS & reserved)
    found = {word: place for word, place in facts.bare_columns.items() if word in reserved} | facts.bare
    word = next((word for word in found if word in words), None)
    if word is None:
        return None
    told = f"{word.upper()} without quotes may be a statement, which is not part of a query."
    return Refusal("write", told, _TOOLS.get(word, READ_ONLY) + " A name needs quotes.", found[word])


def _other_statement(verb: Token) -> Refusal | None:
    word = verb.text.lower()
    if word not in _OTHER_WORDS:
        return None
    return Refusal("write", f"{word.upper()} is not a query.", _TOOLS.get(word, READ_ONLY), verb.start)
