"""The process that runs callers' SQL: `__main__` reads orders, `session` holds the connection, `statement` runs one."""
