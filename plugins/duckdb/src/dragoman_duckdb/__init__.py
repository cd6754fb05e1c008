"""DuckDB for dragoman: a file opened read-only, without access to other files, the network or extensions.

Start reading in `plugin.py`.
"""
