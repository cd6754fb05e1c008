"""Queries written in other SQLs, rewritten for Trino, or refused where Trino would answer otherwise.

`tree` walks an allow list of nodes; `queries`, `numbers`, `texts`, `patterns`, `casts`, `dates`, `documents` know what
each of them means; `truth` and `sqlite_dates` are what only SQLite needs; `rewriting` is what they share.
"""

from dragoman_trino.rewrite.tree import rewrite

__all__ = ["rewrite"]
