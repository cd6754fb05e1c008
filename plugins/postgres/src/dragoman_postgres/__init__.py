"""PostgreSQL for dragoman. `plugin.py` is where to begin.

`executor` runs callers' SQL over `pool`'s connections, which `connecting` opens; `wrapping` bounds a statement, `types`
says how its columns arrive, `parameters` and `values` what goes in and what comes out, `failures` what went wrong.
"""
