"""Trino for dragoman. `plugin.py` is where to begin."""
