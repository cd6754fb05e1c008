"""Rewrites queries that were written in other SQLs for Trino, or refuses those that Trino would answer differently.

`tree` walks an allow list of nodes. `queries`, `numbers`, `texts`, `patterns`, `casts`, `dates` and `documents` handle
the nodes of their kind. Only SQLite's queries need `truth` and `sqlite_dates`. `rewriting` is shared by all.
"""

from dragoman_trino.rewrite.tree import rewrite

__all__ = ["rewrite"]
