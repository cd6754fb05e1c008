"""SQLite for dragoman: a complete example of a dialect plugin. `plugin.py` is where to begin.

`executor` hands callers' SQL to worker processes (`worker/`, `dragoman.workers`); `inspector` reads the catalog
(`tables`, `ddl`, `types`); `rules` and `allowed` say what may be called, and the worker asks them again; `rewrite/`
rewrites translated SQL; `demo` builds something to try.
"""
