"""Rewrites queries that were written in other SQLs for Postgres, or refuses those it would answer differently.

`tree` walks an allow list of nodes. `numbers`, `texts`, `truth`, `dates`, `moments` and `aggregates` handle the nodes
of their kind. `rewriting` is shared by all.
"""

from dragoman_postgres.rewrite.tree import rewrite

__all__ = ["rewrite"]
