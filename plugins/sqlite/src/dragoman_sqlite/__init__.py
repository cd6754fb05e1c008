"""SQLite for dragoman: a complete example of a dialect plugin. Start reading in `plugin.py`.

- `executor` sends callers' SQL to worker processes (`worker/`, `dragoman.workers`).
- `inspector` reads the catalog, with the help of `tables`, `ddl` and `types`.
- `rules` and `allowed` list what may be called. The worker checks it again.
- `rewrite/` rewrites translated SQL.
- `demo` builds databases to try.
"""
