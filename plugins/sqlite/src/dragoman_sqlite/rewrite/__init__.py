"""Rewrites queries that were written in other SQLs for SQLite, or refuses those that SQLite would answer differently.

`tree` walks an allow list of nodes. `values`, `numbers`, `dates` and `patterns` handle the nodes of their kind.
`rewriting` is shared by all.
"""

from dragoman_sqlite.rewrite.tree import rewrite

__all__ = ["rewrite"]
