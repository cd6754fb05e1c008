"""Queries written in other SQLs, rewritten for SQLite, or refused where SQLite would answer otherwise.

`tree` walks an allow list of nodes; `values`, `numbers`, `dates` and `patterns` know what each of them means;
`rewriting` is what they share.
"""

from dragoman_sqlite.rewrite.tree import rewrite

__all__ = ["rewrite"]
