"""What a dialect's lexer does differently: enough to blank comments and find quotes exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """How a dialect writes comments, quotes and names. The defaults are standard SQL's.

    `identifier_quotes`: opening characters; `[` closes with `]`, the others double themselves. `backslash_escapes`: in
    every string, as MySQL has them. `escape_strings`: only in E'...' ones, as Postgres has them. `dollar_quotes`:
    $tag$...$tag$. `nested_comments`: /* /* */ */ is one comment. `hash_comments`: # starts one.
    `unclosed_comment_ends`: an unclosed /* runs to the end of the text instead of being an error, as in SQLite.
    `dollar_names`: names may hold $ after their first character. `parameters`: `?`, or `$` for $1 and on.
    `callable_tables`: `t(1)` in FROM may read a table t with an argument, as SQLite's virtual tables are read.
    """

    identifier_quotes: str = '"'
    backslash_escapes: bool = False
    escape_strings: bool = False
    dollar_quotes: bool = False
    nested_comments: bool = False
    hash_comments: bool = False
    unclosed_comment_ends: bool = False
    dollar_names: bool = False
    parameters: str = "?"
    callable_tables: bool = False
