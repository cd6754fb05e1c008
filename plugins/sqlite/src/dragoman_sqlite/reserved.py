"""Words that SQLite does not take as names without quotes; its other keywords it does. Tried on SQLite 3.54."""

RESERVED = frozenset(
    (
        "add all alter and as autoincrement between case cast check collate commit constraint create default deferrable "
        "delete distinct drop else escape except exists foreign from group having if in index insert intersect into is "
        "isnull join limit not nothing notnull null on or order primary raise recursive references returning select set "
        "table then to transaction union unique update using values when where "
    ).split()
)
