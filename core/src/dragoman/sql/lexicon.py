"""What a dialect's lexer does differently: enough to blank comments and find quotes exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """How a dialect writes comments, quotes and names. The defaults are standard SQL's.

    `identifier_quotes`: opening characters; `[` closes with `]`, the others double themselves. `backslash_escapes`: in
    every string, as MySQL has them. `escape_strings`: only in E'...' ones, as Postgres has them. `dollar_quotes`:
    $tag$...$tag$. `nested_comments`: /* /* */ */ is one comment. `hash_comments`: # starts one.
    `spaced_comments`: -- starts one only before white space, as in MySQL; before anything else it is refused, since
    parsers disagree on it.
    `unclosed_comment_ends`: an unclosed /* runs to the end of the text instead of being an error, as in SQLite.
    `dollar_names`: names may hold $ after their first character. `parameters`: `?`, or `$` for $1 and on.
    `colon_casts`: `a::b` is a cast. `table_functions`: what a call in FROM may be besides a table that is searched, as
    SQLite's virtual tables are: `t('a')`; None where every call is a function. `marks`: of `{}$:`, those that are
    marks of the grammar here; elsewhere they are refused, or mean something of their own. `tables_in_lists`:
    `a IN (t)` may read the table t, as in ClickHouse; elsewhere a name there is a column's.
    """

    identifier_quotes: str = '"'
    backslash_escapes: bool = False
    escape_strings: bool = False
    dollar_quotes: bool = False
    nested_comments: bool = False
    hash_comments: bool = False
    spaced_comments: bool = False
    unclosed_comment_ends: bool = False
    dollar_names: bool = False
    parameters: str = "?"
    colon_casts: bool = False
    table_functions: frozenset[str] | None = None
    marks: str = ""
    tables_in_lists: bool = False
