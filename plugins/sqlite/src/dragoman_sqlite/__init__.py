"""SQLite for dragoman: a complete example of a dialect plugin. `plugin.py` is where to begin.

`executor` hands callers' SQL to worker processes (`pool`, `worker`, `session`, `authorizer`); `inspector` reads the
catalog (`tables`, `ddl`); `rules` and `allowed` say what may be called; `rewrite` mends translated SQL.
"""
