"""DuckDB for dragoman: a file opened read-only, cut off from every other file, from the network and from extensions.

`plugin.py` is where to begin.
"""
