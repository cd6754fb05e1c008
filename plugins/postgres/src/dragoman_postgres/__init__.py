"""PostgreSQL for dragoman. Start reading in `plugin.py`.

- `executor` runs callers' SQL over `pool`'s connections, which `connecting` opens.
- `wrapping` bounds a statement.
- `types` determines how its columns arrive.
- `parameters` and `values` convert values on their way in and out.
- `failures` translates errors.
"""
