"""Words that need quotes as names.

SQLite 3.54 refuses them without quotes, or they begin a join or an operator, or are values: `current_date` is never a
column, and `true` is one only of a table, not of a subquery.
"""

RESERVED = frozenset(
    "add all alter and as autoincrement between case cast check collate commit constraint create cross "
    "current_date current_time current_timestamp default deferrable delete distinct drop else escape "
    "except exists false for foreign from full glob group having if in index inner insert intersect into "
    "is isnull join left like limit match natural not nothing notnull null on or order outer primary raise "
    "recursive references regexp returning right rollback select set table then to transaction true union "
    "unique update using values when where window with".split()
)
