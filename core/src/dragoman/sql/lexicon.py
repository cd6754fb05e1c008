"""How a dialect's lexer differs: enough to blank comments and find quotes exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """How a dialect writes comments, quotes and names. The defaults are standard SQL's.

    - `identifier_quotes`: opening characters. `[` closes with `]`; the others are doubled inside.
    - `backslash_escapes`: in every string, as in MySQL.
    - `escape_strings`: only in E'...' strings, as in Postgres.
    - `dollar_quotes`: $tag$...$tag$.
    - `nested_comments`: /* /* */ */ is one comment.
    - `hash_comments`: # starts a comment.
    - `spaced_comments`: -- starts a comment only before white space, as in MySQL. Before anything else it is refused,
      since parsers disagree about it.
    - `unclosed_comment_ends`: an unclosed /* runs to the end of the text instead of being an error, as in SQLite.
    - `dollar_names`: names may contain $ after their first character.
    - `parameters`: `?`, or `$` for $1 and so on.
    - `colon_casts`: `a::b` is a cast.
    - `table_functions`: calls in FROM that are functions. Any other call there is a search in a table, such as `t('a')`
      for SQLite's virtual tables. None: every call is a function.
    - `marks`: those of `{}$:` that are marks of the grammar here. Elsewhere they are refused, or have another meaning.
    - `tables_in_lists`: `a IN (t)` may read the table t, as in ClickHouse. Elsewhere a name there is a column's.
    - `outer_members`: a member of an inner WITH may read members of an outer WITH. Elsewhere such a name is a table's,
      as in MariaDB.
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
    outer_members: bool = False
