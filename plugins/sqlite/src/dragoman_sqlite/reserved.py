"""Words that need quotes as names.

SQLite 3.54 refuses them without quotes, or they begin a join or an operator.
"""

RESERVED = frozenset(
    "add all alter and as autoincrement between case cast check collate commit constraint create cross "
    "default deferrable delete distinct drop else escape except exists for foreign from full glob group "
    "having if in index inner insert intersect into is isnull join left like limit match natural not "
    "nothing notnull null on or order outer primary raise recursive references regexp returning right "
    "rollback select set table then to transaction union unique update using values when where window "
    "with".split()
)
