"""The process callers' SQL runs in: `__main__` reads orders, `session` holds the connection, `statement` runs one."""
