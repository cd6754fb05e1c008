"""Queries written in other SQLs, rewritten for Postgres, or refused where Postgres would answer otherwise.

`tree` walks an allow list of nodes; `numbers`, `texts`, `patterns`, `dates`, `moments` and `arrays` know what each of
them means; `rewriting` is what they share.
"""

from dragoman_postgres.rewrite.tree import rewrite

__all__ = ["rewrite"]
